package exchange

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func known[T any](v T) *T { return &v }

// benchmark is a run whose all-reduces take alpha + size/beta, times off from 1
// MiB on.
func benchmark(study string, repeat, workers int, alpha, beta, off float64) Run {
	r := Run{Observation: scaling.Observation{Run: fmt.Sprintf("%s/p%d-r%d-a1", study, workers, repeat), Study: study, Framework: "native", Workers: workers, Nodes: 1,
		CreatedUnix: float64(repeat), Fingerprint: fingerprint.Print{fingerprint.CPU: "Xeon"}, Parameters: map[string]any{"workload.backend": "auto", "framework": "native"}}}
	for _, inPlace := range []bool{false, true} {
		for size := 8.0; size <= 64<<20; size *= 2 {
			s := alpha + size/beta
			if size >= 1<<20 {
				s *= off
			}
			r.Measurements = append(r.Measurements, collective.Measurement{Op: "all_reduce", Bytes: size, InPlace: inPlace, Iterations: 20, Seconds: &s, BusBW: known(size / s)})
		}
	}
	r.Links, _ = collective.Fit(r.Measurements)
	return r
}

// training is a run with a median step of so many seconds.
func training(repeat, workers int, step float64) scaling.Observation {
	return scaling.Observation{Run: fmt.Sprintf("t/w%d-r%d-a1", workers, repeat), Study: "t", Framework: "native", Workers: workers, Nodes: 1, Point: fmt.Sprint("w", workers), Repeat: repeat,
		Fingerprint: fingerprint.Print{fingerprint.CPU: "Xeon", "version.gonum": "1"}, Parameters: map[string]any{"workload.batch": int64(1)},
		Kind: "train", Values: map[string]float64{"throughput": float64(workers) / step, "step_p50": step, "communication": 0.25}, GradientBytes: known(int64(3 << 20))}
}

func predicted(t *testing.T, obs []scaling.Observation, runs []Run) *scaling.Prediction {
	t.Helper()
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	Predict(curves, obs, runs)
	if curves[0].Points[0].Workers == 1 && curves[0].Points[0].Predicted != nil {
		t.Error("a single worker exchanges nothing")
	}
	return curves[0].Points[len(curves[0].Points)-1].Predicted
}

// One all-reduce of the gradient's bytes, as it was measured, over the step.
func TestPredict(t *testing.T) {
	var obs []scaling.Observation
	var runs []Run
	for repeat := range 7 {
		obs = append(obs, training(repeat, 1, 0.1), training(repeat, 2, 0.1+0.001*float64(repeat)))
		runs = append(runs, benchmark("links", repeat, 2, 20e-6, 1e9+1e6*float64(repeat), 1), benchmark("links", repeat, 4, 1, 1, 1))
	}
	p := predicted(t, obs, runs)
	want := (20e-6 + 3*(1<<20)/1.003e9) / 0.103
	if p == nil || p.Share == nil || math.Abs(p.Share.Value/want-1) > 0.01 || p.Share.Interval == nil ||
		!(p.Share.Interval.Low < p.Share.Value && p.Share.Interval.High > p.Share.Value) || !strings.Contains(p.From, `study "links", 7 runs: one all_reduce of 3145728 bytes`) {
		t.Errorf("%+v, want %g", p, want)
	}

	// A curve that is no line is followed, not the line through it.
	for i := range runs {
		runs[i] = benchmark("links", i, 2, 20e-6, 1e9, 3)
	}
	if p := predicted(t, obs, runs); p.Share == nil || math.Abs(p.Share.Value/(3*want)-1) > 0.02 {
		t.Errorf("%+v, want %g", p, 3*want)
	}
	// One run is a prediction without an interval.
	if p := predicted(t, obs, runs[:1]); p.Share == nil || p.Share.Interval != nil || p.Share.Why == "" || !strings.Contains(p.From, "1 run:") {
		t.Errorf("%+v", p)
	}
	// Of two studies the later one's runs, and no mixture.
	other := benchmark("later", 1000, 2, 20e-6, 1e8, 1)
	if p := predicted(t, obs, append(runs, other)); p.Share == nil || !strings.Contains(p.From, `study "later", 1 run`) {
		t.Errorf("%+v", p)
	}
	// But not a later one whose sizes end before the gradient's.
	short := benchmark("short", 2000, 2, 20e-6, 1e8, 1)
	short.Measurements = slices.DeleteFunc(short.Measurements, func(m collective.Measurement) bool { return m.Bytes > 1<<20 })
	if p := predicted(t, obs, append(runs, other, short)); p.Share == nil || !strings.Contains(p.From, `study "later"`) {
		t.Errorf("%+v", p)
	}
	// Beyond the sizes nothing corrects the fit, and that is said.
	for i := range obs {
		obs[i].GradientBytes = known(int64(1 << 30))
	}
	if p := predicted(t, obs, runs); p.Share == nil || !strings.Contains(p.From, "beyond the sizes") {
		t.Errorf("%+v", p)
	}
}

func TestNoPrediction(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *scaling.Observation, r *Run)
		want   string
	}{
		"no benchmark of as many workers": {func(_ *scaling.Observation, r *Run) { r.Workers = 4 }, "has 2 workers on one node like these"},
		"other nodes":                     {func(_ *scaling.Observation, r *Run) { r.Nodes = 2 }, "has 2 workers on one node like these"},
		"another machine":                 {func(_ *scaling.Observation, r *Run) { r.Fingerprint = fingerprint.Print{fingerprint.CPU: "EPYC"} }, "no stored benchmark"},
		"another cluster":                 {func(_ *scaling.Observation, r *Run) { r.Cluster = "c" }, "no stored benchmark"},
		"another backend":                 {func(_ *scaling.Observation, r *Run) { r.Parameters["workload.backend"] = "tcp" }, `backend "auto"`},
		"an imported log":                 {func(_ *scaling.Observation, r *Run) { r.Parameters = nil }, "no stored benchmark"},
		"another operation":               {func(_ *scaling.Observation, r *Run) { r.Links[0].Op, r.Links[1].Op = "broadcast", "broadcast" }, "no stored benchmark"},
		"a framework with its own":        {func(o *scaling.Observation, _ *Run) { o.Framework = "pytorch-ddp" }, "pytorch-ddp's gradients"},
		"no gradient size":                {func(o *scaling.Observation, _ *Run) { o.GradientBytes = nil }, "the size of its gradients"},
		"no steps":                        {func(o *scaling.Observation, _ *Run) { delete(o.Values, "step_p50") }, "its step times"},
	} {
		t.Run(name, func(t *testing.T) {
			o, r := training(1, 2, 0.1), benchmark("links", 1, 2, 1e-5, 1e9, 1)
			c.change(&o, &r)
			p := predicted(t, []scaling.Observation{o}, []Run{r})
			if p == nil || p.Share != nil || p.From != "" || !strings.Contains(p.Why, c.want) {
				t.Errorf("%+v, want %q", p, c.want)
			}
		})
	}
	if p := predicted(t, []scaling.Observation{training(1, 2, 0.1)}, nil); p == nil || p.Share != nil || p.Why == "" {
		t.Errorf("without any benchmark: %+v", p)
	}
}

func TestCurves(t *testing.T) {
	var runs []Run
	for repeat := range 6 {
		runs = append(runs, benchmark("links", repeat, 2, 20e-6, 1e9+1e7*float64(repeat), 1))
	}
	tcp := benchmark("links", 1, 2, 40e-6, 5e8, 1)
	tcp.Parameters = map[string]any{"workload.backend": "tcp", "framework": "native"}
	runs = append(runs, tcp, benchmark("links", 7, 4, 20e-6, 1e9, 1))
	list := Curves(runs, Series(runs))
	if len(list) != 6 {
		t.Fatalf("%d curves, want auto at 2 and 4 workers and tcp, each in and out of place", len(list))
	}
	c := list[0]
	if c.Series != "auto" || c.Workers != 2 || c.InPlace || c.Runs != 6 || len(c.Sizes) != 24 {
		t.Errorf("%+v", c)
	}
	if math.Abs(c.Beta.Value/1.025e9-1) > 1e-6 || c.Beta.Interval == nil || math.Abs(c.Beta.Interval.Low/1e9-1) > 1e-6 {
		t.Errorf("bandwidth %+v, want the median 1.025e9 and the smallest 1e9", c.Beta)
	}
	if s := c.Sizes[23]; s.Bytes != 64<<20 || len(s.Each) != 6 || s.BusBW.Interval == nil {
		t.Errorf("%+v", s)
	}
	if last := list[5]; last.Series != "tcp" || last.Runs != 1 || last.Alpha.Interval != nil {
		t.Errorf("%+v", last)
	}
	if label := Series(runs[:6])(runs[0]); label != "" {
		t.Errorf("equal runs are told apart as %q", label)
	}
	if list := Curves(nil, nil); list != nil {
		t.Errorf("%+v of nothing", list)
	}
}
