package summary

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	batchSteps = 5  // steps a batch, the 5 of MSER-5
	tailBatch  = 5  // batches at the end that no truncation point may lie in
	minSteady  = 10 // fewer steps than this are not called a steady state

	// evenWithin is the change of the typical step time up to which steps count
	// as one steady state: a shared machine drifts by some per cent all day.
	evenWithin = 0.10
)

// Warmup returns how many of the first steps are warm-up, from the steps'
// durations in order. The error says, in words, why there is no steady state.
//
// The rule is MSER-5 (White 1997): put the steps into batches of five and
// truncate where the squared standard error of the remaining batches,
//
//	Σ (x_i - mean)² / (n - d)²  over i = d … n-1,
//
// is least. A truncation point beyond the middle means that the run was still
// changing when it ended. Three departures from the paper, for step times
// rather than queue lengths:
//
//   - On a truncation point beyond the middle the paper gives up. Step times of
//     a busy machine drift by a few per cent, and then the least error lies
//     anywhere; what counts is whether the change matters. So the point is
//     looked for in the first half again, and the steps between the two are
//     held against those behind: if the medians differ by more than a tenth,
//     there is no steady state.
//   - A batch counts with its median, not its mean. With means, one hiccup of a
//     second in the last third of an otherwise even run pulls the truncation
//     point behind itself and takes the steady state away.
//   - A median hides one slow first step (compilation, cold caches), so steps
//     directly behind the truncation point that are far outliers of the rest,
//     above Q3 + 3 IQR (Tukey's outer fence), are warm-up as well. Outliers
//     later on are kept: they are part of what a step costs.
//
// The last five batches cannot be truncation points: the statistic is a sum
// over ever fewer values there and falls to zero for no other reason.
func Warmup(durations []float64) (int, error) {
	n := len(durations)
	if n < minSteady {
		return 0, fmt.Errorf("%d steps were reported by every rank, at least %d are needed", n, minSteady)
	}
	batches := medians(durations)
	warmup := batchSteps * truncation(batches, len(batches)-1)
	if late := warmup; 2*late > n {
		warmup = batchSteps * truncation(batches, len(batches)/2)
		before, behind := lowerMedian(durations[warmup:late]), lowerMedian(durations[late:])
		if change := behind/before - 1; !(math.Abs(change) <= evenWithin) {
			return 0, fmt.Errorf("step times were still changing at step %d of %d, by %+.0f %%", late, n, 100*change)
		}
	}
	fence := farFence(durations[warmup:])
	for warmup < n && durations[warmup] > fence {
		warmup++
	}
	if n-warmup < minSteady {
		return 0, fmt.Errorf("%d of %d steps are warm-up; at least %d others are needed", warmup, n, minSteady)
	}
	if 2*warmup > n {
		return 0, errors.New("more than half of the steps are warm-up")
	}
	return warmup, nil
}

// medians returns the median of each whole batch.
func medians(durations []float64) []float64 {
	var list []float64
	for batch := range slices.Chunk(durations, batchSteps) {
		if len(batch) == batchSteps {
			list = append(list, lowerMedian(batch))
		}
	}
	return list
}

// lowerMedian is the lower of the two in the middle, a value that was measured.
func lowerMedian(x []float64) float64 { return percentile(slices.Sorted(slices.Values(x)), 0.5) }

// truncation returns how many of the first values to drop, at most so many, so
// that the squared standard error of the rest is least; the smallest such
// number.
func truncation(x []float64, most int) int {
	best, bestError := 0, -1.0
	var count, mean, squares float64 // of x[d:], grown from the back (Welford)
	for d := len(x) - 1; d >= 0; d-- {
		count++
		delta := x[d] - mean
		mean += delta / count
		squares += delta * (x[d] - mean)
		if d > most || d > 0 && d > len(x)-tailBatch {
			continue
		}
		if e := squares / (count * count); bestError < 0 || e <= bestError {
			best, bestError = d, e
		}
	}
	return best
}

// farFence is Q3 + 3 IQR, by nearest rank.
func farFence(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	q1, q3 := percentile(sorted, 0.25), percentile(sorted, 0.75)
	return q3 + 3*(q3-q1)
}
