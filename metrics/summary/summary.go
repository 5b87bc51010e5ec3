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
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// AlgorithmVersion changes whenever the same facts would give another Result.
const AlgorithmVersion = 4

// Input is what one incarnation of a run recorded.
type Input struct {
	Workers  int       // world size that the plan asks for
	World    int       // world size that the ranks report (the largest); 0: no rank reported
	Restart  int       // the incarnation that the rest is about
	Restarts []int     // all incarnations of the run, ascending
	Targets  []float64 // accuracies, in the order the plan has them
	Device   string    // that the plan asks for: "cpu", "gpu"; "" when it does not say
	// BatchNorm is whose statistics batch normalisation takes: "local", "sync";
	// "" when the plan does not say.
	BatchNorm string

	Steps       []Step // reported by every rank, ascending by Index
	Ranks       []Rank // that reported anything, ascending by rank
	Evaluations []Evaluation
	Gradients   []RankGradients  // by epoch, then rank
	Figures     []metrics.Figure // that logs state; used where there are no steps
	Notes       []string         // that the ranks' files hold, each once
	BadLines    int              // event lines of the run that could not be read
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
	Rank        int
	Ranks       int // that its events are of, from Rank on; 0 is 1
	Host        string
	World       int // world size as this rank reports it; 0: not reported
	Environment *metrics.Environment
	Train       *metrics.Train
	TrainTime   *float64 // of the Train event, from the rank's start
	StepsTime   *float64 // of the last Steps event, from the rank's start
	Epochs      int      // the last epoch that it finished
	Stop        *metrics.Stop
}

// Evaluation is one evaluation as rank 0 recorded it.
type Evaluation struct {
	Time     float64 // of its end, from rank 0's start
	Epoch    int
	Step     int // steps done by then
	Accuracy float64
}

// Result is what a run came to.
type Result struct {
	Restart int // the incarnation that it is about
	World   int // ranks, as they report it themselves; 0: no rank reported

	Steps       int   // steps that every rank reported
	WarmupSteps int   // the first of them, left out of the steady state
	SteadySteps int   // the rest; 0 without a steady state
	Samples     int64 // trained on in Steps, over all ranks
	Epochs      int   // finished by rank 0

	// Throughput is samples/s in the steady state: the samples of all ranks
	// over the sum of the slowest rank's durations. Nil without a steady
	// state; ThroughputWhy then begins "no steady state" and says the reason.
	Throughput    *float64
	ThroughputWhy string
	// EndToEnd is Samples over TrainSeconds.
	EndToEnd *float64
	// TrainSeconds is from rank 0's Train event to its last step or
	// evaluation, whichever came later.
	TrainSeconds *float64
	// InitSeconds is from a rank's start to its Train event, of the slowest. Nil
	// where the clock started with the program: setting up is then in it.
	InitSeconds *float64

	// Over the steady steps; nil without a steady state. The percentiles are
	// nearest-rank ones of the slowest rank's duration: values that occurred.
	StepP50, StepP95, StepP99 *float64
	// Skew is 1 - (mean over ranks)/(max over ranks) of the summed durations:
	// the share of the time that the average rank could save if none were slow.
	// Nil too where one writer speaks for several ranks.
	Skew *float64
	// Slowest is how many steady steps each rank was the slowest in, by rank;
	// nil when Skew is.
	Slowest []int
	// Shares of the mean rank's step time; nil unless every rank measured the
	// component in every steady step.
	DataWait, Compute, Communication *float64

	Targets     []Target
	Evaluations []Accuracy
	// FinalAccuracy is the last evaluation's; nil when there was none.
	FinalAccuracy *float64

	// NoiseScales are of each epoch, or part of one, that the ranks recorded
	// their gradients of; without any, NoiseScaleWhy says the reason.
	NoiseScales   []NoiseScale
	NoiseScaleWhy string

	// Links are the latency and bandwidth of each operation of a benchmark of
	// collectives, fitted to all its sizes.
	Links []collective.Link

	// Fingerprint is what the run ran on, by which runs are held comparable.
	Fingerprint fingerprint.Print
	// GitCommit is the commit of the study's folder; "" when
	// no rank recorded one.
	GitCommit string

	Warnings []string
}

// Target is the time to one target accuracy.
type Target struct {
	Accuracy float64
	Seconds  *float64 // from rank 0's Train event to the first evaluation that reached it; nil: not reached
}

// Accuracy is one evaluation on the training clock.
type Accuracy struct {
	Seconds  float64 // from rank 0's Train event to the end of the evaluation
	Epoch    int
	Step     int   // steps done by then
	Samples  int64 // trained on by then, over all ranks
	Accuracy float64
}

// Summarize computes the result of a run.
func Summarize(in Input) Result {
	r := Result{Restart: in.Restart, World: in.World, Steps: len(in.Steps)}
	for _, s := range in.Steps {
		r.Samples += s.Samples
	}
	r.steady(in)
	r.clock(in)
	r.stated(in)
	r.collectives(in)
	r.accuracies(in)
	r.noise(in)
	r.identify(in)
	r.Warnings = append(append(r.Warnings, in.Notes...), warnings(in)...)
	return r
}

// identify says what the run ran on, and at which commit.
func (r *Result) identify(in Input) {
	subject := fingerprint.Subject{Device: in.Device}
	hosts := map[string]bool{}
	for _, rank := range in.Ranks {
		subject.Environments = append(subject.Environments, rank.Environment)
		if rank.Host != "" {
			hosts[rank.Host] = true
		}
		if rank.Environment != nil && rank.Environment.GitCommit != "" && r.GitCommit == "" {
			r.GitCommit = rank.Environment.GitCommit
		}
		if rank.Train != nil && rank.Train.DataSHA256 != "" {
			subject.DataSHA256 = rank.Train.DataSHA256
		}
	}
	subject.Nodes = len(hosts)
	r.Fingerprint = fingerprint.Of(subject)
}

// steady computes what holds in the steady state only.
func (r *Result) steady(in Input) {
	durations := make([]float64, len(in.Steps))
	for i, s := range in.Steps {
		durations[i] = s.Duration
	}
	warmup, err := Warmup(durations)
	if err != nil {
		r.ThroughputWhy = "no steady state: " + err.Error()
		return
	}
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
		r.ThroughputWhy = "no steady state: every step is recorded as lasting 0 seconds"
		return
	}
	r.WarmupSteps, r.SteadySteps = warmup, len(steady)
	r.Throughput = known(float64(samples) / total)
	r.Skew = known(1 - mean/total)
	if slices.ContainsFunc(in.Ranks, func(r Rank) bool { return r.Ranks > 1 }) {
		r.Skew, r.Slowest = nil, nil
	}

	times = slices.Sorted(slices.Values(times))
	r.StepP50 = known(percentile(times, 0.50))
	r.StepP95 = known(percentile(times, 0.95))
	r.StepP99 = known(percentile(times, 0.99))

	r.DataWait = share(steady, mean, func(s *Step) *float64 { return s.DataWait })
	r.Compute = share(steady, mean, func(s *Step) *float64 { return s.Compute })
	r.Communication = share(steady, mean, func(s *Step) *float64 { return s.Communication })
}

// share is the component's part of the mean rank's time, or nil if a step lacks
// it: a share over the measured steps only would stand for the others unasked.
func share(steps []Step, total float64, component func(*Step) *float64) *float64 {
	var sum float64
	for i := range steps {
		v := component(&steps[i])
		if v == nil {
			return nil
		}
		sum += *v
	}
	return known(sum / total)
}

// percentile is the nearest-rank percentile of sorted values.
func percentile(sorted []float64, p float64) float64 {
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}

// clock computes what counts from the start of the training clock.
func (r *Result) clock(in Input) {
	for _, rank := range in.Ranks {
		if t := rank.TrainTime; t != nil && *t > 0 && (r.InitSeconds == nil || *t > *r.InitSeconds) {
			r.InitSeconds = known(*t)
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
	r.TrainSeconds = known(seconds)
	r.EndToEnd = known(float64(r.Samples) / seconds)
}

// accuracies puts the evaluations on the training clock and looks up when each
// target was reached.
func (r *Result) accuracies(in Input) {
	for _, t := range in.Targets {
		r.Targets = append(r.Targets, Target{Accuracy: t})
	}
	if n := len(in.Evaluations); n > 0 {
		r.FinalAccuracy = known(in.Evaluations[n-1].Accuracy)
	}
	zero := rankZero(in)
	if len(in.Evaluations) == 0 {
		return
	}
	if zero == nil || zero.TrainTime == nil {
		r.warn("rank 0 recorded no start of the training clock, so that no time to accuracy can be given")
		return
	}
	var trained int64 // in the steps before the evaluation
	next, before := 0, 0
	for _, e := range in.Evaluations {
		seconds := e.Time - *zero.TrainTime
		if seconds < 0 {
			before++
			continue
		}
		for next < len(in.Steps) && in.Steps[next].Index < e.Step {
			trained += in.Steps[next].Samples
			next++
		}
		r.Evaluations = append(r.Evaluations, Accuracy{seconds, e.Epoch, e.Step, trained, e.Accuracy})
		for i := range r.Targets {
			if t := &r.Targets[i]; t.Seconds == nil && e.Accuracy >= t.Accuracy {
				t.Seconds = known(seconds)
			}
		}
	}
	if before > 0 {
		r.warn("%d evaluations were made before the training clock started; no time to accuracy counts from them", before)
	}
}

func rankZero(in Input) *Rank {
	if len(in.Ranks) == 0 || in.Ranks[0].Rank != 0 {
		return nil
	}
	return &in.Ranks[0]
}

func known(v float64) *float64 { return &v }

func (r *Result) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}
