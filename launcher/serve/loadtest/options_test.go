package loadtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A talker is a connection whose callers have sessions of several turns.
type talker struct {
	*played
	turns int
	think time.Duration
	asked int
}

func (s *talker) Send(deadline time.Time) error {
	s.asked++
	return s.played.Send(deadline)
}

func (s *talker) More() (time.Duration, bool) { return s.think, s.asked%s.turns > 0 }

// Two callers with sessions of 3 turns, 40 ms an answer and 80 ms of thought between turns: 3 answers each in
// 3·40 + 2·80 = 280 ms.
func TestSessionsOfClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{service: fixed(40 * time.Millisecond)}
		r, err := Run(context.Background(), Options{Dial: func() (Sender, error) { return &talker{played: p, turns: 3, think: 80 * time.Millisecond}, nil },
			InFlight: 2, Duration: 56 * time.Second, Window: 1400 * time.Millisecond, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		v := r.Judge()
		if want := 2 * 3 / 0.280; v.Why != "" || !near(v.Total.Rate(), want) || !near(v.Total.InFlight, want*0.040) {
			t.Errorf("%g/s, %g in flight, want %g and %g; %q", v.Total.Rate(), v.Total.InFlight, want, want*0.040, v.Why)
		}
	})
}

// Sessions of 4 turns that begin at the constant rate of 10/s give 40 requests/s once the first ones have ended,
// which the study's lead waits for.
func TestSessionsOfOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{service: fixed(50 * time.Millisecond)}
		s := Service{Turns: 4, Sleep: time.Sleep, Seed: 1}
		w := workload(study.Serve{Arrivals: "constant", Prompts: "isl=5|turns=4|think=1s", Duration: study.Duration(40 * time.Second)})
		o, why := s.options(w, Load{Batch: 1, Rate: 40}, 0)
		o.Dial = func() (Sender, error) { return &talker{played: p, turns: 4, think: time.Second}, nil }
		r, err := Run(context.Background(), o)
		if err != nil || why != "" {
			t.Fatal(err, why)
		}
		if v := r.Judge(); r.lead() < 3*time.Second || !o.SharedPrompts || v.Why != "" || math.Abs(v.Total.Rate()-40) > 0.4 {
			t.Errorf("%g requests/s after a lead of %v, want 40 after 3 s; %q", v.Total.Rate(), r.lead(), v.Why)
		}
	})
}

// A load that grows for 4 s and warms up for 2 s is measured for 20 s after that. The service is slow in the
// first 6 s only.
func TestLead(t *testing.T) {
	for name, l := range map[string]Load{"closed": {Batch: 1, Threads: 10}, "open": {Batch: 1, Rate: 100}} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			p := &played{service: func(int) (time.Duration, error) {
				if time.Since(begun) < 6*time.Second {
					return 500 * time.Millisecond, nil
				}
				return 100 * time.Millisecond, nil
			}}
			s := Service{Sleep: time.Sleep, Seed: 1}
			w := workload(study.Serve{Ramp: study.Duration(4 * time.Second), Warmup: study.Duration(2 * time.Second)})
			o, _ := s.options(w, l, 0)
			o.Dial = p.dial
			r, err := Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			v := r.Judge()
			p99, _ := v.Total.Percentile(Latency, 0.99)
			if r.lead() != 6*time.Second || v.Warmup != 12 || v.Why != "" || math.Abs(v.Total.Rate()-100) > 5 || !near(p99, 0.1) {
				t.Errorf("%s: lead %v, warm-up %d windows, %g/s, P99 %g; %q", name, r.lead(), v.Warmup, v.Total.Rate(), p99, v.Why)
			}
		})
	}
}

// A load ends after 200 requests, and its figures cover the time until then.
func TestRequests(t *testing.T) {
	for name, l := range map[string]Load{"closed": {Batch: 1, Threads: 4}, "open": {Batch: 1, Rate: 40}} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			p := &played{service: fixed(100 * time.Millisecond)}
			s := Service{Sleep: time.Sleep, Seed: 1}
			w := workload(study.Serve{Requests: 200, Arrivals: "constant"})
			o, _ := s.options(w, l, 0)
			o.Dial = p.dial
			r, err := Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			// At 40 requests/s, 200 take 5 s.
			took, v := time.Since(begun).Seconds(), r.Judge()
			if p.n.Load() != 200 || math.Abs(took-5) > 0.2 || v.Why != "" || math.Abs(v.Total.Rate()-40) > 0.5 || len(v.windows) != Windows {
				t.Errorf("%s: %d requests in %g s, %g/s in %d windows; %q", name, p.n.Load(), took, v.Total.Rate(), len(v.windows), v.Why)
			}
		})
	}
}

// A quarter of the requests is abandoned after 30 ms. Half of all requests take 20 ms and half 60 ms, and the
// percentiles of the rest are those without cancellation: had the abandoned ones been left out only when they
// took 60 ms, P53 would be of the fast half.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut atomic.Int64
		p := &played{service: func(n int) (time.Duration, error) {
			if n%2 == 0 {
				return 20 * time.Millisecond, nil
			}
			cut.Add(1)
			return 60 * time.Millisecond, nil
		}}
		var list []Outcome
		schedule := Arrivals{Process: "constant", Rate: 100, Span: 100 * time.Second}.Times()
		r, err := Run(context.Background(), Options{Dial: p.dial, Schedule: schedule, Sleep: time.Sleep,
			Timeout: time.Second, Window: 2500 * time.Millisecond, Cancel: 0.25, CancelAfter: 30 * time.Millisecond, Seed: 5, Each: func(o Outcome) { list = append(list, o) }})
		if err != nil {
			t.Fatal(err)
		}
		v := r.Judge()
		p51, _ := v.Total.Percentile(Latency, 0.53)
		p48, _ := v.Total.Percentile(Latency, 0.47)
		share := float64(v.Total.Cancelled) / float64(len(schedule))
		if v.Why != "" || v.Total.Errors() != 0 || math.Abs(share-0.25) > 0.013 || !near(p48, 0.020) || !near(p51, 0.060) {
			t.Errorf("%g cancelled, errors %g, P47 %g, P53 %g; %q", share, v.Total.Errors(), p48, p51, v.Why)
		}
		results := map[string]int{}
		for _, o := range list {
			results[o.Result]++
			if o.Result == "cancelled" && o.Latency > 0.0301 {
				t.Errorf("an abandoned request took %g s", o.Latency)
			}
		}
		if results["ok"]+results["cancelled"] != len(schedule) || int64(results["cancelled"]) != v.Total.Cancelled {
			t.Errorf("exported %v", results)
		}
	})
}

// The files of a load have one line or row for each request, with the times of its answer.
func TestExport(t *testing.T) {
	files := map[string]*bytes.Buffer{"jsonl": {}, "parquet": {}}
	synctest.Test(t, func(t *testing.T) {
		q := &queue{takes: 10 * time.Millisecond}
		var told told
		s := told.service(func(int) (func() (Sender, error), error) {
			return func() (Sender, error) { return &streaming{queue: q}, nil }, nil
		}, 1)
		s.Export = func(name, format string) (io.WriteCloser, error) {
			if name != "batch-1-threads-1" {
				return nil, errors.New(name)
			}
			return closer{files[format]}, nil
		}
		if err := s.Measure(context.Background(), workload(study.Serve{Threads: []int{1}})); err != nil {
			t.Fatal(err)
		}
	})
	lines := strings.Split(strings.TrimSpace(files["jsonl"].String()), "\n")
	var first Outcome
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2000 || first.Result != "ok" || first.Latency != 0.010 || first.TTFT != 0.005 || first.TPOT != 0.005 || len(first.ITL) != 1 || first.Tokens != 2 {
		t.Errorf("%d lines, the first %+v", len(lines), first)
	}
	table := files["parquet"].Bytes()
	rows, err := parquet.Read[Outcome](bytes.NewReader(table), int64(len(table)))
	if err != nil || len(rows) != len(lines) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, row := range rows {
		var line Outcome
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(line, row); diff != "" {
			t.Fatalf("row %d differs from its line (-line +row):\n%s", i, diff)
		}
	}
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// Two replicas: queues of 1 and 3 requests in the first half and 3 and 5 in the second, caches up to 40 and 80 %
// full, and 30 of 100 tokens from the prefix cache.
func TestServerMetrics(t *testing.T) {
	var told told
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := told.service(func(int) (func() (Sender, error), error) {
			return (&played{service: fixed(100 * time.Millisecond)}).dial, nil
		}, 1)
		s.Scrape = func(_ context.Context, name string) ([]ServerMetrics, error) {
			since := time.Since(begun).Seconds()
			more := 0.0
			if since > 10 {
				more = 2
			}
			a, b := ServerMetrics{}, ServerMetrics{}
			a.Add("vllm:num_requests_waiting", 1+more)
			b.Add("vllm:num_requests_waiting", 3+more)
			a.Add("vllm:kv_cache_usage_perc", 0.4)
			a.Add("vllm:kv_cache_usage_perc", 0.4) // another engine
			b.Add("vllm:kv_cache_usage_perc", 0.8)
			for _, m := range []ServerMetrics{a, b} {
				m.Add("vllm:prefix_cache_queries_total", 1000+100*since)
				m.Add("vllm:prefix_cache_hits_total", 900+30*since)
			}
			return []ServerMetrics{a, b}, nil
		}
		if err := s.Measure(context.Background(), workload(study.Serve{Threads: []int{1}})); err != nil {
			t.Fatal(err)
		}
	})
	for name, want := range map[string]float64{measure.ServerQueue: 6, measure.ServerKVCache: 1.6 / 3, measure.ServerCacheHits: 0.3} {
		if got := told.of(name)[`{"batch":1,"threads":1}`]; math.Abs(got-want) > 0.05*want {
			t.Errorf("%s: %g, want %g; %v", name, got, want, told.of(name))
		}
	}
	if len(told.of(measure.ServerPreemptions)) > 0 {
		t.Errorf("preemptions that no server reports: %v", told.of(measure.ServerPreemptions))
	}
}

// Of 2 tokens in 10 ms answers, 5 ms apart: 200 tokens/s for a user, 200 tokens/s in all from 100 answers/s, on
// 4 GPUs.
func TestTokensPerUserAndGPU(t *testing.T) {
	var told told
	synctest.Test(t, func(t *testing.T) {
		q := &queue{takes: 10 * time.Millisecond}
		s := told.service(func(int) (func() (Sender, error), error) {
			return func() (Sender, error) { return &streaming{queue: q}, nil }, nil
		}, 1)
		s.GPUs = 4
		s.Output = study.TokenLength{Kind: "constant", A: 3}
		if err := s.Measure(context.Background(), workload(study.Serve{Threads: []int{1}})); err != nil {
			t.Fatal(err)
		}
	})
	for name, want := range map[string]float64{measure.OutputPerUser: 200, measure.OutputPerGPU: 50, measure.OutputThroughput: 200, measure.OutputTokens: 2} {
		for at, got := range told.of(name) {
			if math.Abs(got-want) > 0.002*want {
				t.Errorf("%s at %s: %g, want %g", name, at, got, want)
			}
		}
		if len(told.of(name)) != 1 {
			t.Errorf("%s: %v", name, told.of(name))
		}
	}
	if text := strings.Join(told.doubts, "\n"); !strings.Contains(text, "the service counts 2.00 output tokens per request on average, and workload.prompts ask for 3.00: answers end early or are cut off") {
		t.Errorf("doubts: %s", text)
	}
}
