package scaling

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// Options say how curves are built from runs.
type Options struct {
	// Measure selects the curves of this measure and of measures with the same coordinates, and
	// hides warnings about others. The zero value selects measures that have one value per run;
	// warnings are then about a training's throughput.
	Measure measure.Measure
	// Shown reports whether the reader sees a measure. Warnings about measures that it rejects are
	// hidden. nil: the reader sees Measure, or all if that is not set.
	Shown func(measure.Measure) bool
	// Axis is the parameter, by TOML path, or the coordinate along which curves run; "": the
	// measure's own, or else Workers.
	Axis string
	// Base is the position of the base point. nil selects, for each series, the smallest position
	// that is planned or observed. If the runs at that position failed, the base is reported as
	// missing; no other point replaces it silently.
	Base *Value
	// Baseline, if set, is used instead of Base. It defines for every point the one, of any
	// series, that it is divided by: the point that meets the conditions and otherwise has the
	// same parameters. Curves then have no Base and points have no efficiency; Gain is the ratio
	// to that point.
	Baseline []Condition
	// Planned lists the points of the plan, so that points without any run are found. If it is
	// empty, only points with runs are considered.
	Planned []Planned
	// Mix pools runs with different fingerprints into one curve and adds a warning. Otherwise
	// they form separate curves.
	Mix bool
	// Confidence is the requested level of every interval, between 0 and 1; 0 means 0.95.
	// The attained level is never lower.
	Confidence float64
	// FewRuns gives ratios an interval from 4 runs per point on (see separated). It is for
	// studies that are tested several times while they grow.
	FewRuns bool
}

// Planned is a point of the plan. Its fields have the same meaning as in Observation.
type Planned struct {
	Point      string // ID of the point
	Framework  string
	Workers    int
	Parameters map[string]any // as in Observation
}

// A Curve is one series: runs whose parameters agree, except for the axis (such as the number of
// workers) and the parameters that depend on it.
type Curve struct {
	Series     string         // framework and the parameters in which the series differ: "native batch=64"
	Framework  string         //
	Kind       string         // kind of workload of its runs: "serve"; "": a training
	Parameters map[string]any // parameters that identify the series, by TOML path; fingerprint.FIELD if fingerprints differ
	Scaling    string         // "weak" or "strong" if recorded; "" otherwise
	Sample     string         // what a sample is, one of measure.Samples, if all runs agree; "" otherwise
	Main       string         // main measure in its tables: measure.Throughput, or tokens/s if runs have no throughput
	Base       *Base          // nil: the base point has no successful run
	Axis       string         // parameter along which it runs
	Points     []Point        // sorted by At; only points with runs
	Warnings   []string

	// Fingerprint describes the hardware and software of its runs, as far as recorded.
	Fingerprint fingerprint.Print
	// Mixed lists the facts in which its runs differ; empty without Options.Mix.
	Mixed []fingerprint.Varying
	// FingerprintWarnings are the elements of Warnings that concern hardware and software.
	FingerprintWarnings []string
	// DriftWarnings are the elements of Warnings about throughput that depends on the time or the
	// node of the runs, the worst first.
	DriftWarnings []string
	drifts        []Drift // the drifts that DriftWarnings describe
	// ByNode reports whether results depend on the node. Intervals then count the runs of a point
	// that share a node as one run.
	ByNode bool
}

// Divided reports whether runs that should be equal were split into several curves because
// their fingerprints differ.
func (c Curve) Divided() bool {
	for key := range c.Parameters {
		if strings.HasPrefix(key, ranOn) {
			return true
		}
	}
	return false
}

// A Base is the point by which the values of the other points are divided.
type Base struct {
	At      Value
	Workers int // see Point
	axis    string
	point   *Point
}

// Of returns the summary of a measure over the base's runs; never nil.
func (b *Base) Of(name string) *Summary { return b.point.Of(name) }

// A Point is one position on the axis of a series.
type Point struct {
	At      Value
	Workers int         // workers of its runs; 0 if they differ, which they can along another axis
	Runs    []RunValues // every run of the point, sorted by ID, including runs without any measure

	// Measures are the summaries of all measures that some run has. Declared measures come first,
	// in the order of their declaration; then times to targets, easier targets first; then
	// reported measures by name.
	Measures []*Summary

	// Predicted is the predicted share of communication in the step time, computed from a
	// benchmark of the collectives (see PredictExchange). nil if it was not requested.
	Predicted *Prediction
	// Straggler is the rank that was the slowest most often. nil if no run recorded it, or for
	// one worker.
	Straggler *Straggler

	Warnings    []string     // warnings about the point
	RunWarnings []RunWarning // warnings about single runs
}

// A RunWarning is a warning about the results of some runs, which is shown with the results.
type RunWarning struct {
	Text string
	Runs []string // IDs of these runs
}

// Of returns the summary of a measure over the runs of the point. It is empty if no run has the
// measure, and never nil.
func (p *Point) Of(name string) *Summary {
	for _, s := range p.Measures {
		if s.Name == name {
			return s
		}
	}
	return &Summary{Measure: measure.Measure{Name: name}}
}

// Targets returns the summaries of the times to targets, easier targets first.
func (p *Point) Targets() []*Summary {
	var list []*Summary
	for _, s := range p.Measures {
		if s.Missable {
			list = append(list, s)
		}
	}
	return list
}

// RunValues are the values of one run of a point.
type RunValues struct {
	ID     string
	Job    string // "" outside a scheduler
	Values map[string]float64
}

// A Prediction is a share of the step time that was computed from other measurements.
type Prediction struct {
	Share *Estimate // fraction; nil if unknown
	Why   string    // why there is no prediction; "" with one
	From  string    // measurement from which it was computed; "" without one
}

// A Straggler is the rank that was the slowest most often. With N equal ranks, each would be the
// slowest in one of N steps.
type Straggler struct {
	Rank  int
	Steps int      // number of steady steps of all runs of the point
	Share float64  // share of these steps in which this rank was the slowest
	Hosts []string // nodes of the rank, sorted; nil: unknown
}

// Analyse builds one curve per series from successful runs, and returns the curves sorted by
// name. Each run may occur only once; the order of the runs does not matter.
//
// If the base point of a series has no successful run, the error is a *NoBaseError that lists all
// such series. The curves are returned with it; those of the listed series lack Base, speedup and
// efficiency. With any other error, no curves are returned.
func Analyse(obs []Observation, o Options) ([]Curve, error) {
	confidence, err := level(o.Confidence)
	if err != nil {
		return nil, err
	}
	along := axis(cmp.Or(o.Axis, o.Measure.Axis, Workers))
	if b := o.Base; b != nil && along == Workers && !(b.Numeric() && b.Number >= 1) {
		return nil, fmt.Errorf("base of %s workers; give 1 or more", b)
	}
	if err := validate(obs, o.Planned); err != nil {
		return nil, err
	}
	obs, _, o.Planned = unfold(obs, o.Planned, o.Measure, along)
	an := analysis{confidence: confidence, few: o.FewRuns, axis: along, of: o.Measure, shown: o.Shown}
	var curves []Curve
	var missing []MissingBase
	baseline := o.Baseline != nil
	for _, s := range group(obs, o.Planned, o.Mix, along) {
		c, miss := an.curve(s, o.Base, !baseline)
		if miss != nil {
			missing = append(missing, *miss)
		}
		curves = append(curves, c)
	}
	if baseline {
		return curves, an.divideBy(o.Baseline, curves)
	}
	if missing != nil {
		return curves, &NoBaseError{Missing: missing}
	}
	return curves, nil
}

// Unbased is like Analyse for values that are not divided by a base: it reports no missing ones.
func Unbased(obs []Observation, o Options) ([]Curve, error) {
	curves, err := Analyse(obs, o)
	if noBase := (*NoBaseError)(nil); errors.As(err, &noBase) {
		err = nil
	}
	return curves, err
}

// validate returns an error for input that would give wrong numbers without any sign. A run
// counted twice, for example, makes every interval too narrow.
func validate(obs []Observation, planned []Planned) error {
	seen := make(map[string]bool, len(obs))
	for _, o := range obs {
		if o.Workers < 1 {
			return fmt.Errorf("run %s has %d workers; a run has 1 or more", o.Run, o.Workers)
		}
		if seen[o.Run] {
			return fmt.Errorf("run %s is given twice; each run counts once", o.Run)
		}
		seen[o.Run] = true
	}
	for _, p := range planned {
		if p.Workers < 1 {
			return fmt.Errorf("a planned point of %s has %d workers; a point has 1 or more", p.Framework, p.Workers)
		}
	}
	return nil
}

// analysis holds the options of one call of Analyse, and the state for the current series.
type analysis struct {
	of         measure.Measure // the requested measure; zero value: none
	shown      func(measure.Measure) bool
	axis       axis
	confidence float64
	few        bool    // see Options.FewRuns
	byNode     bool    // runs of the current series depend on their nodes
	main       string  // main measure of the current series, as in Curve
	found      []Drift // drifts found in the current series
}

// driftLevel is the share of stable machines on which a drift is reported wrongly.
const driftLevel = 0.05

// curve builds the points of a series. If based is true, it computes the ratios to the series'
// own base. at is the position of the base; nil: the smallest one.
func (an *analysis) curve(s *series, at *Value, based bool) (Curve, *MissingBase) {
	c := Curve{Series: s.name, Axis: string(an.axis), Framework: s.framework, Parameters: s.parameters}
	c.Scaling, _ = s.parameters["workload.scaling"].(string)
	if len(s.runs) > 0 { // a series may have planned points but no runs
		c.Kind, c.Sample = s.runs[0].Kind, sampleOf(s.runs)
	}
	base := s.at[0]
	if at != nil {
		base = *at
	}
	an.main = mainOf(s.runs)
	c.Main = an.main
	found, tested := drifts(s, an.axis, driftLevel)
	an.found = found
	an.byNode = slices.ContainsFunc(found, func(f Drift) bool { return f.Link == DriftNode })
	c.ByNode = an.byNode
	runs := map[Value][]*Observation{}
	for _, o := range s.runs {
		at := an.axis.of(o)
		runs[at] = append(runs[at], o)
	}
	for _, at := range s.at {
		if len(runs[at]) > 0 {
			c.Points = append(c.Points, an.point(at, runs[at]))
		}
	}
	an.peers(&c)
	if based {
		an.divide(&c, base)
	}
	c.Fingerprint, c.Mixed = s.ground()
	c.Warnings = append(an.curveWarnings(&c, s), an.cadenceWarnings(&c, runs)...)
	if an.asksThroughput() {
		slices.SortStableFunc(found, func(a, b Drift) int { return gravity(a) - gravity(b) })
		c.drifts, c.DriftWarnings = found, driftWarnings(found, tested)
		c.Warnings = append(c.Warnings, c.DriftWarnings...)
	}
	if based && (c.Base == nil || c.Base.Of(measure.Throughput).Median == nil && c.Measured(measure.Throughput)) {
		return c, s.missing(an.axis, base, runs, &c)
	}
	return c, nil
}

// mainOf returns the main measure of trainings: the throughput, or tokens/s if runs have only
// that, as in logs of language models.
func mainOf(runs []*Observation) string {
	tokens := func(o *Observation) bool {
		return o.Known(measure.TokensPerSecond) != nil && slices.ContainsFunc(o.Reported, func(m measure.Measure) bool {
			return m.Name == measure.TokensPerSecond && m.Unit == "tokens/s" && m.Better == measure.Higher
		})
	}
	rated := func(o *Observation) bool { return o.Known(measure.Throughput) != nil }
	if !slices.ContainsFunc(runs, rated) && slices.ContainsFunc(runs, tokens) {
		return measure.TokensPerSecond
	}
	return measure.Throughput
}

// peers gives each summary the summaries of its measure at all points of the curve.
func (an *analysis) peers(c *Curve) {
	of := map[string][]*Summary{}
	for i := range c.Points {
		for _, s := range c.Points[i].Measures {
			of[s.Name] = append(of[s.Name], s)
		}
	}
	for _, list := range of {
		for _, s := range list {
			s.peers = list
		}
	}
}

// divide sets the base of every point. A base point that has no median of any measure with a
// better direction does not count.
func (an *analysis) divide(c *Curve, base Value) {
	i := slices.IndexFunc(c.Points, func(p Point) bool { return p.At == base })
	if i < 0 || !c.Points[i].judged() {
		return
	}
	c.Base = &Base{At: base, axis: c.Axis, Workers: c.Points[i].Workers, point: &c.Points[i]}
	for i := range c.Points {
		p := &c.Points[i]
		for _, s := range p.Measures {
			if an.axis.multiplies() && s.Scales && base.Numeric() && p.At.Numeric() {
				s.multiple = p.At.Number / base.Number
			}
			if b := c.Base.Of(s.Name); b.Median != nil {
				s.base = b
			}
		}
		p.Warnings = append(p.Warnings, an.gainWarnings(p)...)
	}
}

// judged reports whether the point has a median of a measure with a better direction.
func (p *Point) judged() bool {
	return slices.ContainsFunc(p.Measures, func(s *Summary) bool { return s.Median != nil && s.Better != measure.Neither })
}

// Measured reports whether any point has a median of the measure.
func (c *Curve) Measured(name string) bool {
	return slices.ContainsFunc(c.Points, func(p Point) bool { return p.Of(name).Median != nil })
}

func (an *analysis) point(at Value, runs []*Observation) Point {
	p := Point{At: at, Workers: runs[0].Workers}
	if slices.ContainsFunc(runs, func(o *Observation) bool { return o.Workers != p.Workers }) {
		p.Workers = 0
	}
	slices.SortFunc(runs, func(a, b *Observation) int { return cmp.Compare(a.Run, b.Run) })
	p.Runs = make([]RunValues, len(runs))
	for i, o := range runs {
		p.Runs[i] = RunValues{ID: o.Run, Job: o.Job, Values: o.Values}
	}
	for _, m := range an.measures(runs) {
		if s := an.summary(m, runs); s.Runs > 0 {
			p.Measures = append(p.Measures, s)
		}
	}
	p.Straggler = straggler(p.Workers, runs)
	p.Warnings, p.RunWarnings = an.pointWarnings(&p, runs), carried(runs)
	return p
}

// measures returns the measures to summarise: those of the runs' kind of workload, the times to
// targets, and what the runs report.
func (an *analysis) measures(runs []*Observation) []measure.Measure {
	if an.of.At != "" {
		list := an.of.Siblings()
		if !slices.ContainsFunc(list, func(m measure.Measure) bool { return m.Name == an.of.Name }) {
			list = append(list, an.of) // computed from one of them, like a cost from a rate
		}
		return list
	}
	list := measure.ForKind(measure.KindOf(runs[0].Kind).Name)
	var targets []measure.Target
	var reported []measure.Measure
	for i := range runs {
		targets = append(targets, runs[i].Targets()...)
		reported = append(reported, runs[i].Reported...)
	}
	slices.SortFunc(targets, measure.Harder)
	for _, t := range slices.Compact(targets) {
		list = append(list, t.Time())
	}
	byName := func(a, b measure.Measure) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortStableFunc(reported, byName)
	list = append(list, slices.CompactFunc(reported, func(a, b measure.Measure) bool { return a.Name == b.Name })...)
	asked := func(m measure.Measure) bool { return m.Name == an.of.Name }
	given := func(o *Observation) bool { return o.Known(measure.Throughput) != nil }
	if an.of.Name == measure.Throughput && !slices.ContainsFunc(list, asked) && slices.ContainsFunc(runs, given) {
		list = append(list, an.of) // set by AsThroughput for a kind without a throughput
	}
	return list
}

// Worker returns the word for a worker; for a service, it is "replica".
func (c Curve) Worker() string { return measure.KindOf(c.Kind).WorkerName() }

// Find returns the measure of that name: a declared one, the time to a target, or one that a run
// of the curves reports.
func Find(curves []Curve, name string) (measure.Measure, error) {
	for _, c := range curves {
		for _, p := range c.Points {
			for _, s := range p.Measures {
				if s.Name == name {
					m := s.Measure
					if s.rate {
						m.Unit = RateUnit(curves...)
					}
					return m, nil
				}
			}
		}
	}
	return measure.Find(name)
}

// isRate reports whether x can be a throughput.
func isRate(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
