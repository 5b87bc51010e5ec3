package summary

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// series returns one sample per second, starting at 0.
func series(name, of string, counter bool, values ...float64) Series {
	s := Series{Name: name, Of: of, Counter: counter}
	for i, v := range values {
		if !math.IsNaN(v) {
			s.Samples = append(s.Samples, NodeSample{float64(i), v})
		}
	}
	return s
}

var no = math.NaN()

func TestRise(t *testing.T) {
	for name, c := range map[string]struct {
		values   []float64
		from, to float64
		want     float64
		err      string
	}{
		"whole":           {[]float64{10, 12, 14}, 0, 2, 4, ""},
		"between samples": {[]float64{0, 10, 30}, 0.5, 1.5, 15, ""}, // 5 to 20
		"a gap":           {[]float64{0, no, no, 6, 8}, 1, 4, 6, ""},
		// Samples cover 4 s of 5 s: 8 more, and as fast in the fifth.
		"ends early":   {[]float64{0, 2, 4, 6, 8}, 0, 5, 10, ""},
		"starts late":  {[]float64{no, 2, 4, 6, 8, 10}, 0, 5, 10, ""},
		"covers less":  {[]float64{0, 2, 4, 6}, 0, 5, 0, "cover 3.0 s of 5.0 s"},
		"not at all":   {[]float64{0, 2}, 5, 6, 0, "cover 0.0 s of 1.0 s"},
		"back":         {[]float64{5, 4, 9}, 0, 2, 0, "went back"},
		"one sample":   {[]float64{5}, 0, 1, 0, "sampled 1 times"},
		"empty window": {[]float64{5, 6}, 1, 1, 0, "cover"},
		"still":        {[]float64{7, 7, 7}, 0, 2, 0, ""},
	} {
		s := series("cpu", "", true, c.values...)
		got, err := s.Rise(Window{c.from, c.to})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil && math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, %v; want %g, %q", name, got, err, c.want, c.err)
		}
	}
}

// Areas worked out by hand.
func TestArea(t *testing.T) {
	for name, c := range map[string]struct {
		values   []float64
		from, to float64
		want     float64
		err      string
	}{
		"flat":       {[]float64{300, 300, 300, 300}, 0, 3, 900, ""},
		"ramp":       {[]float64{0, 100, 200, 300}, 0, 3, 450, ""},
		"part":       {[]float64{0, 100, 200, 300}, 0.5, 2.5, 300, ""}, // mean 150 W over 2 s
		"burst":      {[]float64{100, 100, 700, 100, 100}, 0, 4, 1000, ""},
		"ends early": {[]float64{200, 200, 200, 200, 200}, 0, 5, 1000, ""},
		"gap":        {[]float64{100, no, no, no, no, no, no, 100}, 0, 7, 0, "was not read for 7.0 s"},
		"uncovered":  {[]float64{100, 100}, 0, 7, 0, "cover 1.0 s of 7.0 s"},
	} {
		s := series("power", "", false, c.values...)
		got, err := s.Area(Window{c.from, c.to})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil && math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, %v; want %g, %q", name, got, err, c.want, c.err)
		}
	}
}

// A curve with known area, P(t) = 400 + 200 sin(2πt/60) W over an hour: whole periods, so
// 400 W × 3600 s. With samples every second, the trapezoids of whole periods are exact up
// to rounding.
func TestAreaOfKnownCurve(t *testing.T) {
	s := Series{Name: "power"}
	for i := range 3601 {
		s.Samples = append(s.Samples, NodeSample{float64(i), 400 + 200*math.Sin(2*math.Pi*float64(i)/60)})
	}
	got, err := s.Area(Window{0, 3600})
	if err != nil || math.Abs(got-1_440_000) > 1e-3 {
		t.Errorf("%g J, %v; want 1,440,000", got, err)
	}
}

// Which energies can be added up.
func TestEnergy(t *testing.T) {
	energy := func(of string, values ...float64) Series { return series(metrics.TelemetryEnergy, of, true, values...) }
	power := func(of string, values ...float64) Series { return series(metrics.TelemetryPower, of, false, values...) }
	w := Window{0, 2}
	for name, c := range map[string]struct {
		node SampledNode
		want float64
		of   string
		err  string
	}{
		"packages and memory": {SampledNode{Series: []Series{energy("package-0", 0, 100, 200), energy("package-0 dram", 0, 10, 20), energy("package-1", 5, 55, 105)}}, 320, "package × 2, memory × 1", ""},
		"psys holds them":     {SampledNode{Series: []Series{energy("package-0", 0, 100, 200), energy("psys", 0, 400, 800)}}, 200, "package × 1", ""},
		"psys alone":          {SampledNode{Series: []Series{energy("psys", 0, 400, 800)}}, 0, "nothing", "only the platform"},
		"the node holds all":  {SampledNode{Series: []Series{energy("package-0", 0, 100, 200), energy("node", 0, 500, 1000), power("card0", 300, 300, 300)}}, 1000, "the whole node", ""},
		"GPUs by area":        {SampledNode{Series: []Series{energy("package-0", 0, 100, 200), power("card0", 300, 300, 300), power("card1", 100, 100, 100)}}, 1000, "package × 1, GPU × 2", ""},
		"counter before area": {SampledNode{Series: []Series{energy("GPU-1", 0, 90, 180), power("GPU-1", 100, 100, 100)}}, 180, "GPU × 1", ""},
		"one was not read":    {SampledNode{Series: []Series{energy("package-0", 0, 100, 200), energy("package-1", 0)}}, 0, "package × 2", "energy of package-1: energy was sampled 1 times"},
		"none":                {SampledNode{Missing: map[string]string{"energy": "energy_uj: permission denied"}}, 0, "nothing", "energy_uj: permission denied"},
	} {
		got, err := c.node.Energy(w)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || math.Abs(got.Joules-c.want) > 1e-9 {
			t.Errorf("%s: %g J, %v; want %g, %q", name, got.Joules, err, c.want, c.err)
		}
		if of := c.node.EnergyOf(); of != c.of {
			t.Errorf("%s: of %q, want %q", name, of, c.of)
		}
	}
	both, err := (&SampledNode{Series: []Series{energy("GPU-1", 0, 90, 180), power("GPU-1", 100, 100, 100)}}).Energy(w)
	if err != nil || *both.Parts[0].Counter != 180 || *both.Parts[0].Area != 200 {
		t.Errorf("%+v, %v", both, err)
	}
}

// Batches are joined on a common time scale, although clocks started at different times.
func TestAdd(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	var node SampledNode
	node.Add(1000, &metrics.Telemetry{Tick: 0.001, At: []int64{0, 1000}, Missing: map[string]string{"energy": "first"}, Columns: []metrics.TelemetryColumn{
		{Name: "cpu", Unit: "s", Counter: true, Scale: 0.01, Least: 50, Above: []*int64{nil, n(7)}}, {Name: "cpus", Scale: 1, Least: 4}}})
	node.Add(1000, &metrics.Telemetry{Tick: 0.001, At: []int64{1000, 2000}, Missing: map[string]string{"energy": "second"}, Columns: []metrics.TelemetryColumn{
		{Name: "cpu", Unit: "s", Counter: true, Scale: 0.01, Least: 100}}})
	cpu := node.Named("cpu")
	if len(cpu) != 1 || len(cpu[0].Samples) != 2 || cpu[0].Samples[0].At != 1001 || math.Abs(cpu[0].Samples[0].Value-0.57) > 1e-12 || cpu[0].Samples[1] != (NodeSample{1002, 1}) {
		t.Errorf("%+v", cpu)
	}
	for _, c := range []metrics.TelemetryColumn{{Name: "cpus"}, {Name: "cpu", Of: "1", Unit: "s", Counter: true}, {Name: "cpu", Source: "x", Unit: "s", Counter: true}, {Name: "cpu", Unit: "ms", Counter: true}, {Name: "cpu", Unit: "s"}} {
		c.Scale = 1
		node.Add(1000, &metrics.Telemetry{Tick: 0.001, At: []int64{2000}, Columns: []metrics.TelemetryColumn{c}})
	}
	if len(node.Named("cpu")) != 5 || len(node.Named("cpus")) != 1 {
		t.Errorf("%d series of cpu, %d of cpus; want 5 and 1", len(node.Named("cpu")), len(node.Named("cpus")))
	}
	if w, ok := node.Span(); !ok || w != (Window{1000, 1002}) || node.Missing["energy"] != "first" {
		t.Errorf("%v, %t, %v", w, ok, node.Missing)
	}
}
