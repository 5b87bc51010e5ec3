package scaling

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/summary"
)

func known[T any](v T) *T { return &v }

// measuredExchange returns a run whose all-reduces take alpha + size/beta, multiplied by off from 1
// MiB on.
func measuredExchange(study string, repeat, workers int, alpha, beta, off float64) Observation {
	r := Observation{Run: fmt.Sprintf("%s/p%d-r%d-a1", study, workers, repeat), Study: study, Framework: "native", Workers: workers, Nodes: 1,
		CreatedUnix: float64(repeat), Fingerprint: fingerprint.Print{fingerprint.CPU: "Xeon"}, Parameters: map[string]any{"workload.backend": "auto", "framework": "native"}}
	var list []busbw.Measurement
	for _, inPlace := range []bool{false, true} {
		for size := 8.0; size <= 64<<20; size *= 2 {
			s := alpha + size/beta
			if size >= 1<<20 {
				s *= off
			}
			list = append(list, busbw.Measurement{Op: "all_reduce", Bytes: size, InPlace: inPlace, Iterations: 20, Seconds: &s, BusBW: known(size / s)})
		}
	}
	// Compute latency and bandwidth as for a real run.
	in := summary.Input{Kind: "collective"}
	for _, m := range list {
		in.Figures = append(in.Figures, m.Figures()...)
	}
	r.Places = summary.Summarize(in).Places.List()
	return r
}

// training returns a run with a median step time of step seconds.
func training(repeat, workers int, step float64) Observation {
	return Observation{Run: fmt.Sprintf("t/w%d-r%d-a1", workers, repeat), Study: "t", Framework: "native", Workers: workers, Nodes: 1, Point: fmt.Sprint("w", workers), Repeat: repeat,
		Fingerprint: fingerprint.Print{fingerprint.CPU: "Xeon", "version.gonum": "1"}, Parameters: map[string]any{"workload.batch": int64(1)},
		Kind: "train", Values: map[string]float64{"throughput": float64(workers) / step, "step_p50": step, "communication": 0.25}, GradientBytes: known(int64(3 << 20))}
}

func predicted(t *testing.T, obs []Observation, runs []Observation) *Prediction {
	t.Helper()
	curves, err := Analyse(obs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	PredictExchange(curves, obs, runs)
	if curves[0].Points[0].Workers == 1 && curves[0].Points[0].Predicted != nil {
		t.Error("a single worker exchanges nothing")
	}
	return curves[0].Points[len(curves[0].Points)-1].Predicted
}

// The prediction is the measured time of an all-reduce of the gradient's size, divided by the step
// time.
func TestPredict(t *testing.T) {
	var obs []Observation
	var runs []Observation
	for repeat := range 7 {
		obs = append(obs, training(repeat, 1, 0.1), training(repeat, 2, 0.1+0.001*float64(repeat)))
		runs = append(runs, measuredExchange("links", repeat, 2, 20e-6, 1e9+1e6*float64(repeat), 1), measuredExchange("links", repeat, 4, 1, 1, 1))
	}
	p := predicted(t, obs, runs)
	want := (20e-6 + 3*(1<<20)/1.003e9) / 0.103
	if p == nil || p.Share == nil || math.Abs(p.Share.Value/want-1) > 0.01 || p.Share.Interval == nil ||
		!(p.Share.Interval.Low < p.Share.Value && p.Share.Interval.High > p.Share.Value) || !strings.Contains(p.From, `study "links", 7 runs: one all_reduce of 3145728 bytes`) {
		t.Errorf("%+v, want %g", p, want)
	}

	// If times are not linear in the size, the prediction follows the measured times, not the
	// fitted line.
	for i := range runs {
		runs[i] = measuredExchange("links", i, 2, 20e-6, 1e9, 3)
	}
	if p := predicted(t, obs, runs); p.Share == nil || math.Abs(p.Share.Value/(3*want)-1) > 0.02 {
		t.Errorf("%+v, want %g", p, 3*want)
	}
	// With one run, the prediction has no interval.
	if p := predicted(t, obs, runs[:1]); p.Share == nil || p.Share.Interval != nil || p.Share.Why == "" || !strings.Contains(p.From, "1 run:") {
		t.Errorf("%+v", p)
	}
	// Of two studies, only the later one's runs are used.
	other := measuredExchange("later", 1000, 2, 20e-6, 1e8, 1)
	if p := predicted(t, obs, append(runs, other)); p.Share == nil || !strings.Contains(p.From, `study "later", 1 run`) {
		t.Errorf("%+v", p)
	}
	// But a later study is not used if its sizes end before the gradient's.
	short := measuredExchange("short", 2000, 2, 20e-6, 1e8, 1)
	short.Places = slices.DeleteFunc(short.Places, func(p measure.Place) bool { size, _ := p.At["bytes"].(float64); return size > 1<<20 })
	if p := predicted(t, obs, append(runs, other, short)); p.Share == nil || !strings.Contains(p.From, `study "later"`) {
		t.Errorf("%+v", p)
	}
	// Beyond the measured sizes, the fit cannot be corrected, and a note says so.
	for i := range obs {
		obs[i].GradientBytes = known(int64(1 << 30))
	}
	if p := predicted(t, obs, runs); p.Share == nil || !strings.Contains(p.From, "beyond the measured sizes") {
		t.Errorf("%+v", p)
	}
}

func TestNoPrediction(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *Observation, r *Observation)
		want   string
	}{
		"no benchmark of as many workers": {func(_ *Observation, r *Observation) { r.Workers = 4 }, "has 2 workers on one node like these"},
		"other nodes":                     {func(_ *Observation, r *Observation) { r.Nodes = 2 }, "has 2 workers on one node like these"},
		"another machine": {func(_ *Observation, r *Observation) {
			r.Fingerprint = fingerprint.Print{fingerprint.CPU: "EPYC"}
		}, "no stored benchmark"},
		"another cluster": {func(_ *Observation, r *Observation) { r.Cluster = "c" }, "no stored benchmark"},
		"another backend": {func(_ *Observation, r *Observation) { r.Parameters["workload.backend"] = "tcp" }, `backend "auto"`},
		"an imported log": {func(_ *Observation, r *Observation) { r.Parameters = nil }, "no stored benchmark"},
		"another operation": {func(_ *Observation, r *Observation) {
			for _, p := range r.Places {
				p.At["op"] = "broadcast"
			}
		}, "no stored benchmark"},
		"a framework with its own": {func(o *Observation, _ *Observation) { o.Framework = "pytorch-ddp" }, "pytorch-ddp's gradients"},
		"no gradient size":         {func(o *Observation, _ *Observation) { o.GradientBytes = nil }, "the size of its gradients"},
		"no steps":                 {func(o *Observation, _ *Observation) { delete(o.Values, "step_p50") }, "its step times"},
	} {
		t.Run(name, func(t *testing.T) {
			o, r := training(1, 2, 0.1), measuredExchange("links", 1, 2, 1e-5, 1e9, 1)
			c.change(&o, &r)
			p := predicted(t, []Observation{o}, []Observation{r})
			if p == nil || p.Share != nil || p.From != "" || !strings.Contains(p.Why, c.want) {
				t.Errorf("%+v, want %q", p, c.want)
			}
		})
	}
	if p := predicted(t, []Observation{training(1, 2, 0.1)}, nil); p == nil || p.Share != nil || p.Why == "" {
		t.Errorf("without any benchmark: %+v", p)
	}
}

// There is no prediction if only some runs have the gradient's size, or for a framework with
// another transport.
func TestNotComparable(t *testing.T) {
	runs := []Observation{measuredExchange("links", 0, 2, 20e-6, 1e9, 1)}
	other, unknown, horovod := training(1, 2, 0.1), training(0, 2, 0.1), training(0, 2, 0.1)
	other.GradientBytes = known(int64(4 << 20))
	unknown.GradientBytes = nil
	horovod.Framework = "horovod"
	for want, trained := range map[string][]Observation{
		"gradients of different sizes":                {training(0, 2, 0.1), other},
		"no run recorded both its step times":         {unknown},
		"no benchmark of collectives for the path":    {horovod},
		`"auto" has 4 workers on one node like these`: {training(0, 4, 0.1)},
		`"auto" has 2 workers on 2 nodes like these`:  {onNodes(training(0, 2, 0.1), 2)},
	} {
		var list []*Observation
		for i := range trained {
			list = append(list, &trained[i])
		}
		var fits []benchmark
		for i := range runs {
			if b, ok := reductions(&runs[i]); ok {
				fits = append(fits, b)
			}
		}
		if p := predict(list, fits); p.Share != nil || !strings.Contains(p.Why, want) {
			t.Errorf("%+v, want no share and %q", p, want)
		}
	}
	// One run did not record the size, but the others did.
	a, b := training(0, 2, 0.1), unknown
	fit, _ := reductions(&runs[0])
	if p := predict([]*Observation{&b, &a}, []benchmark{fit}); p.Share == nil || math.Abs(p.Share.Value/((20e-6+3*(1<<20)/1e9)/0.1)-1) > 0.01 {
		t.Errorf("%+v, want the share of the run whose gradients' size is known", p)
	}
}

func onNodes(o Observation, nodes int) Observation {
	o.Nodes = nodes
	return o
}

// At a measured size, the factor is the measured one. In between it is interpolated over the
// logarithm of the size: at the geometric mean of two sizes with factors 1 and 4, it is 2.
func TestCorrection(t *testing.T) {
	b := benchmark{link: busbw.Link{Alpha: 0, Beta: 1}, times: map[float64]float64{4: 4, 64: 256}}
	for bytes, want := range map[float64]float64{4: 1, 64: 4, 16: 2} {
		if got, within := b.correction(bytes); !within || math.Abs(got-want) > 1e-12 {
			t.Errorf("%g bytes: %g, %v; want %g", bytes, got, within, want)
		}
	}
	for _, bytes := range []float64{3, 65} {
		if got, within := b.correction(bytes); within || got != 1 {
			t.Errorf("%g bytes: %g, %v; want 1, false", bytes, got, within)
		}
	}
}

// The study that ran last counts, regardless of the order of the input. Of studies from the same
// second, it is the one whose run name is last.
func TestLatest(t *testing.T) {
	run := func(study string, at float64) benchmark {
		return benchmark{Observation: &Observation{Run: study + "/r1", Study: study, CreatedUnix: at}}
	}
	for want, list := range map[string][]benchmark{
		"b": {run("b", 3), run("a", 2), run("c", 1)},
		"d": {run("c", 1), run("d", 1)},
		"e": {run("e", 2), run("e", 1), run("f", 1)},
	} {
		for range 2 {
			got := latest(slices.Clone(list))
			if len(got) == 0 || slices.ContainsFunc(got, func(r benchmark) bool { return r.Study != want }) {
				t.Errorf("got %d runs of %v, want those of %s", len(got), got, want)
			}
			slices.Reverse(list)
		}
	}
	if latest(nil) != nil {
		t.Error("no runs have a latest study")
	}
}
