package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A played service takes the time that service returns for the n-th request, on a limited number of servers;
// nil servers means no limit.
type played struct {
	servers chan struct{}
	service func(n int) (time.Duration, error)
	n       atomic.Int64
	dialled atomic.Int64
	closed  atomic.Int64
}

func (p *played) dial() (Sender, error) {
	p.dialled.Add(1)
	return p, nil
}

func (p *played) Close() error {
	p.closed.Add(1)
	return nil
}

func (p *played) Send(deadline time.Time) error {
	n := int(p.n.Add(1)) - 1
	took, err := p.service(n)
	if p.servers != nil {
		select {
		case p.servers <- struct{}{}:
			defer func() { <-p.servers }()
		case <-time.After(time.Until(deadline)):
			return fmt.Errorf("all servers are busy: %w", os.ErrDeadlineExceeded)
		}
	}
	if left := time.Until(deadline); took > left {
		time.Sleep(left)
		return fmt.Errorf("no answer: %w", os.ErrDeadlineExceeded)
	}
	time.Sleep(took)
	return err
}

func fixed(d time.Duration) func(int) (time.Duration, error) {
	return func(int) (time.Duration, error) { return d, nil }
}

func near(got, want float64) bool { return math.Abs(got-want) <= 0.002*want }

// Four requests in flight at 10 ms each make 400 per second, at 10 ms; on two servers they make 200, at 20 ms.
func TestClosedLoop(t *testing.T) {
	for _, tt := range []struct {
		servers       int
		rate, latency float64
	}{{0, 400, 0.010}, {2, 200, 0.020}} {
		synctest.Test(t, func(t *testing.T) {
			p := &played{service: fixed(10 * time.Millisecond)}
			if tt.servers > 0 {
				p.servers = make(chan struct{}, tt.servers)
			}
			r, err := Run(context.Background(), Options{Dial: p.dial, InFlight: 4, Duration: 40 * time.Second, Timeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			v := r.Judge()
			p50, why := v.Percentile(Latency, 0.5)
			if v.Why != "" || why != "" || len(v.Warnings) > 0 || !near(v.Total.Rate(), tt.rate) || !near(p50, tt.latency) || !near(v.Total.InFlight, 4) {
				t.Errorf("%d servers: %g/s, %g in flight, P50 %g %q; %q, doubts %q", tt.servers, v.Total.Rate(), v.Total.InFlight, p50, why, v.Why, v.Warnings)
			}
			if p.dialled.Load() != 4 || p.closed.Load() != 4 {
				t.Errorf("%d connections, %d closed; want 4", p.dialled.Load(), p.closed.Load())
			}
		})
	}
}

// 2 requests in flight that take 787 ms each make 2/0.787 per second, although 52 requests begin within 20 s
// and 50 end.
func TestRateOfLongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{service: fixed(787 * time.Millisecond)}
		r, err := Run(context.Background(), Options{Dial: p.dial, InFlight: 2, Duration: 20 * time.Second, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		total := Merge(r.Windows)
		if total.Good != 52 {
			t.Errorf("%d requests began, want 52", total.Good)
		}
		if want := 2 / 0.787; math.Abs(total.Rate()/want-1) > 1e-9 {
			t.Errorf("%.4g answers/s, want %.4g", total.Rate(), want)
		}
	})
}

// Requests that wait because every connection is busy are delayed by the service, which gets twice the load it
// can serve, and not by the client.
func TestAllConnectionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{servers: make(chan struct{}, 1), service: fixed(10 * time.Millisecond)}
		r, err := Run(context.Background(), Options{Dial: p.dial, Schedule: Poisson(200, 40*time.Second, 1), MaxInFlight: 32, Sleep: time.Sleep, Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		v := r.Judge()
		if v.Ours || v.Client || !strings.Contains(v.Why, "requests waited while 32 others were unanswered; the service does not keep up") {
			t.Errorf("ours: %v: %s", v.Ours, v.Why)
		}
	})
}

// A service that accepts no request for a second delays every request due meanwhile: at 100 requests per
// second, each one due 10 ms earlier waits 10 ms longer. The closed loop sees one slow request.
func TestOpenLoopCountsFromTheIntendedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var schedule []time.Duration
		for i := range 4000 {
			schedule = append(schedule, time.Duration(i)*10*time.Millisecond)
		}
		p := &played{servers: make(chan struct{}, 1), service: func(n int) (time.Duration, error) {
			if n == 2000 {
				return time.Second, nil
			}
			return time.Millisecond, nil
		}}
		r, err := Run(context.Background(), Options{Dial: p.dial, Schedule: schedule, Sleep: time.Sleep, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		total := Merge(r.Windows)
		// The stall lasts 1 s, and each request catches up 9 ms of it: 111 requests wait.
		slow := int64(0)
		for value, count := range total.Latency.ForEachBucket {
			if value > int64(2*time.Millisecond) {
				slow += count
			}
		}
		if total.Good != 4000 || slow < 105 || slow > 115 {
			t.Errorf("%d good answers, %d slow ones; want 4000, 111", total.Good, slow)
		}
		if p.dialled.Load() > 130 || p.closed.Load() != p.dialled.Load() {
			t.Errorf("%d connections, %d closed", p.dialled.Load(), p.closed.Load())
		}
		if v := r.Judge(); v.Why != "" {
			t.Error(v.Why)
		} else if _, why := v.Percentile(Latency, 0.99); why == "" {
			t.Error("P99 of one stall has no doubt")
		}
	})
}

// A request that finds no free connection waits, and the wait counts as latency.
func TestOpenLoopWithFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{service: fixed(20 * time.Millisecond)}
		schedule := []time.Duration{0, 0, 0, time.Second}
		r, err := Run(context.Background(), Options{Dial: p.dial, Schedule: schedule, Sleep: time.Sleep, MaxInFlight: 1, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		total := Merge(r.Windows)
		latency, service := total.Mean()
		if !near(latency, 0.035) || !near(service, 0.020) || p.dialled.Load() != 1 {
			t.Errorf("latency %g, service %g, %d connections; want 0.035, 0.020, 1", latency, service, p.dialled.Load())
		}
	})
}

// Wrong and late answers are counted apart from latencies, and the next request after one uses a new
// connection.
func TestErrorsHaveNoLatency(t *testing.T) {
	wrong := errors.New("status 503")
	answer := func(n int) (time.Duration, error) {
		switch n % 10 {
		case 3:
			return 0, wrong
		case 7:
			return time.Hour, nil
		}
		return 10 * time.Millisecond, nil
	}
	for name, o := range map[string]Options{
		"closed": {InFlight: 1, Duration: 28 * time.Second},
		"open":   {Schedule: Poisson(100, 40*time.Second, 3), Sleep: time.Sleep},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &played{service: answer}
				o.Dial, o.Timeout = p.dial, 200*time.Millisecond
				r, err := Run(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				total := Merge(r.Windows)
				n := total.Requests()
				if n < 900 || total.Wrong < n/10-1 || total.Wrong > n/10+1 || total.Late < n/10-1 || total.Late > n/10+1 {
					t.Errorf("%d requests, %d wrong, %d late", n, total.Wrong, total.Late)
				}
				if p50, ok := total.Percentile(Latency, 0.5); !ok || !near(p50, 0.010) {
					t.Errorf("P50 %g %v", p50, ok)
				}
				if _, ok := total.Percentile(Latency, 0.95); ok {
					t.Error("P95 where 11 % of the timed ones are late")
				}
				if !errors.Is(r.FirstError, wrong) {
					t.Errorf("first error %v", r.FirstError)
				}
				if p.closed.Load() != p.dialled.Load() {
					t.Errorf("%d connections, %d closed", p.dialled.Load(), p.closed.Load())
				}
				if v := r.Judge(); name == "open" && v.Why == "" {
					t.Error("Judge accepts a rate that the service does not answer")
				}
			})
		})
	}
}

// The warm-up covers a slow start as well as the fast start of a short queue.
func TestWarmup(t *testing.T) {
	for name, first := range map[string]time.Duration{"slow": 30 * time.Millisecond, "fast": 3 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				p := &played{service: func(int) (time.Duration, error) {
					if time.Since(begin) < 5*time.Second {
						return first, nil
					}
					return 10 * time.Millisecond, nil
				}}
				r, err := Run(context.Background(), Options{Dial: p.dial, InFlight: 2, Duration: Windows * time.Second, Timeout: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if v := r.Judge(); v.Why != "" || v.Warmup < 4 || v.Warmup > 6 {
					t.Errorf("warm-up of %d windows, want 5: %s", v.Warmup, v.Why)
				}
			})
		})
	}
}

// A run that cannot be judged is refused with a reason.
func TestRefusals(t *testing.T) {
	begin := time.Duration(0)
	for name, service := range map[string]func(at time.Duration) (time.Duration, error){
		"halves": func(at time.Duration) (time.Duration, error) {
			if at > 25*time.Second {
				return 20 * time.Millisecond, nil
			}
			return 10 * time.Millisecond, nil
		},
		"wanders": func(at time.Duration) (time.Duration, error) {
			return time.Duration((1 + 0.5*math.Sin(at.Seconds()/3)) * float64(10*time.Millisecond)), nil
		},
		"hangs at last": func(at time.Duration) (time.Duration, error) {
			if at > 30*time.Second {
				return time.Hour, nil
			}
			return 10 * time.Millisecond, nil
		},
		"only errors": func(time.Duration) (time.Duration, error) { return time.Millisecond, errors.New("status 500") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				p := &played{service: func(int) (time.Duration, error) { return service(time.Since(start) - begin) }}
				r, err := Run(context.Background(), Options{Dial: p.dial, InFlight: 1, Duration: Windows * time.Second, Timeout: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if v := r.Judge(); v.Why == "" {
					t.Errorf("judged steady, at %g/s", v.Total.Rate())
				}
			})
		})
	}
}

// If one of two replicas stops answering, a closed loop has one rate before and another after, and no
// single rate is reported.
func TestReplicaStopsAnswering(t *testing.T) {
	judged := map[bool]int{}
	for _, when := range []time.Duration{4, 10, 20, 30, 36} {
		for _, inFlight := range []int{1, 2, 8} {
			for _, timeout := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second} {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					p := &played{service: func(n int) (time.Duration, error) {
						if n%2 == 1 && time.Since(start) > when*time.Second {
							return time.Hour, nil
						}
						return time.Duration((0.9 + 0.0002*float64(n*7919%1000)) * float64(10*time.Millisecond)), nil
					}}
					result, err := Run(context.Background(), Options{Dial: p.dial, InFlight: inFlight, Duration: Windows * time.Second, Timeout: timeout})
					if err != nil {
						t.Fatal(err)
					}
					// Of two requests one is answered in 10 ms, the other times out. If everything before that
					// counts as warm-up, the rest is the rate of the one working replica.
					alone := float64(inFlight) / (10*time.Millisecond + timeout).Seconds()
					v := result.Judge()
					judged[v.Why == ""]++
					if rate := v.Total.Rate(); v.Why == "" && math.Abs(rate/alone-1) > 0.05 {
						t.Errorf("%d in flight, a replica stops at %d s, %v to answer: judged steady, at %g/s, %g with the other alone", inFlight, when, timeout, rate, alone)
					}
				})
			}
		}
	}
	t.Logf("%d refused, %d judged", judged[false], judged[true])
}

// A streamed service answers in pieces: a request waits for those before it on its connection, then for the
// first text; the others follow one every gap.
type streamed struct {
	answer Stream
	last   Stream
}

func (s *streamed) Send(time.Time) error {
	time.Sleep(s.answer.Last)
	s.last = s.answer
	return nil
}
func (s *streamed) Close() error             { return nil }
func (s *streamed) Streamed() (Stream, bool) { return s.last, true }

// Times of streams get percentiles in the same windows and by the same rules as latencies. Those that start
// with the request count from its scheduled send time.
func TestStreams(t *testing.T) {
	const ms = time.Millisecond
	// 100 ms to the first of four tokens, then 10, 10 and 40 ms: 20 ms a token.
	answer := Stream{First: 100 * ms, Last: 160 * ms, Gaps: []time.Duration{10 * ms, 10 * ms, 40 * ms}, Tokens: 4, Counted: true}
	for name, tt := range map[string]struct {
		o            Options
		p95          map[Time]float64
		tokens, good float64 // a second
	}{
		"closed": {Options{InFlight: 2, Within: map[Time]time.Duration{FirstToken: 100 * ms, PerToken: 20 * ms, Latency: 160 * ms}},
			map[Time]float64{Latency: 0.160, FirstToken: 0.100, PerToken: 0.020, Gap: 0.040}, 4 * 2 / 0.16, 2 / 0.16},
		"too slow a token": {Options{InFlight: 2, Within: map[Time]time.Duration{PerToken: 19 * ms}},
			map[Time]float64{Latency: 0.160}, 4 * 2 / 0.16, 0},
		"too long a gap": {Options{InFlight: 2, Within: map[Time]time.Duration{Gap: 39 * ms}},
			map[Time]float64{Latency: 0.160}, 4 * 2 / 0.16, 0},
		// With one connection and two requests every half second, the second waits 160 ms before it is sent.
		"open": {Options{MaxInFlight: 1, Sleep: time.Sleep, Schedule: func() (list []time.Duration) {
			for i := range Windows {
				list = append(list, time.Duration(i)*500*ms, time.Duration(i)*500*ms+1)
			}
			return list
		}(), Within: map[Time]time.Duration{FirstToken: 200 * ms}, Window: 500 * ms},
			map[Time]float64{Latency: 0.320, FirstToken: 0.260, PerToken: 0.020, Gap: 0.040}, 16, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.o.Dial, tt.o.Timeout = func() (Sender, error) { return &streamed{answer: answer}, nil }, time.Minute
				if tt.o.InFlight > 0 {
					tt.o.Duration, tt.o.Window = 32*time.Second, 800*ms
				}
				r, err := Run(context.Background(), tt.o)
				if err != nil {
					t.Fatal(err)
				}
				v := r.Judge()
				for of, want := range tt.p95 {
					if got, why := v.Percentile(of, 0.95); !near(got, want) {
						t.Errorf("P95 of %d is %g, want %g (%s)", of, got, want, why)
					}
				}
				tokens, counted := v.Total.Tokens()
				seconds := v.Total.Length.Seconds()
				if !near(float64(tokens)/seconds, tt.tokens) || !counted {
					t.Errorf("%g tokens/s, %v; want %g", float64(tokens)/seconds, counted, tt.tokens)
				}
				if got := float64(v.Total.Within) / seconds; math.Abs(got-tt.good) > 0.002*tt.good {
					t.Errorf("%g good answers/s, want %g", got, tt.good)
				}
			})
		})
	}
}

// An interrupted run has no result and leaves no request in flight.
func TestInterrupted(t *testing.T) {
	for name, o := range map[string]Options{"closed": {InFlight: 3, Duration: time.Hour}, "open": {Schedule: Poisson(10, time.Minute, 1), Sleep: time.Sleep}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &played{service: fixed(10 * time.Millisecond)}
				o.Dial, o.Timeout = p.dial, time.Second
				why := errors.New("interrupted by the user")
				ctx, stop := context.WithCancelCause(context.Background())
				time.AfterFunc(3*time.Second, func() { stop(why) })
				if r, err := Run(ctx, o); !errors.Is(err, why) || r != nil {
					t.Errorf("%v, %v", r, err)
				}
				if p.closed.Load() != p.dialled.Load() {
					t.Errorf("%d connections, %d closed", p.dialled.Load(), p.closed.Load())
				}
			})
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	refused := errors.New("connection refused")
	dial := func() (Sender, error) { return nil, refused }
	for name, o := range map[string]Options{"closed": {InFlight: 3, Duration: time.Hour}, "open": {Schedule: []time.Duration{0}, Sleep: time.Sleep}} {
		o.Dial, o.Timeout = dial, time.Second
		if _, err := Run(context.Background(), o); !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The number of requests is rate times duration within chance, and gaps have the mean and standard deviation of
// an exponential distribution.
func TestPoisson(t *testing.T) {
	list := Poisson(200, 500*time.Second, 11)
	if n := float64(len(list)); math.Abs(n-100_000) > 5*math.Sqrt(100_000) {
		t.Errorf("%g calls, want about 100,000", n)
	}
	if !slices.IsSorted(list) {
		t.Error("not in order")
	}
	var sum, squares float64
	for i := 1; i < len(list); i++ {
		gap := (list[i] - list[i-1]).Seconds()
		sum += gap
		squares += gap * gap
	}
	n := float64(len(list) - 1)
	m := sum / n
	if cv := math.Sqrt(squares/n-m*m) / m; math.Abs(m-0.005) > 0.0001 || math.Abs(cv-1) > 0.02 {
		t.Errorf("gaps of %g s on average, cv %g; want 0.005, 1", m, cv)
	}
	if other := Poisson(200, 500*time.Second, 12); slices.Equal(list, other) {
		t.Error("another seed draws the same")
	}
}

// A percentile is the smallest time that at least the given share is within. Late answers count as slower than
// all others.
func TestPercentile(t *testing.T) {
	w := Window{Latency: histogram()}
	for i := range 100 {
		put(w.Latency, time.Duration(i+1)*time.Millisecond)
		w.Good++
	}
	for q, want := range map[float64]float64{0.5: 0.050, 0.95: 0.095, 0.99: 0.099, 1: 0.100, 0.001: 0.001} {
		if got, ok := w.Percentile(Latency, q); !ok || !near(got, want) {
			t.Errorf("P%g is %g %v, want %g", 100*q, got, ok, want)
		}
	}
	w.Late = 100
	if got, ok := w.Percentile(Latency, 0.25); !ok || !near(got, 0.050) {
		t.Errorf("P25 is %g %v, want 0.050", got, ok)
	}
	if _, ok := w.Percentile(Latency, 0.51); ok {
		t.Error("P51 is known although half the answers are late")
	}
}
