// Package model fits laws of scaling to measured throughputs and carries them
// beyond the measured worker counts, with an interval that owns up to the
// choice of the law.
//
// The extrapolator is the α–β model of the collectives with what an event
// simulator showed to be needed beside it: {1, (N−1)/N, N−1, log₂N}, fitted
// with non-negative coefficients, and a shared resource that runs out. Amdahl's
// law and the universal scalability law are overlays: they describe, and their
// disagreement with the others counts towards the interval as far as the data
// does not rule them out. It would rather refuse than guess: see Refusal.
//
// Throughput is in samples/s everywhere.
package model

import (
	"fmt"
	"math"
	"slices"
)

// Data is what was measured of one series.
type Data struct {
	Counts []Measured
	Strong bool // the global batch is fixed; else the batch of each worker
	// NodeSize is how many workers a whole node holds. Above 1, only whole
	// nodes are fitted: inside a node the network is another. 0 is 1.
	NodeSize int
}

// Measured is what one worker count was measured to do.
type Measured struct {
	Workers     int
	Throughputs []float64 // samples/s, one a run
}

const (
	// MinPoints and MinRuns are the worker counts, with as many runs each,
	// without which nothing is extrapolated.
	MinPoints, MinRuns = 5, 5
	// MinTier is how many of them must be whole nodes.
	MinTier = 4
	// Farthest is how many times the largest measured worker count is still
	// answered for.
	Farthest = 4
	// MaxHoldOut is the largest error, a fraction, that the law may make when it
	// predicts the largest measured worker count from the others.
	MaxHoldOut = 0.10
)

// Refusal is the reason why nothing is extrapolated.
type Refusal struct {
	Why string
	// HoldOut is the error on the largest measured worker count, a fraction of
	// its throughput; nil when it did not come to that.
	HoldOut *float64
}

func (r *Refusal) Error() string { return "not extrapolated: " + r.Why }

// fewCounts says that too few of the measured worker counts have runs enough.
func fewCounts(enough, measured int) string {
	have := fmt.Sprintf("%d of the %d measured have", enough, measured)
	switch {
	case measured == 0:
		have = "no run has one"
	case enough == measured:
		have = fmt.Sprintf("there are %d", measured)
	case enough == 0 && measured == 1:
		have = "the one measured has fewer"
	case enough == 0:
		have = fmt.Sprintf("none of the %d measured has that many", measured)
	case enough == 1:
		have = fmt.Sprintf("one of the %d measured has", measured)
	}
	return fmt.Sprintf("that needs %d worker counts with %d or more runs each that have a steady state; %s", MinPoints, MinRuns, have)
}

// tier checks the data and returns the points that are fitted, by rising
// worker count: those of whole nodes.
func (d *Data) tier() ([]Measured, error) {
	if d.NodeSize < 0 {
		return nil, fmt.Errorf("a node of %d workers; give 1 or more, or 0 where it is not known", d.NodeSize)
	}
	var enough, tier []Measured
	for _, p := range d.Counts {
		if p.Workers < 1 {
			return nil, fmt.Errorf("a point with %d workers; it has 1 or more", p.Workers)
		}
		for _, x := range p.Throughputs {
			if !(x > 0) || math.IsInf(x, 1) {
				return nil, fmt.Errorf("%d workers: a throughput of %g; want more than 0", p.Workers, x)
			}
		}
		if len(p.Throughputs) < MinRuns {
			continue
		}
		enough = append(enough, p)
		if p.Workers%max(d.NodeSize, 1) == 0 {
			tier = append(tier, p)
		}
	}
	slices.SortFunc(tier, func(a, b Measured) int { return a.Workers - b.Workers })
	for i := 1; i < len(tier); i++ {
		if tier[i].Workers == tier[i-1].Workers {
			return nil, fmt.Errorf("%d workers are given twice", tier[i].Workers)
		}
	}
	switch {
	case len(enough) < MinPoints:
		return nil, &Refusal{Why: fewCounts(len(enough), len(d.Counts))}
	case len(tier) < MinTier:
		return nil, &Refusal{Why: fmt.Sprintf("a fit of one network tier needs %d worker counts that fill whole nodes of %d; there are %d", MinTier, d.NodeSize, len(tier))}
	}
	return tier, nil
}
