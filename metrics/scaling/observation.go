// Package scaling turns many runs into scaling curves: speedup, efficiency and
// time to accuracy against the number of workers, with intervals. It is pure:
// no files, no clock, no database.
package scaling

import (
	"math"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// An Observation is the result of one run. Statistics treat runs as repeats, not steps.
type Observation struct {
	Run       string // run id, "STUDY/POINT-r1-a1"
	Study     string
	Point     string // identity of the point, equal for its repeats
	Repeat    int
	Kind      string // kind of workload: "train", "collective"
	Framework string
	Workers   int
	Nodes     int
	Job       string // scheduler's job ID; runs of a job share an allocation; "" outside a scheduler

	Cluster     string   // the scheduler's name for the cluster; "" outside a scheduler
	Partition   string   // "" outside a scheduler
	JobSeconds  *float64 // duration of the job; nil if the scheduler does not report it
	CreatedUnix float64  // when the run was recorded, seconds since 1970
	BeganUnix   float64  // start of its first rank in seconds since 1970, or its position in the runs' order if only that is known (up to mostPlaces); 0: unknown
	Hosts       []string // nodes of the run; nil: unknown
	RankHosts   []string // by rank, parallel to Slowest; "" if unknown, nil without Slowest
	GitCommit   string   // commit of the study's folder; "" if not recorded

	// Fingerprint describes the hardware and software of the run; nil or empty if nothing
	// was recorded.
	Fingerprint fingerprint.Print

	// Parameters are all keys of the point by TOML path, with "framework" and
	// "workers" among them.
	Parameters map[string]any

	// Values has the measured values by the measure's name, in its base unit: +Inf is a
	// target that the run missed. A measure without an entry was not measured.
	Values map[string]float64
	// Places are the values of measures with coordinates, by place within the run.
	Places []measure.Place
	// Why says, by measure, why the run has no value.
	Why map[string]string
	// Reported declares the measures in Values and Why that the kind of workload does not
	// declare: figures of the user's program, or of its log.
	Reported []measure.Measure

	// Epochs is the number of finished epochs; nil without events.
	Epochs *int
	// Slowest counts by rank the steady steps in which the rank was the slowest; nil if not
	// measured.
	Slowest []int

	// GradientBytes is the size of each rank's gradients in the reduction of a step; nil if
	// not recorded.
	GradientBytes *int64

	// Evaluations are in time order.
	Evaluations []Evaluation

	// Warnings are doubts about this run that must be shown with its numbers.
	Warnings []string
}

// Value returns the run's value of a measure; ok is false if it has no value. +Inf is a
// target that it missed.
func (o *Observation) Value(name string) (value float64, ok bool) {
	value, ok = o.Values[name]
	return value, ok && !math.IsNaN(value)
}

// Known returns the value as a pointer: nil if it is missing or not finite.
func (o *Observation) Known(name string) *float64 {
	if v, ok := o.Value(name); ok && !math.IsInf(v, 0) {
		return &v
	}
	return nil
}

// Targets returns the targets that the run reached or missed, ordered by measure.Harder.
func (o *Observation) Targets() []measure.Target { return measure.Targets(o.Values) }

// Evaluation is one evaluation of a run.
type Evaluation struct {
	Seconds  float64 // from the start of the training clock to the end of the evaluation
	Epoch    int
	Step     int      // 0: unknown
	Samples  int64    // samples trained on so far, over all ranks; -1: unknown
	Accuracy float64  // fraction
	Loss     *float64 // nil: not reported
}
