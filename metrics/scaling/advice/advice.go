// Package advice answers the question that a scaling study was made for: how
// many workers? It weighs what was measured and what the law of package predict says of
// other counts, and says of every figure where it comes from.
//
// Package decision chooses among them, by how likely each keeps the limits or, without
// limits, is worth its workers. Advice puts the choice into words, with its probability and
// its doubts, and names the measurement that could change it. The package is pure.
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

// Options are the user's question. The zero value asks for the
// knee: as many workers as still pay.
type Options struct {
	Target        *measure.Target // to reach; nil: the program's own target, else the hardest of the study's that half of the runs at some count are shown to reach
	Samples       float64         // to train on, where there is no target; 0: not said
	Deadline      float64         // seconds from start to target, initialisation included; 0: none
	Budget        float64         // in Currency; 0: none
	MinEfficiency float64         // a fraction; 0: none
	Confidence    float64         // of intervals; 0 is 0.95
	Sure          float64         // probability from which on the answer is decided; 0: decision.Sure

	// Cost is the price of holding so many workers on so many nodes for so many
	// seconds; nil: no prices. Its error says why this use has none.
	Cost     func(workers, nodes int, seconds float64) (float64, error)
	Currency string

	// Figure is the measure that the runs have as their throughput
	// (scaling.AsThroughput); nil: their throughput.
	Figure *measure.Measure
	// Warnings are on the study as a whole. Those that can change the answer become doubts.
	Warnings []string
	// Most is the largest number of workers that can run; 0: not known. No measurement
	// with more is asked for.
	Most int
}

// Basis tells where a candidate's throughput comes from.
type Basis string

// The bases.
const (
	Measured     Basis = "measured"
	Interpolated Basis = "interpolated"
	Extrapolated Basis = "extrapolated"
	Predicted    Basis = "predicted" // by package predict, from too little for a law: never the answer
)

// An Estimate is a value with its interval. Low and High are nil without an interval.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Candidate is one worker count that could be chosen.
type Candidate struct {
	Workers    int       `json:"workers"`
	Nodes      *int      `json:"nodes"` // null: not known
	Basis      Basis     `json:"basis"`
	Runs       int       `json:"runs"`       // with a throughput, or else a time; 0 where nothing was measured
	Throughput *Estimate `json:"throughput"` // samples/s; null where runs have times alone
	Figure     *Estimate `json:"figure"`     // of a question about a measure: its value, in its unit; then there is no throughput
	Efficiency *Estimate `json:"efficiency"` // fraction, over the base
	// Training is the time on the training clock, as scaling has it; Seconds has
	// initialisation before it: from the start of the processes to the target.
	// Candidates are compared, and priced, by Seconds.
	Training *Estimate `json:"train_seconds"`
	Seconds  *Estimate `json:"seconds"`
	// Keeps is the probability, a fraction, that the candidate keeps all limits that
	// were asked for; null without a limit, or without intervals to tell it from.
	Keeps   *float64  `json:"keeps_limits"`
	Samples *Estimate `json:"samples"` // to the target, of runs that reach it
	// Miss is the chance that a run with this count's global batch misses the
	// target, a fraction. Training and Seconds are medians over all runs, those that
	// miss ranking last. null where no run is known to miss.
	Miss *Estimate `json:"miss"`
	Cost *Estimate `json:"cost"` // in the advice's currency
	Why  []string  `json:"why"`  // what could not be had, and why; never null
}

// Next is the measurement that would help most.
type Next struct {
	Workers int    `json:"workers"`
	Runs    int    `json:"runs"`   // more of them
	Beside  []int  `json:"beside"` // measured again in the same blocks, to be compared with; never null
	Why     string `json:"why"`
	// Command is the command line that measures it; "": not known. Package advice
	// leaves it empty.
	Command string `json:"command"`
}

// Contender is a worker count that may be the better answer.
type Contender struct {
	Workers     int     `json:"workers"`
	Probability float64 `json:"probability"` // of that, a fraction
}

// Advice is the answer for one series.
type Advice struct {
	Series  string           `json:"series"`
	Scaling string           `json:"scaling"` // "weak", "strong"; "" where not recorded
	Sample  string           `json:"-"`       // what throughputs count, as in Curve
	Measure string           `json:"measure"` // that is decided by, if asked for; "": time or throughput
	Base    *scaling.RowBase `json:"base"`
	// Workers is the answer; null where no candidate does what was asked.
	Workers *int `json:"workers"`
	// Probability is how likely the answer is the best, within 2 %, of those that could be
	// compared, at least; with limits, how likely it keeps them and is within 10 % of the
	// best. null: not known.
	Probability *float64 `json:"probability"`
	// Provisional reports whether more runs or a doubt may change the answer.
	Provisional bool        `json:"provisional"`
	Undecided   []Contender `json:"undecided"`  // never null
	Equivalent  []int       `json:"equivalent"` // within 2 % of the answer; never null
	// Unproven are counts that have too few runs to be compared with the answer, or with a
	// limit, and are too near to it to do without.
	Unproven []int            `json:"-"`
	Doubts   []decision.Doubt `json:"doubts"` // never null
	// Reason is two sentences: the answer, and what limits scaling further.
	Reason    [2]string `json:"reason"`
	Objective string    `json:"objective"` // what was asked, in words
	// Ranking is set where the answer compares medians of what was measured, without
	// intervals.
	Ranking    bool            `json:"ranking"`
	Confidence float64         `json:"confidence"` // asked of every interval, a fraction
	Goal       string          `json:"goal"`       // measure of the time to what is to be reached: "to_0.75", "to_target"; "": nothing
	Target     *measure.Target `json:"target"`     // an accuracy as a fraction, "loss<=2"; null: none, or the program's own target
	Currency   string          `json:"currency"`   // of costs; "" without prices
	Candidates []Candidate     `json:"candidates"` // by rising workers; never null
	Limits     Limits          `json:"limits"`
	Next       *Next           `json:"next"` // null: no run could change the answer
	// Beyond is a count beyond the data that would be better if throughput went on as
	// the law says: to be measured, not relied on. null: none.
	Beyond *int `json:"beyond"`
	// Refused is why nothing beyond the measured worker counts is answered; ""
	// when it is.
	Refused  string   `json:"refused"`
	HoldOut  *float64 `json:"hold_out"` // error of the law on the largest measured worker count, a fraction; null without a fit
	Law      []string `json:"law"`      // the parts of the step that the law finds, the largest first; never null
	Warnings []string `json:"warnings"` // never null
	limited  bool
	unit     string // of Measure
	lower    bool   // Measure is better when lower
	compared string // what decides without limits, in words: "the time to 75 % accuracy"; "" with limits
	faster   func(x, y int) *scaling.Estimate
}

// Unit returns the unit of the measure that was asked for.
func (a *Advice) Unit() string { return a.unit }

// Faster returns how many times as fast x workers are as y, by what the answer goes by:
// the time to the target, or the throughput. It is nil if unknown.
func (a *Advice) Faster(x, y int) *scaling.Estimate { return a.faster(x, y) }

// Limited reports whether limits were asked for.
func (a *Advice) Limited() bool { return a.limited }

// Check says what is wrong with the options, by the name of their flag.
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

// study is one series on the way to its advice.
type study struct {
	Advice
	o         Options
	curve     *scaling.Curve
	obs       []scaling.Observation          // all that were given
	runs      map[int][]*scaling.Observation // by workers
	law       *predict.Law                   // nil: refused
	sketch    *carrier                       // the law from whatever was measured; nil: refused
	data      []decision.Doubt               // warnings about the runs that can change the answer
	edge      *Estimate                      // of law at its largest measured count; nil: none
	nodeSize  int                            // workers a whole node holds; 0: not known
	oneNode   bool                           // everything was measured on a single node
	conv      *predict.Convergence           // nil: no target, or no run reached it
	misses    misses
	lost      float64  // smallest global batch at which half of the runs or more miss the target; +Inf
	lostRuns  string   // what happened there
	beside    beside   // what the training clock counts beside steps
	timeless  string   // why no candidate has a time; ""
	slowStart *float64 // seconds of initialisation at the largest count that recorded it
	started   bool     // all points with a time to the target recorded their initialisation
}

// Advise answers for one curve. The observations are those that the curve was
// made of; others are ignored.
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
	s := &study{o: o, curve: &c, obs: obs, misses: newMisses(o.Confidence), lost: math.Inf(1), runs: map[int][]*scaling.Observation{}}
	s.Advice = Advice{Series: c.Series, Scaling: c.Scaling, Sample: c.Sample, Base: c.Base.Row(), Confidence: o.Confidence,
		Candidates: []Candidate{}, Law: []string{}, Warnings: []string{}, Undecided: []Contender{}, Equivalent: []int{}, Doubts: []decision.Doubt{}}
	if o.Figure != nil {
		s.Measure, s.unit, s.lower = o.Figure.Name, o.Figure.Unit, o.Figure.Better == measure.Lower
	}
	if o.Cost != nil {
		s.Currency = o.Currency
	}
	mine := map[string]bool{}
	for _, p := range c.Points {
		for _, r := range p.Runs {
			mine[r.ID] = true
		}
	}
	for i := range obs {
		if ob := &obs[i]; mine[ob.Run] {
			s.runs[ob.Workers] = append(s.runs[ob.Workers], ob)
		}
	}
	for _, text := range scaling.DecisiveIn([]scaling.Curve{c}, o.Warnings...) {
		s.data = append(s.data, decision.Doubt{Kind: decision.Data, Text: text, Changes: true})
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
	s.Ranking = s.law == nil && len(s.runs) > 0 && !slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.main() != nil && c.main().Low != nil })
	s.choose()
	s.next()
	s.asFigure()
	s.faster = func(x, y int) *scaling.Estimate {
		a, b := s.point(x), s.point(y)
		if a == nil || b == nil {
			return nil
		}
		return s.over(a, b).Estimate
	}
	return &s.Advice, nil
}

// asFigure converts what was computed as throughputs into the measure that was asked for.
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
	for i := range s.Candidates {
		c := &s.Candidates[i]
		e := c.Throughput
		c.Throughput = nil
		if e == nil {
			continue
		}
		c.Figure = &Estimate{Value: value(e.Value)}
		if e.Low != nil && e.High != nil {
			low, high := value(*e.Low), value(*e.High)
			low, high = min(low, high), max(low, high)
			c.Figure.Low, c.Figure.High = &low, &high
		}
	}
	if b := s.Base; b != nil && b.Throughput != nil {
		x := value(*b.Throughput)
		b.Throughput, b.Unit = &x, m.Unit
	}
}

// rate returns the name of the figure that is compared if there is no time.
func (s *study) rate() string {
	if s.o.Figure != nil {
		return s.o.Figure.Title
	}
	return "throughput"
}

// place finds out how workers are spread over nodes.
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

// globalBatch is the samples a step of a run: as recorded, else by the study's
// batch, which is each worker's when scaling is weak. 0 when neither is known.
func globalBatch(o *scaling.Observation) float64 {
	if b := scaling.ValueOf(o.Parameters["global_batch"]).Number; b > 0 {
		return b
	}
	b := scaling.ValueOf(o.Parameters["workload.batch"]).Number
	switch o.Parameters["workload.scaling"] {
	case "weak":
		return b * float64(o.Workers)
	case "strong":
		return b
	}
	return 0
}

// batchAt is the global batch that a number of workers trains with: a measured
// count uses the batch of its own runs; others follow the scaling if all runs do.
// It is 0 if unknown.
func (s *study) batchAt(workers int) float64 {
	if own := batchesOf(s.runs[workers], 1); len(own) == 1 {
		return own[0]
	}
	if len(s.runs[workers]) > 0 {
		return 0
	}
	var each []float64
	for n, runs := range s.runs {
		workers := 1
		if s.curve.Scaling == "weak" {
			workers = n
		}
		each = append(each, batchesOf(runs, workers)...)
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

// batchesOf are the different global batches of runs, shared among the workers.
func batchesOf(runs []*scaling.Observation, workers int) []float64 {
	var list []float64
	for _, o := range runs {
		if b := globalBatch(o) / float64(workers); b > 0 && !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	return list
}

func (s *study) warn(format string, a ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, a...))
}
