package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// FindMeasure finds a measure by name: a declared one, the time to a target, or one that a stored run's program
// or log reports. A value of a whole run that a program reports takes precedence over a declared measure within
// runs.
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
	return m, &workspace.Error{Err: fmt.Errorf("unknown measure %q", name), Hint: measureHint(name, known)}
}

// mostReported is how many figures of programs a hint lists.
const mostReported = 8

// measureHint says which of the known measures a wrong name may mean, and where to find all.
func measureHint(name string, known []string) string {
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
	return strings.TrimSpace(study.SpellingHint(name, known) + "\n" + hint)
}

// figure finds the measure for a question about numbers of workers: any with one value per run and a better
// direction.
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

// asThroughput asks about a measure as if it were the throughput.
func (o *Question) asThroughput(m measure.Measure) {
	o.Measure = measure.Throughput
	o.Prepare = func(obs []scaling.Observation, _ []scaling.Planned) { scaling.AsThroughput(obs, m) }
}
