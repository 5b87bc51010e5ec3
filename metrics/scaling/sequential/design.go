// Package sequential measures a study until its question is decided. It looks at the
// runs so far, asks package advice for the answer at a level that stays valid however
// often it looks, and says which runs to make next or why to stop. It is pure.
package sequential

import (
	"fmt"
	"math"
	"sort"

	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

const (
	// Level is the probability that an interval holds at all looks together.
	Level = 0.95
	// First is the number of runs of each count before the first look.
	First = 2
	// batch is the number of runs of a count from one look to the next, at least; with many runs it is
	// a sixth of them.
	batch = 2
	// largest is the most runs of a count that a design has.
	largest = 1000
	// grid divides the levels that a design may have.
	grid = 10000
	// Most is the usual limit of the runs of each count.
	Most = 12
)

// A Design says at which numbers of runs a count is looked at, and how sure each look has
// to be. Looks have one and the same level (Pocock, Biometrika 64, 1977), found on exact
// ranks: how many runs lie below the median is a random walk, and the design bounds the
// probability that it ever leaves the interval.
type Design struct {
	Looks []int // runs of a count, ascending
	// Confidence is the level of an interval at each look, such that all of them hold
	// with probability Level.
	Confidence float64
}

// NewDesign returns the design for at most so many runs of each count.
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

// misses is the probability that, at some look, the exact interval of a median at a level
// does not hold it. Each run lies below the median with probability 1/2.
func misses(looks []int, level float64) float64 {
	inside := []float64{1} // by the number of runs below the median, at all looks so far inside
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

// Next returns the number of runs at the first look after n runs; n itself after the last.
func (d Design) Next(n int) int {
	for _, look := range d.Looks {
		if look > n {
			return look
		}
	}
	return n
}

func (d Design) most() int { return d.Looks[len(d.Looks)-1] }
