package loadtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// More runs give a narrower interval, the one that tables print: the interval of the median of their percentiles.
// Refused runs are those with the fullest queues; leaving them out would keep only the calm ones. Of 20 runs of
// M/M/1 at 0.8, a third have no P95, and the interval of the others contains the true value in only 44 of 60
// sets. So refused runs widen the interval, and so does the skew of the others.
func TestTruthOfManyRuns(t *testing.T) {
	sets := 60
	if testing.Short() {
		sets = 2
	}
	for _, q := range queues {
		for _, utilisation := range []float64{0.5, 0.8, 0.95} {
			for _, share := range []float64{0.5, 0.95, 0.99} {
				for _, runs := range []int{10, 20} {
					if testing.Short() && (runs == 10 || utilisation > 0.8) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%g/p%g/%d", q.name, utilisation, 100*share, runs), func(t *testing.T) {
						t.Parallel()
						truth := q.truth(utilisation, share)
						r := rand.New(rand.NewPCG(11, uint64(1e6*utilisation+1e3*share)+uint64(runs)))
						refused, held := 0, 0
						for range sets {
							var list []float64
							for range runs {
								v := q.run(r, utilisation, 5000).Judge()
								if p, why := v.Percentile(Latency, share); why == "" {
									list = append(list, p*1000)
								}
							}
							e, err := scaling.ReachOf(list, nil, runs-len(list), measure.Lower, false, 0)
							if share > 0.5 {
								e.AllowForSkew(list, runs-len(list), 0)
							}
							switch {
							case err != nil || e.Median == nil || e.Median.Interval == nil:
								refused++
							case e.Median.Interval.Low <= truth && truth <= e.Median.Interval.High:
								held++
							}
						}
						answered := sets - refused
						t.Logf("refused %d of %d, held in %d of %d (%.1f %%)", refused, sets, held, answered, 100*float64(held)/float64(max(1, answered)))
						nominal := 0.95
						if q.mean > 1 { // a run with few bursts has a biased median, which 20 runs reveal
							nominal = 0.85
						}
						if b := (distuv.Binomial{N: float64(answered), P: nominal}); answered > 0 && b.CDF(float64(held)) < 0.001 {
							t.Errorf("the truth is within %d of %d intervals", held, answered)
						}
					})
				}
			}
		}
	}
}
