package figure

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// about returns sentences with what readers need to interpret a ratio: weak or strong scaling,
// the base of each series with its value, and the number of runs per point.
func about(list []trend) []string {
	var curves []scaling.Curve // without repetition
	for i, t := range list {
		if i == 0 || t.curve.Series != list[i-1].curve.Series {
			curves = append(curves, t.curve)
		}
	}
	return append(scalings(curves), bases(curves, list), "Dots: runs; markers: medians.", runsPerPoint(curves, list))
}

// scalings returns a sentence that says what was kept constant (weak or strong scaling).
func scalings(curves []scaling.Curve) []string {
	words := map[string]string{"weak": "weak scaling (batch per worker fixed)", "strong": "strong scaling (global batch fixed)"}
	of := func(c scaling.Curve) string {
		if w, ok := words[c.Scaling]; ok {
			return w
		}
		return "weak or strong scaling not recorded"
	}
	return []string{perSeries("", curves, of)}
}

func bases(curves []scaling.Curve, list []trend) string {
	return perSeries("base: ", curves, func(c scaling.Curve) string {
		text := counted(c.Worker(), c.Base.Workers)
		for _, t := range list {
			if t.curve.Series != c.Series {
				continue
			}
			value := number.Short(t.base().Median.Value, 4) + " " + t.measure.Unit
			if t.measure.Missable {
				value = strings.TrimPrefix(t.measure.Title, "time to ") + " after " + value
			}
			text += ", " + value
		}
		return text
	})
}

// mixtures returns a sentence that says which curves combine runs with different fingerprints.
func mixtures(curves []scaling.Curve) []string {
	mixed := slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Mixed != nil })
	if !mixed {
		return nil
	}
	return []string{perSeries("", curves, func(c scaling.Curve) string {
		if c.Mixed == nil {
			return "runs on the same hardware and software"
		}
		facts := make([]string, len(c.Mixed))
		for i, v := range c.Mixed {
			facts[i] = shown(v.String())
		}
		return "mixes runs on different hardware or software (" + strings.Join(facts, "; ") + ")"
	})}
}

// doubts returns a sentence with the most serious warnings about the curves, in the words of the
// tables, because a plot may be shown without its table. It leaves out missing intervals, which the
// captions mention anyway.
func doubts(curves []scaling.Curve) []string {
	var list []string
	if note := scaling.DecisiveNote(curves); note != "" {
		list = append(list, shown(note))
	}
	if slices.ContainsFunc(curves, scaling.Curve.Divided) {
		list = append(list, "Runs on different hardware or software are separate series.")
	}
	worst, text := scaling.WorstDrift(curves)
	if worst == nil {
		return list
	}
	if len(curves) > 1 {
		text += " (" + shown(worst.Series)
		others := -1
		for _, c := range curves {
			if len(c.DriftWarnings) > 0 {
				others++
			}
		}
		switch {
		case others == 1:
			text += "; 1 more has a drift warning"
		case others > 1:
			text += fmt.Sprintf("; %d more have a drift warning", others)
		}
		text += ")"
	}
	return append(list, upper(text)+".")
}

// runsPerPoint returns the number of runs per point: one number if all points have the
// same, or a list by worker count. It counts runs that have the first trend's measure.
func runsPerPoint(curves []scaling.Curve, list []trend) string {
	runs := func(p *scaling.Point) int { return p.Of(list[0].measure.Name).Runs }
	low, high := math.MaxInt, 0
	for _, c := range curves {
		for i := range c.Points {
			n := runs(&c.Points[i])
			low, high = min(low, n), max(high, n)
		}
	}
	if low == high {
		return fmt.Sprintf("Runs per point: %d.", low)
	}
	return perSeries("runs per point: ", curves, func(c scaling.Curve) string {
		return runsAt(c, func(p scaling.Point) int { return runs(&p) })
	})
}

// ttaRuns is like runsPerPoint for all runs of a point, as times to targets need.
func ttaRuns(curves []scaling.Curve) []string {
	return []string{perSeries("runs per point: ", curves, func(c scaling.Curve) string {
		return runsAt(c, func(p scaling.Point) int { return len(p.Runs) })
	})}
}

func runsAt(c scaling.Curve, count func(scaling.Point) int) string {
	n := map[int][]scaling.Value{}
	var order []int
	for _, p := range c.Points {
		k := count(p)
		if n[k] == nil {
			order = append(order, k)
		}
		n[k] = append(n[k], p.At)
	}
	if len(order) == 1 {
		return fmt.Sprint(order[0])
	}
	parts := make([]string, len(order))
	for i, k := range order {
		parts[i] = fmt.Sprintf("%d at %s", k, places(c, n[k]))
	}
	return strings.Join(parts, ", ")
}

// mostNamed is the number of series for which a caption writes a sentence each.
const mostNamed = 3

// perSeries writes a sentence once if it is the same for all series, or else with each
// series' name, up to mostNamed. The names are as drawn.
func perSeries(lead string, curves []scaling.Curve, of func(scaling.Curve) string) string {
	texts := make([]string, len(curves))
	same := true
	for i, c := range curves {
		texts[i] = of(c)
		same = same && texts[i] == texts[0]
	}
	if same {
		return upper(lead+texts[0]) + "."
	}
	for i, c := range curves {
		texts[i] = shown(c.Series) + ": " + texts[i]
	}
	if more := len(texts) - mostNamed; more > 1 {
		texts = append(texts[:mostNamed], fmt.Sprintf("%d more series", more))
	}
	return upper(lead) + strings.Join(texts, "; ") + "."
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// An estimate is the value of a bar, or the reason why it is missing.
type estimate struct {
	worker   string // noun for a worker
	workers  int    // 0 on any other axis
	interval *scaling.Interval
	why      string
	still    bool // the machine's drift over time was removed
}

var tooFew = regexp.MustCompile(`\((\d+) of (\d+ needed)\)`)

func estimates(trends []trend, of func(*scaling.Summary) *scaling.Estimate) []estimate {
	var list []estimate
	for _, t := range trends {
		for i := range t.curve.Points {
			p := &t.curve.Points[i]
			if e := of(t.at(p)); e != nil && e.Why != scaling.AtBase {
				one := estimate{t.curve.Worker(), p.Workers, e.Interval, e.Why, e.Adjusted}
				if t.curve.Axis != scaling.Workers { // the caption already states the runs per point
					one.workers, one.why = 0, tooFew.ReplaceAllString(e.Why, "($2)")
				}
				list = append(list, one)
			}
		}
	}
	return list
}

// bars returns sentences on the kind of interval that the bars show, the attained levels, and why
// some points have no bar.
func bars(list []estimate, kind string) []string {
	low, high := 1.0, 0.0
	without := map[string][]int{} // worker counts without a bar, by reason
	with := map[int]bool{}        // worker counts with a bar
	still, others := false, false
	var reasons []string
	for _, e := range list {
		if e.interval != nil {
			low, high = min(low, e.interval.Level), max(high, e.interval.Level)
			with[e.workers] = true
			still, others = still || e.still, others || !e.still
			continue
		}
		if without[e.why] == nil {
			reasons = append(reasons, e.why)
		}
		without[e.why] = insert(without[e.why], e.workers)
	}
	var sentences []string
	switch {
	case still && others:
		kind += ", corrected for drift where the machine drifts"
	case still:
		kind += ", corrected for the machine's drift"
	}
	if high > 0 {
		level := levelText(low)
		if levelText(high) != level {
			level += "–" + levelText(high)
		}
		sentences = append(sentences, fmt.Sprintf("Bars: %s %% %s.", level, kind))
	}
	// Do not name a count that has a bar on one line but not on another, or that lacks it
	// for two reasons: the sentences would contradict each other.
	ambiguous := func(why string) bool {
		return slices.ContainsFunc(without[why], func(n int) bool {
			return n == 0 || with[n] || slices.ContainsFunc(reasons, func(other string) bool { return other != why && slices.Contains(without[other], n) })
		})
	}
	var somewhere []string
	for _, why := range reasons {
		if ambiguous(why) {
			somewhere = append(somewhere, why)
		} else if len(reasons) > 1 || len(with) > 0 {
			sentences = append(sentences, "No bar at "+counts(list[0].worker, without[why])+": "+why+".")
		} else {
			sentences = append(sentences, "No bar: "+why+".")
		}
	}
	switch merged := strings.Join(mergeTooFew(somewhere), "; "); {
	case somewhere == nil:
	case len(somewhere) == len(reasons) && len(with) == 0:
		sentences = append(sentences, "No bar: "+merged+".")
	default:
		sentences = append(sentences, "No bar at some points: "+merged+".")
	}
	return sentences
}

// mergeTooFew merges reasons that differ only in the number of runs.
func mergeTooFew(reasons []string) []string {
	var list []string
	have := map[string][]int{} // numbers of runs, by the reason without them
	for _, why := range reasons {
		key := why
		if m := tooFew.FindStringSubmatch(why); m != nil {
			n, _ := strconv.Atoi(m[1])
			key = tooFew.ReplaceAllString(why, "(%s of $2)")
			have[key] = insert(have[key], n)
		}
		if !slices.Contains(list, key) {
			list = append(list, key)
		}
	}
	for i, key := range list {
		if runs := have[key]; runs != nil {
			list[i] = strings.Replace(key, "%s", lowToHigh(runs), 1)
		}
	}
	return list
}

// lowToHigh formats the range of a sorted list: "2", "1 to 4".
func lowToHigh(list []int) string {
	if low, high := list[0], list[len(list)-1]; low < high {
		return fmt.Sprintf("%d to %d", low, high)
	}
	return strconv.Itoa(list[0])
}

// levelText rounds a level down, so that it never exceeds the attained one.
func levelText(level float64) string { return number.Short(math.Floor(level*1000)/10, 3) }

// commonBase returns the base's worker count; same is false if the bases differ.
func commonBase(list []trend) (n int, same bool) {
	for _, t := range list {
		if t.curve.Base.Workers != list[0].curve.Base.Workers {
			return 0, false
		}
	}
	return list[0].curve.Base.Workers, true
}

func workers(n int) string { return counted("worker", n) }

func counted(noun string, n int) string {
	if n == 1 {
		return "1 " + noun
	}
	return number.Short(float64(n), 15) + " " + noun + "s"
}

// counts formats worker counts with their noun: "2, 4 and 8 replicas".
func counts(noun string, ns []int) string {
	if len(ns) == 1 {
		return counted(noun, ns[0])
	}
	parts := make([]string, len(ns))
	for i, n := range ns {
		parts[i] = number.Short(float64(n), 15)
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1] + " " + noun + "s"
}

// axisName returns the name of a curve's axis.
func axisName(c scaling.Curve) string {
	if c.Axis == scaling.Workers {
		return c.Worker() + "s"
	}
	return shown(c.Axis)
}

// places formats positions on a curve's axis: "1 and 2 workers", "threads 1 and 2".
func places(c scaling.Curve, list []scaling.Value) string {
	if c.Axis == scaling.Workers {
		ns := make([]int, len(list))
		for i, v := range list {
			ns[i] = int(v.Number)
		}
		return counts(c.Worker(), ns)
	}
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = v.String()
	}
	text := parts[len(parts)-1]
	if len(parts) > 1 {
		text = strings.Join(parts[:len(parts)-1], ", ") + " and " + text
	}
	return last(c.Axis) + " " + text
}

// insert adds v to a sorted list unless it is present.
func insert[T int | float64](list []T, v T) []T {
	i, found := slices.BinarySearch(list, v)
	if found {
		return list
	}
	return slices.Insert(list, i, v)
}
