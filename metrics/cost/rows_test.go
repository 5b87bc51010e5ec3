package cost

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func compare(t *testing.T, o Options, list ...Configuration) []Row {
	t.Helper()
	rows, err := Compare(list, o)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// A million answers take 10 to 130 s; two further services found no rate within the limit,
// which is worse than any: the median of 15 is 80 s, at the hourly price without its
// minimum.
func TestMillion(t *testing.T) {
	var seconds []float64
	for i := range 13 {
		seconds = append(seconds, 10*float64(i+1))
	}
	c := config("f", 1, 7.2, nil, append(seconds, 0, 0)...)
	for i := range c.Runs {
		c.Runs[i].Rate.Parts[0].Price.Minimum = 3600
	}
	r := compare(t, Options{Work: Work{Million: true}, Measure: rates(t)}, c)[0]
	near(t, "time", r.Time, 80)
	near(t, "cost", r.Cost, 7.2*80/3600)
	if r.Rate == nil || slices.ContainsFunc(r.Warnings, func(s string) bool { return strings.Contains(s, "without "+rates(t).Title) }) {
		t.Errorf("rate %v, warnings %q", r.Rate, r.Warnings)
	}
}

// Epochs of 10, 30 and 20 s. A run without an epoch has neither a time nor a price per epoch.
func TestEpochs(t *testing.T) {
	c := config("f", 1, 3600, nil, 10, 60, 80, 90, 70)
	for i, epochs := range []int{1, 2, 4, 0, 0} {
		c.Runs[i].Epochs = epochs
	}
	r := compare(t, Options{Work: Work{Epoch: true}}, c)[0]
	near(t, "time", r.Time, 20)
	near(t, "cost", r.Cost, 20)
	if want := "f, 1 worker: 2 of 5 runs left out: no finished epoch recorded"; !slices.Contains(r.Warnings, want) || r.CostPerEpoch != nil {
		t.Errorf("warnings %q, want %q; cost of an epoch %v, want none", r.Warnings, want, r.CostPerEpoch)
	}
	c.Runs = c.Runs[:3]
	near(t, "median cost of an epoch", compare(t, Options{}, c)[0].CostPerEpoch, 20)
	c.Runs[0].Seconds = 0
	if r := compare(t, Options{}, c)[0]; r.CostPerEpoch != nil || !slices.ContainsFunc(r.Warnings, func(s string) bool { return strings.HasSuffix(s, "1 of 3 runs left out: recorded no time") }) {
		t.Errorf("one run without a time: %+v", r)
	}
	c.Runs[0].Seconds, c.Runs[0].Rate = 10, nil
	if r := compare(t, Options{}, c)[0]; r.CostPerEpoch != nil {
		t.Errorf("one run without a price: %+v", r.CostPerEpoch)
	}
}

// Two of three runs reach 0.5, in 5 and 10 s; none reaches 0.9; one has no other target.
func TestTargets(t *testing.T) {
	c := config("f", 1, 3600, nil, 10, 20, 30)
	c.Runs[2].Targets = map[measure.Target]float64{measure.Accuracy(0.5): math.Inf(1)}
	half := measure.Accuracy(0.5)
	r := compare(t, Options{Work: Work{Target: &half}}, c)[0]
	if len(r.Targets) != 2 {
		t.Fatalf("%d targets", len(r.Targets))
	}
	easy, hard := r.Targets[0], r.Targets[1]
	near(t, "time to 0.5", easy.Time, 10)
	near(t, "cost to 0.5", easy.Cost, 10)
	if easy.Reached != 2 || easy.Runs != 3 || hard.Reached != 0 || hard.Runs != 2 || hard.Time != nil {
		t.Errorf("0.5: %+v, 0.9: %+v", easy, hard)
	}
	// The rate comes from the first run that reaches the target.
	c.Runs[0].Targets[half], c.Runs[2].Targets[half] = math.Inf(1), 15
	other := *c.Runs[1].Rate
	c.Runs[1].Rate = &other
	if r := compare(t, Options{Work: Work{Target: &half}}, c)[0]; r.Rate != &other || r.Targets[0].Reached != 2 {
		t.Errorf("rate %v, want that of the second run; %+v", r.Rate, r.Targets[0])
	}
	strict := measure.Accuracy(0.9)
	if r := compare(t, Options{Work: Work{Target: &strict}}, c)[0]; !strings.HasPrefix(r.Why, "1 of 3 runs left out: had no target "+strict.String()) {
		t.Errorf("why: %q", r.Why)
	}
}

// Of three rates, the summary leaves out 900, so what an hour at 2 buys is the median of
// 100 and 300 tokens/s: 3600·200/2.
func TestValue(t *testing.T) {
	tokens := measure.Reported("tokens", "tokens/s", measure.Higher)
	with := func(s *scaling.Summary) Configuration {
		c := config("f", 1, 2, nil, 10, 10, 10)
		for i, x := range []float64{100, 900, 300} {
			c.Runs[i].Values = map[string]float64{"tokens": x}
		}
		c.Measured = []*scaling.Summary{{Measure: measure.Measure{Name: "other"}}, s}
		return c
	}
	summary := func() *scaling.Summary {
		s := &scaling.Summary{Measure: tokens, Runs: 2, Values: []float64{100, 300}}
		s.Median = &scaling.Estimate{Value: 200, Runs: 2}
		return s
	}
	o := Options{Measure: tokens}
	c := with(summary())
	r := compare(t, o, c)[0]
	near(t, "value", r.Value, 200)
	near(t, "bought", r.Bought, 360000)
	if want := "f, 1 worker: 1 of 3 runs without tokens, counted only in time and cost"; !slices.Equal(r.Warnings, []string{want}) || r.WhyNoValue != "" {
		t.Errorf("warnings %q, want %q; %q", r.Warnings, want, r.WhyNoValue)
	}
	if r := compare(t, Options{}, c)[0]; r.Value != nil || r.WhyNoValue != "" || r.Bought != nil {
		t.Errorf("without a measure: %+v", r)
	}
	c.Runs[0].Rate = nil
	if r := compare(t, o, c)[0]; r.Bought != nil {
		t.Errorf("bought %v without a price", r.Bought)
	}
	if r := compare(t, o, config("f", 1, 0, nil, 10))[0]; r.WhyNoValue != "no run has tokens" {
		t.Errorf("no run has one: %q", r.WhyNoValue)
	}
	free := with(summary())
	for i := range free.Runs {
		free.Runs[i].Rate = &Rate{Currency: "USD"}
	}
	if r := compare(t, o, free)[0]; r.Bought != nil || r.Value == nil {
		t.Errorf("bought %v for nothing", r.Bought)
	}
	none := summary()
	none.Median, none.Why = nil, "too many runs found none"
	if r := compare(t, o, with(none))[0]; r.WhyNoValue != "tokens: too many runs found none" {
		t.Errorf("why no value: %q", r.WhyNoValue)
	}
	all := summary()
	all.Runs, all.Values = 3, []float64{100, 300, 900}
	if r := compare(t, o, with(all))[0]; r.Warnings != nil {
		t.Errorf("all runs have it: %q", r.Warnings)
	}
}

// Ratios of costs or values that are 0 or negative have no meaning.
func TestRatiosToNothing(t *testing.T) {
	base := []scaling.Condition{{Key: "platform", Value: "a"}}
	for _, hour := range [][2]float64{{1, 0}, {0, 1}} {
		rows := compare(t, Options{Baseline: base}, config("a", 1, hour[0], platform("a"), 10), config("b", 1, hour[1], platform("b"), 20))
		r := rows[1]
		if r.Base != "a, 1 worker" || r.CostNormalised != nil || r.BreakEven != nil {
			t.Errorf("%g an hour over %g: base %q, cost %v, break-even %v", hour[1], hour[0], r.Base, r.CostNormalised, r.BreakEven)
		}
		near(t, "time", r.TimeNormalised, 2)
	}
	of := func(x float64) scaling.Sample {
		return scaling.Sample{Median: &scaling.Estimate{Value: x, Runs: 1}}
	}
	for _, better := range []measure.Direction{measure.Higher, measure.Lower} {
		o := Options{Measure: measure.Measure{Better: better}}
		for _, pair := range [][2]float64{{0, 1}, {1, 0}, {-1, -2}, {-1, 2}, {1, -2}} {
			if g := o.gain(of(pair[0]), of(pair[1]), false); g != nil {
				t.Errorf("gain of %g over %g: %v, want none", pair[0], pair[1], g)
			}
		}
	}
	if o := (Options{Measure: measure.Measure{Better: measure.Higher}}); o.gain(of(0), of(0), true) != nil || o.gain(scaling.Sample{}, of(1), false) != nil || o.gain(of(1), scaling.Sample{}, false) != nil {
		t.Error("a gain of nothing")
	}
}

// Rows that differ by less than a part in a thousand million are equal; a row that is
// worse in one and equal in the other is dominated.
func TestFront(t *testing.T) {
	for _, c := range []struct {
		name string
		b    [2]float64 // time and cost; the other row has 10 and 1
		want bool       // b is on the front
	}{
		{"equal", [2]float64{10, 1}, true},
		{"equal but for rounding", [2]float64{10 * (1 + 0.8e-9), 1}, true},
		{"cost equal but for rounding", [2]float64{10, 1 + 0.8e-9}, true},
		{"slower", [2]float64{10 * (1 + 1.5e-9), 1}, false},
		{"dearer", [2]float64{10, 1 + 1.5e-9}, false},
		{"slower, cheaper", [2]float64{20, 0.5}, true},
		{"faster, dearer", [2]float64{5, 2}, true},
		{"worse in both", [2]float64{20, 2}, false},
	} {
		row := func(time, cost float64) Row {
			return Row{Time: &scaling.Estimate{Value: time}, Cost: &scaling.Estimate{Value: cost}}
		}
		rows := []Row{row(10, 1), row(c.b[0], c.b[1])}
		Front(rows, Options{})
		if rows[1].Front != c.want || !rows[0].Front {
			t.Errorf("%s: on the front: %v and %v, want true and %v", c.name, rows[0].Front, rows[1].Front, c.want)
		}
	}
}

func TestWorkAsText(t *testing.T) {
	target := measure.Accuracy(0.75)
	for want, w := range map[string]Work{"a run": {}, "an epoch": {Epoch: true}, "a million answers": {Million: true}, target.Text(): {Target: &target}} {
		if got := w.String(); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
	// Different lengths cause a warning only if whole runs are compared.
	list := []Configuration{config("a", 1, 1, nil, 10), config("a", 2, 1, nil, 10)}
	list[0].Runs[0].Epochs = 2
	half := measure.Accuracy(0.5)
	for _, w := range []Work{{}, {Epoch: true}, {Million: true}, {Target: &half}} {
		warned := len(compare(t, Options{Work: w}, list...)[0].Warnings) > 0
		if warned != (w == Work{}) {
			t.Errorf("%s: a warning of different lengths is %v", w, warned)
		}
	}
}
