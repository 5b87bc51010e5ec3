package summary

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
)

const (
	minSteady = 10 // steps after warm-up that a throughput needs

	// A run is still warming up if the median of a few steps is too high. The number of these
	// steps is few, or in long runs one in fewPart of all steps.
	few, fewPart = 3, 40
	// That median is too high if it exceeds the median of the run's second half by the fraction
	// slower and by far standard errors.
	slower, far = 0.05, 4

	// evenWithin is the largest relative change of the typical step time within a run that causes
	// no warning: shared machines drift by a few per cent.
	evenWithin = 0.10
	// parts is the number of stretches of a run that are compared. Each has at least
	// the given number of steps, and they must differ by the given number of standard
	// errors, a high one because neighbouring steps are correlated. Fitting a line to
	// each part reduces its scatter; the last value corrects for it and was found with
	// normal noise.
	parts, partSteps, apart, line = 8, 5, 8, 1.6

	// startup is the part of a run, and fewStartup the number of steps, within which very
	// slow steps are dropped silently as warm-up: those at least unmistakable times as long
	// as later ones. For other dropped steps, a warning states their cost if they would
	// lower the throughput by more than tell.
	startup, fewStartup, unmistakable, tell = 0.05, 5, 3, 0.05

	// A run may still be getting faster if the mean of all steps after warm-up exceeds that of
	// their second half by the fraction fasterBy and by sure standard errors.
	fasterBy, sure = 0.02, 2.2
)

// A Cut is the end of a run's warm-up, with the warnings about it.
type Cut struct {
	Warmup   int // number of warm-up steps
	Warnings []string
}

// warmupEnd returns the end of warm-up, computed from the durations of all steps in order. The
// error says why the run has no throughput.
//
// Steps are slow during warm-up. A step is dropped as long as the median of the few steps from it
// on exceeds that of the run's second half by 5 % and four standard errors. A single step, such
// as a compilation, is also dropped if it is 5 % slower and beyond Tukey's outer fence, Q3 + 3
// IQR. Later outliers are kept, because they are part of the cost of a step. A start that is
// faster than the rest is also kept.
//
// MSER-5 (White 1997), the usual rule for simulations, works worse: in batches of five it misses
// ramps in runs of 15 to 40 steps. It also cuts where the rest has the least scatter, so that a
// disturbed run may look as fast as an undisturbed one.
func warmupEnd(durations []float64) (Cut, error) {
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
			warmup += max(1, length/10) // limits long runs to some hundred medians
		} else {
			break
		}
	}
	switch {
	case 2*warmup >= n:
		return Cut{}, fmt.Errorf("half of the %d steps are warm-up; make the run longer", n)
	case n-warmup < minSteady:
		return Cut{}, fmt.Errorf("%d of %d steps are warm-up; at least %d steady steps are needed: make the run longer", warmup, n, minSteady)
	}
	cut := Cut{Warmup: warmup}
	cut.warnOfWarmup(durations)
	if !cut.warnOfChange(durations) {
		cut.warnOfTrend(durations)
	}
	return cut, nil
}

// warnOfWarmup adds a warning if the dropped steps may be more than warm-up and would lower the
// throughput. A single first step is always taken for warm-up.
func (c *Cut) warnOfWarmup(durations []float64) {
	n := len(durations)
	if c.Warmup < 2 {
		return
	}
	behind := mean(durations[c.Warmup:])
	early := max(fewStartup, int(startup*float64(n)))
	var from, counted int
	var over float64
	for i, d := range durations[:c.Warmup] {
		if i < early && d > unmistakable*behind {
			continue
		}
		if counted == 0 {
			from = i
		}
		counted++
		over += d/behind - 1
	}
	if cost := over / float64(n-c.Warmup+counted); cost > tell {
		c.warn("the first %d of %d steps are omitted as warm-up: steps %d to %d take %.0f %% longer than later ones; if that is not warm-up, the throughput is up to %.0f %% too high",
			c.Warmup, n, from, c.Warmup-1, 100*over/float64(counted), 100*cost)
	}
}

// warnOfChange adds a warning if steps take longer in one part of the run than in another, and
// reports whether it did.
func (c *Cut) warnOfChange(durations []float64) bool {
	rest := durations[c.Warmup:]
	size := max(partSteps, (len(rest)+parts-1)/parts)
	var medians, scatter, around []float64
	var starts []int
	for from := 0; from+size <= len(rest); from += size {
		part := rest[from : from+size]
		medians, scatter, starts = append(medians, lowerMedian(part)), append(scatter, deviation(part)), append(starts, from)
		flat := flattened(part)
		middle := lowerMedian(flat)
		for _, d := range flat {
			around = append(around, d-middle)
		}
	}
	if len(medians) < 2 {
		return false
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
	// The quartiles of one short part are a poor estimate of the scatter. Those of all
	// parts together are better, corrected for the lines fitted.
	free := float64(size) / (float64(size) - line)
	noise := max(lowerMedian(scatter), free*quartiles(around)) / math.Sqrt(float64(size))
	change := medians[high] - medians[low]
	told := change > evenWithin*medians[low] && change > apart*noise
	if told {
		c.warn("steps %d to %d take %.0f %% longer than steps %d to %d: the throughput covers both",
			c.Warmup+starts[high], c.Warmup+starts[high]+size-1, 100*change/medians[low], c.Warmup+starts[low], c.Warmup+starts[low]+size-1)
	}
	return told
}

// warnOfTrend adds a warning if the run may still be getting faster after warm-up, by a ramp that
// is hidden in the scatter of the steps or has no end. It ignores outliers, because a single one
// would look like a trend.
func (c *Cut) warnOfTrend(durations []float64) {
	rest := durations[c.Warmup:]
	fence := farFence(rest)
	usual := func(x []float64) float64 {
		return mean(slices.DeleteFunc(slices.Clone(x), func(d float64) bool { return d > fence }))
	}
	middle := len(rest) - len(rest)/2
	all, late := usual(rest), usual(rest[middle:])
	noise := deviation(rest) / math.Sqrt(float64(len(rest)))
	if over := all - late; over > fasterBy*late && over > sure*noise {
		c.warn("steps %d to %d take %.0f %% longer than those after them: if the run was still getting faster, its throughput is at least %.0f %% too low; make it longer",
			c.Warmup, c.Warmup+middle-1, 100*(usual(rest[:middle])/late-1), 100*over/all)
	}
}

// warnOfRareStep adds a warning if the throughput depends on a single slow step, such as an
// evaluation, which may be rarer or more frequent in a longer run. It ignores the first step of
// an epoch, and slow steps at the same position of every epoch, because these occur once per
// epoch.
func (c *Cut) warnOfRareStep(steps []Step, epoch int) {
	rest := steps[c.Warmup:]
	durations := make([]float64, len(rest))
	total := 0.0
	for i, s := range rest {
		durations[i] = s.Duration
		total += s.Duration
	}
	typical := lowerMedian(durations)
	fence := max(farFence(durations), typical*(1+slower))
	type place struct{ least, steps int } // index of the shortest step at a place, and number of steps there
	places := map[int]place{}
	if epoch > 0 {
		for i, s := range rest {
			p := places[s.Index%epoch]
			if p.steps == 0 || durations[i] < durations[p.least] {
				p.least = i
			}
			p.steps++
			places[s.Index%epoch] = p
		}
	}
	var worst int
	var lost float64
	for i, s := range rest {
		if durations[i] <= fence {
			continue
		}
		usual := typical
		if epoch > 0 {
			if p := places[s.Index%epoch]; p.steps > 1 || s.Index%epoch == 0 {
				usual = max(typical, durations[p.least])
			}
		}
		if spare := durations[i] - usual; spare > lost {
			worst, lost = i, spare
		}
	}
	if lost > tell*total {
		c.warn("step %d takes %s times as long as most, %.0f %% of the time of all steps: one such step more or less changes the throughput by about as much; make the run longer",
			rest[worst].Index, number.Short(durations[worst]/typical, 2), 100*durations[worst]/total)
	}
}

func (c *Cut) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// deviation returns an estimate of the standard deviation around a line, computed from the
// quartiles as for normal values.
func deviation(x []float64) float64 { return quartiles(flattened(x)) }

// flattened returns x minus a line through the medians of its two halves, so that a ramp does not
// count as scatter.
func flattened(x []float64) []float64 {
	half := len(x) / 2
	slope := (lowerMedian(x[len(x)-half:]) - lowerMedian(x[:half])) / float64(len(x)-half)
	flat := make([]float64, len(x))
	for i := range x {
		flat[i] = x[i] - slope*float64(i)
	}
	return flat
}

// quartiles returns an estimate of the standard deviation, computed from the quartiles as for
// normal values.
func quartiles(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return (percentile(sorted, 0.75) - percentile(sorted, 0.25)) / 1.349
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// lowerMedian returns the median; of two values in the middle, the lower one, so that the result
// is a measured value.
func lowerMedian(x []float64) float64 { return percentile(slices.Sorted(slices.Values(x)), 0.5) }

// farFence returns Tukey's outer fence, Q3 + 3 IQR, with nearest-rank quartiles.
func farFence(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	q1, q3 := percentile(sorted, 0.25), percentile(sorted, 0.75)
	return q3 + 3*(q3-q1)
}
