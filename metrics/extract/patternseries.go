package extract

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

var (
	// counterOf matches the number of a step before a number: "step 12: ", "iter=12 ", "batch [12/100]".
	counterOf = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:global[_ ]?)?(?:steps?|iter(?:ation)?s?|it|batch)[^\pL\d]{1,4}(\d{1,9})(?:[^\d.]|$)`)
	// progress matches the counter of a progress bar: 50/100.
	progress = regexp.MustCompile(`(\d{1,9})/(\d{1,9})`)
	barOf    = regexp.MustCompile(`(?i)epochs?[^\pL\d]{0,3}(\d+)`)
	// runningMean matches names of means over all steps so far, and bracketMean what precedes one in
	// "120.0 (103.0)".
	runningMean = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:avg|average|running|cumulative|cum|so far|moving|ema|smoothed)(?:[^a-z]|$)`)
	escaped     = regexp.MustCompile(`\\.`)
	bracketMean = regexp.MustCompile(`\d[\d.]*[^\s\d]{0,8} ?\($`)
)

// surroundings records what the text around a number says about its place in a series.
func (m *match) surroundings(text string, from int) {
	before := text[:from]
	m.counter = -1
	if all := counterOf.FindAllStringSubmatch(before, -1); all != nil {
		m.counter, _ = strconv.Atoi(all[len(all)-1][1]) // the expression allows digits only
	}
	if all := progress.FindAllStringSubmatch(before, -1); all != nil {
		last := all[len(all)-1]
		m.done, _ = strconv.Atoi(last[1])
		m.whole, _ = strconv.Atoi(last[2])
		m.bar = submatch(barOf, before)
	}
	if key := keyBefore.FindString(before); runningMean.MatchString(key) {
		m.mean = strings.Trim(key, " =:\"'")
	} else if bracket := bracketMean.FindString(before); bracket != "" {
		m.mean = bracket + "…)"
	}
}

// redraws reports whether a match is a later state of the same progress bar as an earlier one. A bar
// that overwrites itself by carriage returns is one line of the log.
func (m match) redraws(earlier match) bool {
	return m.v.Line == earlier.v.Line && m.source == earlier.source && m.whole > 0 && m.whole == earlier.whole && m.bar == earlier.bar && m.done >= earlier.done
}

// defined returns the matches that are numbers. It adds a note about the others, nan and infinite
// ones, or fails if they cannot be left out.
func (l *log) defined(c *compiled, all []match) []match {
	// Programs print -1 for a rate that they do not know.
	rate := strings.HasSuffix(c.unit.base, "/s") || c.ofStep()
	undefined := func(m match) bool { return m.undefined || rate && m.v.Number < 0 }
	at := slices.IndexFunc(all, undefined)
	if at < 0 {
		return all
	}
	kept := slices.DeleteFunc(slices.Clone(all), undefined)
	what, line := "nan or infinite", all[at].v.Line
	if !all[at].undefined {
		what = "negative"
	}
	if len(kept) == 0 || c.Name == "accuracy" || c.Per == "run" && !c.reduces || c.Reduce == "last" && undefined(all[len(all)-1]) {
		l.fail(line, "%s is %s here: the training may have diverged; to leave such values out, let the pattern match numbers only, such as [\\d.]+", c.Name, what)
	}
	l.note("%d of %s of %s are %s (line %d is the first) and left out", len(all)-len(kept), number.Count(len(all), "value"), c.Name, what, line)
	return kept
}

// unequalUnits is the ratio from which on values with and without a unit cannot have the same unit.
const unequalUnits = 20

// halfNamed fails if the log states the unit of some values only, and the others have another
// magnitude: "step_time_ms: 250" and then "step_time: 0.25".
func (l *log) halfNamed(c *compiled, all []match) {
	if c.loose != nil { // the expression states the unit
		return
	}
	with, without := []Value{}, []Value{}
	line, name := 0, ""
	for _, m := range all {
		if m.named == "" {
			without = append(without, m.v)
			continue
		}
		with, line, name = append(with, m.v), m.v.Line, m.named
	}
	if len(with) == 0 || len(without) == 0 {
		return
	}
	if a, b := median(with), median(without); a > 0 && b > 0 && !within(a, b, unequalUnits) {
		l.fail(without[0].Line, "no unit for %s here, but %s in line %d, and the numbers without a unit are %.3g times as large: let the program print the unit everywhere, or the pattern match one of the two", c.Name, name, line, b/a)
	}
}

// unlabelled adds a note if the values seem to be of several ranks that print without a prefix, or
// of several trainings or phases: the step numbers repeat or go back.
func (l *log) unlabelled(c *compiled, all []match) {
	speed := c.unit.base == "s" || strings.HasSuffix(c.unit.base, "/s") // losses fall from epoch to epoch
	if c.Per != "step" || len(all) < 4 || !speed {
		return
	}
	if c.ofStep() {
		l.windows(c, all)
	}
	if !l.stepsAgain(c, all) && all[0].step != 0 {
		l.stepsOfRanks(c, all)
	}
}

// stepsOfRanks adds a note if the same text comes before several numbers, equally often for all steps.
func (l *log) stepsOfRanks(c *compiled, all []match) {
	of := map[uint64][]float64{}
	for _, m := range all {
		of[m.step] = append(of[m.step], m.v.Number)
	}
	if len(of) == len(all) { // each rank's text has other digits, such as those of its host
		of = stepsInARow(all)
	}
	copies, equal, alike := len(all)/len(of), true, true
	for _, values := range of {
		if len(values) != copies {
			return
		}
		equal = equal && slices.Min(values) == slices.Max(values)
		alike = alike && slices.Max(values) <= 1.2*slices.Min(values)
	}
	total := slices.ContainsFunc(all, func(m match) bool { return m.total })
	if copies < 2 || len(of) < 2 || equal || alike && (copies != l.o.Workers || !c.ofAll() || c.ofRun || total) {
		return
	}
	l.note("each step has %d values of %s, which differ: if they are of several ranks, let each rank print its number (srun -l, torchrun), and write of = \"rank\" to add them up", copies, c.Name)
}

// stepsInARow groups the values of matches that follow each other and state the same step.
func stepsInARow(all []match) map[uint64][]float64 {
	of, n := map[uint64][]float64{}, uint64(0)
	for i, m := range all {
		if i > 0 && (m.counter < 0 || m.counter != all[i-1].counter) {
			n++
		}
		of[n] = append(of[n], m.v.Number)
	}
	return of
}

// windows fails if the times of a step are those of all steps between two lines, by the times of day.
func (l *log) windows(c *compiled, all []match) {
	var seconds, steps float64
	for i, m := range all[1:] {
		before := all[i]
		if n, t := m.counter-before.counter, m.at-before.at; before.counter >= 0 && n > 0 && before.at > 0 && t > 0 && m.source == before.source {
			seconds, steps = seconds+t, steps+float64(n)
		}
	}
	between, stated := steps/float64(len(all)-1), median(matchValues(all))*c.declared.Scale
	if seconds < clockSpan || between < 2 || !within(stated, between*seconds/steps, 1.2) {
		return
	}
	l.fail(all[0].v.Line, "%s is %.4g s here, and by the times of day that is the time of the %.4g steps between two lines: let the program print the time of one", c.Name, stated, between)
}

// stepsAgain adds a note if the step number goes back and the values then differ: an evaluation, a
// second training or another rank follows.
func (l *log) stepsAgain(c *compiled, all []match) bool {
	type part struct {
		values []Value
		line   int
	}
	parts := []part{{line: all[0].v.Line}}
	for i, m := range all {
		if m.counter < 0 || m.source != all[0].source {
			return false
		}
		if i > 0 && m.counter <= all[i-1].counter {
			parts = append(parts, part{line: m.v.Line})
		}
		p := &parts[len(parts)-1]
		p.values = append(p.values, m.v)
	}
	few := part{} // the parts of fewer than 3 values together, such as single steps between evaluations
	parts = slices.DeleteFunc(parts, func(p part) bool {
		if len(p.values) < 3 {
			few.values, few.line = append(few.values, p.values...), p.line
		}
		return len(p.values) < 3
	})
	if len(few.values) >= 3 {
		parts = append(parts, few)
	}
	if len(parts) < 2 {
		return false
	}
	first := median(parts[0].values)
	for _, p := range parts[1:] {
		if other := median(p.values); first > 0 && !within(other, first, 1.1) {
			l.note("the step number of %s goes back in line %d, and the values change from %.4g to %.4g in the log's unit: if an evaluation, a second training or another rank begins there, split the log, or let the pattern match one of them", c.Name, p.line, first, other)
			return true
		}
	}
	return false
}

// meanOf returns how the log names values that are running means; "" if it does not.
func meanOf(all []match) string {
	names := map[string]bool{}
	for _, m := range all {
		if m.mean == "" {
			return ""
		}
		names[m.mean] = true
	}
	return cmp.Or(slices.Sorted(maps.Keys(names))...)
}

// tiny adds a note if all percentages are below 1 %: they may be fractions.
func (l *log) tiny(what, option string, values []Value, scale float64) {
	if scale != 0.01 || len(values) == 0 {
		return
	}
	most := slices.Max(numbers(values))
	if most > 0 && most < 1 {
		l.note("%s is at most %g %%: if its numbers are fractions, and not percentages, write %s", what, most, option)
	}
}

// undefinedIn matches the expression with nan or inf in place of the number; nil if it cannot be
// rewritten.
func (c *compiled) undefinedIn() *regexp.Regexp {
	up, behind, ok := c.split()
	if !ok {
		return nil
	}
	name := c.re.SubexpNames()[c.value] + ">"
	before := up[:max(strings.LastIndex(up, "(?P<"+name), strings.LastIndex(up, "(?<"+name), 0)]
	re, err := regexp.Compile(fmt.Sprintf(`%s(?i:[-+]?(?:nan|inf(?:inity)?)\b)%s`, before, behind))
	if err != nil || !hasLetter.MatchString(escaped.ReplaceAllString(before+behind, "")) { // then any nan of the log would match
		return nil
	}
	return re
}
