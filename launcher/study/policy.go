package study

import (
	"fmt"
	"maps"
	"slices"
)

// Policy is the [policy] table: how a study's jobs are submitted, and what happens when one
// fails. It does not affect measurements, so it is not part of a point's identity and
// cannot be swept.
type Policy struct {
	MaxInFlight        int     `toml:"max_in_flight"`        // maximum number of the study's jobs that are queued or running at the same time; 0: unlimited
	Rate               float64 `toml:"rate"`                 // submissions per minute; 0: unlimited
	Order              string  `toml:"order"`                // "blocks", "plan" or "largest"
	Chain              bool    `toml:"chain"`                // each job waits for the previous one to end
	Requeue            bool    `toml:"requeue"`              // let Slurm restart a job after a node failure or preemption
	ExcludeFailedNodes bool    `toml:"exclude_failed_nodes"` // after a node failure, exclude the node from later attempts
	Packing            string  `toml:"packing"`              // "job", "array" or "allocation"
	Retries            Retries `toml:"retries"`
}

// How runs are packed into jobs.
const (
	PackJob        = "job"        // one job per run
	PackArray      = "array"      // runs of the same shape share a job array
	PackAllocation = "allocation" // all runs one after the other in one job
)

// Retries is the number of new attempts per run, by the cause that ended the previous one.
type Retries struct {
	NodeFailed  int `toml:"node_failed"`
	Preempted   int `toml:"preempted"`
	TimedOut    int `toml:"timed_out"`
	OutOfMemory int `toml:"out_of_memory"`
	Failed      int `toml:"failed"` // including runs that ended without recording their end
	Lost        int `toml:"lost"`
}

// The orders in which runs start.
const (
	OrderBlocks  = "blocks"  // repeat 1 of every point, shuffled by the study's seed, then repeat 2, and so on, so that changes of the machine affect all points alike. The point with unconstrained resources is first in odd repeats and last in even repeats
	OrderPlan    = "plan"    // the plan's order, in which repeats of a point are adjacent
	OrderLargest = "largest" // most workers first, so that the longest queue wait starts first
)

// By default, runs are only retried if the cause of the failure was outside the program,
// because a program that failed once usually fails again.
var defaultPolicy = Policy{Order: OrderBlocks, Packing: PackJob, ExcludeFailedNodes: true, Retries: Retries{NodeFailed: 2, Preempted: 2, Lost: 1}}

// checkPolicy adds problems about invalid values in [policy].
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
