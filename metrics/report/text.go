package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// This file has the texts of the report page.

// withoutCommands returns copies of the advice without commands for further measurements, because
// readers of a report may not have the program.
func withoutCommands(advised []*advice.Advice) []*advice.Advice {
	list := make([]*advice.Advice, len(advised))
	for i, a := range advised {
		one := *a
		if one.Next != nil {
			next := *one.Next
			next.Command = ""
			one.Next = &next
		}
		list[i] = &one
	}
	return list
}

// answer returns the advice in the words of the advise command, and best, the sentences on the
// best measured points. For several series, the best answer comes first and a table lists all.
func answer(advised []*advice.Advice, curves []scaling.Curve, wish advice.Options, best []string) Answer {
	advised = withoutCommands(advised)
	if len(advised) != 1 {
		r := Answer{Lead: best[0], Reasons: best[1:], Table: &Table{ID: "answers", Title: "Each configuration", Text: forReaders(Answers(curves, advised, wish))}}
		if lead := Best(advised, wish); lead != "" {
			r.Lead, r.Reasons = clean.Line(lead), best
		}
		return r
	}
	r := Answer{Lead: clean.Line(advised[0].Reason[0]), Table: &Table{ID: "candidates", Title: "Candidates", Text: forReaders(Advice(advised[0], false))}}
	if second := advised[0].Reason[1]; second != "" {
		r.Reasons = append(r.Reasons, clean.Line(second))
	}
	r.Reasons = append(r.Reasons, best...)
	return r
}

// forReaders returns a table for readers who may not have the program.
func forReaders(t *table.Table) table.Text {
	text := t.Text()
	for i, note := range text.Notes {
		if note == noInterval {
			text.Notes[i] = number.Absent + ": no interval."
		} else if before, found := strings.CutSuffix(note, orNamed); found {
			text.Notes[i] = before + "."
		}
	}
	return text
}

// answer returns the answer of the report: the advice, if the kind of workload has one, and the
// best value of each measure. It includes the doubts that can change it, which advice states itself.
func (s *ReportedStudy) answer() Answer {
	a, advised := s.advisedOrBest(s.bests())
	if doubts := scaling.DecisiveNote(s.Curves, s.Warnings...); doubts != "" && !advised {
		a.Lead += " " + clean.Line(doubts)
	}
	return a
}

// advisedOrBest returns the answer without doubts. advised reports whether it is the advice.
func (s *ReportedStudy) advisedOrBest(best []string) (a Answer, advised bool) {
	if s.Kind.Trains {
		switch {
		case len(s.Advised) > 0 && s.Advised[0].OnlyFigure:
			return answer(s.Advised, s.Answered, s.Wish, best), true
		case len(best) == 0 || trained(s.Curves):
		default:
			return Answer{Lead: best[0], Reasons: append(best[1:], "No run reports its steps or reaches a target, so there is no advice on the number of workers.")}, false
		}
		a := answer(s.Advised, s.Curves, s.Wish, bestMeasured(s.Curves))
		a.Reasons = append(a.Reasons, best...)
		return a, true
	}
	if s.Advised != nil && best != nil {
		return answer(s.Advised, s.Answered, s.Wish, best), true
	}
	if best == nil {
		return Answer{Lead: clean.Line(fmt.Sprintf("Measured in %s: %s.", number.Count(len(s.Observations), "run"), cmp.Or(strings.Join(s.judged(), ", "), "nothing")))}, false
	}
	return Answer{Lead: best[0], Reasons: best[1:]}, false
}

// bests returns a sentence for each measure of the frames that says where it is best.
func (s *ReportedStudy) bests() []string {
	var best []string
	for _, f := range s.Frames {
		for i, m := range f.Measures {
			if text := bestOf(m, f.Curves); text != "" && i < manyMeasures {
				best = append(best, text)
			}
			if m.Capacity {
				best = append(best, visibleAll(saturations(f.Curves, m))...)
			}
		}
	}
	return best
}

// judged returns the titles of the measures of which one direction is better. Other measures only
// describe these.
func (s *ReportedStudy) judged() []string {
	var titles []string
	for _, f := range s.Frames {
		for _, m := range f.Measures {
			if m.Better != measure.Neither {
				titles = append(titles, m.Title)
			}
		}
	}
	return titles
}

// trained reports whether some run has a throughput or a time to a target, without which there is
// no advice.
func trained(curves []scaling.Curve) bool {
	return slices.ContainsFunc(curves, func(c scaling.Curve) bool {
		return c.Measured(measure.Throughput) || slices.ContainsFunc(c.Points, func(p scaling.Point) bool { return len(p.Targets()) > 0 })
	})
}

// bestOf returns a sentence that says where a measure is best, and its value there. It returns ""
// if neither direction is better, or if no run has the measure. It also returns "" if the values
// of a run are for different work, such as operations and sizes.
func bestOf(m measure.Measure, curves []scaling.Curve) string {
	if m.At != "" && !m.Capacity {
		return ""
	}
	var best *scaling.Summary
	where := ""
	for _, c := range curves {
		before := "with "
		if c.Axis != scaling.Workers {
			before = "at "
		}
		for i := range c.Points {
			x := c.Points[i].Of(m.Name)
			if x.Median == nil || m.Better == measure.Neither || best != nil && !better(m, x.Median.Value, best.Median.Value) {
				continue
			}
			best, where = x, before+c.Places(c.Points[i].At)
			if len(curves) > 1 {
				where += " (" + c.Series + ")"
			}
		}
	}
	if best == nil {
		return ""
	}
	word := map[measure.Direction]string{measure.Higher: "Highest", measure.Lower: "Lowest"}[m.Better]
	unit := ""
	if m.Show == measure.Number {
		unit = m.Unit
	}
	return clean.Line(fmt.Sprintf("%s %s %s: %s.", word, m.Title, where, spread(best.Median, m.Text, unit, best.Runs)))
}

func better(m measure.Measure, a, b float64) bool {
	if m.Better == measure.Lower {
		return a < b
	}
	return a > b
}

// method returns the description of how the study's numbers are computed.
func (s *ReportedStudy) method() []Fact {
	list := method
	if !s.Kind.Trains {
		list = slices.DeleteFunc(slices.Clone(method), func(f Fact) bool { return f.Name != "Intervals" })
		list = append([]Fact{{Name: "Unit of replication", Values: []string{"The run. Repeated measurements within a run share everything that varies between runs, so they do not count as repeats."}}}, list...)
	}
	if s.Kind.Trains && len(s.Frames) > 0 {
		list = append(slices.Clip(list), Fact{Name: "What the runs report", Values: []string{"As each run's own program or log states it, in its unit: one value a run, medians over runs. How it is measured is up to the program."}})
	}
	return list
}

// method describes briefly how the numbers in the report of a training are computed.
var method = []Fact{
	{Name: "Unit of replication", Values: []string{"The run: one training with its own seed. Steps within a run share everything that varies between runs, so they do not count as repeats."}},
	{Name: "Throughput", Values: []string{"Samples of all ranks over the sum of the slowest rank's step times, after warm-up: the run's long-term rate. The slow first step of each epoch counts once per epoch, and a disturbance lowers it. Evaluations are not included. A run that is still warming up after half of its steps has no throughput."}},
	{Name: "Speedup", Values: []string{"The ratio of median throughputs, this point's over the base's; 1 at the base. Efficiency is the speedup times the base's workers over this point's."}},
	{Name: "Time to accuracy", Values: []string{"From the start of the training clock, before the first sample is read, to the end of the first evaluation that reaches the target, evaluations on the clock. A run that misses the target ranks after all that reach it."}},
	{Name: "Intervals", Values: []string{
		"95 % or more. For medians: exact binomial, with 6 runs or more. For speedups and efficiencies: from the intervals of the two medians (MOVER), with 6 runs or more on each side. There is no interval with fewer runs, or if all have the same value.",
	}},
	{Name: "Parts of a step", Values: []string{"Shares of the mean rank's steady step time: computing, reducing gradients (waiting for slower ranks included), waiting for data. Parts may overlap. What was not measured is a dash, never 0."}},
}

// A place is a point of a curve, with its curve.
type place struct {
	curve *scaling.Curve
	point *scaling.Point
}

// bestMeasured returns sentences on the best measured points: one per target, harder targets
// first, and one on the throughput.
func bestMeasured(curves []scaling.Curve) []string {
	fastest, soonest := bestPlaces(curves)
	name := func(c place) string {
		text := number.Count(c.point.Workers, "worker")
		if len(curves) > 1 {
			text += " (" + clean.Line(c.curve.Series) + ")"
		}
		return text
	}
	var list []string
	for _, goal := range slices.Backward(slices.SortedFunc(maps.Keys(soonest), measure.ByGoal)) {
		list = append(list, fmt.Sprintf("On the training clock, %s was reached soonest with %s: %s.",
			goal.GoalText(), name(soonest[goal]), timeSentence(soonest[goal].point.Of(goal.Name))))
	}
	if fastest == nil {
		return append(list, "No run has a steady state yet, so there is no throughput.")
	}
	rate := fastest.point.Of(measure.Throughput)
	e := rate.Median
	text := fmt.Sprintf("Highest throughput with %s: %s %s%s", name(*fastest), number.Significant(e.Value), rate.Unit, sureness(e, intervalText(e.Interval, number.Significant), e.Runs))
	if up := rate.Gain(); up != nil && up.Why != scaling.AtBase {
		text += fmt.Sprintf("; that is %s times the throughput of %s", number.Significant(up.Value), number.Count(fastest.curve.Base.Workers, "worker"))
		if up.Interval != nil {
			text += " " + intervalText(up.Interval, number.Significant)
		}
	}
	return append(list, text+".")
}

// bestPlaces returns the point with the highest throughput (nil if none exists) and, for each
// target, the point that reaches it soonest.
func bestPlaces(curves []scaling.Curve) (fastest *place, soonest map[measure.Measure]place) {
	soonest = map[measure.Measure]place{}
	for i := range curves {
		for k := range curves[i].Points {
			c := place{&curves[i], &curves[i].Points[k]}
			if x := c.point.Of(measure.Throughput).Median; x != nil && (fastest == nil || x.Value > fastest.point.Of(measure.Throughput).Median.Value) {
				fastest = &c
			}
			for _, t := range c.point.Targets() {
				best, had := soonest[t.Measure]
				if t.Median != nil && (!had || t.Median.Value < best.point.Of(t.Name).Median.Value) {
					soonest[t.Measure] = c
				}
			}
		}
	}
	return fastest, soonest
}

// timeSentence returns the time to a target with its interval, and how many runs reach it if not
// all do.
func timeSentence(t *scaling.Summary) string {
	s := spread(t.Median, number.Seconds, "", t.Runs)
	if t.Reached() < t.Runs {
		s += fmt.Sprintf(", reached by %d", t.Reached())
	}
	return s
}

// spread returns a median with its interval, or says that the interval is missing. unit is "" if show writes
// it already.
func spread(e *scaling.Estimate, show func(float64) string, unit string, runs int) string {
	value, interval := spreadText(e.Value, e.Interval, show)
	if unit != "" {
		value += " " + unit
	}
	return value + sureness(e, interval, runs)
}

// sureness returns a clause with the number of runs and the interval of a median.
func sureness(e *scaling.Estimate, interval string, runs int) string {
	switch {
	case e.Interval != nil:
		return fmt.Sprintf(" %s (median of %s, with its interval)", interval, number.Count(runs, "run"))
	case runs == 1:
		return " (one run, so no interval)"
	case e.Constant():
		return fmt.Sprintf(" (median of %s; %s)", number.Count(runs, "run"), e.Why)
	}
	return fmt.Sprintf(" (median of %s, too few for an interval)", number.Count(runs, "run"))
}

// provenance returns the facts about the origin of the numbers.
func (s *ReportedStudy) provenance() []Fact {
	var list []Fact
	add := func(name string, values ...string) {
		if len(values) == 0 {
			values = []string{"not recorded"}
		}
		list = append(list, Fact{Name: name, Values: visibleAll(values)})
	}
	add("What was run", sharedParameters(s.Observations)...)
	for _, c := range s.Curves {
		values := []string{c.Fingerprint.String()}
		for _, v := range c.Mixed {
			values = append(values, "mixed: "+v.String())
		}
		name := "Fingerprint"
		if len(s.Curves) > 1 {
			name += " of " + clean.Line(c.Series)
		}
		add(name, values...)
	}
	add("Environments", counted(s.from.Environments, environmentText)...)
	add("Hosts", fold(counted(s.from.Hosts, func(s string) string { return s }))...)
	jobs := map[string]int{}
	commits := map[string]int{}
	for _, o := range s.Observations {
		if o.Job != "" {
			jobs[strings.TrimSpace(o.Cluster+" "+o.Partition)]++
		}
		if o.GitCommit != "" {
			commits[o.GitCommit]++
		}
	}
	if len(jobs) > 0 {
		add("Jobs on", howOften(jobs)...)
	}
	add("Commit of the study's folder", howOften(commits)...)
	add("Initial parameters (SHA-256)", fold(counted(s.from.InitialParameters, func(s string) string { return s }))...)
	add("Data (SHA-256)", fold(counted(s.from.Data, func(s string) string { return s }))...)
	return list
}

// fold shortens a long list; the data that can be downloaded has all entries.
func fold(list []string) []string { return number.Few(list, 12) }

func counted[T any](list []store.Counted[T], text func(T) string) []string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = fmt.Sprintf("%s (%s)", text(c.Value), number.Count(c.Runs, "run"))
	}
	return texts
}

func howOften(m map[string]int) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%s (%s)", k, number.Count(m[k], "run")))
	}
	return list
}

// sharedParameters returns lines with the parameters whose values all runs share, and with the
// names of those that differ.
func sharedParameters(obs []scaling.Observation) []string {
	values := map[string]map[string]bool{}
	for _, o := range obs {
		for k, v := range o.Parameters {
			if values[k] == nil {
				values[k] = map[string]bool{}
			}
			values[k][table.Column{Show: number.Exact}.Text(table.Deref(v))] = true
		}
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		all := slices.SortedFunc(maps.Keys(values[k]), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		text := strings.Join(fold(all), ", ")
		if text != "" {
			list = append(list, k+" = "+text)
		}
	}
	return list
}

func environmentText(e metrics.Environment) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.CPUModel != "" {
		add("%s", e.CPUModel)
	}
	if e.CPUs > 0 {
		add("%s a rank", number.Count(e.CPUs, "CPU"))
	}
	if e.Threads > 0 {
		add("%s", number.Count(e.Threads, "thread"))
	}
	if e.MemoryBytes > 0 {
		add("%s of memory", number.Bytes(float64(e.MemoryBytes)))
	}
	for _, g := range e.GPUs {
		add("%s", strings.TrimSpace(g.Name+" "+g.MIG+" driver "+cmp.Or(g.Driver, "not recorded")))
	}
	if e.Interface != nil && e.Interface.Name != "" {
		add("interface %s", e.Interface.Name)
	}
	if e.Kernel != "" {
		add("kernel %s", e.Kernel)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Versions)) {
		if e.Versions[name] != "" {
			add("%s %s", name, e.Versions[name])
		}
	}
	if parts == nil {
		return "nothing recorded"
	}
	return strings.Join(parts, ", ")
}

func visibleAll(list []string) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = clean.Line(s)
	}
	return texts
}
