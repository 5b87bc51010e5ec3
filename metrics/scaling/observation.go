// Package scaling turns many runs into scaling curves: speedup, efficiency and
// time to accuracy against the number of workers, with intervals. It is pure:
// no files, no clock, no database.
package scaling

import (
	"math"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// An Observation has the results of one run. Runs are the repeats of statistics, steps are
// not.
type Observation struct {
	Run       string // run id, "STUDY/POINT-r1-a1"
	Study     string
	Point     string // identity of the point, equal for its repeats
	Repeat    int
	Kind      string // of workload: "train", "collective"
	Framework string
	Workers   int
	Nodes     int
	Job       string // the scheduler's job id; runs of one job share an allocation; "" outside a scheduler

	Cluster     string   // the scheduler's name of it; "" outside a scheduler
	Partition   string   // "" outside a scheduler
	JobSeconds  *float64 // from the job's start to its end; nil where the scheduler does not say
	CreatedUnix float64  // when the run was recorded, seconds since 1970
	BeganUnix   float64  // when its first rank began, seconds since 1970, or its place in an order of runs that only that is known of (up to mostPlaces); 0: not known
	Hosts       []string // nodes that it ran on; nil: not known
	RankHosts   []string // by rank, as long as Slowest; "" where not known, nil without Slowest
	GitCommit   string   // of the study's folder; "" when it was not recorded

	// Fingerprint describes the hardware and software of the run; nil or empty if nothing
	// was recorded.
	Fingerprint fingerprint.Print

	// Parameters are all keys of the point by TOML path, with "framework" and
	// "workers" among them.
	Parameters map[string]any

	// Values has the measured values by the measure's name, in its base unit: +Inf is a
	// target that the run missed. A measure without an entry was not measured.
	Values map[string]float64
	// Places are the values of measures that have coordinates, by where in the run
	// they were measured.
	Places []measure.Place
	// Why says, by measure, why the run has no value of it.
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

	// Evaluations are in the order they were made.
	Evaluations []Evaluation

	// Warnings are doubts about this run that must travel with its numbers.
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

// Targets are those whose time the run has or missed, as measure.Harder orders them.
func (o *Observation) Targets() []measure.Target { return measure.Targets(o.Values) }

// Evaluation is one evaluation of a run.
type Evaluation struct {
	Seconds  float64 // from the start of the training clock to the end of the evaluation
	Epoch    int
	Step     int      // steps done by then; 0: not known
	Samples  int64    // trained on so far, over all ranks; -1: not known
	Accuracy float64  // fraction
	Loss     *float64 // nil: the program does not say
}
