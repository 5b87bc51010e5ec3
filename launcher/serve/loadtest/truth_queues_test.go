package loadtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Studies of 6 runs of three queues at five utilisations. Of the cells that tables print with an interval, at least
// 95 % contain the truth. With the requests that a utilisation needs, at most 25 % of the cells of P50 and P95 are
// refused; P99 and shorter runs are refused more often.
func TestTruthOfQueues(t *testing.T) {
	studies := 20
	requests := map[float64]int{0.3: 6_000, 0.5: 6_000, 0.7: 20_000, 0.8: 40_000, 0.9: 160_000}
	if testing.Short() {
		studies, requests = 2, map[float64]int{0.5: 6_000, 0.7: 20_000}
	}
	shares := []float64{0.5, 0.95, 0.99}
	total := make(chan map[float64]cells, 100)
	t.Run("queues", func(t *testing.T) {
		for _, q := range []queueModel{queues[0], queues[1], {"M/M/4", (*rand.Rand).ExpFloat64, queues[1].burst, 1, 4}} {
			for utilisation, n := range requests {
				t.Run(fmt.Sprintf("%s/%g", q.name, utilisation), func(t *testing.T) {
					t.Parallel()
					found := q.studies(studies, utilisation, n, shares)
					for _, share := range shares {
						c := found[share]
						t.Logf("P%g, %d requests: %d of %d cells refused, the truth in %d of %d", 100*share, n, c.refused, c.cells, c.held, c.cells-c.refused)
					}
					total <- found
				})
			}
		}
	})
	close(total)
	sums := map[float64]cells{}
	for found := range total {
		for share, c := range found {
			s := sums[share]
			sums[share] = cells{s.cells + c.cells, s.refused + c.refused, s.held + c.held}
		}
	}
	for _, share := range shares {
		s := sums[share]
		printed := s.cells - s.refused
		t.Logf("P%g: %.0f %% refused, the truth in %d of %d (%.1f %%)", 100*share, 100*float64(s.refused)/float64(s.cells), s.held, printed, 100*float64(s.held)/float64(max(1, printed)))
		// If 95 % of the intervals contain the value, a count this low occurs once in a thousand tests.
		if b := (distuv.Binomial{N: float64(printed), P: 0.95}); printed > 0 && b.CDF(float64(s.held)) < 0.001 {
			t.Errorf("P%g: the truth is within %d of %d intervals", 100*share, s.held, printed)
		}
		if most := 0.25 * float64(s.cells); float64(s.refused) > most+3*math.Sqrt(most*0.75) {
			t.Errorf("P%g: %d of %d cells are refused", 100*share, s.refused, s.cells)
		}
	}
}

// cells counts the cells of a table: those without an interval, and those whose interval contains the truth.
type cells struct{ cells, refused, held int }

// studies simulates studies of six runs, and counts the cells of each percentile.
func (q queueModel) studies(n int, utilisation float64, requests int, shares []float64) map[float64]cells {
	const precise = 0.001 // of the histograms; without waiting, M/D/1 has one latency, which they round
	r := rand.New(rand.NewPCG(21, uint64(1e6*utilisation)))
	found, truths := map[float64]cells{}, map[float64]float64{}
	for _, share := range shares {
		truths[share] = q.truth(utilisation, share)
	}
	for range n {
		values := map[float64][]float64{}
		for range 6 {
			v := q.run(r, utilisation, requests).Judge()
			for _, share := range shares {
				if p, why := v.Percentile(Latency, share); why == "" {
					values[share] = append(values[share], 1000*p)
				}
			}
		}
		for _, share := range shares {
			c, truth := found[share], truths[share]
			e, err := scaling.ReachOf(values[share], nil, 6-len(values[share]), measure.Lower, false, 0)
			switch c.cells++; {
			case err != nil || e.Median == nil || e.Median.Interval == nil:
				c.refused++
			case e.Median.Interval.Low <= truth*(1+precise) && truth*(1-precise) <= e.Median.Interval.High:
				c.held++
			}
			found[share] = c
		}
	}
	return found
}
