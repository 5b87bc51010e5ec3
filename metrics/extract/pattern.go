package extract

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A Pattern is a user's regular expression that finds a figure in a log. Its group (?P<value>…)
// matches the number. The expression is applied to whole lines without launchers' prefixes.
//
// Some names have a meaning: throughput is the rate of the run; accuracy with per = "epoch" gives
// evaluations; end_to_end and train_seconds cover the whole run. The optional groups epoch and
// elapsed (seconds since training began) state when the value was measured.
type Pattern struct {
	Name    string
	Pattern string
	Unit    string // unit of the value, one of Units
	Reduce  string // how several values become one, one of the reductions; "": median, or last for accuracy
	Per     string // what a match belongs to: "step", "epoch" or "run"; "": run, of which there may be only one match
	// Of says what a value covers: the "run" (also ""), or one "rank". With "rank", the values of
	// each rank are reduced first; the launcher's prefix distinguishes ranks. If all ranks
	// printed values, the results are added up. If only one rank did, its result is multiplied by
	// the number of ranks.
	Of     string
	Better string // which direction is better, "higher" or "lower"; "" if undeclared
}

type compiled struct {
	Pattern
	re                            *regexp.Regexp
	value, unitAt, epoch, elapsed int // indices of groups; -1: none
	unit                          unit
	declared                      number.Unit // Unit, parsed, if it is a known one
	known                         bool
	adopted                       string // the unit that the log states, if Unit is empty
	loose                         *loose // the same expression with any unit; nil: the expression has no unit after the number
	grouped                       bool   // a note says how commas in numbers are read
	reduces, ofRun                bool   // the user set reduce; the user set of = "run"
	named                         string // unit that the log states for the latest number; "" for none
	undefined                     *regexp.Regexp
	missing, missingAt            int // lines that undefined matches, and the first of them
}

// Validate returns an error if the pattern is not valid. It says what is wrong and what is valid.
func (p Pattern) Validate() error {
	_, err := p.compile()
	return err
}

// NeedsBatch reports whether the values count steps. Converting them to samples then needs
// Options.WorkerBatch.
func (p Pattern) NeedsBatch() bool {
	c, err := p.compile()
	return err == nil && c.unit.steps
}

func (p Pattern) compile() (*compiled, error) {
	if p.Name == "" {
		return nil, errors.New("name is empty; want the figure's, like \"throughput\"")
	}
	if slices.Contains(measure.Recorded(), p.Name) {
		hint := "choose another name, like own_" + p.Name
		if p.Name == measure.FinalAccuracy {
			hint = "name it accuracy, with per = \"epoch\""
		}
		return nil, fmt.Errorf("%s comes from what the ranks record, not from a log; %s", p.Name, hint)
	}
	re, err := regexp.Compile(p.Pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern of %s: %w", p.Name, err)
	}
	c := &compiled{Pattern: p, re: re, value: re.SubexpIndex("value"), unitAt: re.SubexpIndex("unit"), epoch: re.SubexpIndex("epoch"), elapsed: re.SubexpIndex("elapsed"), reduces: p.Reduce != "", ofRun: p.Of == "run"}
	if c.value < 0 {
		c.value = re.SubexpIndex(p.Name)
	}
	if c.value < 0 {
		return nil, fmt.Errorf("pattern of %s has no group (?P<value>…) for the number", p.Name)
	}
	for _, o := range []struct {
		key   string
		value *string
		valid []string
	}{{"per", &c.Per, []string{"run", "step", "epoch"}}, {"of", &c.Of, []string{"run", "rank"}}, {"reduce", &c.Reduce, reductions}} {
		if *o.value == "" {
			*o.value = o.valid[0]
			if o.key == "reduce" && c.Per != "run" && p.Name != "accuracy" {
				*o.value = "median"
			}
		}
		if !slices.Contains(o.valid, *o.value) {
			return nil, fmt.Errorf("%s of %s is %q; valid: %s", o.key, p.Name, *o.value, strings.Join(o.valid, ", "))
		}
	}
	if err := c.setUnit(); err != nil {
		return nil, err
	}
	c.loose, c.undefined = c.loosened(), c.undefinedIn()
	return c, nil
}

// setUnit parses the pattern's unit, which must suit its name.
func (c *compiled) setUnit() error {
	p := c.Pattern
	if c.unit, c.known = unitNamed(p.Unit); !c.known || c.unit.unclear {
		c.known = false
		c.unit = unit{base: p.Unit, scale: 1}
	}
	if c.known && p.Unit != "" {
		c.declared, _ = number.ParseUnit(p.Unit) // unitNamed has checked it
	}
	if p.Name != metrics.FigureThroughput && p.Name != metrics.FigureEndToEnd && c.unit.steps {
		c.unit = unit{base: p.Unit, scale: 1}
	}
	if c.declared.Per == number.PerNode {
		return fmt.Errorf("unit of %s is %q, which is one node's share; let the program print the rate of all, with unit = %q", p.Name, p.Unit, c.unit.base)
	}
	if c.declared.Per == number.PerDevice && c.ofAll() {
		return fmt.Errorf("unit of %s is %q, which is one worker's share; set of = \"rank\" with unit = %q", p.Name, p.Unit, c.unit.base)
	}
	want := map[string]string{metrics.FigureThroughput: "samples/s", metrics.FigureEndToEnd: "samples/s", metrics.FigureTrainSeconds: "s", "accuracy": ""}
	if base, named := want[p.Name]; named && c.unit.base != base {
		return fmt.Errorf("unit of %s is %q; want one of %s", p.Name, p.Unit, strings.Join(unitsOf(base), ", "))
	}
	for _, m := range measure.Resources() { // a sampler measures these; no log states them
		if m.Name == p.Name && c.unit.base != m.Unit {
			return fmt.Errorf("unit of %s is %q, and the measure of that name is in %q; choose another name, like own_%s", p.Name, p.Unit, m.Unit, p.Name)
		}
	}
	return nil
}

// Patterns returns an extractor that applies a user's patterns. Each pattern must match
// something.
func Patterns(list []Pattern) (Extractor, error) {
	var all []*compiled
	var problems []error
	for i, p := range list {
		c, err := p.compile()
		if err != nil {
			problems = append(problems, fmt.Errorf("extract[%d]: %w", i, err))
		}
		all = append(all, c)
	}
	if len(list) == 0 {
		problems = append(problems, errors.New("the pattern is missing"))
	}
	return Extractor{Name: "extract", Reads: "lines that the patterns match",
		read: func(l *log, r io.Reader) { readPatterns(l, r, all) }}, errors.Join(problems...)
}

func (l *log) matches(c *compiled, all []match) {
	bySource := map[string][]match{}
	for _, m := range all {
		bySource[m.source] = append(bySource[m.source], m)
	}
	if c.Of == "rank" {
		l.ofRanks(c, bySource)
		return
	}
	if len(bySource) > 1 {
		l.copies(c, bySource)
		l.note("several ranks write %s; only rank %s is read", c.Name, all[0].source)
		all = bySource[all[0].source]
	} else {
		l.ofOneRank(c, all)
	}
	if c.Name == "accuracy" && c.Per == "epoch" {
		l.accuracies(c, all)
		return
	}
	if c.Per == "run" && !c.reduces && len(all) > 1 {
		l.fail(all[1].v.Line, "a second %s; the first is on line %d. Set per = \"step\" or \"epoch\", or reduce", c.Name, all[0].v.Line)
	}
	l.unlabelled(c, all)
	all = l.settled(c, all)
	l.mixed(c, matchValues(all))
	if c.Name == "accuracy" {
		l.tiny(c.Name, `unit = "fraction"`, matchValues(all), c.unit.scale)
	}
	note := c.note(len(all))
	if strings.HasSuffix(c.unit.base, "/s") && !c.unit.steps { // a user who forgot of = "rank" may mean one rank's rate
		note += ", for all workers together"
	}
	l.reducedBy(c, matchValues(all), l.scale(c, 1), note)
}

// note returns a description of how a figure was computed from n values.
func (c *compiled) note(n int) string {
	if n == 1 {
		return "as the log states it"
	}
	return fmt.Sprintf("the %s of %d values in the log, one per %s", c.Reduce, n, c.Per)
}

func matchValues(all []match) []Value {
	values := make([]Value, len(all))
	for i, m := range all {
		values[i] = m.v
	}
	return values
}

// accuracies adds an evaluation for each match. If the expression has no group epoch, the
// evaluations are numbered from 1.
func (l *log) accuracies(c *compiled, all []match) {
	if all[0].elapsed != nil {
		l.add(metrics.Event{Train: &metrics.Train{}}, 1)
	}
	before := 0.0
	all = l.evaluated(all)
	l.tiny(c.Name, `unit = "fraction"`, matchValues(all), c.unit.scale)
	for i, m := range all {
		e := metrics.Event{Evaluation: &metrics.Evaluation{Epoch: i + 1}}
		if m.epoch != nil {
			if m.epoch.Number < 0 || m.epoch.Number > 1e9 || m.epoch.Number != float64(int(m.epoch.Number)) {
				l.fail(m.v.Line, "epoch %g; want a whole number", m.epoch.Number)
			}
			e.Evaluation.Epoch = l.epoch(int(m.epoch.Number), 1)
		}
		if has := m.elapsed != nil; has != (all[0].elapsed != nil) {
			with, without := all[0].v.Line, m.v.Line
			if has {
				with, without = without, with
			}
			l.fail(without, "no elapsed here, but one on line %d; every accuracy needs one, or none", with)
		}
		if m.elapsed != nil {
			if e.Time = m.elapsed.Number; e.Time < before {
				l.fail(m.v.Line, "elapsed goes back from %g s to %g s", before, e.Time)
			}
			before = e.Time
		}
		l.accuracy(e, c.unit.scale, m.v, func() string { return "set unit = \"%\"" })
	}
}

// summary matches the text before an accuracy that sums up a training, such as "best" or "final".
var summary = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:best|final|finished|done|max|maximum|highest|overall)(?:[^a-z]|$)`)

// evaluated drops matches that repeat an earlier accuracy as the best or final one: "DONE best
// val-acc=0.888" is not another epoch.
func (l *log) evaluated(all []match) []match {
	seen := map[float64]bool{}
	kept := make([]match, 0, len(all))
	for _, m := range all {
		m.summary = m.summary && !all[0].summary && m.epoch == nil
		if m.summary && seen[m.v.Number] {
			l.note("line %d repeats an earlier accuracy (%g) as the best or final one, and is not counted as an epoch", m.v.Line, m.v.Number)
			continue
		}
		if m.summary {
			l.note("line %d reads like a summary (%g) and is counted as an evaluation; let the pattern match epochs only", m.v.Line, m.v.Number)
		}
		seen[m.v.Number] = true
		kept = append(kept, m)
	}
	return kept
}

// ofRanks adds the run's figure, computed from the values of single ranks. bySource has the
// matches of each rank.
func (l *log) ofRanks(c *compiled, bySource map[string][]match) {
	sources := slices.Sorted(maps.Keys(bySource))
	_, unnamed := bySource[""]
	if n := l.o.Workers; n > 1 && len(sources) == n && !unnamed {
		scale, total, all := l.scale(c, 1), 0.0, []Value{}
		for _, s := range sources {
			total += c.reduced(matchValues(bySource[s])) * scale
			all = append(all, matchValues(bySource[s])...)
		}
		f := &metrics.Figure{Name: c.Name, Value: total, Unit: c.unit.base, Better: c.Better, Reduce: "sum over ranks of the " + c.Reduce,
			Note: fmt.Sprintf("the sum over %d ranks of each rank's %s, as the log states them", n, c.Reduce)}
		l.add(metrics.Event{Figure: f}, scale, all...)
		return
	}
	if l.o.Workers == 0 {
		l.fail(0, "%s is one rank's; give the number of workers, or set of = \"run\"", c.Name)
	}
	if len(sources) > 1 {
		has := number.Count(len(sources), "rank")
		if unnamed {
			has = number.Count(len(sources)-1, "rank") + " and for lines without a rank"
		}
		l.fail(0, "%s is one rank's, but the log has it for %s and the run has %s; log it on all ranks or on one, or set of = \"run\"",
			c.Name, has, number.Count(l.o.Workers, "worker"))
	}
	scale := l.scale(c, float64(l.o.Workers))
	n, note := l.o.Workers, c.note(len(bySource[sources[0]]))
	if n > 1 {
		note = fmt.Sprintf("one rank's times %d, not a measured aggregate; %s", n, note)
		// A figure with the name of one of our own measures has the note itself.
		if m, err := measure.Find(c.Name); err != nil || m.At != "" {
			l.note("%s: one rank's times %d, not a measured aggregate", c.Name, n)
		}
	}
	l.reducedBy(c, matchValues(bySource[sources[0]]), scale, note)
}

// scale returns the factor from the log's unit to ours. If the values are one rank's, n is the
// number of ranks, and the factor includes it; otherwise n is 1.
func (l *log) scale(c *compiled, n float64) float64 {
	if !c.unit.steps {
		return c.unit.scale * n
	}
	if l.o.WorkerBatch == 0 || l.o.Workers == 0 {
		l.fail(0, "%s is in %s; for samples/s, give the number of workers and the batch of each", c.Name, c.Unit)
	}
	batch := l.o.rankBatch()
	if c.Of != "rank" {
		batch = l.o.globalBatch()
	}
	if c.unit.each {
		return batch / c.unit.scale * n
	}
	return batch * c.unit.scale * n
}

// reducedBy adds a figure reduced from values.
func (l *log) reducedBy(c *compiled, values []Value, scale float64, note string) {
	last := values[len(values)-1].Line
	x := c.reduced(values) * scale
	switch {
	case !finite(x):
		l.fail(last, "the %s of %s is not a finite number", c.Reduce, c.Name)
	case c.unit.base == "samples/s" && x <= 0:
		l.fail(last, "%s is %g samples/s; want more than 0", c.Name, x)
	case c.Name == "accuracy" && (x < 0 || x > 1):
		l.fail(last, "accuracy %g; want a fraction from 0 to 1", x)
	}
	f := &metrics.Figure{Name: c.Name, Value: x, Unit: c.unit.base, Better: c.Better, Note: note}
	if len(values) > 1 {
		f.Reduce = c.Reduce
	}
	l.add(metrics.Event{Figure: f}, scale, values...)
}

// reduced reduces values to one number. Of step times, it is the inverse of the reduced time.
func (c *compiled) reduced(values []Value) float64 {
	x := must(reduceBy(c.Reduce, numbers(values)))
	if c.unit.each {
		x = 1 / x
	}
	return x
}
