package study

import (
	"fmt"
	"maps"
	"slices"
)

// Policy is the [policy] table: how the jobs of a study are handed to the
// scheduler, and what happens when one ends badly. It says nothing of what is
// measured, so that it is no part of a point's identity and cannot be swept.
type Policy struct {
	MaxInFlight        int     `toml:"max_in_flight"`        // jobs of the study in the queue or running at once; 0: no limit of ours
	Rate               float64 `toml:"rate"`                 // submissions per minute; 0: as fast as it goes
	Order              string  `toml:"order"`                // "blocks", "plan" or "largest"
	Chain              bool    `toml:"chain"`                // each job waits for the end of the one before
	Requeue            bool    `toml:"requeue"`              // Slurm itself starts a job again after a node failure or preemption
	ExcludeFailedNodes bool    `toml:"exclude_failed_nodes"` // from the next attempt after a node failure
	Packing            string  `toml:"packing"`              // "job", "array" or "allocation"
	Retries            Retries `toml:"retries"`
}

// How runs are packed into jobs.
const (
	PackJob        = "job"        // a job a run
	PackArray      = "array"      // runs of one shape are a job array
	PackAllocation = "allocation" // all runs, one after the other, in one job
)

// Retries are how many attempts that ended for a cause are followed by another
// one, for each run.
type Retries struct {
	NodeFailed  int `toml:"node_failed"`
	Preempted   int `toml:"preempted"`
	TimedOut    int `toml:"timed_out"`
	OutOfMemory int `toml:"out_of_memory"`
	Failed      int `toml:"failed"` // also when it ended without its last events
	Lost        int `toml:"lost"`
}

// The orders in which runs are begun.
const (
	OrderBlocks  = "blocks"  // repeat 1 of every point, shuffled by the study's seed, then repeat 2: what the machine does meanwhile, it does to every point. An unconstrained point is first in odd repeats and last in even ones
	OrderPlan    = "plan"    // as in the plan: repeats of a point next to each other
	OrderLargest = "largest" // most workers first, so that the longest wait in the queue begins first
)

// Causes beyond the run itself are tried again; a program that failed once
// usually fails again.
var defaultPolicy = Policy{Order: OrderBlocks, Packing: PackJob, ExcludeFailedNodes: true, Retries: Retries{NodeFailed: 2, Preempted: 2, Lost: 1}}

// checkPolicy holds the policy's values against what they may be.
func (d *decoder) checkPolicy(p Policy) {
	wrong := map[string]string{
		"policy.max_in_flight": within(0, maxPoints)(p.MaxInFlight),
		"policy.rate":          atLeast(0)(p.Rate),
		"policy.order":         among(OrderBlocks, OrderPlan, OrderLargest)(p.Order),
		"policy.packing":       among(PackJob, PackArray, PackAllocation)(p.Packing),
	}
	r := p.Retries
	for cause, n := range map[string]int{"node_failed": r.NodeFailed, "preempted": r.Preempted, "timed_out": r.TimedOut,
		"out_of_memory": r.OutOfMemory, "failed": r.Failed, "lost": r.Lost} {
		wrong["policy.retries."+cause] = within(0, 100)(n)
	}
	if p.Rate > 0 && p.Rate < 0.01 {
		wrong["policy.rate"] = fmt.Sprintf("want 0 (no limit) or at least 0.01 submissions per minute, got %g", p.Rate)
	}
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		d.rule(path, wrong[path])
	}
}
