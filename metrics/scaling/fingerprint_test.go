package scaling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// on returns n runs of a series at one worker count with this fingerprint.
func on(workers int, rate float64, n int, p fingerprint.Print) []Observation {
	var list []Observation
	for i := range n {
		x := rate + float64(i)
		list = append(list, Observation{Run: fmt.Sprintf("w%d-%v-%d", workers, p, i), Framework: "native", Workers: workers, Nodes: 1,
			Values: map[string]float64{"throughput": x}, Parameters: map[string]any{"workload.scaling": "weak"}, Fingerprint: p})
	}
	return list
}

// Runs at 1 worker, to which the driver's version does not apply, and at 2 workers with two
// versions give two curves with the same base.
func TestCurvesDoNotMixFingerprints(t *testing.T) {
	all := slices.Concat(on(1, 100, 2, fingerprint.Print{fingerprint.Interface: ""}),
		on(2, 180, 3, fingerprint.Print{fingerprint.Interface: "ib0"}), on(2, 120, 1, fingerprint.Print{fingerprint.Interface: "eth0"}))
	curves, err := Analyse(all, Options{})
	if err != nil || len(curves) != 2 {
		t.Fatalf("%d curves, %v", len(curves), err)
	}
	for i, want := range []struct {
		name string
		runs int
	}{{"native interface=eth0", 1}, {"native interface=ib0", 3}} {
		c := curves[i]
		if c.Series != want.name || !c.Divided() || len(c.Points) != 2 || len(c.Points[0].Runs) != 2 || len(c.Points[1].Runs) != want.runs {
			t.Errorf("curve %q with %d points, want %q with %d runs at 2 workers", c.Series, len(c.Points), want.name, want.runs)
		}
		if !slices.ContainsFunc(c.Warnings, func(w string) bool {
			return strings.Contains(w, "on separate curves: interface: eth0 (1 run), ib0 (3 runs)")
		}) {
			t.Errorf("%s: %q", c.Series, c.Warnings)
		}
	}

	curves, err = Analyse(all, Options{Mix: true})
	if err != nil || len(curves) != 1 || curves[0].Divided() || len(curves[0].Points[1].Runs) != 4 || len(curves[0].Mixed) != 1 {
		t.Fatalf("mixed as asked: %+v, %v", curves, err)
	}
	if !slices.ContainsFunc(curves[0].Warnings, func(w string) bool { return strings.Contains(w, "are mixed: interface: eth0") }) {
		t.Errorf("it is not said: %q", curves[0].Warnings)
	}
}

// Runs that did not record a fact stay on the curve, with a warning. If there are two known values,
// such runs cannot be assigned.
func TestUnknownFacts(t *testing.T) {
	xeon, epyc := fingerprint.Print{fingerprint.CPU: "Xeon"}, fingerprint.Print{fingerprint.CPU: "EPYC"}
	curves, err := Analyse(slices.Concat(on(1, 100, 2, xeon), on(2, 180, 2, nil)), Options{})
	if err != nil || len(curves) != 1 {
		t.Fatalf("%d curves, %v", len(curves), err)
	}
	if c := curves[0]; c.Fingerprint[fingerprint.CPU] != "Xeon" || !slices.ContainsFunc(c.Warnings, func(w string) bool {
		return strings.Contains(w, "cpu: Xeon (2 runs), not recorded (2 runs)")
	}) {
		t.Errorf("%v, %q", c.Fingerprint, c.Warnings)
	}
	curves, err = Analyse(slices.Concat(on(1, 100, 1, xeon), on(1, 90, 1, epyc), on(1, 80, 1, nil)), Options{})
	if err != nil || len(curves) != 3 {
		t.Fatalf("%d curves, %v", len(curves), err)
	}
	if name := curves[2].Series; name != "native cpu=not recorded" {
		t.Errorf("series %q", name)
	}
}
