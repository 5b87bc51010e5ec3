// Package sequential plans how to measure a study until its question is decided. It uses
// group-sequential tests: after each batch of runs an interim analysis, called a look, takes all
// runs so far. The confidence level of each look is so high that the answer stays valid although
// there are several looks. The package says which runs to make next, or why to stop. It has no side
// effects.
package sequential

import (
	"fmt"
	"math"
	"sort"

	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

const (
	// Level is the probability that the intervals at all looks together contain the true value.
	Level = 0.95
	// First is the number of runs of each worker count before the first look.
	First = 2
	// batch is the minimum number of runs of a worker count between two looks. With many runs, it
	// is a sixth of the runs so far.
	batch = 2
	// largest is the maximum number of runs of a worker count in a design.
	largest = 1000
	// Levels are multiples of 1/grid.
	grid = 10000
	// Most is the default for the maximum number of runs of each worker count.
	Most = 12
)

// A Design says after how many runs of a worker count each look takes place, and which confidence
// level the looks have. All looks have the same level (Pocock, Biometrika 64, 1977). It is computed
// exactly for intervals between order statistics. The number of runs below the true median is a
// random walk, and the design limits the probability that this walk ever leaves the interval.
type Design struct {
	Looks []int // runs of a count, ascending
	// Confidence is the level of the intervals at each look. With it, the intervals of all looks
	// contain the true value with probability Level.
	Confidence float64
}

// NewDesign returns the design for at most the given number of runs of each worker count.
func NewDesign(most int) (Design, error) {
	if most < First || most > largest {
		return Design{}, fmt.Errorf("max_repeats of %d; want %d to %d", most, First, largest)
	}
	d := Design{}
	for n := First; n < most; n += max(batch, n/6) {
		d.Looks = append(d.Looks, n)
	}
	d.Looks = append(d.Looks, most)
	// The level attained changes in steps, at most as many as there are ranks: a grid of 0.01 %
	// finds a level close to each of them.
	at := func(i int) float64 { return math.Round((Level+float64(i)/grid)*grid) / grid }
	widest := int(math.Round((1 - Level) * grid))
	d.Confidence = at(sort.Search(widest, func(i int) bool { return misses(d.Looks, at(i)) <= 1-Level }))
	return d, nil
}

// misses returns the probability that the exact interval of a median does not contain the median at
// one or more of the looks. Each run lies below the median with probability 1/2.
func misses(looks []int, level float64) float64 {
	inside := []float64{1} // probability, by the number of runs below the median, that all intervals so far contained the median
	out, n := 0.0, 0
	for _, look := range looks {
		for ; n < look; n++ {
			next := make([]float64, len(inside)+1)
			for k, p := range inside {
				next[k] += p / 2
				next[k+1] += p / 2
			}
			inside = next
		}
		rank := decision.Rank(n, level)
		for k := range rank {
			out += inside[k] + inside[n-k]
			inside[k], inside[n-k] = 0, 0
		}
	}
	return out
}

// Next returns the number of runs at the first look after n runs; n itself if none exists.
func (d Design) Next(n int) int {
	for _, look := range d.Looks {
		if look > n {
			return look
		}
	}
	return n
}

func (d Design) most() int { return d.Looks[len(d.Looks)-1] }
