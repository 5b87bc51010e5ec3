// Package sensitivity computes how much of each resource a workload needs. From runs with
// plenty of everything and runs with less, it derives which amounts suffice, which do not,
// and which runs would decide.
//
// Resources can compensate for each other, so amounts that suffice one by one may be too
// little together. An answer is therefore a combination that was measured. The package has
// no side effects.
package sensitivity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// level is the default confidence level of intervals.
const level = 0.95

// Usual is the default share of the reference's value that less of a resource may cost.
const Usual = 0.05

// Options configure the analysis.
type Options struct {
	Measure measure.Measure // the measure to keep
	Factors []string        // resources: parameters by TOML path
	// Epsilon is the permitted loss as a share of the measure, between 0 and 1; 0 means
	// Usual.
	Epsilon float64
	Mix     bool // as in scaling.Options
	// Confidence is the level of intervals; 0 means 0.95. With FewRuns, ratios have an interval
	// from 4 runs on. Both are for studies that are analysed while they grow.
	Confidence float64
	FewRuns    bool
	// Exhausted are points where a run ended because memory ran out. They are too little,
	// even if other runs succeeded.
	Exhausted []scaling.Planned
	// Warnings concern the whole study. Those that can change the answer make it provisional.
	Warnings []string
}

// sure is the probability of sufficing that an answer needs: the interval is above the permitted
// loss.
func (o *Options) sure() float64 { return (1 + o.Confidence) / 2 }

// A Verdict says whether an amount suffices.
type Verdict string

// The verdicts. The interval of an undecided amount includes the permitted loss.
const (
	Enough    Verdict = "enough"
	TooLittle Verdict = "too little"
	Undecided Verdict = "undecided"
)

// A Level is one amount of a resource, with plenty of all others.
type Level struct {
	At      scaling.Value
	Ratio   *scaling.Estimate // the measure here relative to the reference, above 1 if better; nil at the reference
	Verdict Verdict
	Keeps   *float64  // probability that it suffices; nil: unknown
	Runs    int       // 0: memory ran out in one of them
	Gains   []float64 // of each run over the reference's median, ascending
	Bound   Bound     // what limits the speed of the runs
}

// A Factor is the result for one resource.
type Factor struct {
	Key       string
	Reference scaling.Value // plenty: the largest amount that no other surely beats, or the best word
	Ordered   bool          // they are amounts, numbers or labels with a unit; words have no order
	Levels    []Level       // from the reference down; words in natural order
	// Enough is the smallest sufficient amount with no insufficient one above it; the
	// reference's if nothing less suffices. Nil for words.
	Enough *scaling.Value
	// TooLittle is the largest insufficient amount; nil for none, and for words.
	TooLittle *scaling.Value
}

// An Allocation is a combination of amounts.
type Allocation struct {
	At      map[string]scaling.Value // by factor
	Value   *scaling.Estimate        // of the measure; nil if not measured
	Ratio   *scaling.Estimate        // as in Level; nil at the reference, and if not measured
	Verdict Verdict                  // "" if not measured
	Keeps   *float64                 // probability that it suffices; nil: unknown
	Runs    int                      // 0 with a verdict: memory ran out in one of them
	Gains   []float64                // as in Level
	Bound   Bound                    // as in Level
	Points  []string                 // IDs of the points of its runs
}

// A Contender is a smaller combination that may suffice, too.
type Contender struct {
	At    map[string]scaling.Value
	Keeps float64 // probability
}

// An Answer says how much of each resource one series of runs needs.
type Answer struct {
	Series     string
	Parameters map[string]any // of the series, as in scaling.Curve
	Measure    measure.Measure
	Epsilon    float64
	Reference  Allocation
	Value      *scaling.Estimate // of the measure at the reference
	Factors    []Factor          // those that were varied alone
	Together   []Allocation      // combinations that differ from the reference in several factors, smallest first
	// Spec is the smallest measured combination that suffices; nil for none. It is the
	// reference if less of any resource is too little.
	Spec *Allocation
	// Provisional reports whether something smaller may suffice (a measured combination in
	// Undecided, or an unmeasured one in Next), or the runs are in doubt (Because).
	Provisional bool
	Because     []string    // warnings about the runs that can change the answer
	Undecided   []Contender // the likeliest first
	// Also are other sufficient combinations as many steps below the reference. Prices
	// decide which of them is best.
	Also []Allocation
	// Next are combinations whose measurement would decide: smaller ones that may suffice
	// and were not measured often enough.
	Next []Allocation
	// Imported reports whether all runs were imported, so that no more of them are suggested.
	Imported bool
	// Why says why the answer is missing; "" with one.
	Why         string
	Warnings    []string     // warnings about the runs
	RunWarnings []RunWarning // about the runs of single combinations
	Load        Load         // of the reference's runs
	Course      []float64    // see courseOf; nil without two blocks
	keys        []string
	measured    []Allocation // every combination
}

// Factor returns the result for one resource; nil if it was not varied alone.
func (a *Answer) Factor(key string) *Factor {
	for i := range a.Factors {
		if a.Factors[i].Key == key {
			return &a.Factors[i]
		}
	}
	return nil
}

// Keys returns the factors in the requested order.
func (a *Answer) Keys() []string { return a.keys }

// With returns the reference with another amount of one resource.
func (a *Answer) With(key string, v scaling.Value) map[string]scaling.Value {
	at := maps.Clone(a.Reference.At)
	at[key] = v
	return at
}

// Same reports whether two combinations are equal.
func Same(a, b map[string]scaling.Value) bool { return maps.Equal(a, b) }

// joint is the axis of combinations.
const joint = "resources"

// Analyse returns an answer for each series of runs that agree in everything except the factors.
func Analyse(obs []scaling.Observation, o Options) ([]Answer, error) {
	if o.Epsilon == 0 {
		o.Epsilon = Usual
	}
	o.Confidence = cmp.Or(o.Confidence, level)
	if !(o.Epsilon > 0 && o.Epsilon < 1) {
		return nil, fmt.Errorf("a loss of %g; want more than 0 and less than 1", o.Epsilon)
	}
	if len(o.Factors) == 0 {
		return nil, fmt.Errorf("no resource differs between the runs")
	}
	// Put all combinations on one axis, so that ratios, blocks, drift and nodes are handled
	// as for every curve.
	joined := make([]scaling.Observation, len(obs))
	byRun := scaling.ByRun(obs)
	at := map[string]map[string]scaling.Value{} // by the combination's name
	for i, run := range obs {
		combination := combinationOf(run.Parameters, o.Factors)
		parameters := maps.Clone(run.Parameters)
		for _, key := range o.Factors {
			delete(parameters, key)
		}
		name := nameOf(combination, o.Factors)
		at[name] = combination
		parameters[joint] = name
		run.Parameters = parameters
		joined[i] = run
	}
	options := scaling.Options{Measure: o.Measure, Axis: joint, Mix: o.Mix, Confidence: o.Confidence, FewRuns: o.FewRuns}
	curves, err := scaling.Analyse(joined, options)
	if curves == nil {
		return nil, err
	}
	var answers []Answer
	for _, c := range curves {
		reference := referenceOf(c, at, o)
		if reference == "" {
			answers = append(answers, Answer{Series: c.Series, Parameters: c.Parameters, Measure: o.Measure, Epsilon: o.Epsilon, keys: o.Factors,
				Why: fmt.Sprintf("no run has a %s", o.Measure.Title)})
			continue
		}
		// Each series is divided by its own reference, which no other combination may beat.
		var one Answer
		for tried := map[string]bool{}; ; {
			tried[reference] = true
			options.Base = &scaling.Value{Word: reference}
			based, err := scaling.Analyse(joined, options)
			if based == nil {
				return nil, err
			}
			i := slices.IndexFunc(based, func(b scaling.Curve) bool { return b.Series == c.Series })
			one = answer(based[i], byRun, at, reference, o)
			better := one.beaten()
			if better == nil {
				break
			}
			if reference = nameOf(better.At, o.Factors); tried[reference] {
				one.refuse("several amounts are each shown to beat another; measure them again in blocks")
				one.Next = []Allocation{*better}
				break
			}
		}
		one.undistinguished()
		one.Imported = scaling.AllImported(c.Observed(obs))
		answers = append(answers, one)
	}
	return answers, nil
}

func combinationOf(parameters map[string]any, factors []string) map[string]scaling.Value {
	at := map[string]scaling.Value{}
	for _, key := range factors {
		at[key] = scaling.ValueOf(parameters[key])
	}
	return at
}

// alike reports whether a point has all parameters that identify a series, except its
// fingerprint.
func alike(series, point map[string]any) bool {
	for key, v := range series {
		if _, fact := strings.CutPrefix(key, "fingerprint."); !fact && scaling.ValueOf(point[key]) != scaling.ValueOf(v) {
			return false
		}
	}
	return true
}

// nameOf returns a combination as text: "cpus_per_worker=4 memory=8589934592".
func nameOf(at map[string]scaling.Value, factors []string) string {
	words := make([]string, len(factors))
	for i, key := range factors {
		words[i] = last(key) + "=" + at[key].String()
	}
	return strings.Join(words, " ")
}

// answer computes the answer for one series.
func answer(c scaling.Curve, runs map[string]*scaling.Observation, at map[string]map[string]scaling.Value, reference string, o Options) Answer {
	a := Answer{Series: c.Series, Parameters: c.Parameters, Measure: o.Measure, Epsilon: o.Epsilon, Warnings: slices.Concat(c.FingerprintWarnings, c.DriftWarnings), keys: o.Factors,
		Reference: Allocation{At: at[reference], Verdict: Enough, Keeps: new(1.0)}}
	measured := map[string]*Allocation{}
	var full, all []*scaling.Observation // the reference's runs, and the series'
	for i := range c.Points {
		p := &c.Points[i]
		m := p.Of(o.Measure.Name)
		all = append(all, observed(p.Runs, runs)...)
		if m.Median == nil {
			continue
		}
		name := p.At.Word
		if name == reference {
			a.Value, a.Reference.Value, a.Reference.Runs = m.Median, m.Median, m.Runs
			a.Load = loadOf(p.Runs, runs)
			full = observed(p.Runs, runs)
			measured[name] = &a.Reference
			continue
		}
		one := &Allocation{At: at[name], Value: m.Median, Ratio: m.Gain(), Verdict: judge(m.Gain(), o.Epsilon), Runs: m.Runs, Keeps: o.keeps(m.Gain())}
		if one.Ratio.Constant() && m.Runs < scaling.LeastRuns(o.Confidence) { // a few rounded values may be equal
			one.Verdict, one.Keeps = Undecided, nil
		}
		measured[name] = one
	}
	for i := range c.Points {
		p := &c.Points[i]
		m := measured[p.At.Word]
		if m == nil {
			continue
		}
		m.Bound = boundOf(observed(p.Runs, runs), full)
		for _, v := range p.Of(o.Measure.Name).Values {
			m.Gains = append(m.Gains, o.Measure.Gain(v, a.Value.Value))
		}
		slices.Sort(m.Gains)
		m.Points = pointsOf(observed(p.Runs, runs))
	}
	for _, p := range o.Exhausted {
		combination := combinationOf(p.Parameters, o.Factors)
		if name := nameOf(combination, o.Factors); name != reference && p.Framework == c.Framework && alike(c.Parameters, p.Parameters) {
			measured[name] = &Allocation{At: combination, Verdict: TooLittle, Keeps: new(float64), Bound: Bound{Of: BoundMemory, Why: "it ran out"}}
		}
	}
	a.arrange(measured)
	equal, which := equalRuns(c, o.Measure)
	a.Because = scaling.DecisiveIn([]scaling.Curve{c}, o.Warnings...)
	if len(equal) > 0 {
		a.Because = append(a.Because, fmt.Sprintf("%s with %s have exactly the same %s, so there is no interval: check whether the values were copied or rounded", which, strings.Join(equal, " and with "), o.Measure.Title))
	}
	a.decide(measured, o)
	if a.Spec != nil && (slices.Contains(equal, nameOf(a.Spec.At, o.Factors)) || slices.Contains(equal, reference)) {
		a.Spec.Keeps = nil
	}
	a.Course = courseOf(full, all, o)
	a.drifts()
	a.RunWarnings = runWarnings(c, at, o.Measure)
	return a
}

// arrange sorts the measured combinations by what differs from the reference.
func (a *Answer) arrange(measured map[string]*Allocation) {
	for _, key := range a.keys {
		if f := factor(key, a.Reference.At, measured); len(f.Levels) > 1 {
			a.Factors = append(a.Factors, f)
		}
	}
	for _, m := range measured {
		if steps(m.At, a.Reference.At) > 1 {
			a.Together = append(a.Together, *m)
		}
	}
	slices.SortFunc(a.Together, func(x, y Allocation) int {
		for _, key := range a.keys {
			if v, w := x.At[key], y.At[key]; v != w {
				return Compare(key, v, w)
			}
		}
		return 0
	})
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		a.measured = append(a.measured, *measured[name])
	}
}

func pointsOf(runs []*scaling.Observation) (ids []string) {
	for _, r := range runs {
		if !slices.Contains(ids, r.Point) {
			ids = append(ids, r.Point)
		}
	}
	return ids
}

// equalRuns returns the names of the combinations whose runs have the same value, and which runs these are.
func equalRuns(c scaling.Curve, of measure.Measure) (names []string, which string) {
	var equal []*scaling.Summary
	for i := range c.Points {
		if s := c.Points[i].Of(of.Name); s.Constant() {
			names, equal = append(names, c.Points[i].At.Word), append(equal, s)
		}
	}
	return names, scaling.EqualRuns(equal...)
}

// A RunWarning is a warning about the runs of some combinations.
type RunWarning struct {
	Text string
	At   []map[string]scaling.Value
}

// runWarnings returns the distinct warnings about combinations' runs. It omits those about too few
// runs, which the verdict covers.
func runWarnings(c scaling.Curve, at map[string]map[string]scaling.Value, of measure.Measure) (list []RunWarning) {
	for i := range c.Points {
		p := &c.Points[i]
		var few []string
		if s := p.Of(of.Name); s.Median != nil {
			few = append(few, s.Median.Why)
			if gain := s.Gain(); gain != nil {
				few = append(few, gain.Why)
			}
		}
		for _, text := range p.Warnings {
			if slices.ContainsFunc(few, func(why string) bool { return why != "" && strings.HasSuffix(text, ": "+why) }) {
				continue
			}
			k := slices.IndexFunc(list, func(d RunWarning) bool { return d.Text == text })
			if k < 0 {
				k, list = len(list), append(list, RunWarning{Text: text})
			}
			list[k].At = append(list[k].At, at[p.At.Word])
		}
	}
	return list
}

// factor returns the levels of one resource with plenty of the others.
func factor(key string, reference map[string]scaling.Value, measured map[string]*Allocation) Factor {
	f := Factor{Key: key, Reference: reference[key]}
	for _, m := range measured {
		if different := steps(m.At, reference); different == 0 || different == 1 && m.At[key] != reference[key] {
			f.Levels = append(f.Levels, Level{At: m.At[key], Ratio: m.Ratio, Verdict: m.Verdict, Keeps: m.Keeps, Runs: m.Runs, Gains: m.Gains, Bound: m.Bound})
		}
	}
	f.Ordered = !slices.ContainsFunc(f.Levels, func(l Level) bool {
		_, ok := compare(key, l.At, f.Reference)
		return !ok
	})
	slices.SortFunc(f.Levels, func(a, b Level) int {
		if f.Ordered {
			return -Compare(key, a.At, b.At)
		}
		return a.At.Compare(b.At)
	})
	if !f.Ordered {
		return f
	}
	for i := range f.Levels {
		l := &f.Levels[i]
		if Compare(key, l.At, f.Reference) > 0 {
			continue // more than the best
		}
		if l.Verdict == TooLittle {
			f.TooLittle = &l.At
			break
		}
		if l.Verdict == Enough {
			f.Enough = &l.At
		}
	}
	return f
}
