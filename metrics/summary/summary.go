// Package summary turns what one run recorded into the run's results: steady
// throughput, step times, skew between ranks, time to accuracy.
//
// It is pure, and it is run once, when the run is read in. The results are
// stored with AlgorithmVersion, so that a later version can compute them again
// from the same facts. Nothing is dropped in silence: how many steps counted
// as warm-up is part of the result, a figure that could not be had is nil with
// a reason, and every doubt is a warning that travels with the numbers.
//
// All times are in seconds, throughput is in samples per second, shares and
// accuracies are fractions.
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

// AlgorithmVersion changes whenever the same facts would give another Result.
const AlgorithmVersion = 15

// Input is what one incarnation of a run recorded.
type Input struct {
	Kind     string           // of workload, whose measures the result has
	Workers  int              // world size that the plan asks for: workers, and ranks beside them
	World    int              // world size that the ranks report (the largest); 0: no rank reported
	Restart  int              // the incarnation that the rest is about
	Restarts []int            // all incarnations of the run, ascending
	Targets  []measure.Target // in the order the plan has them; set before figures are added
	Device   string           // that the plan asks for: "cpu", "gpu"; "" when it does not say
	// BatchNorm is whose statistics batch normalisation takes: "local", "sync";
	// "" when the plan does not say.
	BatchNorm string
	// MFU is what the plan asks and knows of model FLOP/s; nil: nothing.
	MFU *MFU
	// SampleTokens is how many tokens a sample has, as the plan says; 0: it does not.
	SampleTokens float64

	Steps       []Step // reported by every rank, ascending by Index
	EpochEnds   []int  // steps done at the end of each epoch, as rank 0 recorded it, ascending
	Ranks       []Rank // that reported anything, ascending by rank
	Places      []Place
	Evaluations []Evaluation
	Gradients   []RankGradients  // by epoch, then rank
	Figures     []metrics.Figure // that logs state, or a benchmark measured
	Stated      []Stated         // figures along the training that targets are of, ascending by Time
	Nodes       []SampledNode    // what their samplers have read, by their first ranks
	Notes       []string         // that the ranks' files hold, each once
	BadLines    int              // event lines of the run that could not be read

	placed *measure.Places // those of Add that have a place within the run
	again  map[string]int  // how many of them were stated again, by measure
}

// Step is one training step over all ranks.
type Step struct {
	Index    int     // 0-based, over the whole run
	Duration float64 // of the slowest rank
	Mean     float64 // mean duration over the ranks
	Slowest  int     // the rank that took Duration; the lowest one of equals
	Samples  int64   // trained on by all ranks together
	// Means over the ranks; nil unless every rank measured the component.
	DataWait, Compute, Communication *float64
}

// Rank is what one rank said of itself. A nil pointer: it did not say.
type Rank struct {
	Rank      int
	Ranks     int // that its events are of, from Rank on; 0 is 1
	World     int // world size as this rank reports it; 0: not reported
	Train     *metrics.Train
	Started   *float64 // when its clock began, in seconds since the epoch
	TrainTime *float64 // of the Train event, from the rank's start
	StepsTime *float64 // of the last Steps event, from the rank's start
	Epochs    int      // the last epoch that it finished
	Stop      *metrics.Stop
}

// Place is where some ranks ran: one process's, or the share of a file about the
// whole run that one supervisor started.
type Place struct {
	Ranks       int    // 0 is 1
	Host        string // "" where nobody named it
	Environment *metrics.Environment
}

// Evaluation is one evaluation as rank 0 recorded it.
type Evaluation struct {
	Time     float64 // of its end, from rank 0's start
	Epoch    int
	Step     int   // steps done by then
	Trained  int64 // samples by then over all ranks, where no steps were recorded; 0: not known
	Accuracy float64
	Loss     *float64 // nil: the program does not say
}

// Outcome is what a run came to.
type Outcome struct {
	Restart int // the incarnation that it is about
	World   int // ranks, as they report it themselves; 0: no rank reported

	Steps       int   // steps that every rank reported
	WarmupSteps int   // the first of them, left out of the steady state
	SteadySteps int   // the rest; 0 where the run has no throughput of its steps
	Samples     int64 // trained on in Steps, over all ranks
	Epochs      int   // finished by rank 0

	// Values are what was measured, by the measure's name and in its unit, those
	// of times to targets among them: +Inf is a target that was missed. What is
	// not in it could not be had.
	Values map[string]float64
	// Why says, by measure, why there is no value.
	Why map[string]string
	// Places are the values of measures that have coordinates, by where in the run
	// they were measured; nil for none.
	Places *measure.Places
	// Reported declares those of Values and Why that the kind of workload does
	// not: figures of the user's program, or of its log.
	Reported []measure.Measure

	// Slowest is how many steady steps each rank was the slowest in, by rank;
	// nil when the skew is not known.
	Slowest []int

	Evaluations []Accuracy

	// NoiseScales are of each epoch, or part of one, that the ranks recorded
	// their gradients of; without any, NoiseScaleWhy says the reason.
	NoiseScales   []NoiseScale
	NoiseScaleWhy string

	// Fingerprint is what the run ran on, by which runs are held comparable.
	Fingerprint fingerprint.Print
	// GitCommit is the commit of the study's folder; "" when
	// no rank recorded one.
	GitCommit string

	Warnings []string
}

// Accuracy is one evaluation on the training clock.
type Accuracy struct {
	Seconds  float64 // from rank 0's Train event to the end of the evaluation
	Epoch    int
	Step     int   // steps done by then
	Samples  int64 // trained on by then, over all ranks; 0 without steps: not known
	Accuracy float64
	Loss     *float64 // nil: the program does not say
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

// identify says what the run ran on, and at which commit.
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

// Known is the value of a measure; nil where there is none, or a target that was
// missed.
func (r *Outcome) Known(name string) *float64 {
	if v, ok := r.Values[name]; ok && !math.IsInf(v, 0) {
		return &v
	}
	return nil
}

// Targets are those whose time the run has or missed, or has a reason not to have,
// as measure.Harder orders them.
func (r *Outcome) Targets() []measure.Target {
	asked := maps.Clone(r.Values)
	for name := range r.Why {
		asked[name] = 0
	}
	return measure.Targets(asked)
}

// steady computes what holds behind the warm-up. Throughput is the samples of all
// ranks over the sum of the slowest rank's durations (longRun); percentiles are
// nearest-rank ones of these, values that occurred. Skew is 1 - (mean over
// ranks)/(max over ranks) of the summed durations: the share of the time that
// the average rank could save if none were slow.
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
	r.Slowest = make([]int, len(in.Ranks)) // all of them: only then is a step complete
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
		r.Slowest = nil // one writer for several ranks tells them not apart
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

// longRun is the throughput that a run has in the long run: of a whole epoch, each
// of whose steps lasts as long, and has as many samples, as those at its place in
// all epochs do behind the warm-up, on average. So what is slow in every epoch,
// like its first step, counts once an epoch, also where the run's first one is
// warm-up and the last one unfinished. Of a run that records no epochs, or not two
// alike, it is that of the steps behind the warm-up.
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

// epochSteps is how many steps each epoch of the run has, the last one apart,
// which may be cut short; 0 where that is not known or more than one epoch.
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

// sum adds a component up; ok is false if a step lacks it: a share over the
// measured steps only would stand for the others unasked.
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

// percentile is the nearest-rank percentile of sorted values.
func percentile(sorted []float64, p float64) float64 {
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}

// clock computes what counts from the start of the training clock. There is no
// initialisation where the clock started with the program: it is then in it.
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
