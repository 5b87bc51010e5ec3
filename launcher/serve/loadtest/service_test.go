package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A queue is a service with one server that takes the same time for every request, in order of arrival.
type queue struct {
	takes time.Duration
	wrong bool

	mu   sync.Mutex
	busy time.Time
}

func (q *queue) Send(deadline time.Time) error {
	q.mu.Lock()
	now := time.Now()
	end := now.Add(q.takes)
	if q.busy.After(now) {
		end = q.busy.Add(q.takes)
	}
	q.busy = end
	q.mu.Unlock()
	if end.After(deadline) {
		time.Sleep(time.Until(deadline))
		return os.ErrDeadlineExceeded
	}
	time.Sleep(time.Until(end))
	if q.wrong {
		return errors.New("status 500")
	}
	return nil
}

func (q *queue) Close() error { return nil }

// streaming is a connection to a queue whose answers come in two texts, the first half a service time before
// the end.
type streaming struct {
	*queue
	last Stream
}

func (s *streaming) Send(deadline time.Time) error {
	sent := time.Now()
	err := s.queue.Send(deadline)
	took := time.Since(sent)
	s.last = Stream{First: took - s.takes/2, Last: took, Gaps: []time.Duration{s.takes / 2}, Tokens: 2, Counted: true}
	return err
}

func (s *streaming) Streamed() (Stream, bool) { return s.last, true }

// told collects what a Service reports.
type told struct {
	failed  error
	figures []metrics.Figure
	doubts  []string
	phases  []string
}

func (t *told) of(name string) map[string]float64 {
	m := map[string]float64{}
	for _, f := range t.figures {
		if f.Name == name {
			m[measure.Key(f.At)] = f.Value
		}
	}
	return m
}

// service returns a Service that reports to t.
func (t *told) service(dial func(batch int) (func() (Sender, error), error), seed uint64) Service {
	return Service{Seed: seed, Sleep: time.Sleep, Dial: dial,
		Phase:  func(text string) error { t.phases = append(t.phases, text); return nil },
		Figure: func(f metrics.Figure) error { t.figures = append(t.figures, f); return nil },
		Warn:   func(text string) error { t.doubts = append(t.doubts, text); return nil },
	}
}

// measured runs a workload against a queue whose service time is proportional to the batch size.
func measured(t *testing.T, q *queue, w study.Serve, seed uint64) *told {
	t.Helper()
	var told told
	synctest.Test(t, func(t *testing.T) {
		s := told.service(func(batch int) (func() (Sender, error), error) {
			one := &queue{takes: time.Duration(batch) * q.takes, wrong: q.wrong}
			return func() (Sender, error) {
				if w.Stream {
					return &streaming{queue: one}, nil
				}
				return one, nil
			}, nil
		}, seed)
		if told.failed = s.Measure(context.Background(), w); told.failed != nil && !q.wrong {
			t.Fatal(told.failed)
		}
	})
	return &told
}

func workload(w study.Serve) study.Serve {
	w.Duration, w.Timeout = study.Duration(20*time.Second), study.Duration(time.Second)
	if w.Batch == nil {
		w.Batch = []int{1}
	}
	return w
}

// In a closed loop one server of 2 ms gives 500 answers per second, and each request waits for all in flight.
// Twice the batch takes twice as long here.
func TestClosedLoops(t *testing.T) {
	told := measured(t, &queue{takes: 2 * time.Millisecond}, workload(study.Serve{Batch: []int{1, 2}, Threads: []int{4, 1}}), 1)
	near := func(name string, want map[string]float64) {
		t.Helper()
		got := told.of(name)
		for at, value := range want {
			if x := got[at]; x < 0.99*value || x > 1.01*value {
				t.Errorf("%s at %s: %g, want %g", name, at, x, value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s at %d places, want %d", name, len(got), len(want))
		}
	}
	one1, one4, two1, two4 := `{"batch":1,"threads":1}`, `{"batch":1,"threads":4}`, `{"batch":2,"threads":1}`, `{"batch":2,"threads":4}`
	near(measure.RequestsPerSecond, map[string]float64{one1: 500, one4: 500, two1: 250, two4: 250})
	near(measure.SamplesPerSecond, map[string]float64{one1: 500, one4: 500, two1: 500, two4: 500})
	near(measure.LatencyP95, map[string]float64{one1: 0.002, one4: 0.008, two1: 0.004, two4: 0.016})
	near(measure.Errors, map[string]float64{one1: 0, one4: 0, two1: 0, two4: 0})
	if diff := cmp.Diff([]string{"warming up, batch 1", "warming up, batch 2", "warm", "measuring 1 in flight, batch 1 (1 of 4)", "measuring 4 in flight, batch 1 (2 of 4)", "measuring 1 in flight, batch 2 (3 of 4)", "measuring 4 in flight, batch 2 (4 of 4)"}, told.phases); diff != "" {
		t.Error(diff)
	}
}

// If the client alone reaches 1000 answers/s (one every 1 ms), figures from 800/s on are void: here the closed
// loop against a service of 1.25 ms or less, and the open loop at 850 requests/s.
func TestCalibration(t *testing.T) {
	const client = time.Millisecond
	for service, void := range map[time.Duration][]string{1300 * time.Microsecond: {"850 requests/s"}, 1200 * time.Microsecond: {"4 in flight", "850 requests/s"}} {
		w := workload(study.Serve{Threads: []int{4}, Rate: []float64{300, 850}})
		told := told{}
		synctest.Test(t, func(t *testing.T) {
			one, ended := &queue{takes: service}, 0
			s := told.service(func(int) (func() (Sender, error), error) {
				return func() (Sender, error) { return one, nil }, nil
			}, 1)
			s.Null = func(context.Context, int) (func() (Sender, error), func(), error) {
				null := &queue{takes: client}
				return func() (Sender, error) { return null, nil }, func() { ended++ }, nil
			}
			if err := s.Measure(context.Background(), w); err != nil || ended != 1 {
				t.Errorf("%v, %d servers ended", err, ended)
			}
		})
		if rate := told.of(measure.ClientRate)[`{"batch":1,"threads":4}`]; rate < 980 || rate > 1020 {
			t.Errorf("the client gets %g answers/s, in truth 1000", rate)
		}
		if overhead := told.of(measure.ClientOverhead)[`{"batch":1,"threads":4}`]; math.Abs(overhead/client.Seconds()-1) > 0.001 {
			t.Errorf("the overhead is %g s", overhead)
		}
		var found []string
		for _, d := range told.doubts {
			if load, why, _ := strings.Cut(d, ", batch 1: no steady state: "); strings.HasPrefix(why, "the client may limit the results: ") && strings.Contains(why, "of the 1e+03 that it reaches") {
				found = append(found, load)
			}
		}
		if diff := cmp.Diff(void, found); diff != "" {
			t.Errorf("%v: %s\n%q", service, diff, told.doubts)
		}
		if rates := told.of(measure.RequestsPerSecond); len(rates) != 3-len(void) {
			t.Errorf("rates %v", rates)
		}
	}
}

// turning is a connection to several queues, used in turn.
type turning struct {
	queues []*queue
	turn   *int
	asked  int
}

func (s *turning) Send(deadline time.Time) error {
	s.asked = *s.turn % len(s.queues)
	*s.turn++
	return s.queues[s.asked].Send(deadline)
}

func (s *turning) Asked() int   { return s.asked }
func (s *turning) Close() error { return nil }

// Of three replicas the last takes 3 ms and the others 2 ms; in a second run the middle one gives wrong
// answers. Each replica has its own figures, and a warning names the one that differs.
func TestReplicas(t *testing.T) {
	for _, test := range []struct {
		wrong  bool
		spread float64
		doubts []string
	}{
		{false, 1.5, []string{"100 requests/s, batch 1: replica 2 on node7 is slower than the others, 1.50 times their mean latency, and by more than noise"}},
		{true, 0, []string{
			"1 in flight, batch 1: the first request without a right answer in time: status 500",
			"1 in flight, batch 1: replica 1 gave no right answer in time to 100 % of its requests, the others to 0 %",
		}},
	} {
		told := told{}
		w := workload(study.Serve{Rate: []float64{100}})
		if test.wrong {
			w = workload(study.Serve{Threads: []int{1}})
		}
		synctest.Test(t, func(t *testing.T) {
			list, turn := []*queue{{takes: 2 * time.Millisecond}, {takes: 2 * time.Millisecond, wrong: test.wrong}, {takes: 3 * time.Millisecond}}, 0
			s := told.service(func(int) (func() (Sender, error), error) {
				return func() (Sender, error) { return &turning{queues: list, turn: &turn}, nil }, nil
			}, 1)
			s.Replicas = []string{"replica 0", "replica 1", "replica 2 on node7"}
			if err := s.Measure(context.Background(), w); err != nil {
				t.Fatal(err)
			}
		})
		var found []string
		for _, d := range told.doubts {
			if !strings.Contains(d, ": no P") && !strings.Contains(d, "Little's law") {
				found = append(found, d)
			}
		}
		if diff := cmp.Diff(test.doubts, found); diff != "" {
			t.Errorf("%s", diff)
		}
		for at, spread := range told.of(measure.ReplicaSpread) {
			if math.Abs(spread/test.spread-1) > 0.02 {
				t.Errorf("a spread of %g at %s, in truth %g", spread, at, test.spread)
			}
		}
		if got := told.of(measure.ReplicaMean)[`{"batch":1,"rate":100,"replica":2}`]; !test.wrong && (got < 0.003 || got > 0.0031) {
			t.Errorf("the last replica's mean is %g s", got)
		}
		if errors := told.of(measure.ReplicaErrors); len(errors) != 3 || test.wrong && errors[`{"batch":1,"replica":1,"threads":1}`] != 1 {
			t.Errorf("%v", errors)
		}
	}
}

// If the client cannot be calibrated, loads are still measured, with a warning.
func TestNoCalibration(t *testing.T) {
	told := told{}
	synctest.Test(t, func(t *testing.T) {
		one := &queue{takes: time.Millisecond}
		s := told.service(func(int) (func() (Sender, error), error) {
			return func() (Sender, error) { return one, nil }, nil
		}, 1)
		s.Null = func(context.Context, int) (func() (Sender, error), func(), error) {
			return nil, nil, errors.New("no port")
		}
		if err := s.Measure(context.Background(), workload(study.Serve{Threads: []int{1}})); err != nil {
			t.Fatal(err)
		}
	})
	if diff := cmp.Diff([]string{"batch 1: the client's own limit is unknown: no port"}, told.doubts); diff != "" {
		t.Error(diff)
	}
	if len(told.of(measure.RequestsPerSecond)) != 1 || len(told.of(measure.ClientRate)) != 0 {
		t.Errorf("%+v", told.figures)
	}
}

// At 0.3 of the capacity there are figures. At 1.2 the queue grows, and a reason replaces them.
func TestOpenLoops(t *testing.T) {
	told := measured(t, &queue{takes: 2 * time.Millisecond}, workload(study.Serve{Rate: []float64{150, 600}}), 1)
	if got := told.of(measure.RequestsPerSecond); len(got) != 1 || got[`{"batch":1,"rate":150}`] < 140 || got[`{"batch":1,"rate":150}`] > 160 {
		t.Errorf("rates %v", got)
	}
	if got := told.of(measure.LatencyP50); len(got) != 1 {
		t.Errorf("medians %v", got)
	}
	if got := told.of(measure.Errors)[`{"batch":1,"rate":600}`]; got < 0.01 {
		t.Errorf("%g of the requests have no answer at 1.2 of the capacity", got)
	}
	// All of these errors are timeouts: the queue is too long.
	if errors, late := told.of(measure.Errors), told.of(measure.Timeouts); !cmp.Equal(errors, late) {
		t.Errorf("errors %v, timeouts %v", errors, late)
	}
	if !slices.ContainsFunc(told.doubts, func(d string) bool {
		return strings.HasPrefix(d, "600 requests/s, batch 1: no steady state: ")
	}) {
		t.Errorf("%q", told.doubts)
	}
}

// Above nine tenths of the closed loop's rate, the median is reported but not the tail.
func TestNearCapacity(t *testing.T) {
	w := workload(study.Serve{Threads: []int{1}, Rate: []float64{150, 460}})
	w.Duration = study.Duration(60 * time.Second)
	told := measured(t, &queue{takes: 2 * time.Millisecond}, w, 1)
	const far, near = `{"batch":1,"rate":150}`, `{"batch":1,"rate":460}`
	medians, tails := told.of(measure.LatencyP50), told.of(measure.LatencyP95)
	if medians[far] == 0 || medians[near] == 0 || tails[far] == 0 || tails[near] != 0 {
		t.Errorf("medians %v, P95 %v", medians, tails)
	}
	if said := strings.Join(told.doubts, "\n"); !strings.Contains(said, "no P95: 460 requests/s are 92 % of the closed loop's maximum") {
		t.Errorf("%s", said)
	}
}

// Wrong answers count for neither latency nor rate, and the run fails with the first one's error.
func TestWrongAnswers(t *testing.T) {
	told := measured(t, &queue{takes: 2 * time.Millisecond, wrong: true}, workload(study.Serve{Threads: []int{1}, Limit: "p95=50ms"}), 1)
	for _, f := range told.figures {
		want, known := map[string]float64{measure.Errors: 1, measure.Timeouts: 0}[f.Name]
		if !known && f.Name != measure.ClientCPUs || known && f.Value != want {
			t.Errorf("%+v", f)
		}
	}
	if all := strings.Join(told.doubts, "\n"); !strings.Contains(all, "no request had a right answer in time") || !strings.Contains(all, "status 500") {
		t.Errorf("%s", all)
	}
	if err := told.failed; err == nil || !strings.Contains(err.Error(), "1 in flight, batch 1: none of ") || !strings.HasSuffix(err.Error(), "requests had a right answer; the first: status 500") {
		t.Errorf("%v", err)
	}
	told = measured(t, &queue{takes: 2 * time.Millisecond, wrong: true}, workload(study.Serve{Limit: "p95=50ms"}), 1)
	if err := told.failed; err == nil || !strings.HasSuffix(err.Error(), "the first: status 500") {
		t.Errorf("search only: %v", err)
	}
}

// p95 computes the 95th percentile of the time in a queue with one server and service time 1, which gets every
// every-th of random requests, by Lindley's recursion.
func p95(rate float64, every int) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	const n = 400_000
	waits, wait := make([]float64, n), 0.0
	for i := range waits {
		waits[i] = wait
		gap := 0.0
		for range every {
			gap += random.ExpFloat64() / (rate * float64(every))
		}
		wait = max(0, wait+1-gap)
	}
	slices.Sort(waits)
	return waits[n*95/100] + 1
}

// The rate that a search finds is the one at which the limit is reached, computed here from a simulated queue
// without the load generator.
func TestSearch(t *testing.T) {
	const service, limit = time.Millisecond, 4.0 // limit in services
	low, high := 0.1, 1.0
	for high-low > 0.002 {
		if middle := (low + high) / 2; p95(middle, 1) <= limit {
			low = middle
		} else {
			high = middle
		}
	}
	truth := low / service.Seconds()
	for _, capacity := range []string{"known", "not known"} {
		for seed := range uint64(3) {
			w := workload(study.Serve{Limit: "errors=0.001 p95=4ms"})
			if capacity == "known" {
				w.Threads = []int{2}
			}
			told := measured(t, &queue{takes: service}, w, seed+1)
			got := told.of(measure.RateWithinLimit)[`{"batch":1}`]
			t.Logf("%g of the truth", got/truth)
			if got < 0.92*truth || got > 1.08*truth {
				t.Errorf("capacity %s, seed %d: %g requests/s keep the limit, in truth %.0f; %q", capacity, seed, got, truth, told.doubts)
			}
			// Probes are recorded at the rates tried, apart from the study's loads.
			rates, tails := told.of("probe_requests_per_second"), told.of("probe_latency_p95")
			if len(rates) < 3 || len(tails) == 0 || len(told.of("probe_errors")) != len(rates) {
				t.Errorf("%d probes have a rate, %d a P95", len(rates), len(tails))
			}
			for at, p95 := range tails {
				var place struct{ Rate float64 }
				if err := json.Unmarshal([]byte(at), &place); err != nil {
					t.Fatal(err)
				}
				if text := number.Exact(place.Rate); len(strings.Replace(text, ".", "", 1)) > 4 {
					t.Errorf("a probe at %s requests/s, which tables print with all digits", text)
				}
				// The probes lie around the rate found; those far above it exceed the limit, those far below
				// keep it.
				if place.Rate < 0.8*got && p95 > limit*service.Seconds() || place.Rate > 1.2*got && p95 < limit*service.Seconds() {
					t.Errorf("P95 of the probe at %g requests/s is %g s, and %g keep %g s", place.Rate, p95, got, limit*service.Seconds())
				}
				if rate := rates[at]; !(math.Abs(rate/place.Rate-1) < 0.1) {
					t.Errorf("%g requests/s were asked for, %g came", place.Rate, rate)
				}
			}
			for at := range told.of(measure.RequestsPerSecond) {
				if strings.Contains(at, measure.Rate) {
					t.Errorf("%s is not a load of the study", at)
				}
			}
			seen := map[string]bool{}
			for _, f := range told.figures {
				if key := f.Name + measure.Key(f.At); seen[key] {
					t.Errorf("%s has two values", key)
				} else {
					seen[key] = true
				}
				if f.Name == measure.RateWithinLimit && !strings.Contains(f.Note, "failed: ") {
					t.Errorf("the note does not say what fails: %q", f.Note)
				}
			}
		}
	}
}

// A rate that is too high for the client neither passes nor fails: the search continues below it. It ends at
// the true rate if that is below the client's limit, or else with a bracket whose top is that limit.
func TestBracket(t *testing.T) {
	for _, truth := range []float64{90, 130, 240, 390, 800} {
		for _, client := range []float64{30, 150, 300, 500, 1e9} {
			var b bracket
			rate, probes, narrow := 100.0, 0, false
			for ; !narrow; probes++ {
				if probes == maxProbes {
					t.Fatalf("truth %g, client %g: no end: %+v", truth, client, b)
				}
				switch {
				case rate > client:
					b.learn(rate, outcome{unknown: "late", client: true})
				case rate > truth:
					b.learn(rate, outcome{broken: "slow"})
				default:
					b.learn(rate, outcome{})
				}
				rate, narrow = b.next()
			}
			end := min(truth, client)
			if !(b.pass <= end && b.top() > end && b.top() <= nearRate*b.pass) || (b.top() == b.fail) != (truth < client) {
				t.Errorf("truth %g, client %g: %+v", truth, client, b)
			}
		}
	}
}

// Sixteen replicas of 8 ms, asked in turn, give 16 times the answers of one request in flight. The search
// doubles the rate from there until all connections wait for answers; that is due to the service, not the
// client, so the search ends with a rate. Each replica gets every 16th of random requests; the expected rate is
// computed for that queue.
func TestSearchFarBeyond(t *testing.T) {
	const replicas, limit = 16, 2.0 // services
	low, high := 0.1, 1.0
	for high-low > 0.002 {
		if middle := (low + high) / 2; p95(middle, replicas) <= limit {
			low = middle
		} else {
			high = middle
		}
	}
	truth := low * replicas / 0.008
	told := told{}
	synctest.Test(t, func(t *testing.T) {
		var list []*queue
		for range replicas {
			list = append(list, &queue{takes: 8 * time.Millisecond})
		}
		turn := 0
		s := told.service(func(int) (func() (Sender, error), error) {
			return func() (Sender, error) { return &turning{queues: list, turn: &turn}, nil }, nil
		}, 1)
		w := workload(study.Serve{Limit: "p95=16ms"})
		w.Timeout = study.Duration(10 * time.Second)
		if err := s.Measure(context.Background(), w); err != nil {
			t.Fatal(err)
		}
	})
	got := told.of(measure.RateWithinLimit)[`{"batch":1}`]
	t.Logf("%g of the truth", got/truth)
	if got < 0.92*truth || got > 1.08*truth {
		t.Errorf("%g requests/s keep the limit, in truth %.0f; %q", got, truth, told.doubts)
	}
}

// If a probe would have too few requests, the warning says how long the duration must be.
func TestSearchOfFew(t *testing.T) {
	w := workload(study.Serve{Limit: "p95=2s"})
	told := measured(t, &queue{takes: 250 * time.Millisecond}, w, 1) // 4 a second, so it begins at 2
	if said := strings.Join(told.doubts, "\n"); !strings.Contains(said, "set duration to 25.0 s or more") {
		t.Errorf("%q", said)
	}
}

// The first text of an answer comes half a service time before its end, so a limit on the time to first token
// that is half a service time lower finds the same rate.
func TestSearchOfStreams(t *testing.T) {
	for seed := range uint64(2) {
		w := workload(study.Serve{Limit: "p95=4ms", Rate: []float64{500}})
		whole := measured(t, &queue{takes: time.Millisecond}, w, seed)
		w.Stream, w.Limit = true, "ttft_p95=3.5ms"
		told := measured(t, &queue{takes: time.Millisecond}, w, seed)
		want, got := whole.of(measure.RateWithinLimit), told.of(measure.RateWithinLimit)
		if x := got[`{"batch":1}`] / want[`{"batch":1}`]; !(x > 0.999 && x < 1.001) {
			t.Errorf("%v, want %v; %q", got, want, told.doubts)
		}
		at := `{"batch":1,"rate":500}`
		ttft, latency, tpot := told.of(measure.TTFTP95)[at], told.of(measure.LatencyP95)[at], told.of(measure.TPOTP50)[at]
		if math.Abs(latency-ttft-0.0005) > 0.001*latency+1e-6 || math.Abs(tpot-0.0005) > 1e-6 {
			t.Errorf("TTFT P95 %g s, P95 %g s, TPOT P50 %g s; %q", ttft, latency, tpot, told.doubts)
		}
		answers, tokens, good := told.of(measure.RequestsPerSecond)[at], told.of(measure.OutputThroughput)[at], told.of(measure.Goodput)[at]
		if tokens != 2*answers || !(good > 0.95*answers && good < answers) {
			t.Errorf("%g answers/s, %g tokens/s, %g good answers/s", answers, tokens, good)
		}
	}
}

// No rate keeps a limit below the time of a single request.
func TestSearchInVain(t *testing.T) {
	told := measured(t, &queue{takes: 10 * time.Millisecond}, workload(study.Serve{Limit: "p50=9ms"}), 1)
	if len(told.of(measure.RateWithinLimit)) > 0 || len(told.doubts) != 1 || !strings.Contains(told.doubts[0], "batch 1: no rate keeps p50=9ms: at ") || !strings.Contains(told.doubts[0], "P50 was ") {
		t.Errorf("%v %q", told.of(measure.RateWithinLimit), told.doubts)
	}
	// Such a run still counts among repeats: it has a figure where others found a rate.
	if probes := told.of(measure.SearchProbes); len(probes) != 1 || probes[`{"batch":1}`] < 2 {
		t.Errorf("search_probes %v", probes)
	}
}

// Cancelling the run ends a search.
func TestSearchEnds(t *testing.T) {
	stop := errors.New("cancelled")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(30*time.Second, func() { cancel(stop) })
		q := &queue{takes: time.Millisecond}
		s := Service{Seed: 1, Sleep: time.Sleep,
			Dial: func(int) (func() (Sender, error), error) {
				return func() (Sender, error) { return q, nil }, nil
			},
			Phase:  func(string) error { return nil },
			Figure: func(f metrics.Figure) error { return fmt.Errorf("a figure of %s", f.Name) },
			Warn:   func(text string) error { return errors.New(text) },
		}
		if err := s.Measure(ctx, workload(study.Serve{Limit: "p95=4ms"})); !errors.Is(err, stop) {
			t.Errorf("%v", err)
		}
	})
}
