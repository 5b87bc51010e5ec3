package query

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// FindMeasure finds a measure by name: a built-in measure, the time to a target, or a measure that
// the program or log of a stored run reports. If a program reports one value per run, that measure
// takes precedence over a built-in measure of the same name that has several values per run.
func FindMeasure(ctx context.Context, db *store.Store, name string) (measure.Measure, error) {
	m, unknown := measure.Find(name)
	if unknown == nil && m.At == "" {
		return m, nil
	}
	reported, err := db.Reported(ctx)
	if err != nil {
		return m, workspace.StoreError(err)
	}
	known := measure.Names()
	for _, r := range reported {
		if r.Name == name {
			return r, nil
		}
		known = append(known, r.Name)
	}
	if unknown == nil {
		return m, nil
	}
	return m, &workspace.Error{Err: fmt.Errorf("unknown measure %q", name), Hint: measureHint(name, nil, known)}
}

// mostReported is the maximum number of measures reported by programs that a hint lists.
const mostReported = 8

// measureHint returns a hint for an unknown measure's name: which known measures have similar
// names, and where all are listed. Names in measured, of which the runs have values, come first.
func measureHint(name string, measured, known []string) string {
	var own []string
	declared := measure.Names()
	for _, one := range known {
		if !slices.Contains(declared, one) {
			own = append(own, one)
		}
	}
	hint := "`scalebench help measures` lists all; the time to a target is to_0.75 or to_loss_2."
	if n := len(own); n > mostReported {
		hint += fmt.Sprintf(" The runs report %s and %d more (`scalebench show RUN` prints them).", strings.Join(own[:mostReported], ", "), n-mostReported)
	} else if n > 0 {
		hint += " The runs report " + strings.Join(own, ", ") + "."
	}
	ratio := ""
	if near := study.NearWords(strings.ReplaceAll(name, "_", ""), []string{"speedup", "efficiency"}); len(near) > 0 {
		ratio = "`scalebench scaling STUDY` prints speedup and efficiency; -m names the figure that they compare, such as throughput."
	}
	return strings.TrimSpace(cmp.Or(targetHint(name), ratio, nearest(name, measured, known)) + "\n" + hint)
}

// nearest suggests names in measured, of which the runs have values, that are similar to name. If there are none, it suggests
// names in known. It returns "" if none is similar.
func nearest(name string, measured, known []string) string {
	return cmp.Or(study.SpellingHint(name, measured), study.SpellingHint(name, known))
}

// spokenTarget matches names like the time to a target: to_75, to75%, time_to_0,75, to_loss2.
var spokenTarget = regexp.MustCompile(`(?i)^(?:time[_ -]?)?to[_ -]?(?:acc(?:uracy)?[_ -]?|(loss)[_ -]?)?([0-9]*[.,]?[0-9]+)%?$`)

// targetHint suggests the name of the time to a target; "" if the name does not look like one.
func targetHint(name string) string {
	m := spokenTarget.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	value, err := strconv.ParseFloat(strings.Replace(m[2], ",", ".", 1), 64)
	switch {
	case err != nil || value <= 0 || m[1] == "" && value > 100:
		return ""
	case m[1] != "":
		return "Did you mean to_loss_" + number.Exact(value) + "?"
	case value > 1:
		value /= 100
	}
	return "Did you mean to_" + number.Exact(value) + "?"
}

// figure returns the measure that a question about worker counts names. It must have one value per
// run, and it must be known whether higher or lower is better; otherwise figure returns an error.
func (r *Reader) figure(ctx context.Context, o Question) (*measure.Measure, error) {
	a, err := r.Curves(ctx, o)
	if err != nil {
		return nil, err
	}
	m, err := scaling.FindMeasure(a.Observations, o.Measure)
	switch {
	case err != nil:
		return nil, unanswered(err)
	case m.At != "":
		return nil, &workspace.Error{Err: fmt.Errorf("--measure %s: each run has many values of it (%s); choose a measure with one value per run", m.Name, strings.Join(m.At.Keys(), ", ")),
			Hint: "`scalebench scaling STUDY -m " + m.Name + "` prints them."}
	case m.Missable:
		return nil, workspace.Errorf("--measure %s is a time to a target: --target asks about it", m.Name)
	case m.Better == measure.Neither:
		return nil, &workspace.Error{Err: fmt.Errorf("--measure %s: neither a higher nor a lower value is better, so there is no best number of workers", m.Name),
			Hint: "If the program reports it, set better = \"higher\" (or \"lower\") in its [[extract]], then run `scalebench collect`."}
	}
	return &m, nil
}

// asThroughput changes the question so that the measure m takes the place of the throughput in all
// computations.
func (o *Question) asThroughput(m measure.Measure) {
	o.Measure = measure.Throughput
	o.Prepare = func(obs []scaling.Observation, _ []scaling.Planned) { scaling.AsThroughput(obs, m) }
}
