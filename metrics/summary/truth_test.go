package summary

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// within is the largest error of a run's throughput that needs no warning.
const within = 0.05

// Simulated runs have a warm-up, epochs with a slow first step, a disturbance, or a change of
// speed. At most 1 % of them (4.5 % for one kind) have, without a warning, a throughput that
// differs by more than 5 % from the true long-run value. Undisturbed runs have a throughput,
// nearly always without a warning.
//
// With -short, a tenth of the runs is simulated, and the limits allow for the smaller
// number.
func TestTruthOfThroughput(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs /= 10
	}
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	for i, f := range slices.Concat(runFamilies(), shortFamilies(), laterFamilies()) {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 2027))
			var given, said, silent, unasked int
			var off []float64 // errors of the runs without a warning
			for range runs {
				p := f.draw(r)
				durations, long := p.play(r)
				got := Summarize(p.input(durations))
				x := got.Known(measure.Throughput)
				if x == nil {
					continue
				}
				given++
				if len(got.Warnings) > 0 {
					said++
					// One hiccup that is 4 % of the run decides its throughput, and a warning says so.
					if p.hiccups == 0 || p.hiccupBy-1 < 0.04*float64(p.steps) {
						unasked++
					}
					continue
				}
				e := *x*long - 1
				off = append(off, e)
				if math.Abs(e) > within {
					silent++
				}
			}
			slices.Sort(off)
			at := func(q float64) float64 {
				if len(off) == 0 {
					return math.NaN()
				}
				return 100 * off[int(q*float64(len(off)-1))]
			}
			t.Logf("given %.1f %%, of these warned %.1f %%; of all, without a warning more than 5 %% off %.1f %%: %+.1f %% (2.5 %%), %+.1f %% (median), %+.1f %% (97.5 %%)",
				percent(given, runs), percent(said, given), percent(silent, runs), at(0.025), at(0.5), at(0.975))
			// The share plus three standard errors.
			most := func(share float64) float64 {
				return share*float64(runs) + 3*math.Sqrt(share*(1-share)*float64(runs))
			}
			if float64(silent) > most(cmp.Or(f.silent, 0.01)) {
				t.Errorf("%d of %d are silently wrong", silent, runs)
			}
			if f.benign {
				t.Logf("refused or warned of without a reason: %.1f %%", percent(runs-given+unasked, runs))
				if float64(runs-given+unasked) > most(0.07) {
					t.Errorf("%d of %d are refused, %d warned of without a reason", runs-given, runs, unasked)
				}
			}
		})
	}
}

// disturbedRun returns a run that other work disturbs at a random time, with probability
// often.
func disturbedRun(r *rand.Rand, speed, noise, often float64) process {
	p := process{steps: 120 + r.IntN(200), base: math.Exp(0.02*r.NormFloat64()) / speed, noise: noise, warmup: level(20, 1)}
	if r.Float64() < often {
		from, part := spread(r, 0, 0.9), spread(r, 0.1, 0.6)
		p.disturbed = [2]int{int(from * float64(p.steps)), int((from + part) * float64(p.steps))}
		p.disturbedBy = spread(r, 1.4, 2)
	}
	return p
}

// If other work disturbs some runs, and those with many workers more often, the speedup's
// interval contains the ratio of the runs' median rates. Time lost to disturbances is
// included.
func TestTruthOfDisturbedRuns(t *testing.T) {
	studies := 1000
	if testing.Short() {
		studies /= 10
	}
	for i, n := range []int{6, 10, 20} {
		t.Run(fmt.Sprintf("%d runs", n), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 2028))
			given, inside, without := 0, 0, 0
			off := 0.0
			for range studies {
				often := spread(r, 0.1, 0.4)
				noise, speedup := evenly(r, 0.005, 0.05), spread(r, 2, 4)
				var list []scaling.Observation
				var rates [2][]float64
				for k, workers := range []int{1, 4} {
					speed, often := math.Pow(speedup, float64(k)), 1-math.Pow(1-often, math.Sqrt(float64(workers)))
					for range 1001 {
						p := disturbedRun(r, speed, noise, often)
						part := float64(min(p.steps, p.disturbed[1])-p.disturbed[0]) / float64(p.steps)
						rates[k] = append(rates[k], 1/(p.base*(1+part*max(0, p.disturbedBy-1))))
					}
					for repeat := range n {
						p := disturbedRun(r, speed, noise, often)
						durations, _ := p.play(r)
						got := Summarize(p.input(durations))
						if got.Known(measure.Throughput) == nil {
							without++
						}
						list = append(list, scaling.Observation{
							Run: fmt.Sprintf("s/w%d-r%d-a1", workers, repeat), Study: "s", Point: fmt.Sprint("w", workers), Repeat: repeat + 1,
							Framework: "native", Workers: workers, Nodes: workers, Parameters: map[string]any{"workload.scaling": "weak"},
							Values: got.Values, Why: got.Why, Warnings: got.Warnings,
						})
					}
				}
				curves, err := scaling.Analyse(list, scaling.Options{})
				if err != nil {
					t.Fatal(err)
				}
				truth := lowerMedian(rates[1]) / lowerMedian(rates[0])
				if g := curves[0].Points[1].Of(measure.Throughput).Gain(); g != nil {
					off += (g.Value/truth - 1) / float64(studies)
					if g.Interval != nil {
						given++
						if g.Interval.Low <= truth && truth <= g.Interval.High {
							inside++
						}
					}
				}
			}
			t.Logf("interval in %.1f %%, of these inside %.1f %%; speedup %+.1f %% off on average; %.1f %% of the runs have no throughput",
				100*float64(given)/float64(studies), 100*float64(inside)/float64(given), 100*off, 100*float64(without)/float64(2*n*studies))
			if least := 0.95*float64(given) - 3*math.Sqrt(0.05*0.95*float64(given)); float64(inside) < least || given < studies*9/10 {
				t.Errorf("an interval in %d of %d, inside in %d", given, studies, inside)
			}
		})
	}
}
