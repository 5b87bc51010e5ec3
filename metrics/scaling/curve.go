package scaling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// Options say how runs become curves. The zero value is the usual choice.
type Options struct {
	// Base is the worker count that all others are divided by. 0 takes, per
	// series, the smallest one that is planned or was observed: a base whose
	// runs failed is then missed, not quietly replaced by the next.
	Base int
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
}

// Planned is a point of the plan: what Observation says of a run, before there
// is one.
type Planned struct {
	Point      string // identity of the point
	Framework  string
	Workers    int
	Parameters map[string]any // as in Observation
}

// Curve is one series: runs that are equal in everything but the number of
// workers and what follows from it.
type Curve struct {
	Series     string         // the framework, and the parameters in which the series differ: "native batch=64"
	Framework  string         //
	Parameters map[string]any // what identifies the series, by TOML path; fingerprint.FIELD where runs ran on different things
	Scaling    string         // "weak" or "strong" as the runs record it; "" where they do not
	Base       *Base          // nil: the base point has no good run
	Points     []Point        // by rising Workers; only worker counts that have runs
	Warnings   []string

	// Fingerprint is what its runs ran on, as far as any of them recorded it.
	Fingerprint fingerprint.Print
	// Mixed are the facts in which its runs differ: never without Options.Mix.
	Mixed []fingerprint.Varying
	// FingerprintWarnings are those of Warnings that are about what the runs
	// ran on.
	FingerprintWarnings []string
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
	Workers    int     `json:"workers"`
	Throughput float64 `json:"throughput"` // samples/s, median over its runs
	Runs       int     `json:"runs"`       // that have a throughput
}

// Point is one worker count of a series.
type Point struct {
	Workers int
	Runs    []Run // every run of the point, by id, those without a throughput included

	// Throughput is the median over runs, in samples/s; nil when no run
	// reached a steady state.
	Throughput *Estimate
	// Speedup is the ratio of the median throughputs, this point's over the
	// base's (Hoefler & Belli, SC'15: never an average of ratios). Its
	// interval is the Hodges–Lehmann one over all ratios of single runs; see
	// ratioInterval. Exactly 1, without an interval, at the base.
	Speedup *Estimate
	// Efficiency is Speedup·base/N, a fraction. With throughput as the
	// measure it is one formula: X(N)·base/(X(base)·N) is weak-scaling
	// efficiency (work per worker fixed, so equal to T_step(base)/T_step(N))
	// and strong-scaling efficiency alike (samples per step fixed, so X is
	// inverse to the step time).
	Efficiency *Estimate
	// KarpFlatt is the serial fraction found by experiment (Karp & Flatt
	// 1990), over a fixed number of samples: (1/S − 1/n)/(1 − 1/n), with
	// n = N/base. Flat over N it is a serial part, rising it is overhead,
	// negative means superlinear or a wrong base. nil where n is not above 1.
	KarpFlatt *float64
	// KarpFlattInterval is the speedup's, through that formula; nil without one.
	KarpFlattInterval *Interval

	// EndToEnd is the median over runs of the throughput over the whole training
	// time, warm-up and evaluations included, in samples/s; nil when no run
	// recorded it.
	EndToEnd *Estimate
	// Skew is the median over runs of the share of the step time that the
	// average rank waits for the slowest; nil when no run measured it.
	Skew *float64
	// Communication is the median over runs of the share of the step time in
	// which gradients were being reduced; nil when no run measured it.
	Communication *Estimate
	// Predicted is what that share would be by a benchmark of the collectives;
	// see package exchange. Nil where nobody asked for it.
	Predicted *Prediction
	// Straggler is the rank that was the slowest most often; nil when no run
	// measured it, and for one worker, who cannot be slower than others.
	Straggler *Straggler

	TimeToAccuracy []TimeToAccuracy // by rising target
	Warnings       []string
}

// Run is one run's part in a point.
type Run struct {
	ID         string
	Job        string   // "" outside a scheduler
	Throughput *float64 // samples/s; nil: no steady state
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

// TimeToAccuracy is how long the runs of a point took to reach one target. A
// run that misses it ranks behind all that reach it (MLPerf Training's
// convergence rule read as a rank), so a target that half of the runs or more
// miss has no median.
type TimeToAccuracy struct {
	Target   float64   // accuracy, a fraction
	Seconds  *float64  // median; nil when half of the runs or more miss the target
	Interval *Interval // seconds; nil where none can be had
	Why      string    // there is no interval; "" with one
	Times    []float64 // seconds of the runs that reach the target, ascending
	Reached  int       // how many those are
	Runs     int       // runs that had it
}

// Straggler is how often one rank was the slowest. If all are alike, each is in
// one of N steps.
type Straggler struct {
	Rank  int
	Steps int     // steady steps, over all runs of the point
	Share float64 // of them in which this rank was the slowest, a fraction
}

// Throughputs are the point's measured throughputs in samples/s, ascending.
func (p *Point) Throughputs() []float64 {
	var xs []float64
	for _, r := range p.Runs {
		if r.Throughput != nil {
			xs = append(xs, *r.Throughput)
		}
	}
	slices.Sort(xs)
	return xs
}

// Analyse turns runs into one curve a series, by name. The observations are
// those of good runs, each once and in any order.
//
// When a series' base point has no good run, the error is a *NoBaseError that
// names every such series; the curves are returned all the same, those without
// a Base, speedup and efficiency. Any other error comes without curves.
func Analyse(obs []Observation, o Options) ([]Curve, error) {
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		return nil, fmt.Errorf("confidence %g is no level; give a fraction between 0 and 1, like 0.95", o.Confidence)
	}
	if o.Base < 0 {
		return nil, fmt.Errorf("base of %d workers; give 1 or more, or 0 for the smallest worker count of each series", o.Base)
	}
	if err := validate(obs, o.Planned); err != nil {
		return nil, err
	}
	an := analysis{confidence: o.Confidence, tests: map[[2]int]cut{}}
	var curves []Curve
	var missing []MissingBase
	for _, s := range group(obs, o.Planned, o.Mix) {
		c, miss := an.curve(s, o.Base)
		if miss != nil {
			missing = append(missing, *miss)
		}
		curves = append(curves, c)
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

// analysis is what the points of one Analyse share.
type analysis struct {
	confidence float64
	tests      map[[2]int]cut // cuts of the Mann–Whitney test by sample sizes
}

func (an *analysis) curve(s *series, base int) (Curve, *MissingBase) {
	c := Curve{Series: s.name, Framework: s.framework, Parameters: s.parameters}
	c.Scaling, _ = s.parameters["workload.scaling"].(string)
	if base == 0 {
		base = s.workers[0]
	}
	byWorkers := map[int][]Observation{}
	for _, o := range s.runs {
		byWorkers[o.Workers] = append(byWorkers[o.Workers], o)
	}
	var baseRuns []float64
	for _, n := range s.workers {
		runs := byWorkers[n]
		if len(runs) == 0 {
			continue
		}
		p := an.point(n, runs)
		if p.Throughput != nil && n == base {
			baseRuns = p.Throughputs()
			c.Base = &Base{Workers: n, Throughput: p.Throughput.Value, Runs: p.Throughput.Runs}
		}
		c.Points = append(c.Points, p)
	}
	if c.Base != nil {
		for i := range c.Points {
			an.speedup(&c.Points[i], *c.Base, baseRuns)
		}
	}
	c.Fingerprint, c.Mixed = s.ground()
	c.Warnings = curveWarnings(&c, s)
	if c.Base == nil {
		return c, s.missing(base, byWorkers)
	}
	return c, nil
}

func (an *analysis) point(workers int, runs []Observation) Point {
	p := Point{Workers: workers}
	slices.SortFunc(runs, func(a, b Observation) int { return cmp.Compare(a.Run, b.Run) })
	for _, o := range runs {
		r := Run{ID: o.Run, Job: o.Job}
		if o.Throughput != nil && isRate(*o.Throughput) {
			r.Throughput = o.Throughput
		}
		p.Runs = append(p.Runs, r)
	}
	if xs := p.Throughputs(); len(xs) > 0 {
		p.Throughput = &Estimate{Value: median(xs), Runs: len(xs)}
		p.Throughput.Interval, p.Throughput.Why = an.medianInterval(xs)
	}
	if xs := values(runs, func(o *Observation) *float64 { return o.EndToEnd }); len(xs) > 0 {
		p.EndToEnd = &Estimate{Value: median(xs), Runs: len(xs)}
		p.EndToEnd.Interval, p.EndToEnd.Why = an.medianInterval(xs)
	}
	if xs := values(runs, func(o *Observation) *float64 { return o.Skew }); len(xs) > 0 {
		m := median(xs)
		p.Skew = &m
	}
	if xs := values(runs, func(o *Observation) *float64 { return o.Communication }); len(xs) > 0 {
		p.Communication = &Estimate{Value: median(xs), Runs: len(xs)}
		p.Communication.Interval, p.Communication.Why = an.medianInterval(xs)
	}
	p.Straggler = straggler(workers, runs)
	p.TimeToAccuracy = an.timesToAccuracy(runs)
	p.Warnings = pointWarnings(&p, runs)
	return p
}

// isRate reports whether x can be a throughput.
func isRate(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func (an *analysis) speedup(p *Point, base Base, baseRuns []float64) {
	if p.Throughput == nil {
		return
	}
	n := float64(p.Workers) / float64(base.Workers)
	if p.Workers == base.Workers {
		p.Speedup = &Estimate{Value: 1, Runs: base.Runs, Why: AtBase}
		p.Efficiency = &Estimate{Value: 1, Runs: base.Runs, Why: AtBase}
		return
	}
	s := p.Throughput.Value / base.Throughput
	if s == 0 || math.IsInf(s, 0) {
		p.Warnings = append(p.Warnings, fmt.Sprintf("speedup left out: %g samples/s against %g at the base is beyond what can be divided", p.Throughput.Value, base.Throughput))
		return
	}
	p.Speedup = &Estimate{Value: s, Runs: p.Throughput.Runs}
	p.Speedup.Interval, p.Speedup.Why = an.ratioInterval(p.Throughputs(), baseRuns)
	p.Efficiency = &Estimate{Value: s / n, Runs: p.Speedup.Runs, Why: p.Speedup.Why}
	if in := p.Speedup.Interval; in != nil {
		p.Efficiency.Interval = &Interval{Low: in.Low / n, High: in.High / n, Level: in.Level}
	}
	if n > 1 {
		serial := func(s float64) float64 { return (1/s - 1/n) / (1 - 1/n) }
		e := serial(s)
		p.KarpFlatt = &e
		if in := p.Speedup.Interval; in != nil {
			p.KarpFlattInterval = &Interval{Low: serial(in.High), High: serial(in.Low), Level: in.Level}
		}
	}
	p.Warnings = append(p.Warnings, speedupWarnings(p, n)...)
}

// timesToAccuracy has one entry for each target that any run had. A run's
// first mention of a target counts.
func (an *analysis) timesToAccuracy(runs []Observation) []TimeToAccuracy {
	times := map[float64][]float64{} // +Inf for a run that misses
	for _, o := range runs {
		seen := map[float64]bool{}
		for _, t := range o.Targets {
			if seen[t.Target] || math.IsNaN(t.Target) {
				continue
			}
			seen[t.Target] = true
			at := math.Inf(1)
			if t.Seconds != nil && *t.Seconds >= 0 {
				at = *t.Seconds
			}
			times[t.Target] = append(times[t.Target], at)
		}
	}
	var list []TimeToAccuracy
	for target, xs := range times {
		slices.Sort(xs)
		t := TimeToAccuracy{Target: target, Runs: len(xs)}
		for _, x := range xs {
			if !math.IsInf(x, 1) {
				t.Times = append(t.Times, x)
			}
		}
		t.Reached = len(t.Times)
		if m := median(xs); !math.IsInf(m, 1) {
			t.Seconds = &m
		}
		t.Interval, t.Why = an.medianInterval(xs)
		if t.Interval != nil && math.IsInf(t.Interval.High, 1) {
			t.Interval, t.Why = nil, "too many runs miss the target for an interval with an upper end"
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b TimeToAccuracy) int { return cmp.Compare(a.Target, b.Target) })
	return list
}
