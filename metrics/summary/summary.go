// Package summary computes the results of a run from what it recorded: steady throughput, step
// times, skew between ranks, time to accuracy.
//
// It does no I/O, and is called once, when the run is read. Results are stored with
// AlgorithmVersion, so that a later version can compute them again from the same data. No data are
// dropped silently: the number of warm-up steps is part of the result, a missing value is nil with
// a reason, and everything that may make results wrong causes a warning, which is stored with them.
//
// Times are in seconds, throughputs in samples per second. Shares and accuracies are fractions.
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

// AlgorithmVersion is increased when the same input gives a different Outcome.
const AlgorithmVersion = 15

// Input has the data that a run recorded since its start or one of its restarts. Each of these is
// called an incarnation, numbered from 0.
type Input struct {
	Kind     string           // kind of workload, which determines the measures
	Workers  int              // planned world size: workers and additional ranks
	World    int              // largest world size that a rank reports; 0 if none did
	Restart  int              // the incarnation that the other fields describe
	Restarts []int            // all incarnations of the run, ascending
	Targets  []measure.Target // in the plan's order; set before calling Add
	Device   string           // planned device, "cpu" or "gpu"; "" if not planned
	// BatchNorm says over which ranks batch normalisation computes its statistics: "local",
	// "sync"; "" if not planned.
	BatchNorm string
	// MFU is the plan's request to compute an MFU; nil: none.
	MFU *MFU
	// SampleTokens is the planned number of tokens per sample; 0 if unknown.
	SampleTokens float64

	Steps       []Step // steps reported by every rank, ascending by Index
	EpochEnds   []int  // steps done at the end of each epoch, recorded by rank 0, ascending
	Ranks       []Rank // ranks that reported anything, ascending
	Places      []Place
	Evaluations []Evaluation
	Gradients   []RankGradients  // by epoch, then rank
	Figures     []metrics.Figure // values reported by logs or measured by a benchmark
	Stated      []Stated         // values reported during training that targets refer to, ascending by Time
	Nodes       []SampledNode    // samplers' readings, by each node's first rank
	Notes       []string         // notes in the ranks' files, without duplicates
	BadLines    int              // number of unreadable event lines

	placed *measure.Places // added values with coordinates
	again  map[string]int  // number of duplicates, by measure
}

// A Step is one training step over all ranks.
type Step struct {
	Index    int     // 0-based, over the whole run
	Duration float64 // of the slowest rank
	Mean     float64 // mean duration over the ranks
	Slowest  int     // rank that took Duration; the lowest if several did
	Samples  int64   // samples trained by all ranks together
	// Means over the ranks; nil unless every rank measured the part.
	DataWait, Compute, Communication *float64
}

// A Rank has the data that one rank reported about itself. A nil pointer means that it did not
// report the value.
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

// A Place names the host and devices of ranks: of the rank of one process or, in a file about the
// whole run, of the ranks that one supervisor started.
type Place struct {
	Ranks       int    // 0 means 1
	Host        string // "" if unknown
	Environment *metrics.Environment
}

// An Evaluation is an evaluation that rank 0 recorded.
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

	// Values are the measured values by the name of the measure, in its unit. A time to a target
	// is +Inf if the run missed the target. A measure that was not measured has no entry.
	Values map[string]float64
	// Why gives, for a measure without a value, the reason.
	Why map[string]string
	// Places holds the values of measures with coordinates; nil without such values.
	Places *measure.Places
	// Reported declares the measures in Values and Why that the kind of workload does not declare:
	// values that the user's program or its log reports.
	Reported []measure.Measure

	// Slowest is, for each rank, the number of steady steps in which it was the slowest; nil if
	// unknown.
	Slowest []int

	Evaluations []Accuracy

	// NoiseScales are the gradient noise scales of the epochs, or parts of them, in which the
	// ranks recorded their gradients. If none exist, NoiseScaleWhy gives the reason.
	NoiseScales   []NoiseScale
	NoiseScaleWhy string

	// Fingerprint describes the hardware and software of the run. Only runs with the same one are
	// compared.
	Fingerprint fingerprint.Print
	// GitCommit is the commit of the study's folder; "" if not recorded.
	GitCommit string

	Warnings []string
}

// An Accuracy is an evaluation, with its time since the start of training.
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
	r.Fingerprint = fingerprint.Compute(subject)
}

// Known returns the value of a measure; nil if it is missing or is a missed target.
func (r *Outcome) Known(name string) *float64 {
	if v, ok := r.Values[name]; ok && !math.IsInf(v, 0) {
		return &v
	}
	return nil
}

// Targets returns the targets for which the run has a time, a miss, or a reason why the time is
// missing, in the order of measure.Harder.
func (r *Outcome) Targets() []measure.Target {
	asked := maps.Clone(r.Values)
	for name := range r.Why {
		asked[name] = 0
	}
	return measure.Targets(asked)
}

// steady sets the results that are computed from the steps after warm-up. The throughput is the
// samples of all ranks divided by the sum of the slowest rank's durations (see longRun).
// Percentiles are nearest-rank, so that they are measured values. The skew is 1 − mean/max, where
// mean and max are over the ranks, of the summed durations: the share of time that an average
// rank would save if no rank were slow.
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
	cut.warnOfRareStep(in.Steps, epochSteps(in))
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

// longRun returns the throughput of an average epoch. Each step of that epoch has the mean
// duration and the mean samples of the steps at the same position in all epochs, after warm-up.
// So a slow first step counts once per epoch, even if the run's first step is warm-up and its
// last epoch is incomplete. Without two epochs of equal length, it returns the throughput of the
// steps after warm-up.
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

// epochSteps returns the number of steps per epoch. It ignores the last epoch, which may be
// incomplete. It returns 0 if the number is unknown or not constant.
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

// sum adds up a part of the step time over steps. ok is false if a step lacks the part, because a
// share must not be extrapolated from the other steps.
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

// clock sets the results that are counted from the start of training. If the program started its
// training clock when it started itself, the clock includes initialisation, which is then not
// reported separately.
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
