package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// A contrast is a swept key whose values are compared.
type contrast struct {
	key   string // TOML path, such as "workload.batch"
	first scaling.Value
}

// contrastOf returns the contrast for a key as the user writes it: its name in [sweep], or its
// TOML path. The other values are compared with the first one in the plan.
func contrastOf(w *workspace.Work, key string) (*contrast, error) {
	swept := slices.DeleteFunc(w.Study.Swept(), func(path string) bool { return path == scaling.Workers })
	for _, path := range swept {
		if path == key || strings.HasSuffix(path, "."+key) {
			return &contrast{path, scaling.ValueOf(w.Plan.Points[0].Point.Parameters()[path])}, nil
		}
	}
	hint := "The study sweeps no key but workers with several values; list the settings to compare under [sweep]."
	if len(swept) > 0 {
		hint = strings.TrimSpace(study.SpellingHint(key, swept) + "\nThe study sweeps " + strings.Join(swept, ", ") + ".")
	}
	return nil, &workspace.Error{Err: fmt.Errorf("--compare %q: the study does not sweep this key with several values", key), Hint: hint}
}

// contrasts compares the runs that have the first value of the key with those that have any other,
// point by point.
func (v *adviser) contrasts(ctx context.Context, o Question, d sequential.Design) (*decide.Results, error) {
	f, err := measure.Find(measure.Throughput)
	if err != nil {
		return nil, err
	}
	name := o.Measure
	o.Measure = ""
	a, err := v.r.Curves(ctx, o)
	if err != nil {
		return nil, err
	}
	if t := v.wish.Target; t != nil && name == "" {
		name = t.Time().Name
	}
	if name != "" {
		if f, err = scaling.FindMeasure(a.Observations, name); err != nil {
			return nil, unanswered(err)
		}
	}
	var first, others []scaling.Observation
	for _, run := range a.Observations {
		if scaling.ValueOf(run.Parameters[v.contrast.key]) == v.contrast.first {
			first = append(first, run)
		} else {
			others = append(others, run)
		}
	}
	r := &decide.Results{Observations: a.Observations, Curves: a.Curves, Contrast: &decide.Contrast{Key: v.contrast.key, Measure: f, Warnings: a.Warnings}}
	if len(first) == 0 || len(others) == 0 {
		return nil, &workspace.Error{Err: fmt.Errorf("--compare %s: no good run has %s = %s, or none has another value", v.contrast.key, v.contrast.key, v.contrast.first),
			Hint: "`scalebench status " + a.Study + "` gives the causes of failures."}
	}
	c, err := compare.Runs(first, others, f, compare.Options{Confidence: d.Confidence})
	if err != nil {
		return nil, &workspace.Error{Err: err}
	}
	r.Contrast.Pairs = c.Pairs
	return r, nil
}
