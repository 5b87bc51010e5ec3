package loadtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// A queueModel has one or more servers and an unlimited queue; times are in mean service times. Its true latencies
// come from theory or from Lindley's recursion, not from this package.
type queueModel struct {
	name    string
	service func(*rand.Rand) float64
	burst   func(*rand.Rand) int // requests that arrive together
	mean    float64              // of burst
	servers int
}

var queues = []queueModel{
	{"M/D/1", func(*rand.Rand) float64 { return 1 }, func(*rand.Rand) int { return 1 }, 1, 1},
	{"M/M/1", (*rand.Rand).ExpFloat64, func(*rand.Rand) int { return 1 }, 1, 1},
	{"bursts", func(*rand.Rand) float64 { return 1 }, func(r *rand.Rand) int { return 1 + r.IntN(9) }, 5, 1},
}

// play simulates the queue at a utilization: n requests on average, starting empty. One service takes 1 ms.
func (q queueModel) play(r *rand.Rand, utilisation float64, n int, each func(at, done float64)) {
	rate, free, t := utilisation*float64(q.servers), make([]float64, q.servers), 0.0
	for until := float64(n) / rate; ; {
		t += r.ExpFloat64() * q.mean / rate
		if t >= until {
			return
		}
		for range q.burst(r) {
			next := slices.Index(free, slices.Min(free))
			free[next] = max(free[next], t) + q.service(r)
			each(t, free[next])
		}
	}
}

const tick = time.Millisecond

func (q queueModel) run(r *rand.Rand, utilisation float64, n int) *Result {
	span := time.Duration(float64(n) / (utilisation * float64(q.servers)) * float64(tick))
	rec, err := newRecord(span, span/Windows+1, nil)
	if err != nil {
		panic(err)
	}
	asked := 0
	q.play(r, utilisation, n, func(at, done float64) {
		asked++
		sent := time.Duration(at * float64(tick))
		rec.done(request{at: sent, sent: sent, now: time.Duration(done * float64(tick)), replica: -1})
	})
	return &Result{Windows: rec.list(), Asked: asked}
}

// truth returns a percentile of the queue in its steady state.
func (q queueModel) truth(utilisation, share float64) float64 {
	if q.name == "M/M/1" { // the sojourn time is exponential
		return -math.Log(1-share) / (1 - utilisation)
	}
	if q.name == "M/M/4" {
		return wait(4, utilisation, share)
	}
	r := rand.New(rand.NewPCG(99, uint64(1000*utilisation)))
	var list []float64
	q.play(r, utilisation, 2_000_000, func(at, done float64) { list = append(list, done-at) })
	slices.Sort(list)
	return list[int(share*float64(len(list)))]
}

// wait returns a percentile of the time in an M/M/k queue, by Erlang's C formula.
func wait(k int, utilisation, share float64) float64 {
	load := utilisation * float64(k)
	term, sum := 1.0, 0.0
	for i := range k {
		sum += term
		term *= load / float64(i+1)
	}
	c := term / (1 - utilisation) / (sum + term/(1-utilisation)) // share of requests that wait
	drain := float64(k) - load                                   // rate at which the wait of those ends
	return quantile(share, func(t float64) float64 {
		return math.Exp(-t) + c/(1-drain)*(math.Exp(-drain*t)-math.Exp(-t))
	})
}

// quantile returns where a falling share of longer times leaves 1 - share.
func quantile(share float64, longer func(float64) float64) float64 {
	low, high := 0.0, 1e4
	for range 60 {
		if middle := (low + high) / 2; longer(middle) > 1-share {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// The smallest and largest percentile of six runs contain the true value in 1 - 2/2⁶ = 96.9 % of sets, if a
// run's percentile is equally likely above and below it. Runs too short for that, such as those of a queue near
// its capacity, are refused. At half the capacity, and if runs are long enough, there is an answer.
func TestTruthOfPercentiles(t *testing.T) {
	sets := 400
	if testing.Short() {
		sets = 8
	}
	for _, q := range queues {
		for _, utilisation := range []float64{0.5, 0.8, 0.95} {
			for _, share := range []float64{0.5, 0.95, 0.99} {
				for _, requests := range []int{5_000, 40_000} {
					if requests > 5_000 && testing.Short() && (share != 0.95 || utilisation != 0.8) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%g/p%g/%d", q.name, utilisation, 100*share, requests), func(t *testing.T) {
						t.Parallel()
						sets := sets
						if requests > 5_000 && !testing.Short() {
							sets /= 8
						}
						refused, held := q.sets(sets, utilisation, share, requests)
						answered := sets - refused
						t.Logf("refused %d of %d, held in %d of %d (%.1f %%)", refused, sets, held, answered, 100*float64(held)/float64(max(1, answered)))
						// If 95 % of the intervals contain the value, a count this low occurs once in a thousand tests.
						if b := (distuv.Binomial{N: float64(answered), P: 0.95}); answered > 0 && b.CDF(float64(held)) < 0.001 && float64(held+refused) < 0.95*float64(sets) {
							t.Errorf("the truth is within %d of %d intervals", held, answered)
						}
						easy := utilisation == 0.5 && q.mean == 1 || utilisation == 0.8 && q.mean == 1 && requests > 5_000
						if easy && share < 0.99 && answered < sets/2 {
							t.Errorf("%d of %d refused", refused, sets)
						}
					})
				}
			}
		}
	}
}

// sets simulates sets of six runs. It counts the sets with a refused run, and those whose interval contains the
// true value.
func (q queueModel) sets(n int, utilisation, share float64, requests int) (refused, held int) {
	truth := q.truth(utilisation, share)
	r := rand.New(rand.NewPCG(7, uint64(1e6*utilisation+1e3*share)+uint64(requests)))
	for range n {
		var list []float64
		for len(list) < 6 {
			v := q.run(r, utilisation, requests).Judge()
			p, why := v.Percentile(Latency, share)
			if why != "" {
				break
			}
			list = append(list, p*1000)
		}
		switch {
		case len(list) < 6:
			refused++
		case slices.Min(list) <= truth && truth <= slices.Max(list):
			held++
		}
	}
	return refused, held
}
