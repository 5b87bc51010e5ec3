package scaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scalebench/scalebench/metrics/measure"
)

var approx = cmpopts.EquateApprox(1e-12, 0)

func ptr(x float64) *float64 { return &x }

// runs returns observations of one point, one for each throughput.
func runs(workers int, throughputs ...float64) []Observation {
	var list []Observation
	for i, x := range throughputs {
		list = append(list, Observation{
			Run: fmt.Sprintf("s/w%d-r%d-a1", workers, i+1), Study: "s", Point: fmt.Sprintf("w%d", workers),
			Repeat: i + 1, Framework: "native", Workers: workers, Nodes: 1, Job: fmt.Sprintf("%d%d", workers, i),
			Parameters: map[string]any{"framework": "native", "workers": int64(workers), "workload.scaling": "weak", "workload.batch": int64(64)},
			Values:     map[string]float64{measure.Throughput: x},
		})
	}
	return list
}

func join(lists ...[]Observation) []Observation {
	var all []Observation
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func with(list []Observation, key string, value any) []Observation {
	out := make([]Observation, len(list))
	for i, o := range list {
		p := map[string]any{}
		for k, v := range o.Parameters {
			p[k] = v
		}
		p[key] = value
		o.Parameters = p
		o.Run += fmt.Sprintf("+%s=%v", key, value)
		o.Point += fmt.Sprintf("+%s=%v", key, value)
		out[i] = o
	}
	return out
}

func analyse(t *testing.T, obs []Observation, o Options) []Curve {
	t.Helper()
	curves, err := Analyse(obs, o)
	if err != nil {
		t.Fatal(err)
	}
	return curves
}

// By hand: medians 100, 180 and 300; S = 1.8 and 3; E = 0.9 and 0.75;
// e(2) = (1/1.8 − 1/2)/(1 − 1/2) = 1/9, e(4) = (1/3 − 1/4)/(3/4) = 1/9.
func TestFormulas(t *testing.T) {
	c := analyse(t, join(runs(4, 300), runs(1, 90, 100, 400), runs(2, 170, 190)), Options{})
	if len(c) != 1 {
		t.Fatalf("%d curves, want 1", len(c))
	}
	if diff := cmp.Diff(&RowBase{Workers: 1, Throughput: ptr(100), Runs: 3, Unit: "samples/s"}, c[0].Base.Row()); diff != "" {
		t.Errorf("base (-want +got):\n%s", diff)
	}
	type figures struct {
		N             int
		X, S, E, Karp float64
	}
	var got []figures
	for _, p := range c[0].Points {
		s := p.Of(measure.Throughput)
		f := figures{p.Workers, s.Median.Value, s.Gain().Value, s.Efficiency().Value, -1}
		if e, _ := s.KarpFlatt(); e != nil {
			f.Karp = *e
		}
		got = append(got, f)
	}
	want := []figures{{1, 100, 1, 1, -1}, {2, 180, 1.8, 0.9, 1.0 / 9}, {4, 300, 3, 0.75, 1.0 / 9}}
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c[0].Scaling != "weak" || c[0].Series != "native" {
		t.Errorf("scaling %q, series %q", c[0].Scaling, c[0].Series)
	}
}

// A base of 2 workers: S(8) = 300/100 = 3 over 4 times the workers, E = 0.75;
// S(1) = 0.6 over half of them, E = 1.2, where Karp–Flatt has no meaning.
func TestBaseOtherThanSmallest(t *testing.T) {
	c := analyse(t, join(runs(1, 60), runs(2, 100), runs(8, 300)), Options{Base: &Value{Number: 2}})
	var got []float64
	var serial []*float64
	for _, p := range c[0].Points {
		s := p.Of(measure.Throughput)
		e, _ := s.KarpFlatt()
		got, serial = append(got, s.Efficiency().Value), append(serial, e)
	}
	got = append(got, *serial[2])
	if diff := cmp.Diff([]float64{1.2, 1, 0.75, (1.0/3 - 1.0/4) / (3.0 / 4)}, got, approx); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if serial[0] != nil || serial[1] != nil {
		t.Error("Karp–Flatt at or below the base")
	}
	if g := c[0].Points[1].Of(measure.Throughput).Gain(); g.Interval != nil || g.Why == "" {
		t.Error("the base's own speedup has an interval, or no reason for none")
	}
}

func TestTimeToAccuracy(t *testing.T) {
	type result struct {
		Seconds       *float64
		Why           string
		Times         []float64
		Reached, Runs int
	}
	for _, tt := range []struct {
		seconds []float64 // 0: missed
		want    *float64
		reached int
		why     string
	}{
		{[]float64{30}, ptr(30), 1, "too few runs for an interval (1 of 6 needed)"},
		{[]float64{30, 10, 20}, ptr(20), 3, "too few runs for an interval (3 of 6 needed)"},
		{[]float64{30, 10}, ptr(20), 2, "too few runs for an interval (2 of 6 needed)"},
		{[]float64{30, 10, 0}, ptr(30), 2, "too few runs for an interval (3 of 6 needed)"},
		{[]float64{30, 10, 20, 0}, ptr(25), 3, "too few runs for an interval (4 of 6 needed)"},
		{[]float64{30, 0}, nil, 1, halfMiss},
		{[]float64{30, 10, 0, 0}, nil, 2, halfMiss},
		{[]float64{0}, nil, 0, halfMiss},
		{[]float64{1, 2, 3, 4, 5, 0}, ptr(3.5), 5, noUpperEnd},
	} {
		obs := runs(1, make([]float64, len(tt.seconds))...)
		for i := range obs {
			obs[i].Values = map[string]float64{measure.Throughput: 100, "to_0.75": math.Inf(1)}
			if tt.seconds[i] > 0 {
				obs[i].Values["to_0.75"] = tt.seconds[i]
			}
		}
		s := analyse(t, obs, Options{})[0].Points[0].Of("to_0.75")
		got := result{Times: s.Values, Reached: s.Reached(), Runs: s.Runs, Why: s.Why}
		if s.Median != nil {
			got.Seconds, got.Why = &s.Median.Value, s.Median.Why
		}
		var times []float64
		for _, s := range slices.Sorted(slices.Values(tt.seconds)) {
			if s > 0 {
				times = append(times, s)
			}
		}
		want := result{Seconds: tt.want, Why: tt.why, Times: times, Reached: tt.reached, Runs: len(tt.seconds)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.seconds, diff)
		}
	}
}

func TestSeries(t *testing.T) {
	base := join(runs(1, 100), runs(2, 190))
	for _, tt := range []struct {
		name    string
		obs     []Observation
		want    []string
		warning string // part of a warning on the first curve
	}{
		{"one", base, []string{"native"}, ""},
		{"batches", join(with(base, "workload.batch", int64(256)), base), []string{"native batch=64", "native batch=256"}, ""},
		{"integers and floats are one", join(base, with(base, "workload.batch", 64.0)), []string{"native"}, ""},
		{"text is not a number", join(base, with(base, "workload.batch", "64")), []string{"native batch=64", "native batch=64"}, ""},
		{"a key only some have", join(base, with(base, "workload.extra", true)), []string{"native extra=true", "native extra=unset"}, ""},
		{"same last part", join(base, with(with(base, "data.kind", "a"), "workload.kind", "b")),
			[]string{"native data.kind=a workload.kind=b", "native data.kind=unset workload.kind=unset"}, ""},
		{"what follows from workers", join(runs(1, 100), with(with(runs(2, 190), "global_batch", int64(128)), "nodes", int64(2))), []string{"native"}, ""},
		{"an edited limit is reported", join(runs(1, 100), with(runs(2, 190), "resources.time", "1h")), []string{"native"},
			"resources.time varies within this series: 1h, unset"},
		{"a swept limit separates", join(with(base, "resources.time", "1h"), with(base, "resources.time", "2h")),
			[]string{"native time=1h", "native time=2h"}, ""},
		{"the batch changed silently", join(runs(1, 100), with(runs(2, 190), "global_batch", int64(128)), with(runs(2, 191), "global_batch", int64(64))),
			[]string{"native"}, ""},
	} {
		curves, err := Analyse(tt.obs, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var names []string
		for _, c := range curves {
			names = append(names, c.Series)
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if tt.warning != "" && !strings.Contains(strings.Join(curves[0].Warnings, "\n"), tt.warning) {
			t.Errorf("%s: no warning %q in %q", tt.name, tt.warning, curves[0].Warnings)
		}
	}
}

func TestWarnings(t *testing.T) {
	obs := join(runs(1, 100, 101), runs(2, 250, 1, 1), runs(4, 1))
	obs[1].Job = obs[0].Job
	obs[3].Values, obs[3].Why = nil, map[string]string{measure.Throughput: "30 steps are too few"}
	obs[4].Values = map[string]float64{measure.Throughput: math.NaN()}
	obs[4].Nodes = 2
	obs[4].Warnings = []string{"the clock jumped"}
	obs[5].Values = nil
	obs[5].Study = "other"
	c := analyse(t, obs, Options{Planned: []Planned{{Framework: "native", Workers: 8, Parameters: obs[0].Parameters}}})[0]
	want := [][]string{
		{
			"the base is one worker, which exchanges no gradients: efficiency includes the whole cost of going distributed",
			"no run with a steady state at worker count 4",
			"no finished run at worker count 8",
			"runs of several studies are mixed: other, s",
		},
		{
			"throughput: too few runs for an interval (2 of 6 needed)",
			"2 of 2 runs share the allocation of job 10 and do not see the variation between allocations",
		},
		{
			"1 of 3 runs left out of the throughput: a throughput of NaN is not valid",
			"1 of 3 runs left out of the throughput: no steady state: 30 steps are too few",
			"throughput: too few runs for an interval (1 of 6 needed)",
			"mixed placement: runs on 1 and 2 nodes",
			"speedup: too few runs for an interval (1 of 6 needed)",
			"superlinear: speedup 2.488 with 2 times the workers; check that the base point was not slowed down",
			"s/w2-r3-a1: the clock jumped",
		},
		{"1 of 1 run left out of the throughput: no steady state"},
	}
	got := [][]string{c.Warnings}
	for _, p := range c.Points {
		list := p.Warnings
		for _, d := range p.RunWarnings {
			list = append(list, d.Line(len(p.Runs)))
		}
		got = append(got, list)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoBase(t *testing.T) {
	unsteady := runs(1, 1)
	unsteady[0].Values = nil
	resumed := runs(1, 1)
	resumed[0].Values, resumed[0].Why = nil, map[string]string{measure.RunSeconds: measure.WhyResumed}
	planned := []Planned{{Framework: "native", Workers: 1, Parameters: runs(1, 1)[0].Parameters}}
	for _, tt := range []struct {
		name string
		obs  []Observation
		o    Options
		want string
	}{
		{"planned, no run", join(runs(2, 190), runs(4, 350)), Options{Planned: planned},
			`no base for series "native": its point with 1 worker has no good run; measure it, or take 2 or 4 workers as the base`},
		{"runs without a steady state", join(unsteady, runs(2, 190)), Options{},
			`no base for series "native": its point with 1 worker has 1 run, none with a steady state; take 2 workers as the base`},
		{"a run that went on from a checkpoint", join(resumed, runs(2, 190)), Options{},
			`no base for series "native": its point with 1 worker has 1 run, resumed from a checkpoint and so without a run time; take 2 workers as the base`},
		{"asked for, not planned", runs(2, 190), Options{Base: &Value{Number: 3}},
			`no base for series "native": its point with 3 workers is not in the plan; add it, or take 2 workers as the base`},
		{"nothing measured", nil, Options{Planned: planned},
			`no base for series "native": its point with 1 worker has no good run; measure it`},
	} {
		curves, err := Analyse(tt.obs, tt.o)
		var noBase *NoBaseError
		if !errors.As(err, &noBase) || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
			continue
		}
		if len(curves) != 1 || curves[0].Base != nil {
			t.Errorf("%s: want the one curve, without a base", tt.name)
		}
		for _, p := range curves[0].Points {
			if s := p.Of(measure.Throughput); s.Gain() != nil || s.Efficiency() != nil {
				t.Errorf("%s: a speedup over nothing at %d workers", tt.name, p.Workers)
			}
		}
	}
}

// Series that lack the same base share one line.
func TestNoBaseOfSeveral(t *testing.T) {
	of := func(names ...string) *NoBaseError {
		e := &NoBaseError{}
		for _, name := range names {
			e.Missing = append(e.Missing, MissingBase{Series: name, At: Value{Number: 1}, Why: "has no good run", axis: Workers})
		}
		return e
	}
	other := of("a", "b", "c", "d", "e")
	other.Missing[4].Unsteady, other.Missing[4].Why = true, "has 1 run, none with a steady state"
	for _, tt := range []struct {
		e    *NoBaseError
		want string
	}{
		{of("a", "b"), `no base for series "a" and "b": their point with 1 worker has no good run; measure it`},
		{of("a", "b", "c"), `no base for series "a", "b" and "c": their point with 1 worker has no good run; measure it`},
		{other, `no base for series "a", "b", "c" and 1 more: their point with 1 worker has no good run; measure it` + "\n" +
			`no base for series "e": its point with 1 worker has 1 run, none with a steady state`},
	} {
		if got := tt.e.Error(); got != tt.want {
			t.Errorf("got %s\nwant %s", got, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		obs        []Observation
		o          Options
	}{
		{"confidence", "confidence 95 is not a level", runs(1, 1), Options{Confidence: 95}},
		{"not a number", "confidence NaN is not a level", runs(1, 1), Options{Confidence: math.NaN()}},
		{"base", "base of -1 workers", runs(1, 1), Options{Base: &Value{Number: -1}}},
		{"no workers", "run s/w0-r1-a1 has 0 workers", runs(0, 1), Options{}},
		{"twice", "run s/w1-r1-a1 is given twice", join(runs(1, 1), runs(1, 1)), Options{}},
	} {
		if _, err := Analyse(tt.obs, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// For any throughputs, rows are valid JSON without NaN or Inf, and have no value that was not
// measured.
func TestRowsOfExtremes(t *testing.T) {
	values := []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var obs []Observation
		for _, n := range []int{1, 2, 1 << 40} {
			xs := make([]float64, 1+r.IntN(7))
			for i := range xs {
				xs[i] = values[r.IntN(len(values))]
			}
			obs = append(obs, runs(n, xs...)...)
		}
		curves, err := Analyse(obs, Options{})
		var noBase *NoBaseError
		if err != nil && !errors.As(err, &noBase) {
			t.Fatal(err)
		}
		rows := Rows(curves)
		if _, err := json.Marshal(rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Throughput != nil && !(*row.Throughput > 0) || row.Speedup != nil && !(*row.Speedup > 0) {
				t.Fatalf("throughput %v, speedup %v", *row.Throughput, row.Speedup)
			}
			if (row.Throughput == nil) != (row.Runs == 0) {
				t.Fatalf("throughput %v of %d runs", row.Throughput, row.Runs)
			}
		}
	}
}

func TestRowJSON(t *testing.T) {
	obs := join(runs(1, 100), runs(2, 150))
	obs[1].Values["to_0.75"], obs[1].Values["to_0.5"] = math.Inf(1), 12.5
	got, err := json.MarshalIndent(Rows(analyse(t, obs, Options{}))[1:], "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `[
 {
  "series": "native",
  "workers": 2,
  "runs": 1,
  "throughput": 150,
  "throughput_low": null,
  "throughput_high": null,
  "speedup": 1.5,
  "speedup_low": null,
  "speedup_high": null,
  "efficiency": 0.75,
  "efficiency_low": null,
  "efficiency_high": null,
  "karp_flatt": 0.3333333333333333,
  "karp_flatt_low": null,
  "karp_flatt_high": null,
  "end_to_end": null,
  "end_to_end_low": null,
  "end_to_end_high": null,
  "skew": null,
  "communication": null,
  "communication_low": null,
  "communication_high": null,
  "communication_predicted": null,
  "communication_predicted_low": null,
  "communication_predicted_high": null,
  "communication_predicted_from": "",
  "time_to_accuracy": {
   "0.5": {
    "seconds": 12.5,
    "seconds_low": null,
    "seconds_high": null,
    "speedup": null,
    "speedup_low": null,
    "speedup_high": null,
    "reached": 1,
    "runs": 1
   },
   "0.75": {
    "seconds": null,
    "seconds_low": null,
    "seconds_high": null,
    "speedup": null,
    "speedup_low": null,
    "speedup_high": null,
    "reached": 0,
    "runs": 1
   }
  },
  "base": {
   "workers": 1,
   "throughput": 100,
   "runs": 1
  },
  "scaling": "weak",
  "fingerprint": null,
  "warnings": [
   "the base is one worker, which exchanges no gradients: efficiency includes the whole cost of going distributed",
   "throughput: too few runs for an interval (1 of 6 needed)",
   "target 0.75: reached by 0 of 1 run",
   "speedup: too few runs for an interval (1 of 6 needed)"
  ]
 }
]`
	// (1/1.5 − 1/2)/(1 − 1/2) = 1/3, up to rounding.
	if diff := cmp.Diff(want, strings.Replace(string(got), "0.33333333333333326", "0.3333333333333333", 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if empty, _ := json.Marshal(Rows(nil)); string(empty) != "[]" {
		t.Errorf("no curves: %s, want []", empty)
	}
}

func lognormal(r *rand.Rand, n int, median, sigma float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = median * math.Exp(sigma*r.NormFloat64())
	}
	return xs
}

// The order of the runs and the unit of the throughput do not matter.
func TestInvariance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	obs := join(runs(1, lognormal(r, 8, 100, 0.05)...), runs(2, lognormal(r, 7, 190, 0.05)...), runs(4, lognormal(r, 3, 350, 0.05)...))
	want := analyse(t, obs, Options{})
	shuffled := join(obs)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if diff := cmp.Diff(Rows(want), Rows(analyse(t, shuffled, Options{}))); diff != "" {
		t.Errorf("another order (-want +got):\n%s", diff)
	}
	scaled := join(obs)
	for i := range scaled {
		scaled[i].Values = map[string]float64{measure.Throughput: obs[i].Values[measure.Throughput] * 1e6}
	}
	for i, p := range analyse(t, scaled, Options{})[0].Points {
		if diff := cmp.Diff(want[0].Points[i].Of(measure.Throughput).Gain(), p.Of(measure.Throughput).Gain(), approx); diff != "" {
			t.Errorf("another unit, %d workers (-want +got):\n%s", p.Workers, diff)
		}
		if diff := cmp.Diff(want[0].Points[i].Of(measure.Throughput).Median.Value*1e6, p.Of(measure.Throughput).Median.Value, approx); diff != "" {
			t.Errorf("throughput in another unit, %d workers (-want +got):\n%s", p.Workers, diff)
		}
	}
}

func BenchmarkAnalyse(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	var obs []Observation
	for n := 1; n <= 512; n *= 2 {
		for batch := range 10 {
			list := with(runs(n, lognormal(r, 100, 100*float64(n), 0.02)...), "workload.batch", int64(batch))
			for k := range 35 {
				for _, o := range list {
					o.Parameters[fmt.Sprintf("workload.key%d", k)] = 0.1
				}
			}
			obs = append(obs, list...)
		}
	}
	for b.Loop() {
		if _, err := Analyse(obs, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(obs)), "runs")
}

// Programs that report other values, or only their run time, need not report steps.
func TestNoStepWarningsForProgramsWithoutSteps(t *testing.T) {
	why := map[string]string{measure.Throughput: "no steady state: 0 steps were reported by every rank, at least 10 are needed"}
	own := Observation{Why: why, Values: map[string]float64{"tokens": 3}, Reported: []measure.Measure{measure.Reported("tokens", "", measure.Higher)}}
	timed := Observation{Why: why, Values: map[string]float64{measure.RunSeconds: 3}}
	if list := leftOut([]*Observation{&own, &timed}); len(list) > 0 {
		t.Errorf("%q", list)
	}
	if list := leftOut([]*Observation{{Why: why}}); len(list) != 1 {
		t.Errorf("of a training without steps: %q", list)
	}
	imported := Observation{Why: why, Parameters: map[string]any{"import.format": "csv"}}
	if list := leftOut([]*Observation{&imported}); len(list) != 1 || list[0] != "1 of 1 run left out of the throughput: what was imported states none" {
		t.Errorf("of an import without a throughput: %q", list)
	}
}
