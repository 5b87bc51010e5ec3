package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// By hand: with four tests, 0.012 is compared with 0.05/4, 0.016 with 0.05/3, and 0.03 with 0.05/2.
// The first failure ends the procedure: no later p-value is significant.
func TestHolm(t *testing.T) {
	var points []Pair
	for _, p := range []float64{0.03, 0.012, 0.04, 0.016} {
		points = append(points, Pair{P: &p, Verdict: Worse})
	}
	points = append(points, Pair{Verdict: Insufficient})
	holm(points, 0.05)
	var got []Verdict
	for _, p := range points {
		got = append(got, p.Verdict)
	}
	if d := cmp.Diff([]Verdict{Same, Worse, Same, Worse, Insufficient}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// drawn returns random runs at five points. Runs at the last point are faster by factor.
func drawn(r *rand.Rand, name string, runs int, factor float64) []scaling.Observation {
	var list []scaling.Observation
	for _, workers := range []int{1, 2, 4, 8, 16} {
		for i := range runs {
			x := 100 * float64(workers) * math.Exp(0.02*r.NormFloat64())
			if workers == 16 {
				x *= factor
			}
			list = append(list, scaling.Observation{Run: fmt.Sprintf("%s/w%d-r%d-a1", name, workers, i+1), Study: name, Framework: "native", Workers: workers,
				Parameters: map[string]any{}, Values: map[string]float64{measure.Throughput: x}})
		}
	}
	return list
}

// If two equal sets are compared, at most 5 % of comparisons show a difference at any point. With 2
// % noise, a point that is 10 % slower is found. 4 runs per side are too few for five points at
// once.
func TestTruthOfVerdicts(t *testing.T) {
	trials := 2000
	if testing.Short() {
		trials /= 10
	}
	r := rand.New(rand.NewPCG(8, 15))
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(runs int, factor float64) []Pair {
		result, err := Runs(drawn(r, "a", runs, 1), drawn(r, "b", runs, factor), throughput, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return result.Pairs
	}
	wrong, found := 0, 0
	for range trials {
		for _, p := range compare(6, 1) {
			if p.Verdict != Same {
				wrong++
				break
			}
		}
		if compare(6, 0.9)[4].Verdict == Worse {
			found++
		}
	}
	t.Logf("of %d studies against themselves %d have a difference; a loss of 10 %% is found in %d", trials, wrong, found)
	if limit := 0.05*float64(trials) + 3*math.Sqrt(0.05*0.95*float64(trials)); float64(wrong) > limit {
		t.Errorf("%d of %d studies against themselves have a difference", wrong, trials)
	}
	if found < trials*9/10 {
		t.Errorf("a loss of 10 %% is found in %d of %d", found, trials)
	}
	for _, p := range compare(4, 0.5) {
		if p.Verdict != Insufficient || p.Why != "too few runs for a test (4 of 5 needed)" {
			t.Errorf("%+v", p)
		}
	}
}

func TestOtherDays(t *testing.T) {
	on := func(days ...float64) []scaling.Observation {
		var list []scaling.Observation
		for _, day := range days {
			list = append(list, scaling.Observation{BeganUnix: 86400 * (20000 + day)})
		}
		return list
	}
	if got := otherDays(on(0, 1.5), on(3)); !strings.HasPrefix(got, "A was measured from 2024-10-04 to 2024-10-05 and B on 2024-10-07: ") {
		t.Errorf("%q", got)
	}
	for _, b := range [][]scaling.Observation{on(1.9, 7), {{}}, {{CreatedUnix: 86400 * 20000}}} {
		if got := otherDays(on(0, 1.5), b); got != "" {
			t.Errorf("%+v: %q", b, got)
		}
	}
}

// Running again is suggested if it recreates the sets: each set is one study, or one study requests
// different parameters for the two sets.
func TestAgain(t *testing.T) {
	set := func(study string, day float64, more ...any) []scaling.Observation {
		var list []scaling.Observation
		for i := range 6 {
			o := scaling.Observation{Run: fmt.Sprintf("%s/%v%v-r%d", study, day, more, i), Study: study, Framework: "native", Workers: 1, BeganUnix: 86400 * day,
				Parameters: map[string]any{}, Values: map[string]float64{measure.Throughput: 1}}
			for _, m := range more {
				switch m := m.(type) {
				case int:
					o.Parameters["workload.batch"] = m
				case string:
					o.Fingerprint = fingerprint.Print{"cpu": m}
				case bool:
					o.Job = "17"
				}
			}
			list = append(list, o)
		}
		return list
	}
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		a, b []scaling.Observation
		want []string
	}{
		{"two studies", set("x", 1), set("y", 2), []string{"x", "y"}},
		{"on one day", set("x", 1), set("y", 1), nil},
		{"one study with two batches", set("x", 1, 32), set("x", 2, 64), []string{"x", "x"}},
		{"one study twice", set("x", 1), set("x", 2), nil},
		{"several studies", append(set("x", 1), set("z", 1)...), set("y", 2), nil},
		{"another machine", set("x", 1, "EPYC"), set("y", 2, "Xeon"), nil},
		{"another partition", set("x", 1, "EPYC", true), set("y", 2, "Xeon", true), []string{"x", "y"}},
	} {
		r, err := Runs(test.a, test.b, throughput, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(test.want, r.Again); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}

// If each set ran on one node, and the nodes differ, a difference may come from the nodes. It does
// not if both ran on the same node, or if the machines are compared.
func TestOneNodeEach(t *testing.T) {
	set := func(study, host, cpu string, factor float64) []scaling.Observation {
		var list []scaling.Observation
		for i := range 6 {
			list = append(list, scaling.Observation{Run: fmt.Sprintf("%s/r%d", study, i), Study: study, Framework: "native", Workers: 1, Hosts: []string{host},
				Fingerprint: fingerprint.Print{"cpu": cpu, "version.torch": "1"}, Parameters: map[string]any{}, Values: map[string]float64{measure.Throughput: factor * (100 + float64(i))}})
		}
		return list
	}
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, host, cpu string
		want            Verdict
		why             string
	}{
		{"the same node", "n1", "EPYC", Worse, ""},
		{"another node", "n2", "EPYC", Insufficient, "runs that share a node count as one, so 6 and 6 runs count as 1 and 1: too few runs for a test (1 of 4 needed)"},
		{"another machine", "n2", "Xeon", Worse, ""},
		{"a node that is not known", "", "EPYC", Worse, ""},
		{"another version on another node", "n2", "EPYC", Insufficient, "runs that share a node count as one, so 6 and 6 runs count as 1 and 1: too few runs for a test (1 of 4 needed)"},
	} {
		b := set("b", test.host, test.cpu, 0.5)
		if strings.HasPrefix(test.name, "another version") {
			for i := range b {
				b[i].Fingerprint = fingerprint.Print{"cpu": test.cpu, "version.torch": "2"}
			}
		}
		if test.host == "" {
			b[3].Hosts = nil
		}
		r, err := Runs(set("a", "n1", "EPYC", 1), b, throughput, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p := r.Pairs[0]; p.Verdict != test.want || p.Why != test.why || p.Verdict == Insufficient && p.Ratio.Interval != nil {
			t.Errorf("%s: %s, %q, %v", test.name, p.Verdict, p.Why, p.Ratio.Interval)
		}
	}
}
