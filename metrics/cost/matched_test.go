package cost

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// service returns six runs of a service that carry 90, 94, 98, 102, 106 and 110 % of a rate.
func service(t *testing.T, platform string, replicas int, hour, rate float64) Configuration {
	t.Helper()
	c := config("triton platform="+platform, replicas, hour, map[string]any{"platform": platform})
	s := &scaling.Summary{Measure: rates(t)}
	for i := range 6 {
		x := rate * (0.9 + 0.04*float64(i))
		run := config("", replicas, hour, nil, 1e6/x).Runs[0]
		run.ID, run.Values = fmt.Sprint(platform, replicas, i), map[string]float64{measure.RateWithinLimit: x}
		c.Runs = append(c.Runs, run)
		s.Values = append(s.Values, x)
	}
	s.Runs, s.Median = 6, &scaling.Estimate{Value: rate, Runs: 6}
	c.Measured = []*scaling.Summary{s}
	return c
}

func rates(t *testing.T) measure.Measure {
	m, err := measure.Find(measure.RateWithinLimit)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A GPU at 4 an hour carries 900 requests/s. Four CPU replicas at 1 each carry 300
// together, less than four times the 100 of one: at equal cost an hour it is 900/300 = 3
// times, while dividing the costs per answer by those of one replica would give 2.25.
func TestMatched(t *testing.T) {
	o := Options{Work: Work{Million: true}, Measure: rates(t), Baseline: []scaling.Condition{{Key: "platform", Value: "cpu"}}}
	rows, err := Compare([]Configuration{service(t, "cpu", 1, 1, 100), service(t, "cpu", 4, 4, 300), service(t, "gpu", 1, 4, 900)}, o)
	if err != nil {
		t.Fatal(err)
	}
	gpu := rows[2]
	near(t, "cost", gpu.CostNormalised, 1/2.25)
	near(t, "at equal cost", gpu.Matched.Gain, 3)
	// Each median lies between 0.9 and 1.1 of itself: the distances of the ends on the
	// logarithm are √(log²(1/0.9)+log²(1.1)) either way.
	away := math.Hypot(math.Log(0.9), math.Log(1.1))
	if in := gpu.Matched.Gain.Interval; in == nil || math.Abs(in.Low-3*math.Exp(-away)) > 1e-9 || math.Abs(in.High-3*math.Exp(away)) > 1e-9 {
		t.Errorf("interval %+v", in)
	}
	if gpu.Matched.Base != "triton platform=cpu, 4 replicas" || gpu.Matched.BasePerHour != 4 {
		t.Errorf("over %+v", gpu.Matched)
	}
	for _, r := range rows[:2] {
		if g := r.Matched.Gain; g == nil || g.Value != 1 || g.Why != AtBaseline {
			t.Errorf("%d replicas of the baseline: %+v", r.Workers, r.Matched)
		}
	}

	for _, test := range []struct {
		what string
		list []Configuration
		gain float64 // of the first; 0: none
		why  string
	}{
		// 3.8 an hour pays for 3.8 replicas. Four cost 5 % more, so answers per cost are compared.
		{"nearly", []Configuration{service(t, "gpu", 1, 3.8, 900), service(t, "cpu", 4, 4, 300)}, 3 * 4 / 3.8, ""},
		{"not measured", []Configuration{service(t, "gpu", 1, 4, 900), service(t, "cpu", 1, 1, 100), service(t, "cpu", 2, 2, 190)}, 0,
			"no measured number of replicas of triton platform=cpu costs about its 4 USD an hour (2 replicas cost 2.00); measure 4"},
		{"two apart", []Configuration{service(t, "gpu", 1, 8.5, 900), service(t, "cpu", 1, 2, 100)}, 0, "; measure 4"}, // 4 cost 8
		{"none comes near", []Configuration{service(t, "gpu", 1, 1.5, 900), service(t, "cpu", 1, 1, 100)}, 0, "none comes within 10 %"},
		{"dearer baseline", []Configuration{service(t, "gpu", 1, 1, 900), service(t, "cpu", 1, 4, 100)}, 0, "none comes within 10 %"},
	} {
		rows, err := Compare(test.list, o)
		if err != nil {
			t.Fatal(err)
		}
		m := rows[0].Matched
		if test.gain > 0 {
			near(t, test.what, m.Gain, test.gain)
			continue
		}
		if m.Gain != nil || !strings.Contains(strings.ReplaceAll(m.Why, "4.00 USD", "4 USD"), test.why) {
			t.Errorf("%s: %+v", test.what, m)
		}
	}

	// A configuration without a price cannot be the baseline.
	unpriced := service(t, "cpu", 4, 4, 300)
	for i := range unpriced.Runs {
		unpriced.Runs[i].Rate = nil
	}
	rows, err = Compare([]Configuration{service(t, "gpu", 1, 4, 900), unpriced}, o)
	if err != nil || rows[0].Matched.Why != "the baseline has no price or no "+rates(t).Title {
		t.Errorf("%+v, %v", rows[0].Matched, err)
	}

	// One without a price, and of another batch than any of the baseline's.
	free, other := service(t, "gpu", 1, 4, 900), service(t, "gpu", 1, 4, 900)
	for i := range free.Runs {
		free.Runs[i].Rate = nil
	}
	other.Series, other.Parameters = "triton platform=gpu batch=8", map[string]any{"platform": "gpu", "batch": 8.0}
	base := service(t, "cpu", 4, 4, 300)
	base.Parameters["batch"], free.Parameters["batch"] = 1.0, 1.0
	rows, err = Compare([]Configuration{free, other, base}, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"it has no price", "no configuration with platform=cpu has batch=8"} {
		if m := rows[i].Matched; m.Gain != nil || !strings.Contains(m.Why, want) {
			t.Errorf("%+v, want %q", m, want)
		}
	}

	// A baseline with a stated number of replicas is used as it is, without a gain at equal cost.
	o.Baseline = []scaling.Condition{{Key: "workers", Value: "1"}}
	rows, err = Compare([]Configuration{service(t, "cpu", 1, 1, 100), service(t, "cpu", 4, 4, 300)}, o)
	if err != nil || rows[1].Matched != nil {
		t.Errorf("%+v, %v", rows[1].Matched, err)
	}
}
