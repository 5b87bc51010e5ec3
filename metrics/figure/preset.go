package figure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/summary"
)

// Input is the part of Data that a figure needs.
type Input int

// The inputs. Commands load each of them in one place.
const (
	OfCurves      Input = iota // Curves and Observations
	OfRanks                    // Ranks
	OfPrices                   // Bill, or Demand
	OfPredictions              // Predictions
	OfResources                // Resources and Amount
	OfRun                      // Run
	OfLooks                    // Looks
)

// Data holds the data of figures. A figure reads the part named by its Input; the rest
// may be zero.
type Data struct {
	Curves       []scaling.Curve
	Observations []scaling.Observation // from which the curves were computed

	Ranks []RankSteps

	Bill     *cost.Comparison // time and cost of configurations; nil without prices
	Demand   []capacity.Line  // cost of a service over the demand, in Currency
	Currency string

	Predictions []*predict.Series

	Resources []sensitivity.Answer
	Amount    func(key string, v scaling.Value) string // formats an amount of a resource

	Run Run

	Looks []metrics.Look // interim looks of a study that runs until its question is decided
}

// A Run is the resource usage of one run over time.
type Run struct {
	ID    string
	Nodes []summary.SampledNode
	Clock summary.Window // the training clock
}

// TargetUse says what a plot does with a target.
type TargetUse int

// The uses of a target. A figure with NoTarget does not accept one.
const (
	NoTarget   TargetUse = iota
	ShowsGoal            // draws Options.Goal next to throughput
	TimeToGoal           // draws the time to the target instead
	PricesGoal           // needs Data.Bill for that target
)

// build is a function that draws the charts of a figure.
type build func(Data, Options) ([]chart, error)

// A Preset is a named kind of plot: the input that it needs, and the function that draws it. A
// measure without a preset is drawn by its name.
type Preset struct {
	Name  string // in commands and file names: "tta"
	Title string // for people
	About string // one line of help
	Input Input
	draw  build

	axis string // axis of the curves; "": workers
	// Over is the measure on the x axis; "": the axis of the curves.
	Over string
	// Measure is the measure of the curves; "" for the main measures of a training.
	Measure string
	// Shown selects the measures to show; nil: all.
	Shown func(measure.Measure) bool
	// goals is the kind of target that the figure is about. Reports draw it only for
	// studies with such a target; "": for all.
	goals  string
	Target TargetUse
	// Demand says that a figure with input OfPrices can also draw Data.Demand.
	Demand bool
	// Whole says why the plot has no choice of axis, panels and baseline; "" if it has.
	Whole string
}

func missable(m measure.Measure) bool { return m.Missable }

// noChoice is the end of the texts in Preset.Whole.
const noChoice = ": it takes no --axis, --by or --baseline"

// Presets lists the figures in the order of the questions that they answer: does it scale,
// does that help, why not, what does it cost. Figures of the training loss are called
// loss-time and loss-samples, not loss, because a user's own measure may be called loss.
func Presets() []Preset {
	return []Preset{
		{Name: "speedup", Title: "Speedup against workers", About: "how many times faster than the base", draw: ofWork(work.speedup), Target: ShowsGoal},
		{Name: "efficiency", Title: "Efficiency against workers", About: "speedup divided by the factor in workers", draw: ofWork(work.efficiency), Target: ShowsGoal},
		{Name: "throughput", Title: "Throughput against workers", About: "samples a second, against ideal", draw: single(throughput), Measure: measure.Throughput},
		{Name: "tta", Title: "Time to accuracy against workers", About: "time to each target accuracy", draw: single(timeToAccuracy), Shown: missable, Target: TimeToGoal},
		{Name: "accuracy", Title: "Accuracy against time", About: "one line per run, against time", draw: single(accuracies.againstTime), Shown: missable},
		{Name: "samples", Title: "Accuracy against samples", About: "one line per run, against samples trained on", draw: single(accuracies.againstSamples), Shown: missable},
		{Name: "loss-time", Title: "Loss against time", About: "loss of evaluations, one line per run, against time", draw: single(losses.againstTime), Shown: missable, goals: measure.OfLoss},
		{Name: "loss-samples", Title: "Loss against samples", About: "the same against samples, or tokens, trained on", draw: single(losses.againstSamples), Shown: missable, goals: measure.OfLoss},
		{Name: "perplexity-time", Title: "Perplexity against time", About: "perplexity of evaluations against time", draw: single(perplexities.againstTime), Shown: missable, goals: measure.OfPerplexity},
		{Name: "perplexity-samples", Title: "Perplexity against samples", About: "the same against samples, or tokens, trained on", draw: single(perplexities.againstSamples), Shown: missable, goals: measure.OfPerplexity},
		{Name: "breakdown", Title: "Where the time goes", About: "where the time of a step goes", draw: breakdown},
		{Name: "ranks", Title: "Step times of each rank", About: "step times of each rank, at the most workers", Input: OfRanks, draw: ranks},
		{Name: "cost", Title: "Cost against time", About: "cost against time, of a service against demand, by the site file's [[prices]]", Input: OfPrices, draw: costs, Shown: missable, Target: PricesGoal, Demand: true},
		{Name: "normalised", Title: "Time and cost relative to the baseline", About: "time and cost over the baseline's", Input: OfPrices, draw: normalised, Shown: missable, Target: PricesGoal},
		{Name: "busbw", Title: "Bus bandwidth against size", About: "bus bandwidth of collectives against their size", draw: busBandwidth, axis: measure.Bytes, Measure: measure.BusBW},
		{Name: "frontier", Title: "Throughput per GPU against speed per user", About: "tokens/s per GPU against tokens/s per user of a language model", draw: frontier, Over: measure.OutputPerUser, Measure: measure.OutputPerGPU},
		{Name: "energy", Title: "Energy per sample against workers", About: "joules for a sample, where energy was read", draw: along(energyPerSample), Measure: measure.JoulesPerSample},
		{Name: "prediction", Title: "Predicted rate of a worker", About: "rate of a worker, measured and predicted on up to 4 times as many", Input: OfPredictions, draw: single(prediction),
			Whole: "is of step times over workers" + noChoice},
		{Name: "needs", Title: "What less of each resource keeps", About: "what less of each resource costs, with what is enough: as advise --spec says", Input: OfResources, draw: needs,
			Whole: "has a panel for each resource" + noChoice + "; --series and --where choose what is in it"},
		{Name: "utilisation", Title: "What a run used", About: "CPU time, memory, storage, power, GPUs of one run over time: utilisation RUN", Input: OfRun, draw: utilisation,
			Whole: "is of one run" + noChoice},
		{Name: "decision", Title: "The answer look by look", About: "how the interval narrowed, look by look, of a study measured with --until-decided", Input: OfLooks, draw: single(decision),
			Whole: "is of the looks at a study" + noChoice},
	}
}

var energyPerSample = func() measure.Measure {
	m, err := measure.Find(measure.JoulesPerSample)
	if err != nil {
		panic(err) // a programming error: measure declares it
	}
	return m
}()

// single returns a build function for a plot that is a single chart.
func single(one func(Data) (chart, error)) build {
	return func(d Data, _ Options) ([]chart, error) {
		c, err := one(d)
		return []chart{c}, err
	}
}

// Names lists the names of all presets.
func Names() []string {
	var names []string
	for _, k := range Presets() {
		names = append(names, k.Name)
	}
	return names
}

// NamesOf lists the names of the presets that fit accepts.
func NamesOf(fit func(Preset) bool) []string {
	var names []string
	for _, k := range Presets() {
		if fit(k) {
			names = append(names, k.Name)
		}
	}
	return names
}

// Find returns the preset with this name.
func Find(name string) (Preset, bool) {
	presets := Presets()
	if i := slices.IndexFunc(presets, func(k Preset) bool { return k.Name == name }); i >= 0 {
		return presets[i], true
	}
	return Preset{}, false
}

// NeedsOnlyCurves reports whether the preset needs only curves of trainings over workers, so that
// it applies to any training.
func (k Preset) NeedsOnlyCurves() bool {
	return k.draw != nil && k.Input == OfCurves && k.axis == "" && k.Over == "" && (k.Measure == "" || k.Measure == measure.Throughput) && k.goals == ""
}

// Concerns reports whether the study has the data that the plot is about. A report then includes
// it, or says why it cannot be drawn.
func (k Preset) Concerns(d Data) bool {
	switch k.Input {
	case OfCurves:
		return d.Curves != nil && (k.NeedsOnlyCurves() || k.goals != "" && d.aims(k.goals))
	case OfRanks:
		return len(d.Ranks) > 0
	case OfPrices:
		return d.Bill != nil || k.Demand && d.Demand != nil
	case OfPredictions:
		return len(d.Predictions) > 0
	case OfResources:
		return len(d.Resources) > 0
	case OfRun:
		return d.Run.ID != ""
	}
	return false
}

// aims reports whether some run has a target of this kind.
func (d *Data) aims(kind string) bool {
	return slices.ContainsFunc(d.Observations, func(o scaling.Observation) bool {
		return slices.ContainsFunc(o.Targets(), func(t measure.Target) bool { return t.Of == kind })
	})
}

// TitleOf returns the title of the figure for this data.
func (k Preset) TitleOf(d Data) string {
	if k.Demand && d.Bill == nil && d.Demand != nil {
		return "Cost against demand"
	}
	return k.Title
}

// Draw lays out the figure.
func (k Preset) Draw(d Data, o Options) (*Drawing, error) {
	if k.Input == OfCurves {
		return Draw(k.Name, d, o)
	}
	charts, err := k.draw(d, o)
	if err != nil {
		return nil, fmt.Errorf("%s figure: %w", k.Name, err)
	}
	return compose(k.Name, charts, o)
}

// draws reports whether the preset is the figure of a measure along the axis of the curves.
func (k Preset) draws(m measure.Measure, c scaling.Curve) bool {
	return k.Input == OfCurves && k.Measure == m.Name && k.Over == "" && cmp.Or(k.axis, scaling.Workers) == c.Axis
}
