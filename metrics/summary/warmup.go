package summary

import (
	"fmt"
	"math"
	"slices"
)

const (
	minSteady = 10 // steps behind the warm-up that a throughput needs

	// few are the steps, at least, whose median tells whether a run is still warming
	// up; in long runs a fortieth of all.
	few, fewPart = 3, 40
	// slower is by how much that median has to exceed those of the second half, and
	// far by how many standard errors.
	slower, far = 0.05, 4

	// evenWithin is the change of the typical step time within a run that nobody is
	// told of: a shared machine drifts by some per cent all day.
	evenWithin = 0.10
	// parts are the stretches of a run that are held against each other, of so many
	// steps at least, apart by so many standard errors: neighbouring steps are alike,
	// so that these are larger than they seem.
	parts, partSteps, apart = 8, 5, 8

	// startup is the part of a run that may be warm-up without a word, fewStartup
	// the steps. What the rest of the warm-up costs is told where the throughput
	// would be lower by more than tell with it.
	startup, fewStartup, tell = 0.05, 5, 0.05
)

// Cut is where a run's warm-up ends, and what has to be said of it.
type Cut struct {
	Warmup   int // first steps that are left out
	Warnings []string
}

// Warmup finds how many of the first steps are warm-up, from the steps' durations
// in order. The error says, in words, why the run has no throughput.
//
// Warm-up is slow: a step is left out as long as the median of the few from it on
// is more than 5 % and four standard errors above that of the run's second half,
// or the step itself is 5 % above it and behind Tukey's outer fence, Q3 + 3 IQR:
// a compilation takes one step. Later outliers are kept, as part of what a step
// costs, and so is a start that is faster than the rest.
//
// MSER-5 (White 1997), the usual rule of simulations, was tried and left. In
// batches of five it sees no ramp in runs of 15 to 40 steps. And it cuts where
// the rest scatters least, so that a run which something disturbed counts as fast
// as one which nothing did.
func Warmup(durations []float64) (Cut, error) {
	n := len(durations)
	if n < minSteady {
		return Cut{}, fmt.Errorf("%d steps were reported by every rank, at least %d are needed", n, minSteady)
	}
	second := durations[n/2:]
	length := max(few, n/fewPart)
	typical := lowerMedian(second)
	bound := typical + max(slower*typical, far*deviation(second)/math.Sqrt(float64(length)))
	fence := max(farFence(second), typical*(1+slower))
	warmup := 0
	for 2*warmup < n {
		if durations[warmup] > fence {
			warmup++
		} else if lowerMedian(durations[warmup:warmup+length]) > bound {
			warmup += max(1, length/10) // so that long runs need no more than some hundred medians
		} else {
			break
		}
	}
	switch {
	case 2*warmup >= n:
		return Cut{}, fmt.Errorf("half of the %d steps are warm-up; make the run longer", n)
	case n-warmup < minSteady:
		return Cut{}, fmt.Errorf("%d of %d steps are warm-up; at least %d others are needed", warmup, n, minSteady)
	}
	cut := Cut{Warmup: warmup}
	cut.tellOfWarmup(durations)
	cut.tellOfChange(durations)
	return cut, nil
}

// tellOfWarmup warns of a warm-up that may be something else, for how long it is
// and what it would take from the throughput.
func (c *Cut) tellOfWarmup(durations []float64) {
	n := len(durations)
	from := max(fewStartup, int(startup*float64(n)))
	if from >= c.Warmup {
		return
	}
	behind := mean(durations[c.Warmup:])
	late := durations[from:c.Warmup]
	cost := float64(len(late)) / float64(n-from) * (mean(late)/behind - 1)
	if cost > tell {
		c.warn("the first %d of %d steps are left out as warm-up: steps from %d on take %.0f %% longer than those after it; if something disturbed the run there, its throughput is up to %.0f %% too high",
			c.Warmup, n, from, 100*(mean(late)/behind-1), 100*cost)
	}
}

// tellOfChange warns of a run whose steps take longer at one time than at another.
func (c *Cut) tellOfChange(durations []float64) {
	rest := durations[c.Warmup:]
	size := max(partSteps, (len(rest)+parts-1)/parts)
	var medians, scatter []float64
	var starts []int
	for from := 0; from+size <= len(rest); from += size {
		part := rest[from : from+size]
		medians, scatter, starts = append(medians, lowerMedian(part)), append(scatter, deviation(part)), append(starts, from)
	}
	if len(medians) < 2 {
		return
	}
	low, high := 0, 0
	for i, m := range medians {
		if m < medians[low] {
			low = i
		}
		if m > medians[high] {
			high = i
		}
	}
	noise := lowerMedian(scatter) / math.Sqrt(float64(size))
	if change := medians[high] - medians[low]; change > evenWithin*medians[low] && change > apart*noise {
		c.warn("steps %d to %d take %.0f %% longer than steps %d to %d: the throughput is over both",
			c.Warmup+starts[high], c.Warmup+starts[high]+size-1, 100*change/medians[low], c.Warmup+starts[low], c.Warmup+starts[low]+size-1)
	}
}

func (c *Cut) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// deviation is the standard deviation of values around a line, of normal ones, by
// their quartiles. The line goes by the medians of both halves, so that a ramp is
// not taken for scatter.
func deviation(x []float64) float64 {
	half := len(x) / 2
	slope := (lowerMedian(x[len(x)-half:]) - lowerMedian(x[:half])) / float64(len(x)-half)
	flat := make([]float64, len(x))
	for i := range x {
		flat[i] = x[i] - slope*float64(i)
	}
	slices.Sort(flat)
	return (percentile(flat, 0.75) - percentile(flat, 0.25)) / 1.349
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// lowerMedian is the lower of the two in the middle, a value that was measured.
func lowerMedian(x []float64) float64 { return percentile(slices.Sorted(slices.Values(x)), 0.5) }

// farFence is Q3 + 3 IQR, by nearest rank.
func farFence(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	q1, q3 := percentile(sorted, 0.25), percentile(sorted, 0.75)
	return q3 + 3*(q3-q1)
}
