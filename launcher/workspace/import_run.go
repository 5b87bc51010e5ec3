package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/redact"
)

// run returns the run that the labels and the log describe.
func (o *ImportOptions) run(file string, labels map[string]any, r extract.Content) (metrics.Run, error) {
	run := metrics.Run{Kind: r.Kind, Framework: o.From, Status: metrics.Done, Parameters: map[string]any{"import.format": o.From}}
	if r.Failed != "" {
		run.Status = metrics.Failed
	}
	var problems []error
	wrong := func(format string, a ...any) {
		problems = append(problems, fmt.Errorf("%s: "+format, append([]any{file}, a...)...))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text := fmt.Sprint(labels[key])
		switch key {
		case "study":
			run.Study = text
		case "framework":
			run.Framework = text
		case "workers", "replicas", "nodes": // a service's workers are its replicas
			count := countOf(labels[key])
			if count == 0 {
				wrong("%s is %q; want a whole number, 1 or more", key, text)
			}
			switch {
			case key == "nodes":
				run.Nodes = count
			case run.Workers != 0 && run.Workers != count:
				wrong("replicas is %d and workers %d; the workers of a service are its replicas", run.Workers, count)
			default:
				run.Workers = count
			}
		default:
			if !labelKey(key) {
				wrong("%q is not a valid label; use letters, digits, dots, - and _", key)
			}
			run.Parameters[key] = labels[key]
		}
	}
	if run.Workers == 0 {
		run.Workers = max(o.Workers, 0)
	}
	switch {
	case run.Workers == 0:
		run.Workers = r.Workers
	case r.WorkersBy != "" && run.Workers != r.Workers:
		wrong("the log says %d workers (%s), not %d; leave out --set workers=%[4]d", r.Workers, r.WorkersBy, run.Workers)
	}
	switch {
	case run.Study == "":
		wrong("no study; name one with --set study=NAME")
	case !labelKey(run.Study):
		wrong("study name %q is not valid; use letters, digits, dots, - and _", run.Study)
	}
	if run.Workers == 0 && len(problems) == 0 {
		wrong("number of workers unknown; add --set workers=N or, for a CSV file, --map workers=COLUMN")
	}
	if err := errors.Join(problems...); err != nil {
		return run, err
	}
	return run, o.name(&run)
}

// countOf returns a label as a count, or 0 if it is not one.
func countOf(label any) int {
	switch n := label.(type) {
	case int64:
		if n >= 1 && n < math.MaxInt32 {
			return int(n)
		}
	case float64: // "4.0", as a column with gaps is often written
		if n >= 1 && n < math.MaxInt32 && n == math.Trunc(n) {
			return int(n)
		}
	}
	return 0
}

// name derives the run's point from what was measured. Secrets enter as digests, since the point's name is
// public.
func (o *ImportOptions) name(run *metrics.Run) error {
	labelled := map[string]any{}
	for key, v := range run.Parameters {
		labelled[key] = redact.Hider(o.digest).Value(key, v)
	}
	point, err := json.Marshal([]any{run.Kind, run.Framework, run.Workers, run.Nodes, labelled})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(point)
	run.Point = fmt.Sprintf("imported-w%d-%s", run.Workers, hex.EncodeToString(sum[:4]))
	return nil
}
