package figure

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// served returns six runs of two batches with 1 to 8 requests in flight. Their throughputs
// stop growing at 2; latencies follow Little's law.
func served(t *testing.T) []scaling.Curve {
	t.Helper()
	var obs []scaling.Observation
	for i := range 6 {
		var places measure.Places
		for batch, x := range map[float64]float64{1: 100, 8: 40} {
			for threads, share := range map[float64]float64{1: 0.5, 2: 1, 4: 1, 8: 1} {
				at := map[string]any{measure.Batch: batch, measure.Threads: threads}
				rate := x * share * (1 + 0.01*float64(i))
				places.Add(at, measure.RequestsPerSecond, rate)
				places.Add(at, measure.LatencyP50, threads/rate)
				places.Add(at, measure.LatencyP95, 2*threads/rate)
			}
		}
		obs = append(obs, scaling.Observation{Run: fmt.Sprint("s/", i), Study: "s", Point: "p", Repeat: i + 1, Kind: "serve", Framework: "native", Workers: 1,
			Places: places.List(), Parameters: map[string]any{"workload.kind": "serve", "workers": int64(1), "workload.limit": "p95=50ms"}})
	}
	m, err := measure.Find(measure.LatencyP95)
	if err != nil {
		t.Fatal(err)
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Measure: m, Axis: measure.Threads})
	if err != nil || len(curves) != 2 {
		t.Fatal(err, len(curves))
	}
	return curves
}

func count(f *Drawing, kind MarkKind) int {
	n := 0
	for _, m := range f.Marks() {
		if m.Kind == kind {
			n++
		}
	}
	return n
}

// Two lines of four points, each with six runs and a bar in both directions; the limit of
// 50 ms is dashed. The median of 1 to 1.05 is 1.025, so batch 1 with 8 in flight gives
// 102.5 per second.
func TestAgainst(t *testing.T) {
	x, _ := measure.Find(measure.RequestsPerSecond)
	f, err := Draw(measure.LatencyP95, Data{Curves: served(t)}, Options{Against: x})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[MarkKind]int{Line: 2, Median: 8, Dot: 48, Bar: 16, Target: 1, Label: 2, Tag: 8} {
		if got := count(f, kind); got != want {
			t.Errorf("%d marks %s, want %d", got, kind, want)
		}
	}
	if i := slices.IndexFunc(f.Marks(), func(m Mark) bool { return m.Kind == Target }); f.Marks()[i].Points[0].Y != 0.05 {
		t.Errorf("the limit is at %v", f.Marks()[i])
	}
	if i := slices.IndexFunc(f.Marks(), func(m Mark) bool { return m.Kind == Label }); fmt.Sprintf("%.4g", f.Marks()[i].Points[0].X) != "102.5" {
		t.Errorf("the label is at %v", f.Marks()[i])
	}
	if text := f.Caption(); !strings.Contains(text, "joined along threads (numbers).") || !strings.Contains(text, "Dashed: the limit, P95 50.0 ms.") {
		t.Error(text)
	}
}

// Several measures get a line each.
func TestTogether(t *testing.T) {
	f, err := Draw(measure.LatencyP50+","+measure.LatencyP95, Data{Curves: served(t)}, Options{})
	if err != nil || count(f, Line) != 4 {
		t.Fatal(err)
	}
	// Both saturation points are at 2, ringed on all four lines.
	for _, m := range f.Marks() {
		if m.Kind == Bend && (len(m.Points) != 1 || m.Points[0].X != 2) {
			t.Errorf("a knee at %v", m)
		}
	}
	if text := f.Caption(); count(f, Bend) != 4 || !strings.Contains(text, "95 % of the most requests/s; thin rings: may be enough. Knee: 2.") {
		t.Error(text)
	}
	if !slices.ContainsFunc(f.Marks(), func(m Mark) bool { return m.Text == "native batch=8, P95" }) {
		t.Error("no line of P95 at batch 8")
	}
	for _, kind := range []string{"latency_p50,latency_p50", "latency_p50,requests_per_second", "latency_p50,nothing"} {
		if _, err := Draw(kind, Data{Curves: served(t)}, Options{}); err == nil {
			t.Errorf("%s is drawn", kind)
		}
	}
}

// The saturation points of both batches are at 2, ringed on their lines.
func TestBends(t *testing.T) {
	f, err := Draw(measure.RequestsPerSecond, Data{Curves: served(t)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Marks() {
		if m.Kind == Bend && (len(m.Points) != 1 || m.Points[0].X != 2) {
			t.Errorf("a knee at %v", m)
		}
	}
	if count(f, Bend) != 2 || !strings.Contains(f.Caption(), "Knee: 2.") {
		t.Error(f.Caption())
	}
}

// Over replicas, rates have an ideal line from their base, 100 at one replica to 400 at
// four, for every measure. A latency has no such line.
func TestIdeals(t *testing.T) {
	var obs []scaling.Observation
	for replicas, rate := range map[int]float64{1: 100, 2: 190, 4: 340} {
		obs = append(obs, scaling.Observation{Run: fmt.Sprint("s/", replicas), Study: "s", Point: fmt.Sprint(replicas), Repeat: 1, Kind: "serve", Framework: "native", Workers: replicas,
			Places:     []measure.Place{{At: map[string]any{measure.Batch: 1.0, measure.Threads: 4.0}, Values: map[string]float64{measure.RequestsPerSecond: rate, measure.LatencyP95: 0.01}}},
			Parameters: map[string]any{"workload.kind": "serve", "workers": int64(replicas)}})
	}
	for name, want := range map[string]int{measure.RequestsPerSecond: 1, measure.LatencyP95: 0} {
		m, _ := measure.Find(name)
		curves, err := scaling.Analyse(obs, scaling.Options{Measure: m})
		if err != nil || len(curves) != 1 {
			t.Fatal(err, len(curves))
		}
		f, err := Draw(name, Data{Curves: curves, Observations: obs}, Options{})
		if err != nil || count(f, Ideal) != want {
			t.Fatalf("%s: %v, %d ideal lines", name, err, count(f, Ideal))
		}
		for _, m := range f.Marks() {
			if m.Kind == Ideal && (m.Points[0] != XY{1, 100} || m.Points[1] != XY{4, 400}) {
				t.Errorf("%v", m)
			}
		}
	}
}

// A rate on the x axis has its unit, like one on the y axis.
func TestRateAxis(t *testing.T) {
	m, _ := measure.Find(measure.LatencyP95)
	for key, want := range map[string]string{measure.Rate: "rate (requests/s)", measure.Threads: "threads"} {
		points := []scaling.Point{{At: scaling.Value{Number: 1}}}
		if a := numberAxis([]trend{{curve: scaling.Curve{Axis: key, Points: points}, measure: m}}); a.title != want {
			t.Errorf("%q, want %q", a.title, want)
		}
	}
}

// Along the load, points with too few runs are named together, with the reason only.
func TestBarsAlongTheLoad(t *testing.T) {
	list := []trend{{curve: scaling.Curve{Axis: measure.Threads, Points: make([]scaling.Point, 3)}}}
	i := 0
	text := strings.Join(bars(estimates(list, func(*scaling.Summary) *scaling.Estimate {
		i++
		return &scaling.Estimate{Value: 1, Why: fmt.Sprintf("too few runs for an interval (%d of 6 needed)", i)}
	}), "interval"), " ")
	if text != "No bar: too few runs for an interval (6 needed)." {
		t.Error(text)
	}
}
