package scaling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// superlinearTolerance is the amount by which an efficiency without an interval may exceed 1, because of the
// usual noise between runs, before it is called superlinear.
const superlinearTolerance = 0.02

// smallSkew is the share of the step time below which skew causes no warning. Even of equal
// ranks, one is always the slowest by a little.
const smallSkew = 0.02

// goal returns a name of the target for messages: "target 0.75", or "the program's target".
func goal(m measure.Measure) string {
	if _, ok := measure.TargetOf(m.Name); !ok {
		return m.GoalText()
	}
	return "target " + strings.TrimPrefix(m.GoalText(), measure.OfAccuracy+" ")
}

// pointWarnings returns the warnings about the runs at one position of a curve.
func (an *analysis) pointWarnings(p *Point, runs []*Observation) []string {
	var list []string
	if an.asksThroughput() && trains(runs) {
		list = append(list, leftOut(runs)...)
	}
	if m := p.Of(measure.Throughput).Median; an.asksThroughput() && m != nil && m.Why != "" && !m.Constant() {
		list = append(list, "throughput: "+m.Why)
	}
	if s := p.Of(an.asked()); s.Constant() {
		list = append(list, fmt.Sprintf("%s have exactly the same %s, so there is no interval: check whether the values were copied or rounded", EqualRuns(s), s.Title))
	}
	for _, s := range p.Targets() {
		if s.Reached() < s.Runs && an.asks(s.Measure) {
			list = append(list, fmt.Sprintf("%s: reached by %d of %s", goal(s.Measure), s.Reached(), number.Count(s.Runs, "run")))
		}
	}
	jobs := map[string]int{}
	for _, r := range p.Runs {
		if r.Job != "" {
			jobs[r.Job]++
		}
	}
	for _, job := range sortedKeys(jobs) {
		if jobs[job] > 1 {
			list = append(list, fmt.Sprintf("%d of %s share the allocation of job %s and do not see the variation between allocations", jobs[job], number.Count(len(runs), "run"), job))
		}
	}
	if s := p.Straggler; s.persistent(p.Workers) {
		if m := p.Of(measure.Skew).Median; m != nil && m.Value >= smallSkew {
			list = append(list, fmt.Sprintf("%s is the slowest in %.0f %% of the steps, where chance gives %.0f %%: %s", s, 100*s.Share, 100/float64(p.Workers), s.lookAt()))
		}
	}
	nodes := map[string]int{}
	for _, o := range runs {
		nodes[fmt.Sprint(o.Nodes)]++
	}
	if len(nodes) > 1 {
		list = append(list, "mixed placement: runs on "+strings.Join(sortedKeys(nodes), " and ")+" nodes")
	}
	for _, k := range []string{"workers_per_node", "worker_batch", "global_batch", "learning_rate"} {
		if values := distinct(k, runs); len(values) > 1 {
			list = append(list, fmt.Sprintf("%s differs between runs: %s", k, strings.Join(values, ", ")))
		}
	}
	return list
}

// asks reports whether warnings about a measure are shown: no other measure was requested, and the
// reader sees it.
func (an *analysis) asks(m measure.Measure) bool {
	return (an.of.Name == "" || an.of.Name == m.Name) && (an.shown == nil || an.shown(m))
}

func (an *analysis) asksThroughput() bool { return an.asks(measure.Measure{Name: measure.Throughput}) }

// asked returns the name of the measure whose gain is checked for warnings.
func (an *analysis) asked() string { return cmp.Or(an.of.Name, an.main) }

const noSteadyState = "no steady state"

// leftOut returns a line for each reason why runs have no usable throughput, with their number.
func leftOut(runs []*Observation) []string {
	reasons := map[string]int{}
	for _, o := range runs {
		x, ok := o.Values[measure.Throughput]
		why := o.Why[measure.Throughput]
		switch {
		case ok && !isRate(x):
			reasons[fmt.Sprintf("a throughput of %g is not valid", x)]++
		case ok:
		case (o.Known(measure.RunSeconds) != nil || len(o.Reported) > 0) && strings.HasPrefix(why, noSteadyState+": 0 steps"):
			// A program need not report steps if its run time or other values were requested.
		case strings.HasPrefix(why, noSteadyState+": 0 steps") && o.Parameters["import.format"] != nil:
			reasons["what was imported states none"]++
		case why == "" || strings.HasPrefix(why, noSteadyState):
			reasons[cmp.Or(why, noSteadyState)]++
		default:
			reasons[noSteadyState+": "+why]++
		}
	}
	var list []string
	for _, why := range sortedKeys(reasons) {
		list = append(list, fmt.Sprintf("%d of %s left out of the throughput: %s", reasons[why], number.Count(len(runs), "run"), why))
	}
	return list
}

// carried returns the warnings that runs carry. Each text occurs once, with the IDs of its runs.
// The runs must be sorted by ID.
func carried(runs []*Observation) []RunWarning {
	of := map[string][]string{}
	for _, o := range runs {
		for _, w := range o.Warnings {
			if list := of[w]; len(list) == 0 || list[len(list)-1] != o.Run {
				of[w] = append(list, o.Run)
			}
		}
	}
	var list []RunWarning
	for _, w := range sortedKeys(of) {
		list = append(list, RunWarning{w, of[w]})
	}
	return list
}

// Line returns the warning as a line of text. It starts with the ID of the run or, for several, with
// their number out of all runs.
func (d RunWarning) Line(runs int) string { return d.whose(runs) + d.Text }

// whose returns the ID of the run with the warning or, for several, their number out of all runs.
func (d RunWarning) whose(runs int) string {
	if len(d.Runs) == 1 {
		return d.Runs[0] + ": "
	}
	return fmt.Sprintf("%d of %s: ", len(d.Runs), number.Count(runs, "run"))
}

// gainWarnings returns the warnings about a point's ratio to the base, for the requested measure.
func (an *analysis) gainWarnings(p *Point) []string {
	s := p.Of(an.asked())
	if !an.asks(s.Measure) || s.Median == nil || s.base == nil || s == s.base {
		return nil
	}
	g, n := s.Gain(), s.multiple
	switch {
	case !s.Speeds():
		return nil
	case g == nil:
		return []string{strings.Replace(fmt.Sprintf("speedup left out: the ratio of %g %s to %g at the base is out of range", s.Median.Value, s.Unit, s.base.Median.Value), "  ", " ", 1)}
	}
	var list []string
	if g.Why != "" {
		list = append(list, "speedup: "+g.Why)
	}
	if (s.rate || s.Name == measure.TokensPerSecond) && n > 1 && (g.Interval != nil && g.Interval.Low > n || g.Interval == nil && g.Value > n*(1+superlinearTolerance)) {
		list = append(list, fmt.Sprintf("superlinear: speedup %.4g with %.4g times the workers; check that the base point was not slowed down", g.Value, n))
	}
	return list
}

// curveWarnings returns the warnings about a whole series.
func (an *analysis) curveWarnings(c *Curve, s *series) []string {
	var list []string
	if w := exclusiveWarning(c, s); w != "" {
		list = append(list, w)
	}
	list = append(list, an.scalingWarnings(c, s)...)
	list = append(list, an.absenceWarnings(c, s)...)
	if len(c.Points) > 1 && an.varies(s.runs) && slices.ContainsFunc(s.runs, orderUnknown) {
		list = append(list, orderNotKnown(s.runs))
	}
	c.FingerprintWarnings = ranOnWarnings(c, s)
	list = append(list, c.FingerprintWarnings...)
	studies := map[string]int{}
	for _, o := range s.runs {
		studies[o.Study]++
	}
	if len(studies) > 1 {
		list = append(list, "runs of several studies are mixed: "+strings.Join(sortedKeys(studies), ", "))
	}
	for _, k := range measure.BoundKeys() {
		if _, projected := c.Parameters[k]; projected || k == measure.ExclusiveKey {
			continue
		}
		if values := distinct(k, s.runs); len(values) > 1 {
			list = append(list, fmt.Sprintf("%s varies within this series: %s", k, strings.Join(values, ", ")))
		}
	}
	return list
}

// varies reports whether a drift may have changed the requested measure: it is a time or rate, or its values differ.
func (an *analysis) varies(runs []*Observation) bool {
	first := runs[0].Values[an.of.Name]
	return an.of.Name == "" || an.of.Speeds() || slices.ContainsFunc(runs, func(o *Observation) bool { return o.Values[an.of.Name] != first })
}

// scalingWarnings returns warnings about how the work of a training depends on the number of its
// workers.
func (an *analysis) scalingWarnings(c *Curve, s *series) []string {
	var list []string
	rates := trains(s.runs) && c.Measured(an.asked()) && (an.of.Name == "" && an.asksThroughput() || an.of.RatesSamples())
	exchanges := slices.ContainsFunc(s.runs, func(o *Observation) bool { return measure.KindOf(o.Kind).Exchanges != "" && !o.Own })
	if rates && exchanges && len(c.Points) > 1 && c.Scaling != "weak" && c.Scaling != "strong" {
		list = append(list, "the runs do not record whether scaling is weak or strong")
	}
	if rates && exchanges && len(c.Points) > 1 && c.Base != nil && c.Base.Workers == 1 {
		list = append(list, "the base is one worker, which exchanges no gradients: efficiency includes the whole cost of going distributed")
	}
	return list
}

// absenceWarnings returns warnings that name the positions without runs, and the positions whose
// runs lack the measure.
func (an *analysis) absenceWarnings(c *Curve, s *series) []string {
	asked := an.asked()
	if !c.Measured(asked) || an.of.Name == "" && !an.asksThroughput() {
		return nil
	}
	var without, missing []string // positions whose runs lack the measure; positions without a run
	for _, n := range s.at {
		i := slices.IndexFunc(c.Points, func(p Point) bool { return p.At == n })
		switch {
		case i < 0 || len(c.Points[i].Runs) == 0:
			missing = append(missing, fmt.Sprint(n))
		case c.Points[i].Of(asked).Median == nil:
			without = append(without, fmt.Sprint(n))
		}
	}
	var list []string
	what := "no run with a steady state at "
	if AllImported(s.runs) {
		what = "no imported run with a throughput at "
	}
	if asked != measure.Throughput {
		what = "no run that has " + asked + " at "
	}
	at := func(places []string) string {
		if c.Axis == Workers && len(places) > 1 {
			return "worker counts " + strings.Join(places, ", ")
		}
		return strings.Replace(c.Axis, Workers, "worker count", 1) + " " + strings.Join(places, ", ")
	}
	if len(without) > 0 {
		list = append(list, what+at(without))
	}
	if len(missing) > 0 {
		list = append(list, "no finished run at "+at(missing))
	}
	return list
}

// trains reports whether some runs are of a kind of workload that has a training throughput.
func trains(runs []*Observation) bool {
	return slices.ContainsFunc(runs, func(o *Observation) bool {
		return measure.KindOf(o.Kind).Has(measure.Throughput)
	})
}

// ranOnWarnings returns warnings about runs that used different hardware or software, or may
// have.
func ranOnWarnings(c *Curve, s *series) []string {
	var list []string
	for _, v := range s.divided {
		list = append(list, "runs on different hardware or software are on separate curves: "+v.String())
	}
	for _, v := range c.Mixed {
		list = append(list, "runs on different hardware or software are mixed: "+v.String())
	}
	_, partial := fingerprint.Vary(Prints(s.runs))
	for _, v := range partial {
		list = append(list, "some runs did not record what they ran on and are taken to be like the others: "+v.String())
	}
	return list
}

// distinct returns the values of a parameter in the runs, as text.
func distinct(key string, runs []*Observation) []string {
	values := map[string]int{}
	for _, o := range runs {
		values[text(o.Parameters[key])]++
	}
	return sortedKeys(values)
}

// sortedKeys returns the keys of a map in natural order: numbers in them are compared by size.
func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), natural.Compare)
}

// exclusiveWarning returns a warning if some runs of a series had whole nodes and others shared
// theirs. It is "" if all were alike or did not record it. Jobs of others slow down only the runs
// that share, which biases ratios between the two.
func exclusiveWarning(c *Curve, s *series) string {
	runs := map[bool]map[Value]bool{true: {}, false: {}}
	for _, o := range s.runs {
		if exclusive, recorded := o.Parameters[measure.ExclusiveKey].(bool); recorded {
			runs[exclusive][axis(c.Axis).of(o)] = true
		}
	}
	whole, shared := runs[true], runs[false]
	if len(whole) == 0 || len(shared) == 0 {
		return ""
	}
	places := func(of map[Value]bool) string {
		return placesOf(c.Worker(), c.Axis, slices.DeleteFunc(slices.Clone(s.at), func(v Value) bool { return !of[v] }))
	}
	text := fmt.Sprintf("%s ran on whole nodes, %s on nodes that other jobs may share (%s)", places(whole), places(shared), measure.ExclusiveKey)
	switch b := c.Base; {
	case b == nil:
		return text + ": they may not be comparable"
	case !shared[b.At]:
		return text + ": on a busy cluster the base is too fast, and speedups are too low"
	case !whole[b.At]:
		return text + ": on a busy cluster the base is too slow, and speedups are too high"
	}
	return text + ": on a busy cluster speedups are biased"
}
