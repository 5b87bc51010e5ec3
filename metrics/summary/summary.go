// Package summary computes a run's results from what it recorded: steady throughput,
// step times, skew between ranks, time to accuracy.
//
// It has no side effects and runs once, when the run is read in. Results are stored
// with AlgorithmVersion, so that a later version can recompute them from the same
// facts. It never drops data silently: the number of warm-up steps is part of the
// result, a missing value is nil with a reason, and every doubt is a warning stored
// with the numbers.
//
// Times are in seconds, throughput in samples per second; shares and accuracies are
// fractions.
package summary

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// AlgorithmVersion changes when the same facts give a different Result.
const AlgorithmVersion = 15

// Input is the record of one incarnation of a run.
type Input struct {
	Kind     string           // kind of workload, which determines the measures
	Workers  int              // planned world size: workers and additional ranks
	World    int              // largest world size that a rank reports; 0 if none did
	Restart  int              // the incarnation that the other fields describe
	Restarts []int            // all incarnations of the run, ascending
	Targets  []measure.Target // in the plan's order; set before figures are added
	Device   string           // planned device, "cpu" or "gpu"; "" if not planned
	// BatchNorm says whose statistics batch normalisation uses: "local", "sync"; "" if
	// not planned.
	BatchNorm string
	// MFU holds the plan's request for an MFU; nil if it has none.
	MFU *MFU
	// SampleTokens is the planned number of tokens per sample; 0 if unknown.
	SampleTokens float64

	Steps       []Step // steps reported by every rank, ascending by Index
	EpochEnds   []int  // steps done at the end of each epoch, recorded by rank 0, ascending
	Ranks       []Rank // ranks that reported anything, ascending
	Places      []Place
	Evaluations []Evaluation
	Gradients   []RankGradients  // by epoch, then rank
	Figures     []metrics.Figure // figures stated by logs or measured by a benchmark
	Stated      []Stated         // figures during training that targets refer to, ascending by Time
	Nodes       []SampledNode    // samplers' readings, by each node's first rank
	Notes       []string         // notes in the ranks' files, without duplicates
	BadLines    int              // number of unreadable event lines

	placed *measure.Places // added figures that have coordinates
	again  map[string]int  // number of duplicates, by measure
}

// A Step is one training step over all ranks.
type Step struct {
	Index    int     // 0-based, over the whole run
	Duration float64 // of the slowest rank
	Mean     float64 // mean duration over the ranks
	Slowest  int     // rank that took Duration; the lowest if several did
	Samples  int64   // samples trained by all ranks together
	// Means over the ranks; nil unless every rank measured the component.
	DataWait, Compute, Communication *float64
}

// A Rank is what one rank reported about itself. A nil pointer means not reported.
type Rank struct {
	Rank      int
	Ranks     int // number of ranks that its events cover, from Rank on; 0 means 1
	World     int // world size that this rank reports; 0: not reported
	Train     *metrics.Train
	Started   *float64 // start of its clock, in seconds since the epoch
	TrainTime *float64 // time of the Train event, from the rank's start
	StepsTime *float64 // time of the last Steps event, from the rank's start
	Epochs    int      // last finished epoch
	Stop      *metrics.Stop
}

// A Place is where ranks ran: the rank of one process, or the ranks that one
// supervisor started, taken from a file about the whole run.
type Place struct {
	Ranks       int    // 0 means 1
	Host        string // "" if unknown
	Environment *metrics.Environment
}

// An Evaluation is one evaluation as recorded by rank 0.
type Evaluation struct {
	Time     float64 // end of the evaluation, from rank 0's start
	Epoch    int
	Step     int   // steps done by then
	Trained  int64 // samples by then over all ranks, if no steps were recorded; 0: unknown
	Accuracy float64
	Loss     *float64 // nil if not reported
}

// An Outcome is the result of a run.
type Outcome struct {
	Restart int // the incarnation that it describes
	World   int // ranks, as they report it; 0: not reported

	Steps       int   // steps that every rank reported
	WarmupSteps int   // the warm-up steps among them, left out of the steady state
	SteadySteps int   // the other steps; 0 if the steps give no throughput
	Samples     int64 // samples trained in Steps, over all ranks
	Epochs      int   // epochs finished by rank 0

	// Values are the measured values by measure name, in the measure's unit, including
	// times to targets (+Inf: missed). Missing measures have no value.
	Values map[string]float64
	// Why gives, by measure, the reason for a missing value.
	Why map[string]string
	// Places holds the values of measures with coordinates; nil if the run has none.
	Places *measure.Places
	// Reported declares the measures in Values and Why that the kind of workload does
	// not declare: figures of the user's program or its log.
	Reported []measure.Measure

	// Slowest is the number of steady steps in which each rank was the slowest, by
	// rank; nil if the skew is unknown.
	Slowest []int

	Evaluations []Accuracy

	// NoiseScales are the noise scales of epochs, or parts of them, whose gradients
	// the ranks recorded. If there are none, NoiseScaleWhy gives the reason.
	NoiseScales   []NoiseScale
	NoiseScaleWhy string

	// Fingerprint is the run's hardware and software, which decides whether runs are
	// comparable.
	Fingerprint fingerprint.Print
	// GitCommit is the commit of the study's folder; "" if not recorded.
	GitCommit string

	Warnings []string
}

// An Accuracy is one evaluation on the training clock.
type Accuracy struct {
	Seconds  float64 // from rank 0's Train event to the end of the evaluation
	Epoch    int
	Step     int   // steps done by then
	Samples  int64 // samples trained by then, over all ranks; 0 without steps: unknown
	Accuracy float64
	Loss     *float64 // nil if not reported
}

// Summarize computes the result of a run.
func Summarize(in Input) Outcome {
	r := Outcome{Restart: in.Restart, World: in.World, Steps: len(in.Steps), Values: map[string]float64{}, Why: map[string]string{}}
	for _, s := range in.Steps {
		r.Samples += s.Samples
	}
	for m := range measure.Each(in.Kind) {
		if m.Name == measure.Throughput {
			r.steady(in)
		}
	}
	r.identify(in)
	r.clock(in)
	r.stated(in)
	r.reported(in)
	r.tokens(in)
	r.utilisation(in)
	r.placed(in)
	r.accuracies(in)
	r.reach(in)
	r.resources(in)
	r.accounted()
	r.resumed(in)
	r.noise(in)
	r.Warnings = append(append(r.Warnings, in.Notes...), warnings(in)...)
	return r
}

// identify sets the fingerprint and the commit.
func (r *Outcome) identify(in Input) {
	subject := fingerprint.Subject{Device: in.Device}
	hosts := map[string]bool{}
	for _, place := range in.Places {
		subject.Environments = append(subject.Environments, place.Environment)
		if place.Host != "" {
			hosts[place.Host] = true
		}
		if place.Environment != nil && place.Environment.GitCommit != "" && r.GitCommit == "" {
			r.GitCommit = place.Environment.GitCommit
		}
	}
	for _, rank := range in.Ranks {
		if rank.Train != nil && rank.Train.DataSHA256 != "" {
			subject.DataSHA256 = rank.Train.DataSHA256
		}
	}
	subject.Nodes = len(hosts)
	r.Fingerprint = fingerprint.Of(subject)
}

// Known returns the value of a measure; nil if it is missing or a missed target.
func (r *Outcome) Known(name string) *float64 {
	if v, ok := r.Values[name]; ok && !math.IsInf(v, 0) {
		return &v
	}
	return nil
}

// Targets returns the targets that the run reached, missed, or has a reason for
// missing, ordered by measure.Harder.
func (r *Outcome) Targets() []measure.Target {
	asked := maps.Clone(r.Values)
	for name := range r.Why {
		asked[name] = 0
	}
	return measure.Targets(asked)
}

// steady computes the results after warm-up. Throughput is the samples of all ranks
// over the sum of the slowest rank's durations (longRun). Percentiles are
// nearest-rank, so they are measured values. Skew is 1 - (mean over ranks)/(max over
// ranks) of the summed durations: the share of time that the average rank would save
// if no rank were slow.
func (r *Outcome) steady(in Input) {
	durations := make([]float64, len(in.Steps))
	for i, s := range in.Steps {
		durations[i] = s.Duration
	}
	cut, err := warmupEnd(durations)
	if err != nil {
		r.Why[measure.Throughput] = "no steady state: " + err.Error()
		return
	}
	warmup := cut.Warmup
	steady, times := in.Steps[warmup:], durations[warmup:]
	var total, mean float64
	var samples int64
	r.Slowest = make([]int, len(in.Ranks)) // a step is complete only if all ranks are there
	for _, s := range steady {
		total += s.Duration
		mean += s.Mean
		samples += s.Samples
		if s.Slowest < len(r.Slowest) {
			r.Slowest[s.Slowest]++
		}
	}
	if !(total > 0) {
		r.Slowest = nil
		r.Why[measure.Throughput] = "no steady state: every step is recorded as lasting 0 seconds"
		return
	}
	r.WarmupSteps, r.SteadySteps = warmup, len(steady)
	r.Values[measure.Throughput] = longRun(in, warmup)
	cut.tellOfRare(in.Steps, epochSteps(in))
	r.Warnings = append(r.Warnings, cut.Warnings...)
	if slices.ContainsFunc(in.Ranks, func(r Rank) bool { return r.Ranks > 1 }) {
		r.Slowest = nil // if one writer records several ranks, they cannot be told apart
	} else {
		r.Values[measure.Skew] = 1 - mean/total
	}

	times = slices.Sorted(slices.Values(times))
	for name, p := range map[string]float64{measure.StepP50: 0.50, measure.StepP95: 0.95, measure.StepP99: 0.99} {
		r.Values[name] = percentile(times, p)
	}
	for name, component := range map[string]func(*Step) *float64{
		measure.DataWait:      func(s *Step) *float64 { return s.DataWait },
		measure.Compute:       func(s *Step) *float64 { return s.Compute },
		measure.Communication: func(s *Step) *float64 { return s.Communication },
	} {
		if sum, ok := sum(steady, component); ok {
			r.Values[name] = sum / mean
		}
	}
}

// longRun returns the throughput of an average whole epoch. Each step of that epoch
// has the mean duration and samples of the steps at its place in all epochs after
// warm-up. Thus a slow first step counts once per epoch, even if the run's first one
// is warm-up and the last epoch is incomplete. Without two epochs of equal length, it
// is the throughput of the steps after warm-up.
func longRun(in Input, warmup int) float64 {
	epoch := max(1, epochSteps(in))
	type place struct {
		seconds float64
		samples int64
		steps   int
	}
	places := make([]place, epoch)
	for _, s := range in.Steps[warmup:] {
		p := &places[s.Index%epoch]
		p.seconds += s.Duration
		p.samples += s.Samples
		p.steps++
	}
	var seconds, samples float64
	for _, p := range places {
		if p.steps > 0 {
			seconds += p.seconds / float64(p.steps)
			samples += float64(p.samples) / float64(p.steps)
		}
	}
	return samples / seconds
}

// epochSteps returns the number of steps per epoch, ignoring the last epoch, which may
// be cut short; 0 if unknown or not constant.
func epochSteps(in Input) int {
	if len(in.EpochEnds) == 0 {
		return 0
	}
	epoch := in.EpochEnds[0]
	for i, end := range in.EpochEnds {
		whole := (i + 1) * epoch
		if end > whole || end < whole && i+1 < len(in.EpochEnds) {
			return 0
		}
	}
	if epoch < 1 || epoch >= len(in.Steps) {
		return 0
	}
	return epoch
}

// sum adds up a component; ok is false if a step lacks it, because a share must not be
// extrapolated from the measured steps only.
func sum(steps []Step, component func(*Step) *float64) (sum float64, ok bool) {
	for i := range steps {
		v := component(&steps[i])
		if v == nil {
			return 0, false
		}
		sum += *v
	}
	return sum, true
}

// percentile returns the nearest-rank percentile of sorted values.
func percentile(sorted []float64, p float64) float64 {
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}

// clock computes what counts from the start of the training clock. If the clock
// started with the program, it includes initialisation, which is then not reported
// separately.
func (r *Outcome) clock(in Input) {
	for _, rank := range in.Ranks {
		if t := rank.TrainTime; t != nil && *t > 0 {
			r.Values[measure.InitSeconds] = max(*t, r.Values[measure.InitSeconds])
		}
	}
	zero := rankZero(in)
	if zero == nil {
		return
	}
	r.Epochs = zero.Epochs
	if zero.TrainTime == nil {
		return
	}
	end := *zero.TrainTime
	if zero.StepsTime != nil {
		end = max(end, *zero.StepsTime)
	}
	for _, e := range in.Evaluations {
		end = max(end, e.Time)
	}
	seconds := end - *zero.TrainTime
	if r.Steps == 0 || !(seconds > 0) {
		return
	}
	r.Values[measure.TrainSeconds] = seconds
	r.Values[measure.EndToEnd] = float64(r.Samples) / seconds
}

func rankZero(in Input) *Rank {
	if len(in.Ranks) == 0 || in.Ranks[0].Rank != 0 {
		return nil
	}
	return &in.Ranks[0]
}

func (r *Outcome) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}
