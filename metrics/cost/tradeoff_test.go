package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// config is a configuration whose runs took these seconds, over 4 epochs, at a
// price of hour an hour.
func config(series string, workers int, hour float64, parameters map[string]any, seconds ...float64) Configuration {
	c := Configuration{Series: series, Workers: workers, Parameters: parameters}
	rate := &Rate{Currency: "USD", Parts: []Part{{Units: 1, Price: Price{Per: PerNode, Hour: hour, Currency: "USD"}}}}
	for _, s := range seconds {
		c.Runs = append(c.Runs, PricedRun{Seconds: s, Rate: rate, Epochs: 4, Targets: map[measure.Target]float64{measure.Accuracy(0.5): s / 2, measure.Accuracy(0.9): math.Inf(1)}})
	}
	return c
}

func platform(name string) map[string]any { return map[string]any{"platform": name} }

func near(t *testing.T, what string, e *scaling.Estimate, want float64) {
	t.Helper()
	switch {
	case e == nil:
		t.Errorf("%s: none, want %g", what, want)
	case math.Abs(e.Value-want) > 1e-12*math.Abs(want):
		t.Errorf("%s: %.15g, want %.15g", what, e.Value, want)
	}
}

// An instance at 0.90 an hour takes 2 h, one at 3.06 takes 20 min: a sixth of
// the time, 3.06·(1/3)/(0.90·2) = 0.5667 of the cost; it may get 1/0.5667 times
// as dear. A third one at 0.50 takes 10 h, 5.00 in all: dominated.
func TestCompare(t *testing.T) {
	rows, err := Compare([]Configuration{
		config("p2", 1, 0.90, platform("p2"), 7200),
		config("p3", 1, 3.06, platform("p3"), 1200),
		config("c5", 1, 0.50, platform("c5"), 36000),
	}, Options{Baseline: []scaling.Condition{{Key: "platform", Value: "p2"}}})
	if err != nil {
		t.Fatal(err)
	}
	p2, p3, c5 := rows[0], rows[1], rows[2]
	near(t, "cost of the base", p2.Cost, 1.80)
	near(t, "time at the base", p2.TimeNormalised, 1)
	near(t, "time", p3.TimeNormalised, 1.0/6)
	near(t, "cost", p3.CostNormalised, 1.02/1.80)
	if even := p3.BreakEven; even == nil || math.Abs(*even-1.80/1.02) > 1e-12 {
		t.Errorf("break-even %v", even)
	}
	near(t, "cost of an epoch", p3.CostPerEpoch, 1.02/4)
	near(t, "cost to 0.5", p3.Targets[0].Cost, 0.51)
	if miss := p3.Targets[1]; miss.Cost != nil || miss.Reached != 0 || miss.Runs != 1 {
		t.Errorf("to a target that is missed: %+v", miss)
	}
	if p2.Front || !p3.Front || c5.Front {
		t.Errorf("front: %v %v %v", p2.Front, p3.Front, c5.Front)
	}
	if p3.Time.Interval != nil || !strings.HasPrefix(p3.Time.Why, "too few runs") || p3.TimeNormalised.Why == "" {
		t.Errorf("one run has no interval: %+v", p3.Time)
	}
}

// Each configuration is divided by the one that is otherwise the same.
func TestBaseline(t *testing.T) {
	grid := func(workers int, batch int64, seconds float64) Configuration {
		return config("b", workers, 1, map[string]any{"workload.batch": batch}, seconds)
	}
	list := []Configuration{grid(1, 64, 100), grid(2, 64, 60), grid(1, 128, 80), grid(4, 128, 20)}
	rows, err := Compare(list, Options{Baseline: []scaling.Condition{{Key: "workers", Value: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 0.6, 1, 0.25} {
		near(t, "time", rows[i].TimeNormalised, want)
	}
	// With both, all are divided by one.
	rows, err = Compare(list, Options{Baseline: []scaling.Condition{{Key: "workers", Value: "1"}, {Key: "batch", Value: "64"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 0.6, 0.8, 0.2} {
		near(t, "time over one", rows[i].TimeNormalised, want)
	}
	// By batch, 4 workers have no partner.
	rows, err = Compare(list, Options{Baseline: []scaling.Condition{{Key: "batch", Value: "64"}}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "time by batch", rows[2].TimeNormalised, 0.8)
	if rows[3].TimeNormalised != nil || !strings.Contains(rows[3].WhyNoBase, "no configuration with batch=64 has workers=4") {
		t.Errorf("%+v", rows[3])
	}
	for text, want := range map[string]string{"workers=3": "valid: 1, 2, 4", "colour=red": "the key colour; valid: workers, workload.batch"} {
		c, err := scaling.ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compare(list, Options{Baseline: []scaling.Condition{c}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "workers", "=1"} {
		if _, err := scaling.ParseCondition(text); err == nil {
			t.Errorf("%q was taken for a baseline", text)
		}
	}
}

// The front is over the cost and the measure, in the measure's direction. Runs without a value
// are left out of medians, with a note. At 3600 an hour 100 tokens/s are 100 tokens for 1, at 7200 are
// 300 tokens/s 150.
func TestMeasure(t *testing.T) {
	tokens := func(better measure.Direction) measure.Measure { return measure.Reported("tokens", "tokens/s", better) }
	var obs []scaling.Observation
	run := func(id string, workers int, values map[string]float64) {
		obs = append(obs, scaling.Observation{Run: id, Study: "s", Point: fmt.Sprint(workers), Framework: "f", Workers: workers, Values: values,
			Parameters: map[string]any{"workers": int64(workers)}, Reported: []measure.Measure{tokens(measure.Neither)}})
	}
	run("a", 1, map[string]float64{"tokens": 100})
	run("b", 1, nil)
	run("c", 2, map[string]float64{"tokens": 300})
	run("d", 3, map[string]float64{"tokens": -20})
	run("e", 4, nil)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	var noBase *scaling.NoBaseError // nothing is divided by workers here
	if err != nil && !errors.As(err, &noBase) {
		t.Fatal(err)
	}
	list := []Configuration{config("f", 1, 3600, nil, 10, 10), config("f", 2, 7200, nil, 20), config("f", 3, 7200, nil, 30), config("f", 4, 1, nil, 1)}
	for i := range list {
		list[i].Parameters, list[i].Measured = map[string]any{}, curves[0].Points[i].Measures
		for k, r := range curves[0].Points[i].Runs {
			list[i].Runs[k].Values = r.Values
		}
	}
	type row struct {
		Value, Bought, Gain float64 // 0: none
		Front, Judged       bool
		Why                 string
	}
	value := func(e *scaling.Estimate) float64 {
		if e == nil {
			return 0
		}
		return e.Value
	}
	for better, want := range map[measure.Direction][]row{
		// 300 for twice the price is dearer than 100, and better.
		measure.Higher:  {{100, 100, 1, true, true, ""}, {300, 150, 3, true, true, ""}, {-20, -10, 0, false, true, ""}, {0, 0, 0, false, false, "no run has tokens"}},
		measure.Lower:   {{100, 100, 1, true, true, ""}, {300, 150, 1. / 3, false, true, ""}, {-20, -10, 0, true, true, ""}, {0, 0, 0, false, false, "no run has tokens"}},
		measure.Neither: {{100, 100, 0, false, false, ""}, {300, 150, 0, false, false, ""}, {-20, -10, 0, false, false, ""}, {0, 0, 0, false, false, "no run has tokens"}},
	} {
		o := Options{Measure: tokens(better), Baseline: []scaling.Condition{{Key: "workers", Value: "1"}}}
		rows, err := Compare(list, o)
		if err != nil {
			t.Fatal(err)
		}
		var got []row
		for _, r := range rows {
			got = append(got, row{value(r.Value), value(r.Bought), value(r.Gain), r.Front, o.Judged(r), r.WhyNoValue})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("better %q: %s", better, diff)
		}
		if w := rows[0].Warnings; len(w) != 1 || w[0] != "f, 1 worker: 1 of 2 runs without tokens, counted only in time and cost" {
			t.Errorf("%q", w)
		}
	}
}

// A price that is missing leaves the cost out and says so; the time stays.
func TestWithoutPrice(t *testing.T) {
	c := config("a", 1, 1, nil, 10, 20, 30)
	c.Runs[1].Rate, c.Runs[1].WhyNoRate = nil, "no price holds"
	rows, err := Compare([]Configuration{c}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := rows[0]
	near(t, "time", r.Time, 20)
	if r.Cost != nil || r.Rate != nil || r.CostPerEpoch != nil || r.Front || r.Why != "no price holds" || r.Targets[0].Cost != nil || r.Targets[0].Why == "" {
		t.Errorf("%+v", r)
	}
}

func TestWork(t *testing.T) {
	short, long := config("a", 1, 3600, nil, 10, 12, 14, 16, 18, 20), config("a", 2, 3600, nil, 24)
	for i := range short.Runs {
		short.Runs[i].Epochs = 2
	}
	rows, err := Compare([]Configuration{short, long}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := rows[0].Warnings; len(w) != 1 || !strings.Contains(w[0], "2, 4 epochs") {
		t.Errorf("runs of different length: %q", w)
	}
	rows, err = Compare([]Configuration{short, long}, Options{Work: Work{Epoch: true}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "time of an epoch", rows[0].Time, 7.5)
	near(t, "cost of an epoch", rows[1].Cost, 6)
	if in := rows[0].Cost.Interval; in == nil || in.Low != 5 || in.High != 10 || rows[0].Warnings != nil {
		t.Errorf("%+v, %q", rows[0].Cost, rows[0].Warnings)
	}
	target := measure.Accuracy(0.5)
	short.Runs[5].Targets[measure.Accuracy(0.5)] = math.Inf(1)
	rows, err = Compare([]Configuration{short}, Options{Work: Work{Target: &target}})
	if err != nil {
		t.Fatal(err)
	}
	// 5, 6, 7, 8, 9 and one that misses, which ranks last: 7.5, without an interval, whose
	// upper end would be the miss.
	near(t, "time to 0.5 of six", rows[0].Time, 7.5)
	near(t, "cost to 0.5 of six", rows[0].Cost, 7.5)
	if rows[0].Time.Interval != nil || !strings.Contains(rows[0].Time.Why, "no upper end") {
		t.Errorf("%+v", rows[0].Time)
	}
	nine := short
	nine.Runs = append(slices.Clone(short.Runs), short.Runs[0], short.Runs[0], short.Runs[0])
	rows, err = Compare([]Configuration{nine}, Options{Work: Work{Target: &target}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "time to 0.5", rows[0].Time, 6) // 5, 5, 5, 5, 6, 7, 8, 9 and the miss
	if in := rows[0].Time.Interval; in == nil || in.Low != 5 || in.High != 9 {
		t.Errorf("%+v", rows[0].Time)
	}
	missed := measure.Accuracy(0.9)
	rows, err = Compare([]Configuration{short}, Options{Work: Work{Target: &missed}})
	if err != nil || rows[0].Time != nil || rows[0].Cost != nil || !strings.Contains(rows[0].Why, "reached by no more than half of the runs") {
		t.Errorf("%+v, %v", rows[0], err)
	}
}

// Missing measurements give no figures, and no panic.
func TestNothing(t *testing.T) {
	rows, err := Compare([]Configuration{{Series: "empty", Workers: 1}, {Series: "zero", Workers: 2, Runs: []PricedRun{{}}}},
		Options{Baseline: []scaling.Condition{{Key: "workers", Value: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Time != nil || r.Cost != nil || r.TimeNormalised != nil || r.BreakEven != nil || r.Front {
			t.Errorf("%+v", r)
		}
	}
}

// 12 runs on six nodes, one of them slow, at 1 USD a second: where that matters,
// the nodes' medians are 80 and, of 100+n/10 and 100.6+n/10, 100.3 to 100.8, and
// the interval of six values is all of them. Two nodes are too few for one.
func TestByNode(t *testing.T) {
	six := func() Configuration {
		c := config("native", 1, 3600, nil)
		for i := range 12 {
			seconds := 100 + float64(i)/10
			if i%6 == 3 {
				seconds = 80
			}
			run := config("", 1, 3600, nil, seconds).Runs[0]
			run.Hosts, run.Values = []string{fmt.Sprint("n", i%6)}, map[string]float64{"rate": seconds}
			c.Runs = append(c.Runs, run)
		}
		c.Measured = []*scaling.Summary{{Measure: measure.Measure{Name: "rate", Unit: "tokens/s"}, Runs: 12}}
		for _, r := range c.Runs {
			c.Measured[0].Values = append(c.Measured[0].Values, r.Values["rate"])
		}
		return c
	}
	compare := func(c Configuration) Row {
		rows, err := Compare([]Configuration{c}, Options{Measure: measure.Measure{Name: "rate", Unit: "tokens/s", Better: measure.Higher}})
		if err != nil {
			t.Fatal(err)
		}
		return rows[0]
	}
	ends := func(r Row) map[string]*scaling.Interval {
		return map[string]*scaling.Interval{"time": r.Time.Interval, "cost": r.Cost.Interval, "bought": r.Bought.Interval,
			"cost of an epoch": r.CostPerEpoch.Interval, "time to 0.5": r.Targets[0].Time.Interval, "cost to 0.5": r.Targets[0].Cost.Interval}
	}
	alike, apart := six(), six()
	alike.ByNode = true
	for what, in := range ends(compare(alike)) {
		times := map[string]float64{"cost of an epoch": 0.25, "time to 0.5": 0.5, "cost to 0.5": 0.5}[what]
		if times == 0 {
			times = 1
		}
		if in == nil || in.Low != 80*times || math.Abs(in.High-100.8*times) > 1e-9 || in.Level != 1-2.0/64 {
			t.Errorf("%s by node: %+v, want %g to %g", what, in, 80*times, 100.8*times)
		}
	}
	for what, in := range ends(compare(apart)) {
		if in == nil || in.Level == 1-2.0/64 {
			t.Errorf("%s of runs that do not go by node: %+v", what, in)
		}
	}
	for i := range alike.Runs {
		alike.Runs[i].Hosts = []string{fmt.Sprint("n", i%2)}
	}
	for what, in := range ends(compare(alike)) {
		if in != nil {
			t.Errorf("%s on two nodes: %+v", what, in)
		}
	}
	if why := compare(alike).Cost.Why; why != "runs that share a node count as one, so 12 runs count as 2: too few runs for an interval (2 of 6 needed)" {
		t.Errorf("why: %q", why)
	}
}

// A machine gets slower by a tenth from block to block. Within each block, the second
// platform takes half as long, at three times the price. On that machine, measuring all
// runs of one platform first shows nothing. If results depend on the node, runs that share
// a node do not form blocks.
func TestRatiosWithinBlocks(t *testing.T) {
	rate := func(hour float64) *Rate {
		return &Rate{Currency: "USD", Parts: []Part{{Units: 1, Price: Price{Per: PerNode, Hour: hour, Currency: "USD"}}}}
	}
	rows := func(inBlocks, byNode bool) Row {
		list := []Configuration{{Series: "a", Workers: 1, Parameters: platform("a"), ByNode: byNode}, {Series: "b", Workers: 1, Parameters: platform("b"), ByNode: byNode}}
		for repeat := range 8 {
			for i := range list {
				at := 2*repeat + i
				if !inBlocks {
					at = 8*i + repeat
				}
				seconds := 1000 * math.Pow(1.1, float64(repeat)) / float64(1+i)
				host := fmt.Sprint("n", repeat)
				list[i].Runs = append(list[i].Runs, PricedRun{Seconds: seconds, Rate: rate(float64(1 + 2*i)), Epochs: 1, Hosts: []string{host},
					Made: &scaling.Observation{Study: "s", Repeat: repeat + 1, BeganUnix: 1e9 + 2000*float64(at), Hosts: []string{host}}})
			}
		}
		rows, err := Compare(list, Options{Baseline: []scaling.Condition{{Key: "platform", Value: "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		return rows[1]
	}
	r := rows(true, false)
	for what, is := range map[string]struct {
		*scaling.Estimate
		want float64
	}{"time": {r.TimeNormalised, 0.5}, "cost": {r.CostNormalised, 1.5}} {
		near(t, what, is.Estimate, is.want)
		if in := is.Interval; !is.Adjusted || is.Runs != 8 || in == nil || math.Abs(in.Low-is.want) > 1e-9 || math.Abs(in.High-is.want) > 1e-9 {
			t.Errorf("%s: %+v %+v", what, is.Estimate, is.Interval)
		}
	}
	near(t, "break-even", &scaling.Estimate{Value: *r.BreakEven}, 1/1.5)
	if e := rows(true, true).TimeNormalised; e.Adjusted || e.Interval == nil || e.Interval.High < 0.6 {
		t.Errorf("where the node matters: %+v %+v", e, e.Interval)
	}
	if e := rows(false, false).TimeNormalised; e.Adjusted || e.Interval != nil || !strings.Contains(e.Why, "made before or after") {
		t.Errorf("one after the other: %+v %+v", e, e.Interval)
	}
}
