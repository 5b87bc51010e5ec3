package scaling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// Options say how runs become curves. The zero value is the usual choice.
type Options struct {
	// Measure is the one asked for: curves are of it and those at the same places
	// within a run, and doubts about another one are not told. The zero value is for
	// the values of whole runs, with the doubts about a training's throughput.
	Measure measure.Measure
	// Shown tells of which measures the reader sees anything; nil: of Measure, or of
	// all. Doubts about others are not told.
	Shown func(measure.Measure) bool
	// Axis is the parameter along which a curve runs, by its TOML path, or a
	// coordinate; "" is the measure's own, or Workers.
	Axis string
	// Base is the place on the axis that all others are divided by. nil takes,
	// per series, the smallest one that is planned or was observed: a base whose
	// runs failed is then missed, not quietly replaced by the next.
	Base *Value
	// Baseline divides every point by another one, of any series, in place of
	// Base: the one for which the conditions hold and that is otherwise the same.
	// Curves then have no Base, points no efficiency, and Gain is over that point.
	Baseline []Condition
	// Planned are the points of the plan, so that what has no run at all is
	// missed too. Without it only what was observed counts.
	Planned []Planned
	// Mix joins runs that are equal in what was asked for and ran on different
	// things, as their fingerprints say, to one curve, which then says so.
	// Without it they are curves of their own.
	Mix bool
	// Confidence is the level asked of every interval, more than 0 and less
	// than 1; 0 means 0.95. The level attained is never lower.
	Confidence float64
	// FewRuns gives ratios an interval from 4 runs of each point on; see separated. A study
	// that is looked at while it grows asks for it.
	FewRuns bool
}

// Planned is a point of the plan: what Observation says of a run, before there
// is one.
type Planned struct {
	Point      string // identity of the point
	Framework  string
	Workers    int
	Parameters map[string]any // as in Observation
}

// Curve is one series: runs that are equal in everything but the axis, the
// number of workers for one, and what follows from it.
type Curve struct {
	Series     string         // the framework, and the parameters in which the series differ: "native batch=64"
	Framework  string         //
	Kind       string         // of its runs' workload: "serve"; "" is a training
	Parameters map[string]any // what identifies the series, by TOML path; fingerprint.FIELD where runs ran on different things
	Scaling    string         // "weak" or "strong" as the runs record it; "" where they do not
	Sample     string         // what a sample is, as all runs say: one of measure.Samples; "" where they do not
	Main       string         // the measure that a table of it begins with: measure.Throughput, or tokens/s in its place
	Base       *Base          // nil: the base point has no good run
	Axis       string         // the parameter along which it runs
	Points     []Point        // by rising At; only places that have runs
	Warnings   []string

	// Fingerprint describes the hardware and software of its runs, as far as any run
	// recorded it.
	Fingerprint fingerprint.Print
	// Mixed are the facts in which its runs differ: never without Options.Mix.
	Mixed []fingerprint.Varying
	// FingerprintWarnings are the Warnings about hardware and software.
	FingerprintWarnings []string
	// DriftWarnings are the Warnings about throughputs that depend on the time or the node
	// of the runs, the worst first.
	DriftWarnings []string
	drifts        []Drift // that these tell of
	// ByNode reports whether results depend on the node; then runs of a point that share a
	// node count as one in intervals.
	ByNode bool
}

// Divided reports whether the curve has only some of the runs that were asked
// to be equal, because the others ran on other things.
func (c Curve) Divided() bool {
	for key := range c.Parameters {
		if strings.HasPrefix(key, ranOn) {
			return true
		}
	}
	return false
}

// Base is the point that the others are divided by.
type Base struct {
	At      Value
	Workers int // as in Point
	axis    string
	point   *Point
}

// Of returns the summary of a measure over the base's runs; never nil.
func (b *Base) Of(name string) *Summary { return b.point.Of(name) }

// Point is one place on the axis of a series.
type Point struct {
	At      Value
	Workers int         // of its runs; 0 where they differ, along another axis than Workers
	Runs    []RunValues // every run of the point, by id, those that lack a measure included

	// Measures are the summaries of what any run has, in the order of the
	// declaration, behind it times to targets by rising target, and then what runs
	// report by name.
	Measures []*Summary

	// Predicted is the share of communication that a benchmark of the collectives predicts;
	// see package exchange. nil if not asked for.
	Predicted *Prediction
	// Straggler is the rank that was the slowest most often; nil when no run
	// measured it, and for one worker.
	Straggler *Straggler

	Warnings []string // on the point
	Doubts   []Doubt  // of single runs
}

// Doubt is a doubt about runs that travels with their numbers.
type Doubt struct {
	Text string
	Runs []string // that have it, by id
}

// Of returns the summary of a measure over the runs: an empty one if no run has it, never
// nil.
func (p *Point) Of(name string) *Summary {
	for _, s := range p.Measures {
		if s.Name == name {
			return s
		}
	}
	return &Summary{Measure: measure.Measure{Name: name}}
}

// Targets are the summaries of times to targets, by rising target.
func (p *Point) Targets() []*Summary {
	var list []*Summary
	for _, s := range p.Measures {
		if s.Missable {
			list = append(list, s)
		}
	}
	return list
}

// RunValues is one run's part in a point.
type RunValues struct {
	ID     string
	Job    string // "" outside a scheduler
	Values map[string]float64
}

// Prediction is a share of the step time that is worked out from measurements
// of something else.
type Prediction struct {
	Share *Estimate // fraction; nil where none can be had
	Why   string    // there is none; "" with one
	From  string    // what it is made from, in words; "" without one
}

// Estimate is a median or a ratio of medians with what is known of its error.
type Estimate struct {
	Value    float64
	Runs     int       // that stand behind Value
	Interval *Interval // nil where none can be had
	Adjusted bool      // a ratio: the change of the machine over time was taken out
	Why      string    // there is no interval; "" with one
}

// AtBase is why the base's own speedup and efficiency have no interval.
const AtBase = "1 by definition at the base point"

// Interval is a confidence interval. Order statistics are discrete, so the
// level attained is the one asked for or higher.
type Interval struct {
	Low, High float64
	Level     float64 // attained, a fraction
}

// A Straggler is the rank that was the slowest most often. Of N equal ranks each is the
// slowest in one of N steps.
type Straggler struct {
	Rank  int
	Steps int      // steady steps, over all runs of the point
	Share float64  // of them in which this rank was the slowest, a fraction
	Hosts []string // nodes that the rank ran on, sorted; nil: not known
}

// Analyse turns runs into one curve a series, by name. The observations are
// those of good runs, each once and in any order.
//
// When a series' base point has no good run, the error is a *NoBaseError that
// names every such series; the curves are returned all the same, those without
// a Base, speedup and efficiency. Any other error comes without curves.
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

// validate refuses what would make a number wrong without anybody noticing: a
// run counted twice narrows every interval.
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

// analysis has what the points of one Analyse share.
type analysis struct {
	of         measure.Measure // asked for; zero: none in particular
	shown      func(measure.Measure) bool
	axis       axis
	confidence float64
	few        bool    // as Options.FewRuns
	byNode     bool    // runs of the series at hand differ by their nodes
	main       string  // of the series at hand, as in Curve
	found      []Drift // in the series at hand
}

// driftLevel is the share of even machines on which a drift is found.
const driftLevel = 0.05

// curve makes the points of a series; with a base of its own they are divided
// by that.
func (an *analysis) curve(s *series, at *Value, based bool) (Curve, *MissingBase) {
	c := Curve{Series: s.name, Axis: string(an.axis), Framework: s.framework, Parameters: s.parameters}
	c.Scaling, _ = s.parameters["workload.scaling"].(string)
	if len(s.runs) > 0 { // a series that is only planned draws nothing
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

// mainOf is the measure that a table of trainings begins with: logs of language models
// have tokens/s in throughput's place, of which more are known to be better.
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

// peers makes the summaries of a measure at all points known to each other.
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

// divide gives every point the base's values to be divided by. A base point
// without any that judges it is none.
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

// judged reports whether the point has a median of a measure that is better one way.
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
	p.Warnings, p.Doubts = an.pointWarnings(&p, runs), carried(runs)
	return p
}

// measures are those of the runs' kind of workload, the times to targets, and
// what runs report.
func (an *analysis) measures(runs []*Observation) []measure.Measure {
	if an.of.At != "" {
		list := an.of.Beside()
		if !slices.ContainsFunc(list, func(m measure.Measure) bool { return m.Name == an.of.Name }) {
			list = append(list, an.of) // made of one of them, as a cost of a rate
		}
		return list
	}
	list := measure.Of(measure.KindOf(runs[0].Kind).Name)
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
		list = append(list, an.of) // by AsThroughput, to a kind of workload that has none
	}
	return list
}

// Worker returns the name of a worker: a service has replicas.
func (c Curve) Worker() string { return measure.KindOf(c.Kind).WorkerName() }

// Find finds a measure by its name: one that is declared, the time to a target,
// or one that a run of the curves reports.
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
