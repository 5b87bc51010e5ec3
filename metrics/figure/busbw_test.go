package figure

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// benchmarks returns runs of two operations: all-reduce in and out of place, and broadcast
// out of place.
func benchmarks(workers, runs int) []scaling.Observation {
	var list []scaling.Observation
	for repeat := range runs {
		r := scaling.Observation{Run: fmt.Sprint(workers, repeat), Point: fmt.Sprint(workers), Framework: "native", Workers: workers, Nodes: 1}
		var places measure.Places
		for size := 8.0; size <= 1<<20; size *= 2 {
			for _, m := range []busbw.Measurement{{Op: "all_reduce"}, {Op: "all_reduce", InPlace: true}, {Op: "broadcast"}} {
				seconds := 1e-5*float64(workers) + size/1e9*(1+0.01*float64(repeat))
				speed := size / seconds
				if m.InPlace {
					speed *= 2
				}
				places.Add(busbw.At(m.Op, size, m.InPlace), measure.BusBW, speed)
			}
		}
		r.Places = places.List()
		r.Parameters = map[string]any{"framework": "native", "workers": int64(workers)}
		list = append(list, r)
	}
	return list
}

// drawn returns the figure of a measure of the runs, along its own axis.
func drawn(t *testing.T, name string, obs []scaling.Observation, o Options) (*Drawing, error) {
	t.Helper()
	m, err := measure.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Measure: m})
	if err != nil {
		t.Fatal(err)
	}
	return Draw(name, Data{Curves: curves, Observations: obs}, o)
}

func TestBusBW(t *testing.T) {
	f, err := drawn(t, "busbw", append(benchmarks(2, 6), benchmarks(4, 1)...), Options{Title: "Links"})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.panels) != 2 || f.panels[0].chart.title != "all_reduce" || f.panels[1].chart.title != "broadcast" {
		t.Fatalf("%d panels, want one for each operation", len(f.panels))
	}
	count := map[MarkKind]int{}
	var labels []string
	for _, m := range f.panels[0].chart.marks {
		count[m.Kind]++
		// In these runs, in place is twice as fast: at 1 MiB more than 1 GB/s.
		if m.Kind == Median && m.Points[0].X == 1<<20 && m.Points[0].Y < 1.5e9 {
			t.Errorf("%v is out of place, where both were measured", m)
		}
	}
	for _, shared := range f.frame.labels {
		labels = append(labels, shared.mark.Text)
	}
	if want := []string{"native workers=2", "native workers=4"}; !slices.Equal(labels, want) {
		t.Errorf("lines %v, want %v", labels, want)
	}
	// 18 sizes: six runs with an interval each, and a single run that is its median.
	if count[Median] != 36 || count[Bar] != 18 || count[Dot] != 6*18+18 || count[Line] != 2 {
		t.Errorf("marks %v", count)
	}
	for _, want := range []string{"all_reduce: In place.", "broadcast: Out of place.", "Runs per point: native workers=2: 6; native workers=4: 1.", "too few runs for an interval"} {
		if !strings.Contains(f.Caption(), want) {
			t.Errorf("caption %q lacks %q", f.Caption(), want)
		}
	}
	for _, panel := range f.panels {
		var ticks []string
		for _, tick := range panel.layout.xTicks {
			ticks = append(ticks, tick.label)
			if tick.value < 8/2 || tick.value > 2<<20 {
				t.Errorf("a tick at %g, beyond the sizes", tick.value)
			}
		}
		if !slices.Contains(ticks, "64 KiB") || !slices.Contains(ticks, "4 KiB") {
			t.Errorf("ticks %q", ticks)
		}
	}
}

func TestBusBWNothing(t *testing.T) {
	var timed measure.Places
	timed.Add(busbw.At("all_reduce", 8, false), measure.Time, 1e-6)
	for _, obs := range [][]scaling.Observation{nil, {{Run: "r", Workers: 2, Places: timed.List()}}} {
		if _, err := drawn(t, "busbw", obs, Options{}); err == nil || !strings.Contains(err.Error(), "no run has a bus bandwidth") {
			t.Errorf("got %v", err)
		}
	}
}
