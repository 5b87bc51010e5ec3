package loadtest

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A randomQueue is one server that takes a random time for each request, in order of arrival.
type randomQueue struct {
	draw func(*rand.Rand) time.Duration

	mu     sync.Mutex
	random *rand.Rand
	busy   time.Time
}

func (q *randomQueue) Send(deadline time.Time) error {
	q.mu.Lock()
	now := time.Now()
	if q.busy.Before(now) {
		q.busy = now
	}
	q.busy = q.busy.Add(q.draw(q.random))
	end := q.busy
	q.mu.Unlock()
	if end.After(deadline) {
		time.Sleep(time.Until(deadline))
		return os.ErrDeadlineExceeded
	}
	time.Sleep(time.Until(end))
	return nil
}

func (q *randomQueue) Close() error { return nil }

// The interval of a search contains the true rate in at least 18 of 20 runs. A service takes 20 ms, and P95 may be
// 100 ms. For M/M/1 the time in the system is exponential with the rate μ − λ, so the rate is 50 − ln 20 / 0.1. For
// M/D/1 the share over 100 ms is computed by Lindley's recursion.
func TestTruthOfSearch(t *testing.T) {
	const service = 20 * time.Millisecond
	for name, q := range map[string]struct {
		draw  func(*rand.Rand) time.Duration
		truth float64
	}{
		"M/D/1": {func(*rand.Rand) time.Duration { return service }, rateWithin(service.Seconds(), 0.1, 0.05)},
		"M/M/1": {func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(service)) }, 50 - math.Log(20)/0.1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held, probes, width := 0, 0.0, 0.0
			for seed := range uint64(20) {
				var told told
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 5))
					s := told.service(func(int) (func() (Sender, error), error) {
						one := &randomQueue{draw: q.draw, random: random}
						return func() (Sender, error) { return one, nil }, nil
					}, seed+1)
					w := workload(study.Serve{Limit: "errors=0.001 p95=100ms"})
					w.Duration = study.Duration(time.Minute)
					if err := s.Measure(context.Background(), w); err != nil {
						t.Fatal(err)
					}
				})
				const at = `{"batch":1}`
				rate, low, high := told.of(measure.RateWithinLimit)[at], told.of(measure.RateAtLeast)[at], told.of(measure.RateAtMost)[at]
				if probes += told.of(measure.SearchProbes)[at]; rate > 0 {
					width += (high - low) / rate
				}
				if low <= q.truth && q.truth <= high && rate > 0.8*q.truth && rate < 1.2*q.truth {
					held++
				} else {
					t.Logf("seed %d: %.4g [%.4g, %.4g], truth %.4g; %q", seed, rate, low, high, q.truth, told.doubts)
				}
			}
			t.Logf("%d of 20 hold %.4g; mean width %.3g, %.3g probes", held, q.truth, width/20, probes/20)
			if held < 18 || width/20 > 0.25 || probes/20 > 24 {
				t.Errorf("%d of 20 intervals contain the truth %.4g, their mean width is %.3g of the rate, with %.3g probes", held, q.truth, width/20, probes/20)
			}
		})
	}
}

// rateWithin returns the rate of random requests at which the share of them is over the limit, for one server that
// takes a fixed time.
func rateWithin(service, limit, share float64) float64 {
	low, high := 0.0, 1/service
	for high-low > 0.02 {
		rate := (low + high) / 2
		random := rand.New(rand.NewPCG(3, 4))
		over, wait := 0, 0.0
		const n = 1_000_000
		for range n {
			if wait+service > limit {
				over++
			}
			wait = max(0, wait+service-random.ExpFloat64()/rate)
		}
		if float64(over)/n <= share {
			low = rate
		} else {
			high = rate
		}
	}
	return low
}

// A crossing of made-up shares that follow the logistic curve exactly: p = 0.05 at a rate of 40, with a slope of 6.
func TestCross(t *testing.T) {
	var list []trial
	for _, rate := range []float64{20, 34, 36, 38, 40, 42, 44, 80} {
		p := 1 / (1 + math.Exp(-(math.Log(0.05/0.95) + 6*math.Log(rate/40))))
		own := trial{rate: rate, over: 8000 * p, n: 8000}
		for range blocks {
			own.blocks = append(own.blocks, [2]float64{1000 * p, 1000})
		}
		list = append(list, own)
	}
	c, state := cross(list, 0.05, 37)
	// Without dispersion beyond the binomial, the standard error of the logarithm is about 1/(6·√(n·p·q)) with
	// n·p·q = 8000·6·0.05·0.95 = 2280, so 0.0035, and curved adds to it.
	if state != fitted || math.Abs(c.rate-40) > 0.01 || math.Abs(c.slope-6) > 0.01 || c.low > 39.2 || c.low < 38.5 || c.high < 40.8 || c.high > 41.5 {
		t.Errorf("%v: %+v", state, c)
	}
	if _, state := cross(list[:4], 0.05, 37); state != vague {
		t.Errorf("three trials near the crossing: %v", state)
	}
	for i := range list {
		list[i].over = 0
		if list[i].rate > 40 {
			list[i].over = list[i].n
		}
	}
	if _, state := cross(list, 0.05, 37); state != jumps {
		t.Errorf("shares of 0 and 1: %v", state)
	}
}
