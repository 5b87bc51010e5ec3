// Package advice answers the question that a scaling study was made for: how many workers should
// a training use? It uses what was measured and what the model fitted by package predict says
// about worker counts that were not measured, and records for every value where it comes from.
//
// Package decision chooses among the worker counts, by the probability that each meets the limits
// or, without limits, that its speedup is worth its workers. Package advice puts the choice into
// words, with its probability and the reasons why it may be wrong (doubts), and names the
// measurement that could change it. The package does no I/O.
package advice

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// Options are the user's question. The zero value asks for the knee of the curve: the largest
// worker count at which each doubling still brings enough speedup.
type Options struct {
	Target        *measure.Target // the target to reach; nil: the program's own target, else the hardest one that half of the runs at some worker count are shown to reach
	Samples       float64         // samples to train on if there is no target; 0: not given
	Deadline      float64         // seconds from start to target, initialisation included; 0: none
	Budget        float64         // largest cost, in Currency; 0: none
	MinEfficiency float64         // smallest efficiency, a fraction; 0: none
	Confidence    float64         // confidence level of intervals; 0 means 0.95
	Sure          float64         // probability from which on the answer counts as decided; 0: decision.Sure

	// Cost returns the price of using that many workers on that many nodes for that many seconds;
	// nil: without prices. Its error says why this use has no price.
	Cost     func(workers, nodes int, seconds float64) (float64, error)
	Currency string

	// Figure is the measure to compare instead of the throughput; the observations then hold it
	// as their throughput (see scaling.AsThroughput). nil: the throughput.
	Figure *measure.Measure
	// OnlyFigure reports that the user named no measure, and Figure is the only one of the runs that fits.
	OnlyFigure bool
	// Warnings concern the whole study. Those that can change the answer are also listed in
	// Doubts.
	Warnings []string
	// Most is the largest number of workers that can run; 0: unknown. No measurement with more
	// workers is suggested.
	Most int
}

// Basis says where a candidate's throughput comes from.
type Basis string

// The values of Basis.
const (
	Measured     Basis = "measured"
	Interpolated Basis = "interpolated"
	Extrapolated Basis = "extrapolated"
	Predicted    Basis = "predicted" // predicted from too few runs to trust the model; never the answer
)

// An Estimate is a value with its interval. Low and High are nil without an interval.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// oneSided is the value with an interval of which each end alone has the level of the advice; nil:
	// unknown.
	oneSided *decision.Belief
}

// Candidate is a worker count that could be the answer.
type Candidate struct {
	Workers    int       `json:"workers"`
	Nodes      *int      `json:"nodes"` // null: unknown
	Basis      Basis     `json:"basis"`
	Runs       int       `json:"runs"`       // runs with a throughput or, if none has one, with a time; 0: not measured
	Throughput *Estimate `json:"throughput"` // samples/s; null if runs have only times
	Figure     *Estimate `json:"figure"`     // value of the measure that the user asked about, in its unit; Throughput is then null
	Efficiency *Estimate `json:"efficiency"` // a fraction, relative to the base
	// Training is the time on the training clock, which excludes initialisation, as in the
	// scaling tables. Seconds is the time from the start of the processes to the target, which
	// includes it. Candidates are compared and priced by Seconds.
	Training *Estimate `json:"train_seconds"`
	Seconds  *Estimate `json:"seconds"`
	// Keeps is the probability, a fraction, that the candidate meets all limits; without limits,
	// that going up to it from every smaller count is worth it. null without the intervals to
	// compute it from.
	Keeps *float64 `json:"keeps_limits"`
	// KeepsOn is the probability for a candidate beyond the measured counts, which then has no
	// Keeps. It holds if throughput continues as the fitted model says: nothing that was measured
	// tells whether a new limit appears there.
	KeepsOn *float64  `json:"keeps_limits_if_no_new_limit"`
	Samples *Estimate `json:"samples"` // samples that runs train on until they reach the target, without the runs that miss it
	// Miss is the probability, a fraction, that a run with this count's global batch misses the
	// target. Training and Seconds are medians over all runs; a run that misses counts as slower
	// than all that reach the target. null if no run misses it.
	Miss *Estimate `json:"miss"`
	Cost *Estimate `json:"cost"` // in the currency of the Advice
	Why  []string  `json:"why"`  // values that are missing, each with the reason; never null
}

// Next is the measurement that would help most.
type Next struct {
	Workers    int    `json:"workers"`
	Runs       int    `json:"runs"`   // how many more; 0: those that are queued suffice
	Queued     int    `json:"queued"` // runs of these worker counts that are queued or running, and are not in Runs
	Neighbours []int  `json:"beside"` // worker counts to measure again in the same blocks, for comparison; never null
	Why        string `json:"why"`
	// NodeHours are the node-hours that the runs take if they are like earlier ones, and Chance is the
	// probability that they decide; null: unknown. Package advice leaves both empty.
	NodeHours *float64 `json:"node_hours"`
	Chance    *float64 `json:"chance"`
	// AfterRepair reports that the runs help only once the cause of a warning is removed.
	AfterRepair bool `json:"-"`
	// Command is the command line that makes the measurement; "": unknown. Package advice leaves
	// it empty.
	Command string `json:"command"`
}

// Subtract subtracts runs that are queued or running, by worker count, from those to measure. Counts
// with enough of them are left out.
func (n *Next) Subtract(queued map[int]int) {
	var left []int
	least := math.MaxInt
	for _, workers := range append([]int{n.Workers}, n.Neighbours...) {
		n.Queued += queued[workers]
		if queued[workers] < n.Runs {
			left, least = append(left, workers), min(least, queued[workers])
		}
	}
	if left == nil {
		n.Runs = 0
		return
	}
	n.Workers, n.Neighbours, n.Runs = left[0], left[1:], n.Runs-least
}

// Contender is a worker count that may be the better answer.
type Contender struct {
	Workers     int     `json:"workers"`
	Probability float64 `json:"probability"` // probability that it is the better answer, from 0 to 1
}

// Advice is the answer for one series.
type Advice struct {
	Series  string           `json:"series"`
	Scaling string           `json:"scaling"` // "weak", "strong"; "" if not recorded
	Sample  string           `json:"-"`       // what the throughput counts, as in scaling.Curve
	Measure string           `json:"measure"` // the measure that decides, if the user asked for one; "": the time or the throughput
	Base    *scaling.RowBase `json:"base"`
	// Workers is the answer; null if no candidate meets the limits or can be compared.
	Workers *int `json:"workers"`
	// Probability is a lower bound of the probability that the answer is the best of the
	// candidates that could be compared, or within 2 % of it. With limits it is the probability
	// that the answer meets them and is within 10 % of the best. null: unknown.
	Probability *float64 `json:"probability"`
	// Provisional reports whether more runs or a doubt may change the answer.
	Provisional bool        `json:"provisional"`
	Undecided   []Contender `json:"undecided"`  // never null
	Equivalent  []int       `json:"equivalent"` // worker counts within 2 % of the answer; never null
	// Unproven are worker counts that have too few runs to be compared with the answer, or with a
	// limit, and are so close to it that more runs may change the answer.
	Unproven []int             `json:"-"`
	Caveats  []decision.Caveat `json:"doubts"` // never null
	// Reason is two sentences: the answer, and what limits scaling further.
	Reason    [2]string `json:"reason"`
	Objective string    `json:"objective"` // the question in words
	// Ranking reports that the answer compares measured medians without intervals.
	Ranking    bool            `json:"ranking"`
	Confidence float64         `json:"confidence"` // level of every interval, a fraction
	Goal       string          `json:"goal"`       // measure of the time to the target: "to_0.75", "to_target"; "": no target
	Target     *measure.Target `json:"target"`     // "0.75" for an accuracy, "loss<=2"; null: none, or the program's own target
	Currency   string          `json:"currency"`   // of costs; "" without prices
	Candidates []Candidate     `json:"candidates"` // by ascending workers; never null
	Limits     Limits          `json:"limits"`
	Next       *Next           `json:"next"` // null: no further run could change the answer
	// Beyond is a worker count above the measured ones that would be better if throughput grew as
	// the fitted model says. It must be measured before anyone relies on it. null: none.
	Beyond *int `json:"beyond"`
	// Refused says why nothing is predicted beyond the measured worker counts; "" with
	// a prediction.
	Refused  string   `json:"refused"`
	HoldOut  *float64 `json:"hold_out"` // relative error of the model's prediction for the largest measured worker count; null without a fit
	Law      []string `json:"law"`      // the parts of the step time that the model finds, the largest first; never null
	Warnings []string `json:"warnings"` // never null
	// OnlyFigure is as in Options.
	OnlyFigure bool `json:"-"`
	limited    bool
	unit       string // of Measure
	lower      bool   // Measure is better when lower
	compared   string // the measure that decides without limits, in words: "the time to 75 % accuracy"; "" with limits
	faster     func(x, y int) *scaling.Estimate
}

// Unit returns the unit of the measure that was asked for.
func (a *Advice) Unit() string { return a.unit }

// Faster returns the speed of x workers divided by the speed of y workers. The speed is that of
// reaching the target if times decide, and else the throughput. It returns nil if the ratio is
// unknown.
func (a *Advice) Faster(x, y int) *scaling.Estimate { return a.faster(x, y) }

// Limited reports whether the user set limits.
func (a *Advice) Limited() bool { return a.limited }

// Check returns an error that names the option, by its command-line flag, that is not valid.
func (o *Options) Check() error {
	finite := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	switch {
	case !(o.MinEfficiency >= 0 && o.MinEfficiency <= 1):
		return fmt.Errorf("min-efficiency %g is not an efficiency; give a share above 0 and up to 1, like 70%% or 0.7", o.MinEfficiency)
	case !finite(o.Samples):
		return fmt.Errorf("samples %g cannot be trained on; give a number above 0", o.Samples)
	case !finite(o.Deadline):
		return fmt.Errorf("a deadline of %g s cannot be kept; give a length of time above 0", o.Deadline)
	case !finite(o.Budget):
		return fmt.Errorf("a budget of %g cannot be spent; give an amount above 0", o.Budget)
	case o.Target != nil && o.Samples > 0:
		return errors.New("target and samples cannot be combined; give one")
	case o.Figure != nil && (o.Target != nil || o.Samples > 0 || o.Deadline > 0 || o.Budget > 0):
		return fmt.Errorf("target, samples, deadline and budget are about times to a target, and measure %s is compared by itself; leave them out", o.Figure.Name)
	case o.Budget > 0 && o.Cost == nil:
		return errors.New("a budget needs prices; give a site file with [[prices]]")
	}
	return nil
}

// study holds one series while its advice is computed.
type study struct {
	Advice
	o         Options
	curve     *scaling.Curve
	study     string                         // name of the study
	observed  []*scaling.Observation         // runs of the series
	runs      map[int][]*scaling.Observation // the same, by worker count
	batches   map[int][]float64              // different global batches of runs, if known, by worker count
	law       *predict.Law                   // the fitted model; nil: too few runs for it, or no model fits
	sketch    *carrier                       // a model fitted to however few runs there are; nil: none fits
	data      []decision.Caveat              // warnings about the runs that can change the answer
	edge      *Estimate                      // throughput that law gives for its largest measured count; nil: none
	nodeSize  int                            // workers that fill a node; 0: unknown
	oneNode   bool                           // all counts, more than one, were measured on a single node
	conv      *predict.Convergence           // samples to the target by batch; nil: no target, or no run reached it
	misses    misses
	lost      float64  // smallest global batch at which half of the runs or more miss the target; +Inf: none
	lostRuns  string   // how many runs missed it there, in words
	beside    overhead // time on the training clock outside steps
	timeless  string   // why no candidate has a time; "": candidates have times
	slowStart *float64 // seconds of initialisation at the largest count that recorded it
	started   bool     // all points with a time to the target recorded their initialisation
}

// Advise returns the advice for one curve. Of obs it uses only the runs that are in the curve.
func Advise(c scaling.Curve, obs []scaling.Observation, o Options) (*Advice, error) {
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		return nil, fmt.Errorf("confidence %g is not a level; give a fraction between 0 and 1, like 0.95", o.Confidence)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &study{o: o, curve: &c, observed: c.Observed(obs), misses: newMisses(o.Confidence), lost: math.Inf(1),
		runs: map[int][]*scaling.Observation{}, batches: map[int][]float64{}}
	if len(obs) > 0 {
		s.study = obs[0].Study
	}
	s.Advice = Advice{Series: c.Series, Scaling: c.Scaling, Sample: c.Sample, Base: c.Base.Row(), Confidence: o.Confidence,
		Candidates: []Candidate{}, Law: []string{}, Warnings: []string{}, Undecided: []Contender{}, Equivalent: []int{}, Caveats: []decision.Caveat{}}
	if o.Figure != nil {
		s.Measure, s.unit, s.lower, s.OnlyFigure = o.Figure.Name, o.Figure.Unit, o.Figure.Better == measure.Lower, o.OnlyFigure
	}
	if o.Cost != nil {
		s.Currency = o.Currency
	}
	for _, ob := range s.observed {
		n := ob.Workers
		s.runs[n] = append(s.runs[n], ob)
		if b := predict.Batch(ob); b > 0 && !slices.Contains(s.batches[n], b) {
			s.batches[n] = append(s.batches[n], b)
		}
	}
	for _, text := range scaling.DecisiveIn([]scaling.Curve{c}, o.Warnings...) {
		s.data = append(s.data, decision.Caveat{Kind: decision.Data, Text: text, Changes: true})
	}
	s.limited = o.Deadline > 0 || o.Budget > 0 || o.MinEfficiency > 0
	s.place()
	if err := s.fit(); err != nil {
		return nil, err
	}
	if err := s.converge(); err != nil {
		return nil, err
	}
	s.candidates()
	s.limits()
	s.Ranking = s.law == nil && len(s.runs) > 0 && !slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return s.enoughRuns(&c) })
	s.choose()
	s.next()
	s.withholdOdds()
	s.asFigure()
	s.faster = func(x, y int) *scaling.Estimate {
		a, b := s.point(x), s.point(y)
		if a == nil || b == nil {
			return nil
		}
		p, q := s.speeds(a, b)
		return p.Ratio(q).Estimate
	}
	s.law, s.sketch = nil, nil // faster holds s, and a law has many draws
	return &s.Advice, nil
}

// asFigure moves values from the throughput fields to Figure, if the user asked about another
// measure. During the computation, that measure is stored as the throughput.
func (s *study) asFigure() {
	m := s.o.Figure
	if m == nil {
		return
	}
	value := func(x float64) float64 {
		if m.Better == measure.Lower {
			return 1 / x
		}
		return x
	}
	// The median of an even number of times is not 1 over the median of their inverses.
	median := func(workers int, otherwise float64) float64 {
		p := s.point(workers)
		if p == nil || len(p.Of(measure.Throughput).Values) == 0 {
			return value(otherwise)
		}
		var own []float64
		for _, x := range p.Of(measure.Throughput).Values {
			own = append(own, value(x))
		}
		return scaling.Middle(own)
	}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		e := c.Throughput
		c.Throughput = nil
		if e == nil {
			continue
		}
		c.Figure = &Estimate{Value: median(c.Workers, e.Value)}
		if e.Low != nil && e.High != nil {
			low, high := value(*e.Low), value(*e.High)
			low, high = min(low, high), max(low, high)
			c.Figure.Low, c.Figure.High = &low, &high
		}
	}
	if b := s.Base; b != nil && b.Throughput != nil {
		b.Throughput, b.Unit = new(median(b.Workers, *b.Throughput)), m.Unit
	}
}

// rate returns the name of the measure that is compared if times are unknown.
func (s *study) rate() string {
	if s.o.Figure != nil {
		return s.o.Figure.Title
	}
	return "throughput"
}

// place derives from the runs how many workers a node holds, and whether all ran on one node.
func (s *study) place() {
	several := false
	s.oneNode = true
	for n, runs := range s.runs {
		several = several || n > 1
		for _, o := range runs {
			s.oneNode = s.oneNode && o.Nodes == 1
			if o.Nodes > 1 {
				s.nodeSize = max(s.nodeSize, n/o.Nodes)
			}
		}
	}
	s.oneNode = s.oneNode && several
}

// batchAt returns the global batch for a worker count. A measured count has the batch of its
// runs. Other counts have the batch that all runs have in common, in total for strong scaling and
// per worker for weak scaling. It returns 0 if unknown.
func (s *study) batchAt(workers int) float64 {
	if own := s.batches[workers]; len(own) == 1 {
		return own[0]
	}
	if len(s.runs[workers]) > 0 {
		return 0
	}
	var each []float64
	for n, batches := range s.batches {
		if s.curve.Scaling != "weak" {
			n = 1
		}
		for _, b := range batches {
			each = append(each, b/float64(n))
		}
	}
	slices.Sort(each)
	switch each = slices.Compact(each); {
	case len(each) != 1:
		return 0
	case s.curve.Scaling == "weak":
		return each[0] * float64(workers)
	}
	return each[0]
}

func (s *study) warn(format string, a ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, a...))
}
