package scaling

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

func TestOrderOfValues(t *testing.T) {
	word := func(s string) Value { return Value{Word: s} }
	ascending := []Value{{Number: -1}, {Number: 0}, {Number: 16}, word("512M"), word("8G"), word("9GiB"), word("1TB"),
		word("500ms"), word("90s"), word("1m31s"), word("-5s"), word("0s"), word("cpu8"), word("cpu16")}
	for i, v := range ascending {
		for j, w := range ascending {
			got := v.Compare(w)
			if i < j && got >= 0 || i == j && got != 0 || i > j && got <= 0 {
				t.Errorf("%s and %s: %d", v, w, got)
			}
		}
	}
	for _, c := range []struct {
		of   any
		want Value
	}{{int64(8), Value{Number: 8}}, {2.5, Value{Number: 2.5}}, {0, Value{Number: 0}}, {"8", Value{Word: "8"}}, {"", Value{Word: `""`}}, {true, Value{Word: "true"}}, {nil, Value{Word: "unset"}}} {
		if got := ValueOf(c.of); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.of, got, c.want)
		}
	}
}

func TestNamesOfPlaces(t *testing.T) {
	list := func(numbers ...float64) (values []Value) {
		for _, n := range numbers {
			values = append(values, Value{Number: n})
		}
		return values
	}
	for _, c := range []struct {
		axis   string
		places []Value
		want   string
		any    string // "or"
	}{
		{Workers, list(1), "1 worker", "1 worker"},
		{Workers, list(2), "2 workers", "2 workers"},
		{Workers, list(1, 2), "1 and 2 workers", "1 or 2 workers"},
		{Workers, list(1, 2, 4, 8), "1, 2, 4 and 8 workers", "1, 2, 4 or 8 workers"},
		{"batch", list(64), "batch 64", "batch=64"},
		{"batch", list(64, 128), "batch 64 and 128", "batch=64 or 128"},
		{"memory", []Value{{Word: "4G"}}, "memory 4G", "memory=4G"},
	} {
		if got := Places(c.axis, c.places...); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if got := axis(c.axis).places(c.places); got != c.any {
			t.Errorf("%q, want %q", got, c.any)
		}
	}
	service := Curve{Kind: "serve", Axis: Workers}
	if got := service.Places(list(1)...) + ", " + service.Places(list(2)...); got != "1 replica, 2 replicas" {
		t.Errorf("a service: %q", got)
	}
}

// Nearest-rank percentiles: of n steps, the one with rank share·n, rounded up.
func TestStepTimes(t *testing.T) {
	var twenty []float64
	for i := range 20 {
		twenty = append(twenty, float64(20-i))
	}
	for _, c := range []struct {
		durations []float64
		want      StepTimes
	}{
		{[]float64{7}, StepTimes{3, 1, 7, 7, 7, 7, 7, 7}},
		{[]float64{2, 1}, StepTimes{3, 2, 1, 1, 1, 2, 2, 2}},
		{[]float64{3, 1, 2, 4}, StepTimes{3, 4, 1, 1, 2, 3, 4, 4}},
		{twenty, StepTimes{3, 20, 1, 5, 10, 15, 19, 20}},
	} {
		if got := NewStepTimes(3, c.durations); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

func TestMedianRun(t *testing.T) {
	point := func(rates ...float64) *Point {
		p := &Point{}
		for i, x := range rates {
			p.Runs = append(p.Runs, RunValues{ID: string(rune('a' + i)), Values: map[string]float64{measure.Throughput: x}})
		}
		return p
	}
	for _, c := range []struct {
		p    *Point
		want string
	}{
		{point(), ""}, {point(0, -1, math.Inf(1)), ""}, {point(5), "a"}, {point(3, 1, 2), "c"}, {point(4, 1, 3, 2), "d"},
		{point(4, 0, 3, 2), "c"}, {point(1, 1, 1), "b"},
	} {
		got := ""
		if run := c.p.MedianRun(); run != nil {
			got = run.ID
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.p.Runs, got, c.want)
		}
	}
	p := point(1, 2)
	p.Runs[0].Values = nil
	if run := p.MedianRun(); run == nil || run.ID != "b" {
		t.Errorf("%+v", run)
	}
}

func TestUnitOfSamples(t *testing.T) {
	obs := func(words ...any) (list []Observation) {
		for _, w := range words {
			o := Observation{Parameters: map[string]any{}}
			if w != nil {
				o.Parameters["workload.sample"] = w
			}
			list = append(list, o)
		}
		return list
	}
	for _, c := range []struct {
		obs  []Observation
		want string
	}{
		{nil, ""}, {obs("image"), "image"}, {obs("image", "image"), "image"}, {obs("image", "token"), ""}, {obs("image", nil), ""}, {obs(nil, "image"), ""}, {obs(nil, nil), ""},
	} {
		if got := sampleOfAll(c.obs); got != c.want {
			t.Errorf("%v: %q, want %q", c.obs, got, c.want)
		}
	}
	for _, c := range []struct {
		curves []Curve
		want   string
	}{
		{nil, "samples/s"}, {[]Curve{{Sample: "image"}}, "images/s"}, {[]Curve{{Sample: "image"}, {Sample: "image"}}, "images/s"},
		{[]Curve{{Sample: "image"}, {Sample: "token"}}, "samples/s"}, {[]Curve{{}, {Sample: "image"}}, "samples/s"},
	} {
		if got := RateUnit(c.curves...); got != c.want {
			t.Errorf("%v: %q, want %q", c.curves, got, c.want)
		}
	}
}

func TestWordsOfDrift(t *testing.T) {
	for _, c := range []struct {
		f    Drift
		want string
	}{
		{Drift{Link: DriftTrend, Change: 0.123, P: 0.001}, "drift: throughput rose by 12.3 % from the first to the second half of the runs (p = 0.001), so medians depend on when runs were made"},
		{Drift{Link: DriftTrend, Change: -0.05, P: 0.02}, "drift: throughput fell by 5.0 % from the first to the second half of the runs (p = 0.02), so medians depend on when runs were made"},
		{Drift{Link: DriftNeighbours, P: 0.01}, "drift: consecutive runs are alike (p = 0.01), so they are worth less than independent runs"},
		{Drift{Link: DriftDay, P: 0.003}, "drift: throughput depends on the day (p = 0.003), so runs of one day are worth less than independent runs"},
		{Drift{Link: DriftNode, Node: "n7", Change: 0.02, P: 0.01}, "runs on n7 are 2.0 % faster than others (p = 0.01); runs that share a node count as one in intervals"},
		{Drift{Link: DriftNode, Node: "n7", Change: -0.2, P: 0.01}, "runs on n7 are 20.0 % slower than others (p = 0.01); runs that share a node count as one in intervals"},
	} {
		if got := driftWarnings([]Drift{c.f}, measure.Throughput); len(got) != 1 || got[0] != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	curve := func(links ...DriftLink) Curve {
		var c Curve
		for _, l := range links {
			c.drifts = append(c.drifts, Drift{Link: l})
			c.DriftWarnings = append(c.DriftWarnings, string(rune('A'+gravity(Drift{Link: l}))))
		}
		return c
	}
	for _, c := range []struct {
		curves []Curve
		which  int // -1: no run
		want   string
	}{
		{nil, -1, ""}, {[]Curve{{}}, -1, ""}, {[]Curve{{}, curve(DriftNeighbours)}, 1, "D"},
		{[]Curve{curve(DriftDay), curve(DriftTrend)}, 1, "A"}, {[]Curve{curve(DriftTrend), curve(DriftNode)}, 0, "A"},
		{[]Curve{curve(DriftNode), curve(DriftNode)}, 0, "B"},
	} {
		worst, warning := WorstDrift(c.curves)
		if warning != c.want || (worst == nil) != (c.which < 0) || c.which >= 0 && worst != &c.curves[c.which] {
			t.Errorf("%q, want %q of curve %d", warning, c.want, c.which)
		}
	}
}

func TestLinesOfRemarks(t *testing.T) {
	for _, c := range []struct {
		name    string
		remarks []Remark
		series  int
		want    []string
	}{
		{"none", nil, 1, nil},
		{"of the only series", []Remark{{Series: "a", Where: "", Text: "slow"}}, 1, []string{"slow"}},
		{"of one of two", []Remark{{Series: "a", Where: "2 workers: ", Text: "slow"}}, 2, []string{"a: 2 workers: slow"}},
		{"of both", []Remark{{Series: "a", Where: "", Text: "slow"}, {Series: "b", Where: "", Text: "slow"}}, 2, []string{"both series: slow"}},
		{"of all three", []Remark{{Series: "a", Where: "", Text: "slow"}, {Series: "b", Where: "", Text: "slow"}, {Series: "c", Where: "", Text: "slow"}}, 3, []string{"all 3 series: slow"}},
		{"of two of three", []Remark{{Series: "a", Where: "", Text: "slow"}, {Series: "b", Where: "", Text: "slow"}}, 3, []string{"a and 1 other series: slow"}},
		{"of none in particular", []Remark{{Series: "", Where: "", Text: "slow"}}, 3, []string{"slow"}},
		{"other numbers", []Remark{{Series: "a", Where: "", Text: "5 % slow"}, {Series: "b", Where: "", Text: "6 % slow"}}, 2, []string{"both series: 5 % slow (and 1 like it)"}},
		{"other numbers, in brackets", []Remark{{Series: "a", Where: "", Text: "slow (5 %)"}, {Series: "b", Where: "", Text: "slow (6 %)"}, {Series: "b", Where: "", Text: "slow (7 %)"}}, 2, []string{"both series: slow (5 %; and 2 like it)"}},
		{"other numbers in one series", []Remark{{Series: "a", Where: "", Text: "slow on node1"}, {Series: "b", Where: "", Text: "slow on node1 (one run's figures; the others differ)"}}, 2, []string{"both series: slow on node1 (and 1 like it)"}},
		{"other places", []Remark{{Series: "a", Where: "1 worker: ", Text: "slow"}, {Series: "a", Where: "2 workers: ", Text: "slow"}}, 1, []string{"1 worker: slow (and 1 like it)"}},
		{"two kinds, in order", []Remark{{Series: "a", Where: "", Text: "slow"}, {Series: "a", Where: "", Text: "late"}}, 1, []string{"slow", "late"}},
		{"a target is a name", []Remark{{Series: "a", Where: "", Text: "target 0.5: missed"}, {Series: "a", Where: "", Text: "target 0.6: missed"}}, 1, []string{"target 0.5: missed", "target 0.6: missed"}},
	} {
		if got := Lines(c.remarks, c.series); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := (Remark{Series: "a", Where: "b: ", Text: "c"}).String() + "|" + (Remark{Series: "", Where: "b: ", Text: "c"}).String(); got != "a: b: c|b: c" {
		t.Error(got)
	}
}

// A parameter is part of the name if series differ in it, and a degree of model parallelism if it
// is above 1.
func TestNamesOfCurves(t *testing.T) {
	curve := func(framework string, pairs ...any) Curve {
		c := Curve{Framework: framework, Parameters: map[string]any{}}
		for i := 0; i < len(pairs); i += 2 {
			c.Parameters[pairs[i].(string)] = pairs[i+1]
		}
		return c
	}
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		name   string
		curves []Curve
		but    []string
		want   []string
		keys   []string
	}{
		{"none", nil, nil, nil, nil},
		{"one", []Curve{curve("a", "batch", 8)}, nil, []string{"a"}, nil},
		{"by a parameter", []Curve{curve("a", "train.batch", 8), curve("a", "train.batch", 16)}, nil, []string{"a batch=8", "a batch=16"}, []string{"train.batch"}},
		{"but that", []Curve{curve("a", "train.batch", 8), curve("a", "train.batch", 16)}, []string{"train.batch"}, []string{"a", "a"}, []string{"train.batch"}},
		{"a framework's own", []Curve{curve("a", "zero", 1), curve("b")}, nil, []string{"a", "b"}, nil},
		{"unset in one of a framework's", []Curve{curve("a", "zero", 1), curve("a")}, nil, []string{"a zero=1", "a zero=unset"}, []string{"zero"}},
		{"set in each", []Curve{curve("a", "zero", 1), curve("b", "zero", 2)}, nil, []string{"a zero=1", "b zero=2"}, []string{"zero"}},
		{"split alike", []Curve{curve("a", "tp", 2, "batch", 8), curve("a", "tp", 2, "batch", 16)}, nil, []string{"a batch=8 tp=2", "a batch=16 tp=2"}, []string{"batch"}},
		{"not split", []Curve{curve("a", "tp", 1, "batch", 8), curve("a", "tp", 1, "batch", 16)}, nil, []string{"a batch=8", "a batch=16"}, []string{"batch"}},
		{"long values that are cut alike", []Curve{curve("a", "p", long+"1"+long), curve("a", "p", long+"2"+long)}, nil, nil, []string{"p"}},
	} {
		var got []string
		renamed := Rename(c.curves, c.but...)
		for _, r := range renamed {
			got = append(got, r.Series)
		}
		if c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if keys := Keys(c.curves); !slices.Equal(keys, c.keys) {
			t.Errorf("%s: keys %q, want %q", c.name, keys, c.keys)
		}
		if c.want == nil && c.curves != nil && (got[0] == got[1] || !strings.HasSuffix(got[0], "#1") || !strings.HasSuffix(got[1], "#2") || !strings.Contains(got[0], "…")) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	a, b := curve("a", "batch", 8, "epochs", 1), curve("a", "batch", 16, "epochs", 1)
	other := curve("b", "batch", 8, "epochs", 1)
	more := curve("a", "batch", 8, "epochs", 1, "zero", 3)
	for _, c := range []struct {
		a, b Curve
		but  string
		want bool
	}{{a, a, "", true}, {a, b, "", false}, {a, b, "batch", true}, {a, b, "epochs", false}, {a, other, "batch", false}, {a, more, "", false}, {more, a, "", false}, {more, a, "zero", true}} {
		if got := Alike(c.a, c.b, c.but); got != c.want {
			t.Errorf("%v and %v but %q: %v", c.a.Parameters, c.b.Parameters, c.but, got)
		}
	}
}

func TestTextOfParameters(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{{nil, "unset"}, {"x", "x"}, {true, "true"}, {3, "3"}, {int64(-3), "-3"}, {2.5, "2.5"}, {64.0, "64"}, {0.0, "0"}, {1e-6, "0.000001"}, {9e-7, "9e-07"}, {1e21, "1e+21"}, {1e20, "100000000000000000000"},
		{[]any{1, "a"}, "[1,a]"}, {[]any{}, "[]"}, {map[string]any{"a": 1}, `{"a":1}`}} {
		if got := text(c.v); got != c.want {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
	if literal("64") == literal(64) || literal(64) != literal(64.0) {
		t.Error("a text is a number")
	}
}

// If two of five runs miss, they rank last, and the median is 30. Three of five are more than half.
func TestReachedWithMisses(t *testing.T) {
	miss := math.Inf(1)
	for _, c := range []struct {
		xs   []float64
		want float64 // median; 0: none
		why  string
	}{
		{[]float64{10, 30, 20}, 20, ""},
		{[]float64{10, 20}, 15, ""},
		{[]float64{10, 20, 30, miss, miss}, 30, ""},
		{[]float64{10, 20, miss, miss, miss}, 0, halfMiss},
		{[]float64{10, 20, miss, miss}, 0, halfMiss},
		{[]float64{miss}, 0, halfMiss},
	} {
		r, err := ReachOf(c.xs, nil, 0, measure.Lower, false, 0)
		if err != nil || r.Why != c.why || (r.Median != nil) != (c.want > 0) || r.Median != nil && r.Median.Value != c.want {
			t.Errorf("%v: %+v, %v; want %g, %q", c.xs, r, err, c.want, c.why)
		}
	}
	// For 9 runs, the interval is from the second to the eighth (binomial: 1 − 2·(1+9)/512 =
	// 0.961). If one run misses, it ranks ninth; if two miss, the eighth is a miss.
	nine := []float64{1, 2, 3, 4, 5, 6, 7, 8, miss}
	if r, err := ReachOf(nine, nil, 0, measure.Lower, false, 0.95); err != nil || r.Median == nil || r.Median.Value != 5 || r.Median.Interval == nil || r.Median.Interval.Low != 2 || r.Median.Interval.High != 8 {
		t.Errorf("one of nine: %+v, %v", r, err)
	}
	nine[7] = miss
	if r, err := ReachOf(nine, nil, 0, measure.Lower, false, 0.95); err != nil || r.Median == nil || r.Median.Value != 5 || r.Median.Interval != nil || r.Median.Why != noUpperEnd || r.AtLeast == nil || *r.AtLeast != 2 {
		t.Errorf("two of nine: %+v, %v", r, err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		if _, err := ReachOf([]float64{1, bad}, nil, 0, measure.Lower, false, 0); err == nil {
			t.Errorf("a median of %g", bad)
		}
	}
	if r, err := ReachOf(nil, nil, 0, measure.Lower, false, 0); err != nil || r.Median != nil || r.Why != "" {
		t.Errorf("no runs: %+v, %v", r, err)
	}
}

func TestWithin(t *testing.T) {
	at := func(sizes ...float64) Observation {
		var o Observation
		for _, s := range sizes {
			o.Places = append(o.Places, measure.Place{At: map[string]any{"bytes": s}})
		}
		return o
	}
	obs := []Observation{at(8, 16), at(16), at(32)}
	got, err := FilterPositions(obs, []Condition{{Key: "bytes", Value: "16"}})
	if err != nil || len(got) != 3 || len(got[0].Places) != 1 || got[0].Places[0].At["bytes"] != 16.0 || len(got[1].Places) != 1 || len(got[2].Places) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(obs[0].Places) != 2 {
		t.Error("the runs themselves have lost places")
	}
	if _, err := FilterPositions(obs, []Condition{{Key: "bytes", Value: "64"}}); err == nil || !strings.Contains(err.Error(), "valid: 8, 16, 32") {
		t.Error(err)
	}
	if _, err := FilterPositions(obs, []Condition{{Key: "op", Value: "x"}}); err == nil || !strings.Contains(err.Error(), "nothing was measured at a op") {
		t.Error(err)
	}
}

// Karp and Flatt's serial fraction of a speedup of 3 on 4 workers: (1/3 − 1/4)/(1 − 1/4)
// = 1/9; at the ends of [2, 4] it is 1/3 and 0.
func TestKarpFlattByHand(t *testing.T) {
	s := &Summary{divided: true, multiple: 4, base: &Summary{}, gain: &Estimate{Value: 3, Interval: &Interval{Low: 2, High: 4, Level: 0.95}}}
	e, in := s.KarpFlatt()
	if e == nil || math.Abs(*e-1./9) > 1e-12 || in == nil || math.Abs(in.Low-0) > 1e-12 || math.Abs(in.High-1./3) > 1e-12 || in.Level != 0.95 {
		t.Errorf("%v, %+v", e, in)
	}
	s.gain.Interval = nil
	if e, in := s.KarpFlatt(); e == nil || in != nil {
		t.Errorf("%v, %+v", e, in)
	}
	for name, none := range map[string]*Summary{
		"no gain":         {divided: true, multiple: 4, base: &Summary{}},
		"no more workers": {divided: true, multiple: 1, base: &Summary{}, gain: &Estimate{Value: 1}},
		"fewer":           {divided: true, multiple: 0.5, base: &Summary{}, gain: &Estimate{Value: 1}},
	} {
		if e, in := none.KarpFlatt(); e != nil || in != nil {
			t.Errorf("%s: %v, %v", name, e, in)
		}
	}
}
