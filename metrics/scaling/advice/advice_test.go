package advice

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// series is a study with known results: x(n) samples/s at n workers, and took(batch) samples
// to the target of 0.75. Each worker count has the given number of runs, which differ from
// each other by a thousandth.
type series struct {
	counts []int
	runs   int
	x      func(n float64) float64
	took   func(batch float64) float64 // nil: no targets; 0: missed
	change func(o *scaling.Observation)
}

func (s series) observe() []scaling.Observation {
	var list []scaling.Observation
	for _, n := range s.counts {
		for i := range s.runs {
			x := s.x(float64(n)) * (1 + 1e-3*(float64(i)-float64(s.runs-1)/2))
			o := scaling.Observation{
				Run: fmt.Sprintf("s/w%d-r%d-a1", n, i+1), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: i + 1,
				Framework: "native", Workers: n, Nodes: n, Values: map[string]float64{"throughput": x, "init_seconds": 10},
				Parameters: map[string]any{"workload.scaling": "weak", "workload.batch": int64(100), "workers": int64(n)},
			}
			if s.took != nil {
				o.Values["to_0.75"] = math.Inf(1)
				if samples := s.took(100 * float64(n)); samples > 0 {
					seconds := samples / x
					o.Values["to_0.75"] = seconds
					o.Evaluations = []scaling.Evaluation{{Seconds: seconds, Epoch: 1, Samples: int64(samples), Accuracy: 0.75}}
				}
			}
			if s.change != nil {
				s.change(&o)
			}
			list = append(list, o)
		}
	}
	return list
}

func (s series) advise(t *testing.T, o Options) *Advice {
	t.Helper()
	obs := s.observe()
	curves, err := scaling.Analyse(obs, scaling.Options{Mix: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(curves) != 1 {
		t.Fatalf("%d series", len(curves))
	}
	a, err := Advise(curves[0], obs, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(a); err != nil {
		t.Error(err)
	}
	return a
}

var (
	octaves = []int{1, 2, 4, 8, 16}
	linear  = func(n float64) float64 { return 1000 * n }
	// tree costs a tenth more time with each doubling.
	tree  = func(n float64) float64 { return 1000 * n / (1 + 0.1*math.Log2(n)) }
	fixed = func(batch float64) float64 { return 3.6e6 } // 1 worker-hour at 1000 samples/s
	hour  = func(workers, nodes int, seconds float64) (float64, error) {
		return float64(workers) * seconds / 3600, nil
	}
)

func candidate(t *testing.T, a *Advice, workers int) Candidate {
	t.Helper()
	i := slices.IndexFunc(a.Candidates, func(c Candidate) bool { return c.Workers == workers })
	if i < 0 {
		t.Fatalf("no candidate with %d workers", workers)
	}
	return a.Candidates[i]
}

// Perfect scaling: 3.6e6 samples take 3600/n s and 10 s of initialisation. A
// deadline of 500 s then needs 3600/490 = 7.35 workers, so the answer is 8.
func TestObjectives(t *testing.T) {
	perfect := series{counts: octaves, runs: 6, x: linear, took: fixed}
	a := perfect.advise(t, Options{Deadline: 500, Cost: hour, Currency: "EUR"})
	if a.Workers == nil || *a.Workers != 8 || a.Ranking || a.Refused != "" {
		t.Fatalf("%v, %q, refused %q", a.Workers, a.Reason, a.Refused)
	}
	if !strings.HasPrefix(a.Reason[0], "Use 8 workers, the cheapest to reach 75 % accuracy within 8m20s (over 99 % likely): 460 s with initialisation, at most 46") &&
		!strings.HasPrefix(a.Reason[0], "Use 8 workers, the cheapest to reach 75 % accuracy within 8m20s (over 99 % likely): 7m40s with initialisation, at most 7m4") {
		t.Errorf("reason %q", a.Reason)
	}
	c := candidate(t, a, 8)
	if c.Basis != Measured || math.Abs(c.Seconds.Value-460) > 1 || math.Abs(c.Cost.Value-8*460/3600.0) > 0.01 || math.Abs(c.Efficiency.Value-1) > 1e-9 {
		t.Errorf("8 workers: %+v", c)
	}
	far := candidate(t, a, 64)
	if far.Basis != Extrapolated || far.Throughput.Low == nil || *far.Throughput.Low > 64000 || *far.Throughput.High < 63999 ||
		math.Abs(far.Seconds.Value-(3600.0/64+10)) > 2 {
		t.Errorf("64 workers: %+v", far)
	}
	if c := candidate(t, a, 12); c.Basis != Interpolated {
		t.Errorf("12 workers are %s", c.Basis)
	}
	// For a deadline that only many workers meet, the answer lies beyond the data and must be
	// confirmed.
	a = perfect.advise(t, Options{Deadline: 150, Samples: 3.6e6})
	if a.Workers == nil || *a.Workers <= 16 || *a.Workers > 32 || a.Next == nil || a.Next.Workers != *a.Workers {
		t.Errorf("150 s: %v, next %+v", a.Workers, a.Next)
	}
	// With a target, batches above the largest measured one may take more samples, so no such count
	// is recommended; the advice says what to measure.
	a = perfect.advise(t, Options{Deadline: 150})
	if a.Workers != nil || a.Next == nil || a.Next.Workers <= 16 {
		t.Errorf("150 s to the target: %v, next %+v", a.Workers, a.Next)
	}
	// A deadline that no count meets has no answer.
	a = perfect.advise(t, Options{Deadline: 30})
	if a.Workers != nil || !strings.Contains(a.Reason[0], "No worker count is shown to reach 75 % accuracy within 30 s; the fastest is 64 workers, under 1 % likely to: ") {
		t.Errorf("30 s: %v, %q", a.Workers, a.Reason)
	}
	// A budget: each worker also costs 10 s of initialisation, so 1.05 worker-hours pay for
	// at most 18 workers; 16 is the largest measured count below.
	a = perfect.advise(t, Options{Budget: 1.05, Cost: hour, Currency: "EUR"})
	if a.Workers == nil || *a.Workers < 14 || *a.Workers > 18 {
		t.Errorf("budget: %v, %q", a.Workers, a.Reason)
	}
	// The tree has an efficiency of 1/1.3 = 0.77 at 8 workers and 0.71 at 16.
	a = series{counts: octaves, runs: 6, x: tree}.advise(t, Options{MinEfficiency: 0.75})
	if a.Workers == nil || *a.Workers < 8 || *a.Workers > 10 {
		t.Errorf("efficiency: %v, %q", a.Workers, a.Reason)
	}
}

// Without limits: the largest count at which each doubling brings at least 1.4 times the speed.
func TestKnee(t *testing.T) {
	flat := series{counts: octaves, runs: 6, x: func(n float64) float64 { return 1000 * math.Min(n, 4) }}
	a := flat.advise(t, Options{})
	if a.Workers == nil || *a.Workers != 4 || !strings.Contains(a.Reason[0], "Use 4 workers (over 99 % likely that doubling to 4 is worth it): doubling from 2 brings 2× the throughput (at least 1.99×); 8 have no more throughput than 4 (at most 1×).") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
	falling := series{counts: octaves, runs: 6, x: func(n float64) float64 { return 1000 * math.Min(n, 16/n) }}
	if a := falling.advise(t, Options{}); a.Workers == nil || *a.Workers != 4 || !strings.Contains(a.Reason[0], "; 8 workers have less throughput than 4 (at most 0.502×).") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
	if a.Next != nil {
		t.Errorf("next %+v, and the data decides", a.Next)
	}
	a = series{counts: octaves, runs: 6, x: linear}.advise(t, Options{})
	if a.Workers == nil || *a.Workers != 16 || a.Next == nil || a.Next.Workers != 32 {
		t.Errorf("%v, next %+v", a.Workers, a.Next)
	}
	single := series{counts: []int{1}, runs: 6, x: linear}.advise(t, Options{})
	if single.Workers == nil || *single.Workers != 1 || single.Refused == "" || single.Reason[1] != "How it scales is not known: no other worker count was measured." {
		t.Errorf("%v, %q", single.Workers, single.Reason)
	}
}

// With few data, the advice ranks medians, says so, and extrapolates nothing.
func TestLittleData(t *testing.T) {
	a := series{counts: []int{1, 2, 4}, runs: 3, x: linear, took: fixed}.advise(t, Options{Deadline: 1900})
	if !a.Ranking || a.Workers == nil || *a.Workers != 2 || !strings.Contains(a.Reason[0], "measured, without an interval") {
		t.Errorf("ranking %v, %v, %q", a.Ranking, a.Workers, a.Reason)
	}
	if len(a.Candidates) != 3 || !strings.Contains(a.Refused, "none of the 3 measured has that many") {
		t.Errorf("%d candidates, refused %q", len(a.Candidates), a.Refused)
	}
	if a.Next == nil || a.Next.Workers != 1 || a.Next.Runs != 3 {
		t.Errorf("next %+v", a.Next)
	}
	if !a.Provisional || !strings.HasPrefix(a.Reason[0], "Provisional: use 2 workers, ") || !strings.Contains(a.Reason[0], "no worker count has the 6 runs of an interval, and 4 are needed") {
		t.Errorf("%q", a.Reason[0])
	}
	for _, c := range a.Candidates {
		if c.Basis != Measured || c.Throughput.Low != nil || len(c.Why) == 0 {
			t.Errorf("%+v", c)
		}
	}
}

// If no measured count meets a limit, the advice names a count that is predicted to meet it, as a
// measurement and never as the answer: 8 workers would take 450 s, 4 take 900.
func TestPredicted(t *testing.T) {
	few := series{counts: []int{1, 2, 4}, runs: 3, x: linear, took: fixed}
	a := few.advise(t, Options{Deadline: 880})
	if a.Workers != nil || a.Beyond == nil || *a.Beyond != 8 || !strings.Contains(a.Reason[0], "; 8 may (") || !strings.Contains(a.Reason[0], "likely if no new limit appears beyond 4 workers): measure 8 first.") {
		t.Errorf("%v, beyond %v, %q", a.Workers, a.Beyond, a.Reason)
	}
	if c := candidate(t, a, 8); c.Basis != Predicted || !(*c.Throughput.Low < c.Throughput.Value && c.Throughput.Value < *c.Throughput.High) {
		t.Errorf("%+v", c)
	}
	// If no count is likely to meet it, none is named.
	if a = few.advise(t, Options{Deadline: 100}); a.Workers != nil || a.Beyond != nil || len(a.Candidates) != 3 {
		t.Errorf("%v, beyond %v, %d candidates", a.Workers, a.Beyond, len(a.Candidates))
	}
	// Runs on one node show nothing about the network between nodes.
	few.change = func(o *scaling.Observation) { o.Nodes = 1 }
	if a = few.advise(t, Options{Deadline: 880}); a.Beyond != nil || len(a.Candidates) != 3 {
		t.Errorf("one node: beyond %v, %d candidates", a.Beyond, len(a.Candidates))
	}
	// Doubling pays off up to the largest count. With four counts of six runs, the answer is more
	// than a ranking.
	a = series{counts: []int{1, 2, 4, 8}, runs: 6, x: linear}.advise(t, Options{})
	if a.Workers == nil || *a.Workers != 8 || a.Next == nil || a.Next.Workers != 16 || !strings.Contains(a.Next.Why, "; 16 are predicted to have ") {
		t.Errorf("%v, next %+v", a.Workers, a.Next)
	}
	// Throughput is proportional to the workers: 16 have twice the throughput of 8, and surely not less.
	var ratio, low, high float64
	_, said, _ := strings.Cut(a.Next.Why, "; 16 are predicted to have ")
	if _, err := fmt.Sscanf(said, "%f times its throughput [%f, %f]", &ratio, &low, &high); err != nil || math.Abs(ratio-2) > 0.1 || !(low > 1 && low < ratio && ratio < high && high < 2.3) {
		t.Errorf("%q: %g [%g, %g], %v", said, ratio, low, high, err)
	}
}

// In workloads without communication, every worker has the same amount of work. Their
// throughput is extrapolated as for weak scaling, although no run states it.
func TestWorkPerWorker(t *testing.T) {
	unsaid := func(kind string) func(o *scaling.Observation) {
		return func(o *scaling.Observation) {
			delete(o.Parameters, "workload.scaling")
			if kind != "" {
				o.Kind, o.Parameters["workload.kind"] = kind, kind
			}
		}
	}
	a := series{counts: octaves, runs: 6, x: linear, change: unsaid("preprocess")}.advise(t, Options{})
	if a.Refused != "" || len(a.Candidates) <= len(octaves) {
		t.Errorf("preprocessing: refused %q, %d candidates", a.Refused, len(a.Candidates))
	}
	a = series{counts: octaves, runs: 6, x: linear, change: unsaid("")}.advise(t, Options{})
	if a.Refused != "the runs do not record whether scaling is weak or strong" {
		t.Errorf("training: refused %q", a.Refused)
	}
}

// Five counts of five runs each suffice to fit the model. Its intervals replace those that five
// runs cannot have.
func TestFitOfFive(t *testing.T) {
	a := series{counts: octaves, runs: 5, x: tree, took: fixed}.advise(t, Options{Deadline: 1000})
	c := candidate(t, a, 4) // 3600/4·1.2 = 1080 s, so 5 workers
	if a.Ranking || a.Workers == nil || *a.Workers != 5 || c.Throughput.Low == nil || c.Seconds.Low == nil || *c.Seconds.Low > c.Seconds.Value {
		t.Errorf("ranking %v, %v, %+v", a.Ranking, a.Workers, c)
	}
}

// In each case nothing is extrapolated, for the given reason.
func TestRefusals(t *testing.T) {
	node := func(o *scaling.Observation) { o.Nodes = 1 }
	a := series{counts: octaves, runs: 6, x: linear, change: node}.advise(t, Options{})
	if !strings.Contains(a.Refused, "everything was measured on one node; beyond 16 workers") || a.Candidates[len(a.Candidates)-1].Workers != 16 {
		t.Errorf("one node: %q, up to %d", a.Refused, a.Candidates[len(a.Candidates)-1].Workers)
	}
	driver := func(o *scaling.Observation) {
		o.Fingerprint = map[string]string{"driver": map[bool]string{true: "535", false: "550"}[o.Workers > 4]}
	}
	a = series{counts: octaves, runs: 6, x: linear, change: driver}.advise(t, Options{})
	if !strings.Contains(a.Refused, "differ in what they ran on") || !strings.Contains(a.Refused, "535") || len(a.Candidates) != 5 {
		t.Errorf("mixed: %q, %d candidates", a.Refused, len(a.Candidates))
	}
	jump := func(n float64) float64 {
		if n == 16 {
			return 11000
		}
		return 1000 * n
	}
	a = series{counts: octaves, runs: 6, x: jump}.advise(t, Options{})
	if a.HoldOut == nil || math.Abs(*a.HoldOut-5.0/11) > 0.02 || !strings.Contains(a.Refused, "fitted to the smaller counts, the law is -3") {
		t.Errorf("hold-out %v: %q", a.HoldOut, a.Refused)
	}
	// Between the measured counts the model is still used, but not beyond them.
	if last := a.Candidates[len(a.Candidates)-1]; len(a.Candidates) != 16 || last.Workers != 16 || candidate(t, a, 3).Basis != Interpolated {
		t.Errorf("%d candidates up to %d", len(a.Candidates), last.Workers)
	}
}

// A batch that is too large to converge has no predicted time and is named as the limit. The
// samples to the target are 3.6e6·(1 + B/800).
func TestConvergence(t *testing.T) {
	growing := func(batch float64) float64 { return 3.6e6 * (1 + batch/800) }
	a := series{counts: octaves, runs: 6, x: linear, took: growing}.advise(t, Options{Deadline: 1000})
	if l := a.Limits; l.Workers != 16 || l.Largest != "batch" || l.ExtraSamples == nil || math.Abs(*l.ExtraSamples-(3/1.125-1)) > 1e-6 ||
		!strings.Contains(a.Reason[1], "the larger global batch takes 167 % more samples to the target") || l.Text() != "batch, 167 % more samples at 16 workers" {
		t.Errorf("%+v, %q", l, a.Reason)
	}
	// 64 workers: 3.6e6·9 samples at 64,000 a second.
	if c := candidate(t, a, 64); c.Samples == nil || math.Abs(c.Samples.Value/(9*3.6e6)-1) > 1e-3 || math.Abs(c.Seconds.Value-(506.25+10)) > 5 {
		t.Errorf("%+v", c)
	}
	diverging := func(batch float64) float64 {
		if batch > 400 {
			return 0
		}
		return growing(batch)
	}
	a = series{counts: octaves, runs: 6, x: linear, took: diverging}.advise(t, Options{Deadline: 1000})
	for _, n := range []int{8, 16, 64} {
		if c := candidate(t, a, n); c.Seconds != nil || !slices.ContainsFunc(c.Why, func(w string) bool {
			return w == "time: at a global batch of 800, 6 of 6 runs miss the target"
		}) {
			t.Errorf("%d workers: %+v, why %q", n, c.Seconds, c.Why)
		}
	}
	if c := candidate(t, a, 6); c.Seconds != nil || !strings.Contains(strings.Join(c.Why, ""), "lies between the largest that reaches the target") {
		t.Errorf("6 workers: %+v, why %q", c.Seconds, c.Why)
	}
	if got, want := a.Limits.Text(), "batch, too large at 16 workers"; a.Workers != nil || a.Limits.Largest != "batch" || got != want {
		t.Errorf("%v, limits %+v: %q", a.Workers, a.Limits, got)
	}
	never := func(batch float64) float64 { return 0 }
	a = series{counts: octaves, runs: 6, x: linear, took: never}.advise(t, Options{Target: new(measure.Accuracy(0.75)), Deadline: 1000})
	if a.Workers != nil || !strings.Contains(a.Reason[0], "no worker count reaches 75 % accuracy") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
}

// A count whose runs miss the target counts as measured, and is the reason why it is not
// recommended.
func TestMissedTargetExcludesACount(t *testing.T) {
	misses := func(batch float64) float64 {
		if batch > 100 {
			return 0
		}
		return 3.6e6
	}
	a := series{counts: []int{1, 2}, runs: 6, x: linear, took: misses}.advise(t, Options{})
	if want := "Provisional: use 1 worker: none of 6 runs on 2 workers reaches 75 % accuracy. Provisional because 2 worker counts have the 6 runs of an interval, and 4 are needed to know the shape of the curve."; a.Reason[0] != want {
		t.Errorf("%q, want %q", a.Reason[0], want)
	}
	never := func(batch float64) float64 { return 0 }
	a = series{counts: []int{1, 2}, runs: 6, x: linear, took: never}.advise(t, Options{Target: new(measure.Accuracy(0.75))})
	if want := "Provisional: use 2 workers (by throughput alone: no worker count reaches 75 % accuracy"; !strings.HasPrefix(a.Reason[0], want) || !strings.Contains(a.Reason[0], "; no worker count has a time to 75 % accuracy.") || strings.Contains(a.Reason[1], "too large") {
		t.Errorf("%q, want %q, the reason, and no word on the batch", a.Reason, want)
	}
	dark := func(o *scaling.Observation) {
		if o.Workers == 2 {
			delete(o.Values, "throughput")
		}
	}
	a = series{counts: []int{1, 2}, runs: 6, x: linear, change: dark}.advise(t, Options{})
	if want := "Provisional: use 1 worker: no run on 2 workers has a throughput. Provisional because one worker count has the 6 runs of an interval, and 4 are needed to know the shape of the curve."; a.Reason[0] != want {
		t.Errorf("%q, want %q", a.Reason[0], want)
	}
}

// The largest measured share is the limit.
func TestLimits(t *testing.T) {
	change := func(o *scaling.Observation) {
		o.Values["communication"], o.Values["skew"] = 0.02*float64(o.Workers), 0.05
	}
	a := series{counts: octaves, runs: 6, x: tree, change: change}.advise(t, Options{})
	if l := a.Limits; l.Largest != "communication" || l.Text() != "communication, 32 % at 16 workers" || math.Abs(*l.Communication-0.32) > 1e-12 || l.DataWait != nil ||
		a.Reason[1] != "At 16 workers, the most measured, communication takes 32 % of the step time and the average rank waits 5 % of the step time for the slowest." {
		t.Errorf("%+v, %q", l, a.Reason)
	}
	a = series{counts: octaves, runs: 6, x: tree}.advise(t, Options{})
	if l := a.Limits; l.Largest != "" || l.Text() != "" || !strings.Contains(a.Reason[1], "efficiency is 71.4 %; what limits it is unknown: the parts of the step time were not measured (") {
		t.Errorf("%+v, %q", l, a.Reason)
	}
}

// The sentence says which clock the times use.
func TestClock(t *testing.T) {
	estimate := func(v float64) *Estimate { return &Estimate{Value: v} }
	untimed, trained := Candidate{}, Candidate{Training: estimate(2), Seconds: estimate(2)}
	begun := Candidate{Training: estimate(2), Seconds: estimate(3)}
	for name, test := range map[string]struct {
		goal string
		of   []Candidate
		want Clock
	}{
		"no times":                       {"", []Candidate{untimed}, Untimed},
		"initialisation not recorded":    {"to_0.75", []Candidate{untimed, trained}, Trained},
		"initialisation of one at least": {"to_0.75", []Candidate{trained, begun}, Job},
		"the program's own":              {measure.ToTarget, []Candidate{trained}, Stated},
	} {
		if got := (&Advice{Goal: test.goal, Candidates: test.of}).Clock(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Options with a number of samples instead of a target; errors of prices are reported.
func TestSamplesAndPrices(t *testing.T) {
	a := series{counts: octaves, runs: 6, x: linear}.advise(t, Options{Samples: 3.6e6, Deadline: 500})
	if a.Workers == nil || *a.Workers != 8 || !strings.Contains(a.Reason[0], "Use 8 workers, the fewest to train 3.6e+06 samples within 8m20s") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
	none := func(int, int, float64) (float64, error) { return 0, errors.New("no price for a GPU") }
	a = series{counts: octaves, runs: 6, x: linear, took: fixed}.advise(t, Options{Budget: 1, Cost: none, Currency: "EUR"})
	if c := candidate(t, a, 8); c.Cost != nil || !slices.Contains(c.Why, "cost: no price for a GPU") || a.Workers != nil {
		t.Errorf("%+v", c)
	}
	a = series{counts: octaves, runs: 6, x: linear}.advise(t, Options{Deadline: 500})
	if a.Workers != nil || !strings.HasPrefix(a.Reason[0], "No worker count is shown to train within 8m20s: no time to a target was measured; say with --samples how much to train.") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
}

// Time outside steps depends on the workers as measured: here 64 s divided by the workers, for
// evaluations that they share.
func TestTimeOutsideSteps(t *testing.T) {
	change := func(o *scaling.Observation) {
		o.Values["to_0.75"] += 64 / float64(o.Workers)
	}
	a := series{counts: octaves, runs: 6, x: linear, took: fixed, change: change}.advise(t, Options{})
	for _, workers := range []int{3, 6, 12, 32, 64} {
		if c, want := candidate(t, a, workers), 3664/float64(workers)+10; math.Abs(c.Seconds.Value/want-1) > map[bool]float64{false: 1e-3, true: 5e-3}[workers > 16] {
			t.Errorf("%d workers: %.1f s, want %.1f", workers, c.Seconds.Value, want)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, o := range []Options{{MinEfficiency: 70}, {Deadline: -1}, {Deadline: math.Inf(1)},
		{Budget: math.NaN()}, {Budget: 5}, {Samples: -1}, {Target: new(measure.Accuracy(0.5)), Samples: 5}, {Confidence: 95}} {
		if _, err := Advise(scaling.Curve{}, nil, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	// A series without runs is handled.
	a, err := Advise(scaling.Curve{Series: "empty"}, nil, Options{})
	if err != nil || a.Workers != nil || a.Reason[0] == "" {
		t.Errorf("%+v, %v", a, err)
	}
}

func BenchmarkAdvise(b *testing.B) {
	s := series{counts: []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}, runs: 10, x: tree, took: fixed}
	obs := s.observe()
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Advise(curves[0], obs, Options{Deadline: 500, Cost: hour, Currency: "EUR"}); err != nil {
			b.Fatal(err)
		}
	}
}

// Runs that record when they reached a target, but not the samples, count as having reached it.
func TestReachedWithoutSamples(t *testing.T) {
	s := series{counts: octaves, runs: 6, x: linear, took: fixed, change: func(o *scaling.Observation) {
		o.Evaluations[0].Samples = 0
	}}
	a := s.advise(t, Options{})
	for _, w := range a.Warnings {
		if strings.Contains(w, "miss") {
			t.Error("all reach it, and the answer says:", w)
		}
	}
	if a.Workers == nil || *a.Workers != 16 || !strings.Contains(a.Reason[0], "doubling from 8 reaches 75 % accuracy 1.9") {
		t.Errorf("%q", a.Reason)
	}
}

// For runs with times but no throughput, as in tables of results, the times decide.
func TestTimesAlone(t *testing.T) {
	// 3600, 1800, 900, 800, 790 s: the doubling to 8 brings 1.125 times the speed.
	times := map[int]float64{1: 3600, 2: 1800, 4: 900, 8: 800, 16: 790}
	s := series{counts: octaves, runs: 6, x: linear, change: func(o *scaling.Observation) {
		seconds := times[o.Workers] * o.Values["throughput"] / linear(float64(o.Workers))
		o.Values = map[string]float64{"to_target": seconds}
	}}
	a := s.advise(t, Options{})
	if a.Workers == nil || *a.Workers != 4 || a.Goal != "to_target" || a.Target != nil {
		t.Errorf("%v %q, goal %q", a.Workers, a.Reason, a.Goal)
	}
	for _, c := range a.Candidates {
		if c.Throughput != nil || c.Seconds == nil || math.Abs(c.Seconds.Value/times[c.Workers]-1) > 0.01 {
			t.Errorf("%d workers: %+v", c.Workers, c)
		}
	}
	// All 6 runs of 8 workers meet 810 s (800 s ± 0.25 %), and none of 4 workers.
	a = s.advise(t, Options{Deadline: 810})
	if a.Workers == nil || *a.Workers != 8 {
		t.Errorf("within 810 s: %v %q", a.Workers, a.Reason)
	}
}

// The program's own target decides, and a throughput that grows does not.
func TestOwnTargetDecides(t *testing.T) {
	s := series{counts: octaves, runs: 6, x: linear, change: func(o *scaling.Observation) {
		jitter := o.Values["throughput"] / linear(float64(o.Workers))
		o.Values["to_target"] = jitter * 1000 / math.Min(2, float64(o.Workers))
	}}
	a := s.advise(t, Options{})
	if a.Workers == nil || *a.Workers != 2 || !strings.Contains(a.Reason[0], "reaches the program's target 2× as fast") {
		t.Errorf("%v %q", a.Workers, a.Reason)
	}
	for _, c := range a.Candidates {
		if c.Basis == Measured && c.Seconds.Value > 1010 { // initialisation, 10 s, is no part of it
			t.Errorf("%d workers: %g s", c.Workers, c.Seconds.Value)
		}
	}
}

// A count that a smaller one beats is not recommended, even if it is much better than its
// neighbour: 12 workers take 10.0 s and 4 take 30 s, but 1 takes 4.43 s.
func TestSmallerCountBeats(t *testing.T) {
	seconds := map[int]float64{1: 4.43, 4: 30, 12: 10}
	s := series{counts: []int{1, 4, 12}, runs: 1, x: linear, change: func(o *scaling.Observation) {
		o.Values["to_target"] = seconds[o.Workers]
	}}
	for _, runs := range []int{1, 6} {
		s.runs = runs
		a := s.advise(t, Options{})
		if a.Workers == nil || *a.Workers != 1 {
			t.Errorf("%d runs: %v, %q", runs, a.Workers, a.Reason)
		}
	}
}

// The base's efficiency is 1 without error. Throughput grows as n^0.8, so that two
// workers have 2^-0.2 = 87 %, less than 90 %.
func TestBaseIsAnAnswer(t *testing.T) {
	slow := func(n float64) float64 { return 1000 * math.Pow(n, 0.8) }
	a := series{counts: octaves, runs: 6, x: slow}.advise(t, Options{MinEfficiency: 0.9})
	if a.Workers == nil || *a.Workers != 1 {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
}

// One run in 10 or 20 that misses the target does not exclude a count: the interval of the median
// has an upper end (8 of 9 and more). At perfect scaling each doubling brings 2×. Fisher's exact
// test does not tell 7 of 10 from 10 of 10 (p = 0.21): the answer is the same, but provisional,
// since at 70 % twice the speed brings only 2·0.7 = 1.4 times as many successful runs per hour.
func TestMissesWithinTheInterval(t *testing.T) {
	for _, test := range []struct{ runs, misses, want int }{{10, 1, 16}, {20, 1, 16}, {10, 3, 16}} {
		change := func(o *scaling.Observation) {
			if o.Workers == 8 && o.Repeat <= test.misses {
				o.Values["to_0.75"], o.Evaluations = math.Inf(1), []scaling.Evaluation{{Seconds: 1, Epoch: 1, Samples: 1, Accuracy: 0.1}}
			}
		}
		a := series{counts: octaves[:4], runs: test.runs, x: linear, took: fixed, change: change}.advise(t, Options{})
		if want := min(test.want, 8); a.Workers == nil || *a.Workers != want {
			t.Errorf("%d of %d miss at 8 workers: %v, %q, want %d", test.misses, test.runs, a.Workers, a.Reason, want)
		}
		if test.misses == 3 && (!a.Provisional || !strings.Contains(a.Reason[0], "(7 of 10 runs reach 75 % accuracy)")) {
			t.Errorf("%q", a.Reason)
		}
	}
}

// With a fixed global batch, the chance of a miss is estimated from all runs: one in 30, at most
// one in 6 (Clopper and Pearson: 17.2 %). The six runs of 8 workers, one of which misses, have no
// interval, but 8 can be the answer. So it is with ten runs each, of which one misses.
func TestMissesAreReported(t *testing.T) {
	for _, test := range []struct {
		runs int
		want string
	}{{6, "5 of 6 runs were in time"}, {10, "9 of 10 runs were in time"}} {
		change := func(o *scaling.Observation) {
			o.Parameters["workload.scaling"], o.Parameters["workload.batch"] = "strong", int64(1600)
			if o.Workers == 8 && o.Repeat == 1 {
				o.Values["to_0.75"], o.Evaluations = math.Inf(1), []scaling.Evaluation{{Seconds: 1, Epoch: 1, Samples: 1, Accuracy: 0.1}}
			}
		}
		a := series{counts: octaves, runs: test.runs, x: linear, took: fixed, change: change}.advise(t, Options{Deadline: 500})
		if a.Workers == nil || *a.Workers != 8 || !strings.Contains(a.Reason[0], test.want) {
			t.Errorf("%d runs: %v, %q", test.runs, a.Workers, a.Reason)
		}
		c := candidate(t, a, 8)
		if c.Miss == nil || math.Abs(c.Miss.Value-1/float64(5*test.runs)) > 1e-9 || test.runs == 6 && math.Abs(*c.Miss.High-0.172) > 0.001 {
			t.Errorf("%d runs: misses %+v", test.runs, c.Miss)
		}
	}
}

// If a single run reaches a higher target by luck, the chosen target does not change.
func TestLuckyRunDoesNotSetTheTarget(t *testing.T) {
	change := func(o *scaling.Observation) {
		o.Values["to_0.8"] = math.Inf(1)
		if o.Workers == 4 && o.Repeat == 1 {
			o.Values["to_0.8"] = 2000
		}
	}
	if a := (series{counts: octaves, runs: 6, x: linear, took: fixed, change: change}).advise(t, Options{}); a.Goal != "to_0.75" {
		t.Errorf("goal %q", a.Goal)
	}
}

// Beyond the data a limit may appear that no run has met, the likelier the farther, and
// the interval reaches to where throughput stops growing. 3600/n + 10 s are within
// 140 s from 28 workers on. As fast as 16 workers, at 16000 samples/s, it is 225 + 10 s.
// It is unknown whether a limit appears, so the probability holds only if none does.
func TestBeyondTheDataIsConditional(t *testing.T) {
	a := series{counts: octaves, runs: 6, x: linear}.advise(t, Options{Deadline: 140, Samples: 3.6e6})
	if a.Workers == nil || !strings.Contains(a.Reason[0], " (extrapolated, 95 % confidence, even if throughput stops growing)") || math.Abs(*candidate(t, a, *a.Workers).Seconds.High/235-1) > 0.02 {
		t.Fatalf("%v, %q", a.Workers, a.Reason)
	}
	if c := candidate(t, a, *a.Workers); c.Keeps != nil || c.KeepsOn == nil || *c.KeepsOn < 0.9 || !strings.Contains(a.Reason[0], "s ("+Likely(*c.KeepsOn)+" likely if no new limit appears beyond 16 workers): ") {
		t.Errorf("%d workers: %v, %q", *a.Workers, c.Keeps, a.Reason)
	}
	if a.Probability != nil || !a.Provisional {
		t.Errorf("probability %v, provisional %v", a.Probability, a.Provisional)
	}
	if c := candidate(t, a, 16); c.Keeps == nil || c.KeepsOn != nil {
		t.Errorf("16 workers: %v, %v", c.Keeps, c.KeepsOn)
	}
	if a.Next == nil || a.Next.Workers != *a.Workers || a.Beyond != nil {
		t.Errorf("%d workers, beyond %v, next %+v", *a.Workers, a.Beyond, a.Next)
	}
}

// If a measured count meets the limits, no count beyond the data is the answer. No count beyond
// twice the largest is, either. 3600/n + 10 s are within 80 s from 52 workers on, more than 2·16.
// The efficiency is 100 % throughout, and n·(3600/n + 10 s) a worker-hour and what n workers cost
// in 10 s, 1.18 EUR at 64: the most and the fastest are 64, if in two doublings no limit appears,
// 0.9² = 81 %. That is too little for the deadline, which 52 meet hardly: 81 % of 52/64.
func TestBeyondIsMeasuredFirst(t *testing.T) {
	for _, test := range []struct {
		name   string
		o      Options
		want   int // 0: none
		reason string
	}{
		{"deadline", Options{Deadline: 80, Samples: 3.6e6}, 0, "No worker count is shown to train 3.6e+06 samples within 80 s; "},
		{"budget", Options{Budget: 1.5, Samples: 3.6e6, Cost: perWorkerHour, Currency: "EUR"}, 16, "Use 16 workers, the fastest to "},
		{"efficiency", Options{MinEfficiency: 0.8}, 16, "Use 16 workers, the most to "},
	} {
		a := series{counts: octaves, runs: 6, x: linear}.advise(t, test.o)
		got := 0
		if a.Workers != nil {
			got = *a.Workers
		}
		if got != test.want || !strings.HasPrefix(a.Reason[0], test.reason) || test.want > 0 && !strings.HasSuffix(a.Reason[0], "64 may (over 99 % likely if no new limit appears beyond 16 workers): measure 32 first.") {
			t.Errorf("%s: %d workers, %q", test.name, got, a.Reason[0])
		}
		if (a.Beyond != nil) != (test.want > 0) || a.Beyond != nil && *a.Beyond != 64 || a.Next == nil || a.Next.Workers != 32 {
			t.Errorf("%s: beyond %v, next %+v", test.name, a.Beyond, a.Next)
		}
	}
}

// A count that a smaller one beats is never recommended. With a larger batch, the target takes more
// samples, so that at 1, 2, 4, 8 workers it takes 3600, 1800, 2250 and 4500 s, while the efficiency
// is 100 % throughout.
func TestEfficientAndBeaten(t *testing.T) {
	took := func(batch float64) float64 {
		return map[float64]float64{100: 3.6e6, 200: 3.6e6, 400: 9e6, 800: 36e6}[batch]
	}
	for _, runs := range []int{1, 6} {
		a := series{counts: []int{1, 2, 4, 8}, runs: runs, x: linear, took: took}.advise(t, Options{MinEfficiency: 0.8})
		if a.Workers == nil || *a.Workers != 2 || !strings.Contains(a.Reason[0], "; 8 would reach 75 % accuracy no faster.") || a.Next != nil && strings.Contains(a.Next.Why, "too wide") {
			t.Errorf("%d runs: %v, %q; next %+v", runs, a.Workers, a.Reason, a.Next)
		}
	}
	// Without a target, throughput: it peaks at 4 workers, and 8 have half of it.
	peak := func(n float64) float64 { return 1000 * math.Min(n, 16/n) }
	a := series{counts: []int{1, 2, 4, 8}, runs: 6, x: peak}.advise(t, Options{MinEfficiency: 0.1})
	if a.Workers == nil || *a.Workers != 4 || !strings.Contains(a.Reason[0], "; 8 would have no more throughput.") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
	// At 8 every run misses the target.
	took = func(batch float64) float64 { return map[float64]float64{100: 3.6e6, 200: 3.6e6, 400: 3.6e6}[batch] }
	a = series{counts: []int{1, 2, 4, 8}, runs: 6, x: linear, took: took}.advise(t, Options{MinEfficiency: 0.8})
	if a.Workers == nil || *a.Workers != 4 {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
}

// Every run reaches 80 %, but its time was not requested: that is not a miss.
func TestUnaskedTarget(t *testing.T) {
	seen := func(o *scaling.Observation) {
		o.Evaluations = []scaling.Evaluation{{Seconds: 10, Epoch: 1, Accuracy: 0.8}}
	}
	fixed := func(batch float64) float64 { return 3.6e6 }
	for name, change := range map[string]func(o *scaling.Observation){
		"no samples": seen,
		"no batch":   func(o *scaling.Observation) { seen(o); delete(o.Parameters, "workload.batch") },
	} {
		a := series{counts: octaves, runs: 6, x: linear, took: fixed, change: change}.advise(t, Options{Target: new(measure.Accuracy(0.8))})
		if !strings.Contains(a.Reason[0], "by throughput alone: times to 80 % accuracy were not collected; add 0.8 to workload.targets, submit again (no run is repeated), and collect") {
			t.Errorf("%s: %q", name, a.Reason)
		}
	}
}

// If results depend on the node, runs that share one count as one, as in package scaling. Of six
// nodes, each with two runs, one is slow: the median speed of 12 runs is 100.45 (per worker), and
// the interval of six nodes holds the slow one's 80. So twice the workers are at least 2·80/100.45
// = 1.59 times as fast. Of 12 independent runs in blocks, each block says 2 times.
func TestKneeByNode(t *testing.T) {
	for _, test := range []struct {
		nodes bool
		want  string
	}{{true, "2× as fast with initialisation (at least 1.59×)"}, {false, "2× as fast with initialisation (at least 2×)"}} {
		change := func(o *scaling.Observation) {
			i := o.Repeat - 1
			x := 100 + float64(i)/10
			if i%6 == 3 {
				x = 80
			}
			x *= float64(o.Workers)
			o.BeganUnix = 1.79e9 + float64(i) + 0.1*float64(o.Workers-1)
			o.Values = map[string]float64{"throughput": x, "init_seconds": 0, "to_0.75": 1000 / x}
			o.Evaluations = nil
			if test.nodes {
				o.Hosts = []string{fmt.Sprint("n", i%6)}
			}
		}
		a := series{counts: octaves[:4], runs: 12, x: linear, took: fixed, change: change}.advise(t, Options{})
		if a.Workers == nil || *a.Workers != 8 || !strings.Contains(a.Reason[0], test.want) {
			t.Errorf("%v, %q, want %q", a.Workers, a.Reason, test.want)
		}
	}
}
