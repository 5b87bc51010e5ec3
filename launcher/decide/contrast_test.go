package decide

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// designForTests returns the design for at most 12 runs; computing its level takes a while.
var designForTests = sync.OnceValues(func() (sequential.Design, error) {
	d, err := sequential.NewDesign(12)
	return d.ForTests(), err
})

// contest returns a study that compares precisions; the first is the one that the others are compared
// with. rate returns the throughput of a run.
func contest(t *testing.T, precisions []string, rate func(precision string, repeat int) float64) *Study {
	t.Helper()
	const most = 12
	design, err := designForTests()
	if err != nil {
		t.Fatal(err)
	}
	plan := &study.Plan{Study: "s"}
	for _, p := range precisions {
		for r := 1; r <= most; r++ {
			plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: p, Workers: 2, Repeat: r}})
		}
	}
	l := newLab(nil)
	s := &Study{Folder: folder(t), Plan: plan, Design: design, Compares: true, Tell: func(string, ...any) {}}
	s.Done = func(context.Context) (map[study.Run]bool, error) { return l.made, nil }
	s.Collect = func(context.Context) error { return nil }
	s.Spent = func(context.Context) (float64, error) { return float64(len(l.order)), nil }
	s.Now = func() time.Time { return l.now }
	s.Measure = func(_ context.Context, plan *study.Plan) error {
		l.batch = append(l.batch, len(plan.Points))
		for _, p := range plan.Points {
			r := p.Point.Run()
			l.made[r] = true
			l.order = append(l.order, scaling.Observation{Run: fmt.Sprintf("s/%s-r%d-a1", r.Point, r.Repeat), Study: "s", Point: r.Point, Repeat: r.Repeat,
				Framework: "native", Workers: 2, Nodes: 1, BeganUnix: 1.79e9 + 100*float64(r.Repeat),
				Parameters: map[string]any{"workload.scaling": "strong", "workload.precision": r.Point, "workers": int64(2)},
				Values:     map[string]float64{"throughput": rate(r.Point, r.Repeat), "train_seconds": 3600}})
		}
		return nil
	}
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	s.Results = func(_ context.Context, d sequential.Design) (*Results, error) {
		var a, b []scaling.Observation
		for _, o := range l.order {
			if o.Point == precisions[0] {
				a = append(a, o)
			} else {
				b = append(b, o)
			}
		}
		c, err := compare.Runs(a, b, throughput, compare.Options{Confidence: d.Confidence})
		if err != nil {
			return nil, err
		}
		return &Results{Observations: l.order, Contrast: &Contrast{Key: "workload.precision", Measure: throughput, Pairs: c.Pairs}}, nil
	}
	return s
}

// noisy returns rates with a normal scatter, by precision.
func noisy(seed uint64, sd float64, of map[string]float64) func(string, int) float64 {
	random := rand.New(rand.NewPCG(seed, 40))
	return func(p string, _ int) float64 { return of[p] * (1 + sd*random.NormFloat64()) }
}

func TestCompareUntilDecided(t *testing.T) {
	for _, c := range []struct {
		name     string
		rates    map[string]float64
		sd       float64
		decided  bool
		sentence string // of the only view
		runs     int    // in all
	}{
		// With 6 runs a side that do not overlap, the exact two-sided p-value is 2/924 = 0.2 %. With 4 it is
		// 2/70 = 2.9 %, above the 1.8 % of each look.
		{"faster", map[string]float64{"fp32": 100, "tf32": 130}, 0.01, true, "Decided: precision=tf32 is better. The throughput of precision=tf32 is 1.", 12},
		{"slower", map[string]float64{"fp32": 100, "tf32": 80}, 0.01, true, "Decided: precision=tf32 is worse. The throughput of precision=tf32 is 0.", 12},
		// The interval of a median at 98.25 % needs 7 runs: 2·0.5^7 = 1.6 %. The next look is at 8.
		{"equal", map[string]float64{"fp32": 100, "tf32": 100}, 0.002, true, "Decided: they are within 2 % of each other, either will do. ", 16},
		{"unclear", map[string]float64{"fp32": 100, "tf32": 100}, 0.2, false, "Undecided. The throughput of precision=tf32 is ", 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := contest(t, []string{"fp32", "tf32"}, noisy(11, c.sd, c.rates))
			o := run(t, s)
			if len(o.Views) != 1 || o.Decided != c.decided || !strings.HasPrefix(o.Views[0].Sentence(), c.sentence) {
				t.Fatalf("decided %v: %s", o.Decided, o.Views[0].Sentence())
			}
			spent, _ := s.Spent(t.Context())
			record, err := Read(s.Folder)
			if err != nil {
				t.Fatal(err)
			}
			last := record.Looks[len(record.Looks)-1]
			if int(spent) != c.runs || last.Runs != c.runs || last.Decided != c.decided || last.Ratio == nil || last.Series != "precision=tf32 against precision=fp32, native, 2 workers" {
				t.Errorf("%g runs, want %d; last look: %+v", spent, c.runs, last)
			}
			if want := c.rates["tf32"] / c.rates["fp32"]; math.Abs(*last.Ratio/want-1) > 2*c.sd {
				t.Errorf("ratio %g, want about %g", *last.Ratio, want)
			}
			if !c.decided && !strings.Contains(o.Stopped, "max_repeats") {
				t.Errorf("stopped by %q", o.Stopped)
			}
		})
	}
}

// A sentence says what decided: the test, if there is no interval or it contains 1.
func TestContrastSaysWhatDecided(t *testing.T) {
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	estimate := func(in *scaling.Interval) *scaling.Estimate {
		return &scaling.Estimate{Value: 1.02, Interval: in, Why: "too few runs for an interval (6 of 7 needed)"}
	}
	wide, narrow := &scaling.Interval{Low: 0.99, High: 1.05}, &scaling.Interval{Low: 1.01, High: 1.03}
	for _, c := range []struct {
		in      *scaling.Interval
		decided bool
		pairs   int
		why     string
	}{
		{nil, true, 1, "(Mann–Whitney test of 8 and 9 runs: p = 0.012; a look decides at 0.0175)."},
		{wide, true, 2, "(0.990 to 1.05; Mann–Whitney test of 8 and 9 runs: p = 0.012; a look decides at 0.0175 for all comparisons together)."},
		{narrow, true, 1, "(1.01 to 1.03)."},
		{wide, false, 1, "(0.990 to 1.05)."},
		{nil, false, 1, "(Mann–Whitney test of 8 and 9 runs: p = 0.012; too few runs for an interval (6 of 7 needed))."},
	} {
		p := &compare.Pair{NA: 8, NB: 9, P: new(0.012), Verdict: compare.Better, Ratio: estimate(c.in)}
		text := contrasted(p, c.decided, atLevel(0.9825, c.pairs), throughput, "a", "b")
		if want := "The throughput of b is 1.02 times that of a " + c.why; !strings.HasSuffix(text, want) {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
}

// A setting that is decided gets no more runs; the first one, with which all are compared, does.
func TestCompareThree(t *testing.T) {
	s := contest(t, []string{"fp32", "bf16", "tf32"}, noisy(3, 0.02, map[string]float64{"fp32": 100, "bf16": 200, "tf32": 100.5}))
	o := run(t, s)
	done, _ := s.Done(t.Context())
	runs := map[string]int{}
	for r := range done {
		runs[r.Point]++
	}
	if len(o.Views) != 2 || runs["fp32"] != runs["tf32"] || runs["bf16"] >= runs["fp32"] {
		t.Errorf("%v: %+v", runs, o.Views)
	}
}

// Settings that cannot be compared are a reason to stop: more runs do not change it.
func TestCompareNever(t *testing.T) {
	s := contest(t, []string{"fp32", "tf32"}, noisy(1, 0.01, map[string]float64{"fp32": 100, "tf32": 100}))
	results := s.Results
	s.Results = func(ctx context.Context, d sequential.Design) (*Results, error) {
		r, err := results(ctx, d)
		if err == nil {
			r.Contrast.Pairs[0].Verdict, r.Contrast.Pairs[0].FewRuns = compare.Insufficient, false
			r.Contrast.Pairs[0].Ratio, r.Contrast.Pairs[0].Why = nil, "A and B run different programs"
		}
		return r, err
	}
	o := run(t, s)
	if spent, _ := s.Spent(t.Context()); o.Decided || spent != 4 || !strings.Contains(o.Stopped, "A and B run different programs") {
		t.Errorf("%g runs, decided %v, stopped by %q", spent, o.Decided, o.Stopped)
	}
}

// Equal settings are called different in at most 5 % of studies, although each is tested at up to five
// looks. Of 200 studies, 5 % are 10 ± 3.1.
func TestCompareEqualSettings(t *testing.T) {
	wrong := 0
	const studies = 200
	for seed := range uint64(studies) {
		s := contest(t, []string{"fp32", "tf32"}, noisy(1000+seed, 0.05, map[string]float64{"fp32": 100, "tf32": 100}))
		o := run(t, s)
		if o.Decided && !strings.Contains(o.Views[0].Sentence(), "either will do") {
			wrong++
		}
	}
	t.Logf("%d of %d studies of equal settings found a difference", wrong, studies)
	if wrong > 10+3*3 {
		t.Errorf("%d of %d studies of equal settings found a difference; at most 5 %% should", wrong, studies)
	}
}
