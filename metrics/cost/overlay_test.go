package cost

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Six runs of 4 epochs at 1000, 2000 … 6000 W for an hour each: 3.5 kWh in the middle,
// 0.875 kWh an epoch; to the target of 0.9 half of that, which two runs miss.
func energetic() Configuration {
	c := Configuration{Series: "native", Workers: 1}
	for i := range 6 {
		joules := float64(i+1) * 1000 * 3600
		run := PricedRun{Seconds: 3600, Joules: &joules, Epochs: 4, Targets: map[measure.Target]float64{measure.Accuracy(0.5): 900, measure.Accuracy(0.9): 1800}, Values: map[string]float64{measure.JoulesToTarget: joules / 2}}
		if i >= 4 {
			run.Targets[measure.Accuracy(0.9)] = math.Inf(1)
			delete(run.Values, measure.JoulesToTarget)
		}
		c.Runs = append(c.Runs, run)
	}
	return c
}

func TestEnergy(t *testing.T) {
	low, high := measure.Accuracy(0.5), measure.Accuracy(0.9)
	for name, test := range map[string]struct {
		change func(*Configuration)
		work   Work
		kWh    float64 // 0: none, because of why
		why    string
	}{
		"a run":     {nil, Work{}, 3.5, ""},
		"an epoch":  {nil, Work{Epoch: true}, 0.875, ""},
		"some miss": {nil, Work{Target: &high}, 1.75, ""},
		"to 0.9": {func(c *Configuration) {
			for i := range c.Runs {
				c.Runs[i].Targets[measure.Accuracy(0.9)], c.Runs[i].Values[measure.JoulesToTarget] = 1800, *c.Runs[i].Joules/2
			}
		}, Work{Target: &high}, 1.75, ""},
		"to 0.5":    {nil, Work{Target: &low}, 0, "6 of 6 runs: energy is known to the hardest target alone"},
		"a million": {nil, Work{Million: true}, 0, "power is a mean over all loads"},
		"one lacks it": {func(c *Configuration) { c.Runs[2].Joules, c.Runs[2].WhyNoJoules = nil, "energy_uj: permission denied" }, Work{}, 0,
			"1 of 6 runs: energy_uj: permission denied"},
		"two lack it": {func(c *Configuration) {
			for i := range 2 {
				c.Runs[i].Joules, c.Runs[i].WhyNoJoules = nil, "no counter"
			}
		}, Work{}, 0, "2 of 6 runs: no counter"},
		"no epoch": {func(c *Configuration) { c.Runs[5].Epochs = 0 }, Work{Epoch: true}, 0, "1 of 6 runs: no finished epoch recorded"},
		"one epoch": {func(c *Configuration) {
			for i := range c.Runs {
				c.Runs[i].Epochs = 1
			}
		}, Work{Epoch: true}, 3.5, ""},
		"no target":             {func(c *Configuration) { clear(c.Runs[0].Targets) }, Work{Target: &high}, 0, "1 of 6 runs: had no target " + high.String()},
		"not to the target":     {func(c *Configuration) { c.Runs[0].WhyNoJoules = "no counter"; clear(c.Runs[0].Values) }, Work{Target: &high}, 0, "1 of 6 runs: no counter"},
		"one run, which misses": {func(c *Configuration) { c.Runs = c.Runs[5:] }, Work{Target: &high}, 0, "too many runs miss the target for a median"},
	} {
		c := energetic()
		if test.change != nil {
			test.change(&c)
		}
		rows, err := Compare([]Configuration{c}, Options{Work: test.work})
		if err != nil {
			t.Fatal(err)
		}
		one := 1.0
		got := PerKWh(rows[0].Energy, &one)
		switch {
		case test.kWh == 0:
			if got != nil || !strings.Contains(rows[0].WhyNoEnergy, test.why) {
				t.Errorf("%s: %+v, because %q; want none, because %q", name, got, rows[0].WhyNoEnergy, test.why)
			}
		case got == nil || math.Abs(got.Value-test.kWh) > 1e-12:
			t.Errorf("%s: %+v (%s), want %g kWh", name, got, rows[0].WhyNoEnergy, test.kWh)
		}
	}
	// Each way to count energy is named once; sampling is not named.
	c := energetic()
	for i, of := range []string{"", "the node's meter", "the node's meter", "the GPUs alone", "", ""} {
		c.Runs[i].JoulesOf = of
	}
	if rows, err := Compare([]Configuration{c, {}}, Options{}); err != nil || !slices.Equal(rows[0].EnergyOf, []string{"the node's meter", "the GPUs alone"}) || rows[1].WhyNoEnergy != "" {
		t.Errorf("%q; without runs: %q, %v", rows[0].EnergyOf, rows[1].WhyNoEnergy, err)
	}
	// The interval of six runs is from the least to the largest, and scales along; what
	// the site does not say has no price, which differs from a price of 0.
	price := 0.3
	rows, err := Compare([]Configuration{energetic()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := PerKWh(rows[0].Energy, &price)
	if e.Interval == nil || math.Abs(e.Interval.Low-0.3) > 1e-12 || math.Abs(e.Interval.High-1.8) > 1e-12 || math.Abs(e.Value-1.05) > 1e-12 {
		t.Errorf("%+v", e)
	}
	if PerKWh(rows[0].Energy, nil) != nil || PerKWh(nil, &price) != nil {
		t.Error("something came of nothing")
	}
}
