package scaling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// straggler returns the rank that was the slowest in most steady steps of all runs. With a slow
// GPU or node, this is one rank; with noise, all ranks are in turn. Runs whose records have
// another number of ranks are skipped.
func straggler(workers int, runs []*Observation) *Straggler {
	if workers < 2 {
		return nil
	}
	var count []int
	steps := 0
	for _, o := range runs {
		if len(o.Slowest) != workers {
			continue
		}
		if count == nil {
			count = make([]int, workers) // Slowest has an entry for each rank
		}
		for rank, n := range o.Slowest {
			count[rank] += n
			steps += n
		}
	}
	if steps == 0 {
		return nil
	}
	rank := 0
	for r, n := range count {
		if n > count[rank] {
			rank = r
		}
	}
	s := &Straggler{Rank: rank, Steps: steps, Share: float64(count[rank]) / float64(steps)}
	for _, o := range runs {
		if len(o.Slowest) != workers || rank >= len(o.RankHosts) {
			continue
		}
		if host := o.RankHosts[rank]; host != "" && !slices.Contains(s.Hosts, host) {
			s.Hosts = append(s.Hosts, host)
		}
	}
	slices.Sort(s.Hosts)
	return s
}

// persistent reports whether one rank is the slowest too often for chance: its share is more than
// halfway from a fair share, 1/N, to every step.
func (s *Straggler) persistent(workers int) bool {
	return s != nil && s.Share > (1+1/float64(workers))/2
}

// String names the rank and where it ran: "rank 3 on n07".
func (s *Straggler) String() string {
	rank := fmt.Sprintf("rank %d", s.Rank)
	switch n := len(s.Hosts); {
	case n == 0:
		return rank
	case n > 3:
		return rank + " on " + number.Count(n, "node")
	default:
		return rank + " on " + strings.Join(s.Hosts, ", ")
	}
}

// lookAt returns what to check: the node, unless the rank ran on several nodes.
func (s *Straggler) lookAt() string {
	if len(s.Hosts) > 1 {
		return "it ran on several nodes, so look at what this rank alone does"
	}
	return "look at its node and device"
}
