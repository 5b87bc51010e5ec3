package figure

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func lines(f *Drawing) []string {
	var list []string
	for _, m := range f.Marks() {
		list = append(list, strings.TrimRight(m.String(), " "))
	}
	return list
}

// Worked out by hand: the run with 110 samples/s, the median of 100, 110 and 120,
// represents the point; it did not measure its data wait. Parts that add up to 1.2 steps
// are not stacked: each third of a column of 0.72 starts at 0.
func TestBreakdown(t *testing.T) {
	for name, c := range map[string]struct {
		communication float64
		want, says    []string
		not           string
	}{
		"apart": {0.25, []string{
			`block  "compute" (-0.36, 0) (0.36, 0.5)`,
			`block  "communication" (-0.36, 0.5) (0.36, 0.75)`,
			`block  "other" (-0.36, 0.75) (0.36, 1)`,
			`block  "compute" (0.64, 0) (1.36, 0.7)`,
			`block  "communication" (0.64, 0.7) (1.36, 0.95)`,
			`block  "data wait" (0.64, 0.95) (1.36, 0.95)`,
			`block  "other" (0.64, 0.95) (1.36, 1)`,
			`label  "compute" (1.36, 0.35) text "compute"`,
			`label  "communication" (1.36, 0.825) text "communication"`,
			`label  "data wait" (1.36, 0.95) text "data wait"`,
			`label  "other" (1.36, 0.975) text "other"`,
		}, []string{"Data wait was not measured at 2 workers; it is part of other there.", "No part was measured at 8 workers."}, "Side by side"},
		"at once": {0.5, []string{
			`block  "compute" (-0.36, 0) (-0.12, 0.5)`,
			`block  "communication" (-0.12, 0) (0.12, 0.25)`,
			`block  "compute" (0.64, 0) (0.88, 0.7)`,
			`block  "communication" (0.88, 0) (1.12, 0.5)`,
			`block  "data wait" (1.12, 0) (1.36, 0)`,
			`label  "compute" (1.36, 0.35) text "compute"`,
			`label  "communication" (1.36, 0.25) text "communication"`,
			`label  "data wait" (1.36, 0) text "data wait"`,
		}, []string{"Data wait was not measured at 2 workers.", "No part was measured at 8 workers.", "Side by side: parts that overlap in time and would add up to more than 100 %."}, "part of other"},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plainRuns("native", 2, 100, 120, 110)
			obs[0].Values["compute"], obs[1].Values["compute"] = 0.1, 0.2
			obs[2].Values["compute"], obs[2].Values["communication"] = 0.5, 0.25
			more := plainRuns("native", 4, 200)
			more[0].Values["compute"], more[0].Values["communication"], more[0].Values["data_wait"] = 0.7, c.communication, 0
			obs = append(append(obs, more...), plainRuns("native", 8, 300)...)
			curves, err := scaling.Analyse(obs, scaling.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := Draw("breakdown", Data{Curves: curves, Observations: obs}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, s := range c.says {
				if !strings.Contains(f.Caption(), s) {
					t.Errorf("caption lacks %q: %s", s, f.Caption())
				}
			}
			if strings.Contains(f.Caption(), c.not) {
				t.Errorf("caption has %q: %s", c.not, f.Caption())
			}
		})
	}
}

// Nearest ranks of 20 steps of 1 to 20 s: 1, 5, 10, 15, 19 and 20.
func TestRanks(t *testing.T) {
	var durations []float64
	for i := range 20 {
		durations = append(durations, float64(20-i))
	}
	steps := scaling.NewStepTimes(3, durations)
	if diff := cmp.Diff(scaling.StepTimes{Rank: 3, Steps: 20, P5: 1, P25: 5, P50: 10, P75: 15, P95: 19, Max: 20}, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f, err := Draw("ranks", Data{Ranks: []RankSteps{{Run: "s/p-r1-a1", Series: "native", Workers: 4, Ranks: []scaling.StepTimes{steps}}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`trace  "s/p-r1-a1" (3, 1) (3, 19)`,
		`block  "s/p-r1-a1" (2.65, 5) (3.35, 15)`,
		`line   "s/p-r1-a1" (2.65, 10) (3.35, 10)`,
	}
	if diff := cmp.Diff(want, lines(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(f.Caption(), "The longest step: 20 s, of rank 3.") || !strings.Contains(f.Caption(), "20 steady steps") {
		t.Error(f.Caption())
	}
	if _, err := Draw("ranks", Data{}, Options{}); err == nil || !strings.Contains(err.Error(), "no run has the step times") {
		t.Error(err)
	}
}

func estimated(value float64, runs int, interval ...float64) *scaling.Estimate {
	e := &scaling.Estimate{Value: value, Runs: runs}
	if len(interval) == 2 {
		e.Interval = &scaling.Interval{Low: interval[0], High: interval[1], Level: 0.97}
	}
	return e
}

// The front is a staircase: the slower choice is the cheapest until the faster one's time.
func TestCost(t *testing.T) {
	target := measure.Accuracy(0.75)
	c := cost.Comparison{Currency: "EUR", Options: cost.Options{Work: cost.Work{Target: &target}}, Rows: []cost.Row{
		{Series: "native", Workers: 1, Time: estimated(400, 6, 380, 420), Cost: estimated(1, 6), Front: true},
		{Series: "native", Workers: 4, Time: estimated(150, 5), Cost: estimated(3, 5), Front: true},
		{Series: "native", Workers: 8, Time: estimated(200, 6), Cost: estimated(4, 6)},
		{Series: "native", Workers: 9, Time: estimated(0, 6), Cost: estimated(4, 6)}, // no time: not drawn
	}}
	f, err := Draw("cost", Data{Bill: &c}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`front  (150, 3) (400, 3) (400, 1)`,
		`bar    "native" (380, 1) (420, 1)`,
		`median "native" (400, 1)`, `median "native" (150, 3)`, `median "native" (200, 4)`,
		`label  "native" (400, 1) text "1 worker"`, `label  "native" (150, 3) text "4 workers"`, `label  "native" (200, 4) text "8 workers"`,
	}
	if diff := cmp.Diff(want, lines(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if x, y := f.panels[0].chart.x.title, f.panels[0].chart.y.title; x != "time to accuracy 0.75 (min)" || y != "cost (EUR)" {
		t.Errorf("axes %q and %q", x, y)
	}
	if !strings.Contains(f.Caption(), "Runs per point: 5 to 6.") || !strings.Contains(f.Caption(), "a point without one has too few runs") {
		t.Error(f.Caption())
	}
	// If runs miss the target, an interval has no upper bound.
	c.Rows[0].Time.Interval.High = math.Inf(1)
	endless, err := Draw("cost", Data{Bill: &c}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(lines(endless), "\n"); strings.Contains(all, "Inf") || strings.Contains(all, "bar") {
		t.Errorf("an endless bar is drawn: %s", all)
	}
	c.Rows = c.Rows[3:]
	if _, err := Draw("cost", Data{Bill: &c}, Options{}); err == nil {
		t.Error("a figure of nothing was drawn")
	}
}

func TestNormalised(t *testing.T) {
	base := func() *scaling.Estimate { return &scaling.Estimate{Value: 1, Runs: 6, Why: cost.AtBaseline} }
	c := cost.Comparison{Options: cost.Options{Baseline: []scaling.Condition{{Key: "name", Value: "a"}}}, Rows: []cost.Row{
		{Series: "a", Workers: 1, TimeNormalised: base(), CostNormalised: base()},
		{Series: "b", Workers: 1, TimeNormalised: estimated(0.5, 6, 0.4, 0.6)},
		{Series: "c", Workers: 1, WhyNoBase: "no configuration with name=a has test=c"},
	}}
	f, err := Draw("normalised", Data{Bill: &c}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`target (1, -0.6) (1, 2.6)`,
		`median "time" (1, 2.2)`, `median "cost" (1, 1.8)`, `bar    "time" (0.4, 1.2) (0.6, 1.2)`, `median "time" (0.5, 1.2)`,
		`label  "time" (1, 2.2) text "time"`, `label  "cost" (1, 1.8) text "cost"`,
	}
	if diff := cmp.Diff(want, lines(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{"the baseline (the same with name=a; time and cost of a run)", "Bars: intervals of ratios of medians. Missing",
		"Missing: b, 1 worker: no cost; c, 1 worker (no configuration with name=a has test=c)."} {
		if !strings.Contains(f.Caption(), want) {
			t.Errorf("no %q in %s", want, f.Caption())
		}
	}
	c.Rows = c.Rows[:1]
	if _, err := Draw("normalised", Data{Bill: &c}, Options{}); err == nil || !strings.Contains(err.Error(), "its own baseline") {
		t.Error(err)
	}
	c.Rows = []cost.Row{{Series: "a"}}
	if _, err := Draw("normalised", Data{Bill: &c}, Options{}); err == nil || !strings.Contains(err.Error(), "nothing to draw") {
		t.Error(err)
	}
}

// grid returns tests × platforms; the first platform is the baseline. On platform p, test t
// takes 10·(t+1)·(p+1) s and costs 1/(p+1) of that.
func grid(tests, platforms int, without func(test, platform int) bool) cost.Comparison {
	c := cost.Comparison{Currency: "USD", Options: cost.Options{Baseline: []scaling.Condition{{Key: "platform", Value: "p0"}}}}
	for i := range tests {
		for k := range platforms {
			if without != nil && without(i, k) {
				continue
			}
			test, platform, times := fmt.Sprintf("test%d", i), fmt.Sprintf("p%d", k), float64(k+1)
			r := cost.Row{Series: "csv platform=" + platform + " test=" + test, Workers: 1, Parameters: map[string]any{"test": test, "platform": platform, "framework": "csv"},
				Time: estimated(10*float64(i+1)*times, 1), Cost: estimated(float64(i+1), 1), TimeNormalised: estimated(times, 1), CostNormalised: estimated(1/times, 1)}
			if k == 0 {
				r.TimeNormalised.Why, r.CostNormalised.Why = cost.AtBaseline, cost.AtBaseline
			}
			c.Rows = append(c.Rows, r)
		}
	}
	return c
}

// A plot that would be too full is split into panels with names that fit, the same looks
// everywhere, and the size of a page.
func TestManyConfigurations(t *testing.T) {
	for _, test := range []struct {
		tests, platforms int
		by               string
		panels           int
		first            string
	}{
		{1, 2, "", 1, ""}, {1, 9, "", 1, ""}, {2, 6, "", 1, ""}, {7, 9, "", 7, "test test0"}, {9, 7, "", 9, "test test0"}, {2, 2, "test", 2, "test test0"}, {1, 63, "", 1, ""},
	} {
		name := fmt.Sprintf("%d × %d by %q", test.tests, test.platforms, test.by)
		c := grid(test.tests, test.platforms, nil)
		for _, kind := range []string{"cost", "normalised"} {
			f, err := Draw(kind, Data{Bill: &c}, Options{By: test.by})
			if kind == "cost" && test.platforms > 42 {
				if err == nil || !strings.Contains(err.Error(), "draw fewer") {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s %s: %v", name, kind, err)
				continue
			}
			if len(f.panels) != test.panels || f.panels[0].chart.title != test.first {
				t.Errorf("%s %s: %d panels, the first %q; want %d and %q", name, kind, len(f.panels), f.panels[0].chart.title, test.panels, test.first)
			}
			if wide, high := f.size.X.Points()/72, f.size.Y.Points()/72; wide > 7.5 || high > 20 {
				t.Errorf("%s %s: %.1f × %.1f inches", name, kind, wide, high)
			}
			if test.panels > 1 && len(f.frame.labels) == 0 {
				t.Errorf("%s %s: every panel has labels of its own", name, kind)
			}
		}
	}
	// A missing cell changes no look and no row.
	c := grid(7, 9, func(test, platform int) bool { return test == 3 && platform == 4 })
	f, err := Draw("cost", Data{Bill: &c}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	styles := map[string]int{}
	for _, m := range f.Marks() {
		if style, ok := styles[m.Series]; m.Kind == Median && ok && style != m.style {
			t.Errorf("%s has two looks", m.Series)
		} else if m.Kind == Median {
			styles[m.Series] = m.style
		}
	}
	if len(styles) != 9 {
		t.Errorf("%d looks for 9 platforms", len(styles))
	}
	if f, err = Draw("normalised", Data{Bill: &c}, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.panels {
		if len(p.chart.y.names) != 9 {
			t.Errorf("%s has %d rows", p.chart.title, len(p.chart.y.names))
		}
	}
	// Only panels by test make sense here, since the platform selects the baseline.
	if _, key := split(grid(9, 7, nil), ""); key != "test" {
		t.Errorf("panels by %s", key)
	}
}

// Names that would overlap are tilted, none leaves the page, and a log and a linear axis
// are combined into one.
func TestLongNames(t *testing.T) {
	var obs []scaling.Observation
	for i, test := range []string{"short", "long"} {
		for k := range 9 {
			obs = append(obs, scaling.Observation{Run: fmt.Sprint(test, k), Kind: "train", Framework: "csv", Workers: 1,
				Parameters: map[string]any{"platform": fmt.Sprintf("a machine of a very long name, number %d", k), "test": test},
				Values:     map[string]float64{measure.TrainSeconds: 10 + float64(i*k*50)}})
		}
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Axis: "platform", Baseline: []scaling.Condition{{Key: "platform", Value: "a machine of a very long name, number 0"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, over := range []string{"", "number 0"} {
		f, err := Draw(measure.TrainSeconds, Data{Curves: curves, Observations: obs}, Options{By: "test", Over: over})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.panels {
			if !p.layout.tilted {
				t.Errorf("%q: names run into each other", over)
			}
			if over != "" && (!p.chart.y.log || p.chart.y.min <= 0) {
				t.Errorf("gains from 1 down to 0.02 on an axis from %g", p.chart.y.min)
			}
			for _, tick := range p.layout.xTicks {
				x := p.layout.at(&p.chart, XY{tick.value, p.chart.y.max}).X
				if left := x - textStyle(tickSize).Width(tick.label)*vg.Length(math.Cos(slant)); left < 0 {
					t.Errorf("%q leaves the page", tick.label)
				}
			}
		}
	}
}

// One panel per framework, all with the same axes, and plots of equal size in a row.
func TestSmallMultiples(t *testing.T) {
	obs := append(append(plainRuns("native", 1, 100), plainRuns("native", 2, 150)...), append(plainRuns("torch", 1, 400), plainRuns("torch", 8, 1600)...)...)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, most := range map[string]int{"speedup": 2, "throughput": 2, "efficiency": 2} {
		f, err := Draw(kind, Data{Curves: curves, Observations: obs}, Options{By: "framework"})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.panels) != most {
			t.Fatalf("%s: %d panels, want %d", kind, len(f.panels), most)
		}
		a, b := f.panels[0], f.panels[1]
		if a.chart.title != "native" || b.chart.title != "torch" {
			t.Errorf("%s: panels %q and %q", kind, a.chart.title, b.chart.title)
		}
		if diff := cmp.Diff(a.layout.plot, b.layout.plot); diff != "" || a.at.Y != b.at.Y {
			t.Errorf("%s: the plots do not line up: %s", kind, diff)
		}
		if a.chart.x.max != b.chart.x.max || a.chart.y.min != b.chart.y.min || a.chart.y.max != b.chart.y.max || !cmp.Equal(a.chart.x.at, []int{1, 2, 8}) {
			t.Errorf("%s: the axes differ", kind)
		}
		if strings.Count(f.Caption(), "Dots: runs; markers: medians.") != 1 || !strings.Contains(f.Caption(), "torch: Base: 1 worker, 400 samples/s.") {
			t.Error(f.Caption())
		}
		for _, format := range Formats() {
			var w bytes.Buffer
			if err := f.Write(&w, format); err != nil {
				t.Errorf("%s %s: %v", kind, format, err)
			}
		}
		if one, err := Draw(kind, Data{Curves: curves[:1], Observations: obs}, Options{By: "framework"}); err != nil || len(one.panels) != 1 || one.panels[0].chart.title != "" {
			t.Errorf("%s of one framework: %v", kind, err)
		}
	}
	if _, err := Draw("speedup", Data{Curves: curves, Observations: obs}, Options{By: "framework", Height: 0.5}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
}

// Every kind can be laid out as narrow as a phone.
func TestNarrow(t *testing.T) {
	for name, s := range studies {
		for _, kind := range curveKinds() {
			obs := s.observations()
			curves, err := scaling.Analyse(obs, scaling.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := Draw(kind, Data{Curves: curves, Observations: obs}, Options{Width: 3.75})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, p := range f.panels {
				for i, a := range p.layout.labels {
					if a.box.Max.X > p.layout.size.X-margin/2 || a.box.Min.X < 0 {
						t.Errorf("%s %s: label %q leaves the page", name, kind, a.mark.Text)
					}
					for _, b := range p.layout.labels[:i] {
						if overlaps(a.box, b.box) {
							t.Errorf("%s %s: labels %q and %q overlap", name, kind, a.mark.Text, b.mark.Text)
						}
					}
				}
			}
		}
	}
}
