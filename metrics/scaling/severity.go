package scaling

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Severity says how much a warning matters; a lower number is worse.
type Severity int

// The values of Severity.
const (
	// Decisive warnings can change the answer, so they are shown with it.
	Decisive Severity = iota
	// Baseless warnings say why a whole series has no results, and what to measure.
	Baseless
	// Serious warnings say that results are missing, too high, or too low.
	Serious
	// Minor warnings limit which conclusions the results allow.
	Minor
	// Remarkable warnings apply to most sound studies. People see them only with -v; JSON output
	// includes them.
	Remarkable
)

var unread = regexp.MustCompile(`^(?:\d+ of \d+ runs?|the runs in .+) could not be read: `)

// IsUnread reports whether a warning says that runs could not be read.
func IsUnread(warning string) bool { return unread.MatchString(warning) }

// severities ranks warnings by their text, because runs store their warnings as text. The first
// pattern that matches decides. A warning that no pattern matches is Serious.
var severities = []struct {
	pattern *regexp.Regexp
	of      Severity
}{
	{regexp.MustCompile(`\bcomputes? with \d+ threads? on \d+ CPUs?`), Decisive},
	{regexp.MustCompile(`\branks on .+ share GPU `), Decisive},
	{regexp.MustCompile(`different sets of parameters: they did not train one model`), Decisive},
	{regexp.MustCompile(`\breports? a world size of `), Decisive},
	{regexp.MustCompile(`^(?:worker_batch|global_batch|learning_rate|workers_per_node) differs between runs`), Decisive},
	{regexp.MustCompile(` ran on whole nodes, .+ on nodes that other jobs may share `), Decisive},
	{regexp.MustCompile(`^only rank \S+ states |^each step has \d+ values of |^the step number of \S+ goes back `), Decisive},
	{unread, Decisive},

	{regexp.MustCompile(`^no base: |^no worker count has |^to count throughput in |^if they do the same work at each worker count|^.scalebench advise -m \S+ recommends by `), Baseless},

	{regexp.MustCompile(`^the base is one worker, which exchanges no gradients`), Remarkable},
	// These say how a log's figures were made, and nothing was left out of them.
	{regexp.MustCompile(`^\w+ is stated by a log, not measured here.* not a measured aggregate`), Minor},
	{regexp.MustCompile(`^\w+ is stated by a log, not measured here|^losses are timed by |^in MLPerf's \S+, the accuracy is |^times count from the event file's first `), Remarkable},
	{regexp.MustCompile(`^accuracy is from the tag |^rows differ in \w+: the coordinate |^LoadGen's (?:Server|SingleStream): |^wrk2 sends at a constant rate`), Remarkable},

	// How a load generator measures, which is so for each of its runs.
	{regexp.MustCompile(`^\S+'s loop is closed|^\S+'s latencies cover answered requests only`), Minor},
	{regexp.MustCompile(`^runs do not record `), Minor},
	{regexp.MustCompile(`^initialisation was not recorded`), Minor},
	{regexp.MustCompile(`^the runs do not record whether scaling is weak or strong`), Minor},
	{regexp.MustCompile(`^no gradient noise scale `), Minor},
	{regexp.MustCompile(`^some runs did not record what they ran on`), Minor},
	{regexp.MustCompile(`^left out \d+ runs?: a later attempt `), Minor},
}

// SeverityOf returns the severity of a warning, given its text without series and positions.
func SeverityOf(text string) Severity {
	for _, s := range severities {
		if s.pattern.MatchString(text) {
			return s.of
		}
	}
	return Serious
}

// remedies say how to remove the cause of a decisive warning, by a pattern of its text.
var remedies = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\bcomputes? with \d+ threads? on`), "use fewer workers or threads, or more CPUs"},
	{regexp.MustCompile(`\branks on .+ share GPU `), "give each rank its own GPU"},
	{regexp.MustCompile(`: they did not train one model|\breports? a world size of `), "start the ranks as one training"},
	{regexp.MustCompile(`differs between runs: `), "give it one value"},
	{regexp.MustCompile(` on nodes that other jobs may share `), "use whole nodes for all"},
	{regexp.MustCompile(`\bonly rank \S+ states |\beach step has \d+ values of `), "print it on all ranks, with their numbers"},
	{regexp.MustCompile(`\bthe step number of \S+ goes back `), "split the log, or match one part"},
}

// Remedy returns how to remove the cause of a decisive warning; "" if unknown.
func Remedy(warning string) string {
	for _, r := range remedies {
		if r.pattern.MatchString(warning) {
			return r.text
		}
	}
	return ""
}

// Severity returns the severity of the remark.
func (r Remark) Severity() Severity {
	if r.Chance {
		return Remarkable
	}
	return SeverityOf(r.Text)
}

// unsteady matches the warnings about a run whose speed changed. The group is the percentage.
var unsteady = regexp.MustCompile(`steps \d+ to \d+ take (\d+) % longer than`)

const (
	// falselyUnsteady is the share of runs that get such a warning although their steps differ
	// only by noise (measured by TestTruthOfShortRuns of metrics/summary).
	falselyUnsteady = 0.066
	// unsteadyLevel is a probability. The warnings are shown if chance causes as many of them
	// with a lower probability.
	unsteadyLevel = 0.015
	// farTooLong is a percentage that noise alone does not cause.
	farTooLong = 50
)

// unsteadyByChance reports whether chance can explain the number of a curve's runs whose speed
// changed. For a single run, the warning is always shown.
func unsteadyByChance(c Curve) bool {
	with := map[string]bool{}
	for _, p := range c.Points {
		for _, d := range p.RunWarnings {
			m := unsteady.FindStringSubmatch(d.Text)
			if m == nil {
				continue
			}
			if percent, err := strconv.Atoi(m[1]); err != nil || percent >= farTooLong {
				return false
			}
			for _, id := range d.Runs {
				with[id] = true
			}
		}
	}
	if len(with) == 0 { // usual, and listing all runs takes time
		return false
	}
	all := map[string]bool{}
	for _, p := range c.Points {
		for _, r := range p.Runs {
			all[r.ID] = true
		}
	}
	if len(all) == 1 {
		return false
	}
	few := distuv.Binomial{N: float64(len(all)), P: falselyUnsteady}.CDF(float64(len(with) - 1))
	return 1-few > unsteadyLevel
}

// WorstFirst sorts remarks by severity. Remarks of equal severity keep their order.
func WorstFirst(list []Remark) {
	slices.SortStableFunc(list, func(a, b Remark) int { return cmp.Compare(a.Severity(), b.Severity()) })
}

// DecisiveIn returns the remarks on the curves, and the warnings about their study, that can
// change an answer. It returns one line per kind of remark.
func DecisiveIn(curves []Curve, study ...string) []string {
	var list []Remark
	for _, text := range study {
		list = append(list, Remark{Text: text})
	}
	list = slices.DeleteFunc(append(list, Remarks(curves)...), func(r Remark) bool { return r.Severity() != Decisive })
	return Lines(list, len(curves))
}

// DecisiveNote returns a sentence with the two worst results of DecisiveIn, for tables and
// captions; "": none.
func DecisiveNote(curves []Curve, study ...string) string {
	list := DecisiveIn(curves, study...)
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "Doubtful: " + list[0] + "."
	}
	return "Doubtful: " + strings.Join(list[:2], "; ") + "."
}
