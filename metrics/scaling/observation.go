// Package scaling turns many runs into scaling curves: speedup, efficiency and time to accuracy
// as functions of the number of workers, with confidence intervals. It does no I/O: it uses no
// files, no clock and no database.
package scaling

import (
	"maps"
	"math"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// An Observation is the result of one run. In statistics, runs are the repeats, not steps.
type Observation struct {
	Run       string // run id, "STUDY/POINT-r1-a1"
	Study     string
	Point     string // ID of the point, which its repeats share
	Repeat    int
	Kind      string // kind of workload: "train", "collective"
	Framework string
	Workers   int
	Nodes     int
	Job       string // the scheduler's job ID; runs in one allocation have the same one; "" outside a scheduler

	Cluster     string   // name of the cluster according to the scheduler; "" outside a scheduler
	Partition   string   // "" outside a scheduler
	JobSeconds  *float64 // duration of the job; nil if the scheduler does not report it
	CreatedUnix float64  // when the run was recorded, seconds since 1970
	BeganUnix   float64  // start of its first rank in seconds since 1970. If only the order of the runs is known, its position in that order (at most mostPlaces). 0: unknown
	Hosts       []string // nodes of the run; nil: unknown
	RankHosts   []string // node of each rank, parallel to Slowest; "" if unknown, nil without Slowest
	GitCommit   string   // commit of the study's folder in git; "" if not recorded

	// Fingerprint describes the hardware and software of the run. It is empty if nothing was
	// recorded.
	Fingerprint fingerprint.Print

	// Parameters are all parameters of the point by TOML path, including "framework" and
	// "workers".
	Parameters map[string]any

	Own bool // the throughput is a figure of the user's program, of which nobody knows what work it counts

	// Values has the measured values, in their base units, by the name of the measure. +Inf means
	// that the run missed a target. A measure without an entry was not measured.
	Values map[string]float64
	// Places has the values of measures with coordinates (epoch, load, message size) for each
	// place within the run.
	Places []measure.Place
	// Why gives, for measures without a value, the reason.
	Why map[string]string
	// Reported declares the measures in Values and Why that the kind of workload does not: values
	// that the user's program or its log reports.
	Reported []measure.Measure

	// Epochs is the number of finished epochs; nil without events.
	Epochs *int
	// Slowest counts, for each rank, the steady steps in which that rank was the slowest; nil if
	// not measured.
	Slowest []int

	// GradientBytes is the size of the gradients that each rank contributes to the all-reduce of
	// a step; nil if not recorded.
	GradientBytes *int64

	// Evaluations are in time order.
	Evaluations []Evaluation

	// Warnings about this run must be shown with its results.
	Warnings []string
}

// ByRun returns the observations by the IDs of their runs.
func ByRun(obs []Observation) map[string]*Observation {
	of := make(map[string]*Observation, len(obs))
	for i := range obs {
		of[obs[i].Run] = &obs[i]
	}
	return of
}

// Observed returns the observations of the curve's runs, in the order of obs.
func (c Curve) Observed(obs []Observation) (runs []*Observation) {
	mine := map[string]bool{}
	for _, p := range c.Points {
		for _, r := range p.Runs {
			mine[r.ID] = true
		}
	}
	for i := range obs {
		if mine[obs[i].Run] {
			runs = append(runs, &obs[i])
		}
	}
	return runs
}

// Value returns the run's value of a measure; +Inf means that it missed a target. ok is false if
// it has no value.
func (o *Observation) Value(name string) (value float64, ok bool) {
	value, ok = o.Values[name]
	return value, ok && !math.IsNaN(value)
}

// Known returns the run's value of a measure; nil if it is missing or not finite.
func (o *Observation) Known(name string) *float64 {
	if v, ok := o.Value(name); ok && !math.IsInf(v, 0) {
		return &v
	}
	return nil
}

// Targets returns the targets that the run reached or missed, in the order of measure.Harder.
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

// AsThroughput replaces the throughput of each run by its value of a measure, so that everything
// that is computed for throughputs is computed for that measure. If a lower value is better, it
// uses 1/value. Runs without the measure then have no throughput.
func AsThroughput(runs []Observation, m measure.Measure) {
	_, err := measure.Find(m.Name)
	own := err != nil && !m.RatesSamples() && m.Unit != "tokens/s"
	for i := range runs {
		o := &runs[i]
		o.Own = own
		x := o.Known(m.Name)
		o.Values = maps.Clone(o.Values)
		clear(o.Values)
		if x == nil || !(*x > 0) {
			continue
		}
		o.Values[measure.Throughput] = *x
		if m.Better == measure.Lower {
			o.Values[measure.Throughput] = 1 / *x
		}
	}
}

// sampleOf returns what a sample is ("image", for example) if all runs agree; "" otherwise.
func sampleOf(runs []*Observation) string {
	said := ""
	for i, o := range runs {
		word, _ := o.Parameters[measure.SampleKey].(string)
		if i > 0 && word != said {
			return ""
		}
		said = word
	}
	return said
}

// sampleOfAll is like sampleOf.
func sampleOfAll(obs []Observation) string {
	runs := make([]*Observation, len(obs))
	for i := range obs {
		runs[i] = &obs[i]
	}
	return sampleOf(runs)
}

// RateUnit returns the unit of the curves' rates of samples: "images/s" if all declare that a
// sample is an image, "samples/s" if they differ.
func RateUnit(curves ...Curve) string {
	said := ""
	for i, c := range curves {
		if i > 0 && c.Sample != said {
			return measure.RateUnit("")
		}
		said = c.Sample
	}
	return measure.RateUnit(said)
}
