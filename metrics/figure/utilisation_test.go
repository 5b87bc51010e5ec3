package figure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/summary"
)

// Two nodes over 4 s, starting at 100. The first has 2 CPUs and uses 1, then 2 s of CPU
// time per second: 50 % and 100 %. Its package uses 100 J per second and its card draws 50
// W: 150 W. Nothing was read from storage, which must not become an axis from 0 to 1 B/s.
func TestDrawUtilisation(t *testing.T) {
	line := func(name, of string, counter bool, values ...float64) summary.Series {
		s := summary.Series{Name: name, Of: of, Counter: counter}
		for i, v := range values {
			s.Samples = append(s.Samples, summary.NodeSample{At: 100 + float64(i), Value: v})
		}
		return s
	}
	nodes := []summary.SampledNode{
		{Host: "n1", Series: []summary.Series{line(metrics.TelemetryCPU, "", true, 5, 6, 7, 9, 11), line(metrics.TelemetryCPUs, "", false, 2, 2, 2, 2, 2),
			line(metrics.TelemetryMemory, "", false, 1<<30, 2<<30, 2<<30, 2<<30, 1<<30),
			line(metrics.TelemetryEnergy, "package-0", true, 0, 100, 200, 300, 400), line(metrics.TelemetryPower, "card0", false, 50, 50, 50, 50, 50),
			line(metrics.TelemetryPresent, "card0", false, 1, 1, 1, 1, 1), line(metrics.TelemetryBusy, "card0", false, 0, 1, 1, 1, 0.5),
			line(metrics.TelemetryRead, "", true, 7, 7, 7, 7, 7)}},
		{Host: "n2", Series: []summary.Series{line(metrics.TelemetryMemory, "", false, 3<<30, 3<<30, 3<<30, 3<<30, 3<<30)}},
	}
	d, err := Draw("utilisation", Data{Run: Run{ID: "s/p-r1-a1", Nodes: nodes, Clock: summary.Window{From: 101, To: 103}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range d.panels {
		got = append(got, p.chart.y.title)
		for _, m := range p.chart.marks {
			if m.Kind == Trace {
				got = append(got, m.String())
			}
		}
	}
	want := []string{
		"CPU time (% of the run's CPUs)",
		`trace  "n1" (0.5, 0.5) (1.5, 0.5) (2.5, 1) (3.5, 1)`,
		"memory without page cache (GiB)",
		`trace  "n1" (0, 1.07374e+09) (1, 2.14748e+09) (2, 2.14748e+09) (3, 2.14748e+09) (4, 1.07374e+09)`,
		`trace  "n2" (0, 3.22123e+09) (1, 3.22123e+09) (2, 3.22123e+09) (3, 3.22123e+09) (4, 3.22123e+09)`,
		"read from storage: none",
		`trace  "n1" (0.5, 0) (1.5, 0) (2.5, 0) (3.5, 0)`,
		"power (W)",
		`trace  "n1" (0.5, 150) (1.5, 150) (2.5, 150) (3.5, 150)`,
		"power of each GPU (W)",
		`trace  "n1 card0" (0, 50) (1, 50) (2, 50) (3, 50) (4, 50)`,
		"GPU busy (% of the time)",
		`trace  "n1 card0" (0, 0) (1, 1) (2, 1) (3, 1) (4, 0.5)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := "Run s/p-r1-a1, 2 nodes. The training clock ran from 1 s to 3 s. Power is of whole nodes."; d.Caption() != want {
		t.Errorf("the caption is %q, want %q", d.Caption(), want)
	}
	if _, err := Draw("utilisation", Data{Run: Run{ID: "s/p-r1-a1", Nodes: nil, Clock: summary.Window{}}}, Options{}); err == nil || !strings.Contains(err.Error(), "was not sampled") {
		t.Error(err)
	}
}

// A day of many nodes is drawn with at most as many points as a line can show.
func TestDrawUtilisationOfMany(t *testing.T) {
	var nodes []summary.SampledNode
	for range 64 {
		s := summary.Series{Name: metrics.TelemetryMemory}
		for i := range 86400 {
			s.Samples = append(s.Samples, summary.NodeSample{At: float64(i), Value: float64(i % 7)})
		}
		nodes = append(nodes, summary.SampledNode{Host: "n", Series: []summary.Series{s}})
	}
	d, err := Draw("utilisation", Data{Run: Run{ID: "s/p-r1-a1", Nodes: nodes, Clock: summary.Window{}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range d.Marks() {
		if m.Kind == Label || len(m.Points) > mostMoments || m.Kind == Trace && m.Points[0].Y != 6 {
			t.Fatalf("%s with %d points, of which the first is %g", m.Kind, len(m.Points), m.Points[0].Y)
		}
	}
}
