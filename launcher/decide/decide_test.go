package decide

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// A lab makes runs with known throughputs, taken in turn for each worker count.
type lab struct {
	speeds map[int][]float64
	later  []int // counts between doublings
	fails  map[study.Run]bool
	dies   int // batches after which the command dies; 0 means never
	made   map[study.Run]bool
	order  []scaling.Observation
	told   []string
	batch  []int // runs that each batch made
	now    time.Time
}

var errDied = errors.New("killed")

func newLab(speeds map[int][]float64) *lab {
	return &lab{speeds: speeds, fails: map[study.Run]bool{}, made: map[study.Run]bool{}, now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
}

func (l *lab) study(t *testing.T, folder rundir.Study, most int) *Study {
	t.Helper()
	design, err := sequential.NewDesign(most)
	if err != nil {
		t.Fatal(err)
	}
	plan := &study.Plan{Study: "s"}
	for _, n := range slices.Sorted(maps.Keys(l.speeds)) {
		for r := 1; r <= most; r++ {
			plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: fmt.Sprintf("w%d", n), Workers: n, Repeat: r}, Between: slices.Contains(l.later, n)})
		}
	}
	return &Study{Folder: folder, Plan: plan, Design: design,
		Done: func(context.Context) (map[study.Run]bool, error) { return maps.Clone(l.made), nil },
		Results: func(_ context.Context, d sequential.Design) (*Results, error) {
			curves, err := scaling.Analyse(l.order, d.Options())
			return &Results{Curves: curves, Observations: l.order, Wish: func(scaling.Curve) advice.Options { return advice.Options{} }}, err
		},
		Measure: l.measure,
		Collect: func(context.Context) error { return nil },
		Spent: func(context.Context) (hours float64, err error) { // an hour for each run on as many nodes as workers
			for _, o := range l.order {
				hours += float64(o.Nodes)
			}
			return hours, nil
		},
		Tell: func(format string, a ...any) { l.told = append(l.told, fmt.Sprintf(format, a...)) },
		Now:  func() time.Time { return l.now },
	}
}

func (l *lab) measure(_ context.Context, plan *study.Plan) error {
	points := slices.Clone(plan.Points)
	slices.SortStableFunc(points, func(a, b study.Planned) int { return a.Point.Repeat - b.Point.Repeat })
	for i, p := range points {
		if l.dies > 0 && len(l.batch)+1 == l.dies && i == len(points)/2 {
			l.dies = 0
			return errDied
		}
		r := p.Point.Run()
		if l.fails[r] {
			continue
		}
		n := p.Point.Workers
		l.made[r] = true
		l.order = append(l.order, scaling.Observation{Run: fmt.Sprintf("s/%s-r%d-a1", r.Point, r.Repeat), Study: "s", Point: r.Point, Repeat: r.Repeat,
			Framework: "native", Workers: n, Nodes: n, BeganUnix: 1.79e9 + 100*float64(len(l.order)),
			Parameters: map[string]any{"workload.scaling": "strong", "global_batch": int64(64), "workers": int64(n)},
			Values:     map[string]float64{"throughput": l.speeds[n][(r.Repeat-1)%len(l.speeds[n])], "init_seconds": 0, "train_seconds": 3600}})
	}
	l.batch = append(l.batch, len(points))
	return nil
}

func folder(t *testing.T) rundir.Study {
	t.Helper()
	f := rundir.OpenStudy(t.TempDir(), "s")
	if err := os.MkdirAll(f.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// 2 workers reach 1.92 times and 4 another 1.77 times the speed, at a price of 1.4: the answer is 4 workers.
// One worker is 1.73 times behind at that price, so it keeps its two runs.
func clearSpeeds() map[int][]float64 {
	return map[int][]float64{1: {100, 101}, 2: {191, 193, 192, 190}, 4: {340, 342, 341, 345}}
}

func run(t *testing.T, s *Study) *Outcome {
	t.Helper()
	o, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Two commands measure the same study. The other one ends the first batch sooner, looks, and has begun
// the next batch when this one comes to its look: this one joins that batch. The looks are those that
// one command alone makes.
func TestTwoCommandsLookOnce(t *testing.T) {
	l, f := newLab(clearSpeeds()), folder(t)
	ours, other := l.study(t, f, 12), l.study(t, f, 12)
	ours.Measure = func(ctx context.Context, plan *study.Plan) error {
		ours.Measure = l.measure
		if err := l.measure(ctx, plan); err != nil {
			return err
		}
		other.Measure = func(ctx context.Context, plan *study.Plan) error { // the second batch, of which it makes one run
			part := *plan
			part.Points = plan.Points[:1]
			return errors.Join(l.measure(ctx, &part), errDied)
		}
		if _, err := other.Run(ctx); !errors.Is(err, errDied) {
			return fmt.Errorf("the other command: %w", err)
		}
		return nil
	}
	o := run(t, ours)
	r, err := Read(f)
	if err != nil || !o.Decided || len(r.Looks) != 2 || r.Looks[0].Runs != 6 || r.Looks[1].Runs != 10 || r.Looks[1].Number != 2 {
		t.Errorf("%v; looks: %+v", err, r.Looks)
	}
}

func TestRunUntilDecided(t *testing.T) {
	l, f := newLab(clearSpeeds()), folder(t)
	o := run(t, l.study(t, f, 12))
	if !o.Decided || *o.Views[0].Advice.Workers != 4 || o.Stopped != "" || !slices.Equal(l.batch, []int{6, 4}) {
		t.Fatalf("%+v, batches %v", o, l.batch)
	}
	if got := o.Views[0].Sentence(); !strings.HasPrefix(got, "Decided. Use 4 workers") {
		t.Errorf("%s", got)
	}
	// 2 + 4 + 4 runs of three points, which could have 12 each.
	if want := "10 of at most 36 runs were made. Fewest with workers = 1, which can hardly change the answer."; o.Savings != want {
		t.Errorf("%q, want %q", o.Savings, want)
	}
	// 2 workers for an hour, twice: 4 node-hours, and 4 workers twice: 8.
	if want := []string{"4 more runs of 2, 4 workers, 12.0 node-hours"}; !slices.Equal(l.told, want) {
		t.Errorf("%q", l.told)
	}
	r, err := Read(f)
	if err != nil || len(r.Looks) != 2 || r.Looks[0].Decided || !r.Looks[1].Decided || r.Looks[1].Runs != 10 || r.Looks[1].Number != 2 || r.Target != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	// At the last look, 4 workers are 340/193 to 345/190 times as fast as 2.
	last := r.Looks[1]
	if last.Rival != 2 || math.Abs(*last.Low-340.0/193) > 1e-9 || math.Abs(*last.High-345.0/190) > 1e-9 || *last.Workers != 4 || math.Abs(*last.Price-1.4) > 1e-12 {
		t.Errorf("%+v", last)
	}
	// Running again measures nothing and gives the same look.
	if o = run(t, l.study(t, f, 12)); !o.Decided || len(l.batch) != 2 {
		t.Errorf("again: %+v, batches %v", o, l.batch)
	}
	if r, _ = Read(f); len(r.Looks) != 2 {
		t.Errorf("%d looks", len(r.Looks))
	}
}

// A command that dies within the second batch is repeated: the batch is completed before the next
// look, and as many runs are made as without it.
func TestRunAfterDeath(t *testing.T) {
	l, f := newLab(clearSpeeds()), folder(t)
	l.dies = 2
	if _, err := l.study(t, f, 12).Run(t.Context()); !errors.Is(err, errDied) || len(l.order) != 8 {
		t.Fatalf("%v, %d runs", err, len(l.order))
	}
	if o := run(t, l.study(t, f, 12)); !o.Decided || len(l.order) != 10 {
		t.Errorf("%+v, %d runs", o, len(l.order))
	}
	if r, _ := Read(f); len(r.Looks) != 2 || r.Looks[1].Runs != 10 {
		t.Errorf("%+v", r.Looks)
	}
}

func TestRunUndecided(t *testing.T) {
	noisy := map[int][]float64{1: {90, 110, 95, 105, 100, 98}, 2: {147, 126, 137, 133, 154, 140}}
	for _, test := range []struct {
		name    string
		change  func(*Study)
		stopped string
		runs    int
	}{
		{"repeats", func(*Study) {}, "max_repeats: each count that may change the answer has 6 runs", 12},
		// The first four runs take 2 and 4 node-hours, the next four as much.
		{"node-hours", func(s *Study) { s.NodeHours = 11.9 }, "max_node_hours: the next runs take more than the 5.9 node-hours left", 4},
		{"node-hours that failed runs took", func(s *Study) {
			s.NodeHours = 20
			spent := s.Spent
			s.Spent = func(ctx context.Context) (float64, error) { h, err := spent(ctx); return h + 9, err }
		}, "max_node_hours: the next runs take more than the 5 node-hours left", 4},
		{"time", func(s *Study) { s.By = s.Now() }, "stop_by has passed: 2026-11-25 12:00:00", 0},
	} {
		l := newLab(noisy)
		s := l.study(t, folder(t), 6)
		test.change(s)
		if o := run(t, s); o.Decided && o.Views != nil || o.Stopped != test.stopped || len(l.order) != test.runs {
			t.Errorf("%s: decided %v, stopped by %q, %d runs", test.name, o.Decided, o.Stopped, len(l.order))
		}
	}
}

// A run that fails is replaced by the next repeat; a point that always fails ends the study.
func TestRunWithFailures(t *testing.T) {
	l := newLab(clearSpeeds())
	l.fails[study.Run{Point: "w2", Repeat: 1}] = true
	if o := run(t, l.study(t, folder(t), 12)); !o.Decided || len(l.order) != 10 || !slices.Equal(l.batch, []int{6, 1, 4}) {
		t.Errorf("%+v, %d runs, batches %v", o, len(l.order), l.batch)
	}
	l = newLab(clearSpeeds())
	for r := 3; r <= 12; r++ {
		l.fails[study.Run{Point: "w4", Repeat: r}] = true
	}
	o := run(t, l.study(t, folder(t), 12))
	if o.Decided || !strings.HasPrefix(o.Stopped, "failures") || !slices.Equal(l.batch, []int{6, 4}) {
		t.Errorf("%+v, batches %v", o, l.batch)
	}
}

// A point whose two runs failed under an earlier command gets no more runs.
func TestRunAfterFailures(t *testing.T) {
	l := newLab(clearSpeeds())
	s := l.study(t, folder(t), 12)
	s.Once, s.Failed = true, map[study.Run]bool{{Point: "w4", Repeat: 1}: true, {Point: "w4", Repeat: 2}: true}
	if o := run(t, s); len(o.Next.Points) != 4 {
		t.Errorf("%d runs", len(o.Next.Points))
	}
}

// One look, one batch, and the command ends.
func TestRunOnce(t *testing.T) {
	l, f := newLab(clearSpeeds()), folder(t)
	for i, want := range []struct {
		next    int
		decided bool
	}{{6, false}, {4, false}, {0, true}, {0, true}} {
		s := l.study(t, f, 12)
		s.Once = true
		o := run(t, s)
		next := 0
		if o.Next != nil {
			next = len(o.Next.Points)
		}
		if next != want.next || o.Decided != want.decided {
			t.Errorf("call %d: %d next, decided %v", i+1, next, o.Decided)
		}
	}
}

func TestReadRecord(t *testing.T) {
	f := folder(t)
	if r, err := Read(f); err != nil || len(r.Looks) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.WriteFile(f.Looks(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(f); err == nil || !strings.Contains(err.Error(), "looks.json cannot be read") {
		t.Errorf("%v", err)
	}
}

// For any looks.json that is accepted, looks are numbered consecutively and further looks are appended.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"max_repeats": 12, "looks": [{"series": "a", "look": 1, "runs": 4, "max_repeats": 12, "decided": false}], "target": {"w1": 4}}`))
	f.Add([]byte(`{"looks": [{"series": "a", "look": 2, "runs": 4, "max_repeats": 12}]}`))
	f.Add([]byte(`{"looks": [{"series": "a", "look": 1, "max_repeats": 1000000000}]}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &Record{}
		if r.parse(text) != nil {
			return
		}
		before := len(r.Looks)
		r.add(metrics.Look{Series: "a", Runs: 1 << 40, Most: 12})
		last := 0
		for _, l := range r.Looks {
			if l.Series == "a" {
				if last++; l.Number != last {
					t.Fatalf("look %d is number %d", last, l.Number)
				}
			}
		}
		if len(r.Looks) != before+1 && r.Looks[before-1].Runs != 1<<40 {
			t.Fatalf("%d looks after %d", len(r.Looks), before)
		}
	})
}

// The first node is 10 % slower than the second, and runs on one node differ by 1 %.
func TestScatterText(t *testing.T) {
	var obs []scaling.Observation
	for i, x := range []float64{90, 91, 89, 100, 101, 99} {
		obs = append(obs, scaling.Observation{Run: fmt.Sprint(i), Point: "w1", Repeat: i + 1, Framework: "native", Workers: 1, Hosts: []string{fmt.Sprint("n", i/3)},
			Parameters: map[string]any{"workers": int64(1)}, Values: map[string]float64{"throughput": x}})
	}
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Results{Curves: curves, Observations: obs}
	if text := r.scatter(); !strings.HasPrefix(text, "Runs of a point scatter by 5.8") || !strings.Contains(text, " 2 nodes differ by 7.") {
		t.Error(text)
	}
	for i := range obs {
		obs[i].Hosts[0] = fmt.Sprint("n", i%2)
	}
	if text := r.scatter(); !strings.HasSuffix(text, " No difference between nodes is seen.") {
		t.Error(text)
	}
}
