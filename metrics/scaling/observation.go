// Package scaling turns many runs into scaling curves: speedup, efficiency and
// time to accuracy against the number of workers, with intervals. It is pure:
// no files, no clock, no database.
package scaling

import "github.com/scalebench/scalebench/metrics/fingerprint"

// Observation is what one run contributes: the unit of replication is the run,
// not the step. Times are in seconds, throughput in samples per second.
type Observation struct {
	Run       string // run id, "STUDY/POINT-r1-a1"
	Study     string
	Point     string // identity of the point, equal for its repeats
	Repeat    int
	Framework string
	Workers   int
	Nodes     int
	Job       string // the scheduler's job id; runs of one job share an allocation; "" outside a scheduler

	Cluster     string   // the scheduler's name of it; "" outside a scheduler
	Partition   string   // "" outside a scheduler
	JobSeconds  *float64 // from the job's start to its end; nil where the scheduler does not say
	CreatedUnix float64  // when the run was recorded, seconds since 1970
	GitCommit   string   // of the study's folder; "" when it was not recorded

	// Fingerprint is what the run ran on; nil or empty when nothing of it was
	// recorded.
	Fingerprint fingerprint.Print

	// Parameters are all keys of the point by TOML path, with "framework" and
	// "workers" among them.
	Parameters map[string]any

	// Throughput is over all ranks in the steady state; nil where none was
	// reached, and ThroughputWhy says why.
	Throughput    *float64
	ThroughputWhy string
	// EndToEnd is over the whole training time, warm-up and evaluations
	// included; nil where the run did not get that far.
	EndToEnd *float64
	// TrainSeconds is from the start of the training clock to the last step or
	// evaluation, Epochs how many were finished by then; nil without events.
	TrainSeconds *float64
	Epochs       *int
	// StepP50 is the median step time of the slowest rank in the steady state.
	StepP50 *float64
	// FinalAccuracy is a fraction; nil without an evaluation.
	FinalAccuracy *float64
	// InitSeconds is from the start of the slowest rank to the training clock's;
	// nil where it was not recorded.
	InitSeconds *float64
	// Skew is the share of the steady step time that the average rank waits for
	// the slowest; DataWait, Compute and Communication are shares of the mean
	// rank's. Fractions; nil where they were not measured.
	Skew, DataWait, Compute, Communication *float64
	// Slowest is how many steady steps each rank was the slowest in, by rank;
	// nil where it was not measured.
	Slowest []int

	// GradientBytes is what each rank gives to the reduction of a step; nil where
	// it was not recorded.
	GradientBytes *int64

	// Targets is, for each target of the point, when it was reached.
	Targets []TargetTime
	// Evaluations are in the order they were made.
	Evaluations []Evaluation

	// Warnings are doubts about this run that must travel with its numbers.
	Warnings []string
}

// TargetTime is the time to one target accuracy.
type TargetTime struct {
	Target  float64  // accuracy, a fraction
	Seconds *float64 // from the start of the training clock; nil: not reached in this run
}

// Evaluation is one evaluation of a run.
type Evaluation struct {
	Seconds  float64 // from the start of the training clock to the end of the evaluation
	Epoch    int
	Samples  int64   // trained on so far, over all ranks; -1: not known
	Accuracy float64 // fraction
}
