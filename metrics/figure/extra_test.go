package figure

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/scaling"
)

func lines(f *Figure) []string {
	var list []string
	for _, m := range f.Marks() {
		list = append(list, strings.TrimRight(m.String(), " "))
	}
	return list
}

// Worked out by hand: of the runs with 100, 110 and 120 samples/s the middle
// one stands for the point; it did not measure its data wait.
func TestBreakdown(t *testing.T) {
	obs := plainRuns("native", 2, 100, 120, 110)
	obs[0].Values["compute"], obs[1].Values["compute"] = 0.1, 0.2
	obs[2].Values["compute"], obs[2].Values["communication"] = 0.5, 0.25
	more := plainRuns("native", 4, 200)
	more[0].Values["compute"], more[0].Values["communication"], more[0].Values["data_wait"] = 0.7, 0.5, 0
	obs = append(append(obs, more...), plainRuns("native", 8, 300)...)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Draw("breakdown", curves, obs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`block  "compute" (-0.36, 0) (0.36, 0.5)`,
		`block  "communication" (-0.36, 0.5) (0.36, 0.75)`,
		`block  "other" (-0.36, 0.75) (0.36, 1)`,
		`block  "compute" (0.64, 0) (1.36, 0.7)`,
		`block  "communication" (0.64, 0.7) (1.36, 1.2)`,
		`block  "data wait" (0.64, 1.2) (1.36, 1.2)`,
		`label  "other" (0.36, 0.875) text "other"`,
		`label  "compute" (1.36, 0.35) text "compute"`,
		`label  "communication" (1.36, 0.95) text "communication"`,
		`label  "data wait" (1.36, 1.2) text "data wait"`,
	}
	if diff := cmp.Diff(want, lines(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range []string{"Data wait was not measured at 2 workers, and is part of other there.", "No part was measured at 8 workers.", "add up to more than 100 %"} {
		if !strings.Contains(f.Caption(), s) {
			t.Errorf("caption lacks %q: %s", s, f.Caption())
		}
	}
}

// Nearest rank of 20 steps of 1 to 20 s: 1, 5, 10, 15, 19 and 20.
func TestRanks(t *testing.T) {
	var durations []float64
	for i := range 20 {
		durations = append(durations, float64(20-i))
	}
	steps := scaling.NewStepTimes(3, durations)
	if diff := cmp.Diff(scaling.StepTimes{Rank: 3, Steps: 20, P5: 1, P25: 5, P50: 10, P75: 15, P95: 19, Max: 20}, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f, err := DrawRanks([]RankSteps{{Run: "s/p-r1-a1", Series: "native", Workers: 4, Ranks: []scaling.StepTimes{steps}}}, Options{})
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
	if _, err := DrawRanks(nil, Options{}); err == nil || !strings.Contains(err.Error(), "no run has the step times") {
		t.Error(err)
	}
}

// The front is a stair: until the faster choice is there, the slower is cheaper.
func TestCost(t *testing.T) {
	list := []Priced{
		{Series: "native", Workers: 1, Runs: 6, Seconds: 400, Cost: 1, Front: true, SecondsInterval: &scaling.Interval{Low: 380, High: 420, Level: 0.97}},
		{Series: "native", Workers: 4, Runs: 5, Seconds: 150, Cost: 3, Front: true},
		{Series: "native", Workers: 8, Runs: 6, Seconds: 200, Cost: 4},
		{Series: "native", Workers: 9, Runs: 6, Seconds: 0, Cost: 4}, // no time: not drawn
	}
	f, err := DrawCost(list, "accuracy 0.75", "EUR", Options{})
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
	if !strings.Contains(f.Caption(), "Runs per point: 5 to 6.") || !strings.Contains(f.Caption(), "insufficient runs for an interval") {
		t.Error(f.Caption())
	}
	// Where runs miss the target an interval has no upper end.
	list[0].SecondsInterval.High = math.Inf(1)
	endless, err := DrawCost(list, "accuracy 0.75", "EUR", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(lines(endless), "\n"); strings.Contains(all, "Inf") || strings.Contains(all, "bar") {
		t.Errorf("an endless bar is drawn: %s", all)
	}
	if _, err := DrawCost(list[3:], "an epoch", "EUR", Options{}); err == nil {
		t.Error("a figure of nothing was drawn")
	}
}

func TestNormalised(t *testing.T) {
	one := &scaling.Estimate{Value: 1, Runs: 6}
	half := &scaling.Estimate{Value: 0.5, Runs: 6, Interval: &scaling.Interval{Low: 0.4, High: 0.6, Level: 0.96}}
	f, err := DrawNormalised([]Relative{{"a", one, one}, {"b", half, nil}}, "a", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`block  "time" (0, 1.04) (1, 1.36)`, `block  "cost" (0, 0.64) (1, 0.96)`, `block  "time" (0, 0.04) (0.5, 0.36)`, `bar    "time" (0.4, 0.2) (0.6, 0.2)`,
		`target (1, -0.6) (1, 1.6)`,
		`label  "time" (1, 1.2) text "time"`, `label  "cost" (1, 0.8) text "cost"`,
	}
	if diff := cmp.Diff(want, lines(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(f.Caption(), "the baseline (a)") || !strings.Contains(f.Caption(), "b: no cost.") || !strings.Contains(f.Caption(), "Thin bars: Hodges–Lehmann intervals over all ratios of runs. b") {
		t.Error(f.Caption())
	}
	if _, err := DrawNormalised([]Relative{{Name: "a"}}, "a", Options{}); err == nil {
		t.Error("a figure of nothing was drawn")
	}
}

// A panel a framework, all with the same axes, plots of the same size in a row.
func TestSmallMultiples(t *testing.T) {
	obs := append(append(plainRuns("native", 1, 100), plainRuns("native", 2, 150)...), append(plainRuns("torch", 1, 400), plainRuns("torch", 8, 1600)...)...)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, most := range map[string]int{"speedup": 2, "throughput": 2, "efficiency": 2} {
		f, err := DrawBy("framework", kind, curves, obs, Options{})
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
		if one, err := DrawBy("framework", kind, curves[:1], obs, Options{}); err != nil || len(one.panels) != 1 || one.panels[0].chart.title != "" {
			t.Errorf("%s of one framework: %v", kind, err)
		}
	}
	if _, err := DrawBy("framework", "speedup", curves, obs, Options{Height: 0.5}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
}

// Every kind can be laid out as narrow as a phone is.
func TestNarrow(t *testing.T) {
	for name, s := range studies {
		for _, kind := range Kinds() {
			obs := s.observations()
			curves, err := scaling.Analyse(obs, scaling.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := Draw(kind, curves, obs, Options{Width: 3.75})
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
