package compare

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// runsOf returns runs of one point with these throughputs. A run reaches the target 0.5 after
// 1000/throughput seconds, or misses it if its throughput is negative.
func runsOf(set string, workers int, parameters map[string]any, throughputs ...float64) []scaling.Observation {
	var list []scaling.Observation
	for i, x := range throughputs {
		o := scaling.Observation{Run: fmt.Sprintf("%s/w%d-r%d", set, workers, i), Framework: "native", Workers: workers, Parameters: parameters,
			Fingerprint: fingerprint.Print{fingerprint.CPU: "Xeon"}}
		o.Values = map[string]float64{"throughput": math.Abs(x), "to_0.5": math.Inf(1)}
		if x > 0 {
			o.Values["to_0.5"] = 1000 / x
		}
		list = append(list, o)
	}
	return list
}

func compare(t *testing.T, a, b []scaling.Observation, figure string, o Options) *Comparison {
	t.Helper()
	f, err := measure.Find(figure)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Runs(a, b, f, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerdicts(t *testing.T) {
	six := func(k float64) []float64 { return []float64{100 * k, 101 * k, 102 * k, 103 * k, 104 * k, 105 * k} }
	for _, test := range []struct {
		name    string
		a, b    []float64
		figure  string
		verdict Verdict
		ratio   float64 // NaN: no ratio
		why     string
	}{
		// All 36 pairs lie on one side: p = 2/C(12,6) = 0.0022.
		{"slower", six(1), six(0.9), "throughput", Worse, 0.9, ""},
		{"faster", six(1), six(1.1), "throughput", Better, 1.1, ""},
		{"a longer time is worse", six(1), six(0.9), "to_0.5", Worse, 1 / 0.9, ""},
		{"no difference to be seen", six(1), []float64{100, 101, 102, 103, 104, 105.5}, "throughput", Same, 1, ""},
		{"all equal", []float64{7, 7, 7, 7}, []float64{7, 7, 7, 7}, "throughput", Same, 1, ""},
		// All 36 pairs lie on one side, but 6 copies of one run are no 6 runs. 4 runs that scatter are: p = 2/C(8,4) = 0.029.
		{"equal runs a side", []float64{7, 7, 7, 7, 7, 7}, []float64{8, 8, 8, 8, 8, 8}, "throughput", Insufficient, 8.0 / 7, "the runs of each side are equal: copied, or rounded?"},
		{"equal runs on one side", []float64{7, 7, 7, 7}, []float64{8, 8.1, 8.2, 8.3}, "throughput", Better, 8.15 / 7, ""},
		{"3 runs a side cannot differ", []float64{1, 2, 3}, []float64{10, 20, 30}, "throughput", Insufficient, 10, "too few runs for a test (3 of 4 needed)"},
		{"without the figure", six(1), six(1), "end_to_end", Insufficient, math.NaN(), "0 runs of A and 0 of B recorded end_to_end"},
		// A run that misses the target ranks last. If all miss it, the time is missing.
		{"one misses the target", six(1), []float64{110, 111, 112, 113, 114, -115}, "to_0.5", Same, math.NaN(), ""},
		{"all miss the target", six(1), []float64{-100, -101, -102, -103, -104, -105}, "to_0.5", Worse, math.NaN(), ""},
	} {
		r := compare(t, runsOf("a", 1, nil, test.a...), runsOf("b", 1, nil, test.b...), test.figure, Options{})
		p := r.Pairs[0]
		if p.Verdict != test.verdict || p.Why != test.why {
			t.Errorf("%s: %s (%s), want %s (%s)", test.name, p.Verdict, p.Why, test.verdict, test.why)
		}
		if !math.IsNaN(test.ratio) && (p.Ratio == nil || math.Abs(p.Ratio.Value-test.ratio) > 1e-12) {
			t.Errorf("%s: ratio %+v, want %g", test.name, p.Ratio, test.ratio)
		}
	}
	// A measure without a better direction only counts as different, neither better nor worse.
	neither := measure.Reported("throughput", "tokens/s", measure.Neither)
	for k, want := range map[float64]Verdict{0.9: Different, 1: Same} {
		r, err := Runs(runsOf("a", 1, nil, six(1)...), runsOf("b", 1, nil, six(k)...), neither, Options{})
		if err != nil || r.Pairs[0].Verdict != want || r.Pairs[0].Loss != nil {
			t.Errorf("without a direction: %+v, %v", r, err)
		}
	}
	p := compare(t, runsOf("a", 1, nil, six(1)...), runsOf("b", 1, nil, six(0.9)...), "throughput", Options{}).Pairs[0]
	if p.P == nil || math.Abs(*p.P-2.0/924) > 1e-12 || p.Ratio.Interval == nil || p.Loss == nil || math.Abs(*p.Loss-0.1) > 1e-12 {
		t.Errorf("%+v", p)
	}
	p = compare(t, runsOf("a", 1, nil, six(1)...), runsOf("b", 1, nil, -100, -101, -102, -103, -104, -105), "to_0.5", Options{}).Pairs[0]
	if p.B != nil || p.Ratio != nil || p.Loss != nil {
		t.Errorf("a time that nobody reached: %+v", p)
	}
}

// Two points are compared if they differ only in the parameters that distinguish the sets.
func TestPoints(t *testing.T) {
	model := func(name string, batch int64) map[string]any {
		return map[string]any{"workload.model": name, "workload.batch": batch}
	}
	a := append(runsOf("a", 1, model("cnn", 64), 1, 2, 3, 4), runsOf("a2", 2, model("cnn", 64), 1)...)
	b := append(runsOf("b", 1, model("mlp", 64), 1, 2, 3, 4), runsOf("b2", 4, model("mlp", 64), 1)...)
	for i := range b {
		b[i].Fingerprint = fingerprint.Print{fingerprint.CPU: "EPYC"}
	}
	for i := range a {
		a[i].Parameters["resources.mpi"] = "" // the others lack it, which is no difference for a reader
	}
	r := compare(t, a, b, "throughput", Options{})
	if len(r.Pairs) != 1 || r.Pairs[0].NA != 4 || r.Pairs[0].NB != 4 {
		t.Errorf("points %+v", r.Pairs)
	}
	if diff := cmp.Diff([]string{"workload.model: cnn, mlp", "cpu: Xeon, EPYC"}, r.Differ); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"native, 2 workers"}, {"native, 4 workers"}}, [][]string{r.OnlyA, r.OnlyB}); diff != "" {
		t.Error(diff)
	}
	// Two models within one set do not distinguish the sets.
	both := append(runsOf("c", 1, model("cnn", 64), 1, 2, 3, 4), runsOf("d", 1, model("mlp", 64), 5, 6, 7, 8)...)
	r = compare(t, a[:4], both, "throughput", Options{})
	if len(r.Pairs) != 1 || r.Differ != nil || len(r.OnlyB) != 1 {
		t.Errorf("%+v", r)
	}

	f, err := measure.Find("throughput")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Runs(a[:4], runsOf("e", 2, model("cnn", 64), 1), f, Options{}); !errors.Is(err, errNothingInCommon) {
		t.Errorf("nothing in common: %v", err)
	}
	if _, err := Runs(a, a[:1], f, Options{}); err == nil || !strings.Contains(err.Error(), "1 run in both") {
		t.Errorf("overlapping sets: %v", err)
	}
}

func TestMixedPointsAreNotJudged(t *testing.T) {
	a, b := runsOf("a", 1, nil, 1, 2, 3, 4), runsOf("b", 1, nil, 10, 20, 30, 40)
	b[3].Fingerprint = fingerprint.Print{fingerprint.CPU: "EPYC"}
	if p := compare(t, a, b, "throughput", Options{}).Pairs[0]; p.Verdict != Insufficient || !strings.Contains(p.Why, "cpu: EPYC (1 run), Xeon (3 runs)") || p.Ratio != nil {
		t.Errorf("%+v", p)
	}
	if p := compare(t, a, b, "throughput", Options{Mix: true}).Pairs[0]; p.Verdict != Better {
		t.Errorf("pooled as asked: %+v", p)
	}
}

// One platform against two: each test on the second and third is compared with the same test on the
// first.
func TestBaselineAgainstSeveral(t *testing.T) {
	side := func(platforms ...string) []scaling.Observation {
		var list []scaling.Observation
		for i, test := range []string{"a", "b"} {
			for _, p := range platforms {
				list = append(list, scaling.Observation{Run: p + test, Kind: "train", Framework: "csv", Workers: 1,
					Parameters: map[string]any{"platform": p, "test": test},
					Values:     map[string]float64{measure.Throughput: map[string]float64{"gpu": 100, "cpu8": 50, "cpu16": 80}[p] * float64(i+1)}})
			}
		}
		return list
	}
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Runs(side("gpu"), side("cpu8", "cpu16"), throughput, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, p := range r.Pairs {
		got[p.Series] = p.Ratio.Value
	}
	want := map[string]float64{"csv platform=cpu16 test=a": 0.8, "csv platform=cpu16 test=b": 0.8, "csv platform=cpu8 test=a": 0.5, "csv platform=cpu8 test=b": 0.5}
	if diff := cmp.Diff(want, got); diff != "" || r.OnlyA != nil || r.OnlyB != nil || len(r.Pairs) != 4 {
		t.Errorf("%v %v (-want +got):\n%s", r.OnlyA, r.OnlyB, diff)
	}
}

// A measure with several values per run is compared position by position: twice the time at 20
// requests/s, the same at 10.
func TestPlaces(t *testing.T) {
	m := measure.Measure{Name: "answer", Title: "answer", Unit: "s", Better: measure.Lower, At: "load", Axis: "load"}
	t.Cleanup(measure.Declare("serving", m))
	set := func(name string, factor float64) []scaling.Observation {
		var list []scaling.Observation
		for i := range 8 {
			var places measure.Places
			places.Add(map[string]any{"load": 10.0}, "answer", 0.1+float64(i)/1000)
			places.Add(map[string]any{"load": 20.0}, "answer", factor*(0.4+float64(i)/1000))
			list = append(list, scaling.Observation{Run: fmt.Sprint(name, i), Point: name, Kind: "serving", Framework: "native", Workers: 1, Parameters: map[string]any{"workers": int64(1)}, Places: places.List()})
		}
		return list
	}
	r, err := Runs(set("a", 1), set("b", 2), m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.Pairs {
		got = append(got, fmt.Sprintf("%s=%s: %d, %d runs, %.3g, %s", p.Axis, p.At, p.NA, p.NB, p.Ratio.Value, p.Verdict))
	}
	if diff := cmp.Diff([]string{"load=10: 8, 8 runs, 1, same", "load=20: 8, 8 runs, 2, worse"}, got); diff != "" {
		t.Error(diff)
	}
	none := set("c", 1)
	for i := range none {
		none[i].Places = nil
	}
	if _, err := Runs(set("a", 1), none, m, Options{}); !errors.Is(err, errNothingInCommon) || !strings.Contains(err.Error(), "no run of B recorded answer") {
		t.Errorf("one side without it: %v", err)
	}
}
