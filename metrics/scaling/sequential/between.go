package sequential

import (
	"maps"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// Between returns, for a decided question, the worker counts that should also be measured.
// candidates are the counts that were not measured. Of those between the answer and its
// measured neighbours, add has the middle count on each side, if it may be a better answer.
// no are candidates next to the answer that cannot be better.
//
// With a deadline only a smaller count can be better, regardless of other limits; with a budget or a
// minimum efficiency alone, only a larger count. Without limits, a count can be better only if it may exceed the
// answer by more than decision.Equivalent. Its speed has an upper bound: if log(speed) is a
// concave function of log(workers), it lies below the lines through the measured counts on
// either side.
func (q Question) Between(l *Look, candidates []int) (add, no []int) {
	if l.Advice == nil || l.Advice.Workers == nil {
		return nil, nil
	}
	answer, w := *l.Advice.Workers, newWorths(l)
	at := slices.Index(w.counts, answer)
	if at < 0 {
		return nil, nil
	}
	w.relateTo(answer)
	for _, side := range []int{at - 1, at + 1} { // smaller, larger
		if side < 0 || side >= len(w.counts) || side < at && !q.mayBeSmaller() || side > at && !q.mayBeLarger() {
			continue
		}
		low, high := min(answer, w.counts[side]), max(answer, w.counts[side])
		inside := slices.DeleteFunc(slices.Clone(candidates), func(n int) bool { return n <= low || n >= high })
		if len(inside) == 0 {
			continue
		}
		middle := slices.MinFunc(inside, func(a, b int) int { return distance(a, low, high) - distance(b, low, high) })
		if l.Advice.Limited() || w.bound(middle, min(at, side)) > -math.Log(1-decision.Equivalent) {
			add = append(add, middle)
		} else {
			no = append(no, inside...)
		}
	}
	return add, no
}

func (q Question) mayBeSmaller() bool {
	return q.Wish.Deadline > 0 || q.Wish.Budget == 0 && q.Wish.MinEfficiency == 0
}
func (q Question) mayBeLarger() bool { return q.Wish.Deadline == 0 }

// distance returns twice the distance of n from the middle between the counts low and high.
func distance(n, low, high int) int {
	if d := 2*n - low - high; d > 0 {
		return d
	} else {
		return -d
	}
}

// worths holds how many times better each measured count is than the answer, as a
// logarithm. A count with more workers must be better by a factor, which is already divided
// out.
type worths struct {
	advice *advice.Advice
	counts []int     // ascending
	log    []float64 // logarithms by count; NaN: unknown
}

func newWorths(l *Look) *worths {
	return &worths{advice: l.Advice, counts: slices.Sorted(maps.Keys(l.Runs))}
}

// relateTo computes the worths relative to an answer.
func (w *worths) relateTo(answer int) {
	for _, n := range w.counts {
		small, large, sign := n, answer, -1.0
		if n > answer {
			small, large, sign = answer, n, 1
		}
		x := 0.0
		if n != answer {
			x = math.NaN()
			if e := w.advice.Faster(large, small); e != nil && e.Value > 0 {
				x = sign * math.Log(e.Value/advice.Price(small, large))
			}
		}
		w.log = append(w.log, x)
	}
}

// bound returns the largest worth that the count n between counts[i] and counts[i+1] can
// have; +Inf if that is unknown.
func (w *worths) bound(n, i int) float64 {
	most := math.Inf(1)
	for _, j := range []int{i - 1, i + 1} { // the lines through the pair below, and the pair above
		if j < 0 || j+1 >= len(w.counts) {
			continue
		}
		x, y := math.Log(float64(w.counts[j])), math.Log(float64(w.counts[j+1]))
		if line := w.log[j] + (w.log[j+1]-w.log[j])*(math.Log(float64(n))-x)/(y-x); line < most {
			most = line
		}
	}
	return most
}
