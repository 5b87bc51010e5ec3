package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/exchange"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// collectives is what a study's good runs measured of collectives, and the
// doubts about the study.
func (s *session) collectives(ctx context.Context, study string) ([]exchange.Run, []string, error) {
	name, err := studyName(study)
	if err != nil {
		return nil, nil, err
	}
	db, err := s.openStore()
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	runs, warnings, err := db.Collectives(ctx, store.Filter{Study: name})
	if err != nil {
		return nil, nil, storeError(err)
	}
	for _, r := range runs {
		for _, w := range r.Warnings {
			warnings = append(warnings, number.Count(r.Workers, "worker")+": "+w)
		}
	}
	slices.Sort(warnings)
	return runs, slices.Compact(warnings), nil
}

func (s *session) plotBusBW(ctx context.Context, o plotOptions) error {
	runs, warnings, err := s.collectives(ctx, o.study)
	if err != nil {
		return err
	}
	f, err := figure.DrawBusBW(exchange.Curves(runs, exchange.Series(runs)), figure.Options{Title: o.title})
	if err != nil {
		return &usageError{err: err}
	}
	if err := f.Save(o.output); err != nil {
		return err
	}
	s.note("%s: %s", o.output, f.Caption())
	for _, w := range warnings {
		s.warn("%s", w)
	}
	return nil
}

// A noTrainingError is a study whose runs are no trainings, asked for what only
// trainings have.
type noTrainingError struct {
	study string
	kind  string // of workload
}

func (e *noTrainingError) Error() string {
	what := fmt.Sprintf("of kind %q", e.kind)
	if e.kind == collectiveKind {
		what = "a benchmark of collectives"
	}
	return fmt.Sprintf("study %q is %s: it trains nothing, so that it has no training throughput, speedup or time to accuracy", e.study, what)
}

// hint is what can be asked of such a study.
func (e *noTrainingError) hint() string {
	if e.kind == collectiveKind {
		return fmt.Sprintf("`%s scaling %s` prints latency and bandwidth, `%s plot busbw %s -o FILE` draws them; `scaling` of a training uses them by itself.", appName, e.study, appName, e.study)
	}
	for _, m := range measure.Of(e.kind) {
		return fmt.Sprintf("`%s scaling %s -m %s` prints one of its measures, `%s plot %s %s -o FILE` draws it.", appName, e.study, m.Name, appName, m.Name, e.study)
	}
	return fmt.Sprintf("`%s runs --study %s` lists its runs, `%s show RUN` prints what one measured.", appName, e.study, appName)
}

const collectiveKind = "collective"

// noTraining says of runs none of which is a training what kind they are of, as
// an error for whoever asks what only trainings have; nil where one may be.
func noTraining(study string, list []scaling.Observation) error {
	kind := ""
	for _, o := range list {
		if _, rate := o.Value(measure.Throughput); rate || o.Kind == "train" {
			return nil
		}
		kind = o.Kind
	}
	if kind == "" {
		return nil
	}
	nothing := &noTrainingError{study, kind}
	return &usageError{err: nothing, hint: nothing.hint()}
}

// printCollectives is what scaling prints of such a study.
func (s *session) printCollectives(ctx context.Context, study string, nothing *noTrainingError) error {
	runs, warnings, err := s.collectives(ctx, study)
	if err != nil {
		return err
	}
	if err := s.print(collectiveCurves(exchange.Curves(runs, exchange.Series(runs)))); err != nil {
		return err
	}
	s.note("%s.", upperFirst(nothing.Error()))
	for _, w := range warnings {
		s.warn("%s", w)
	}
	return nil
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// collectiveCurves is a row for each operation, place and placement. The
// intervals are over runs.
func collectiveCurves(curves []exchange.Curve) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "series"}, {Key: "op"}, {Key: "in_place"}, {Key: "workers"}, {Key: "nodes"}, {Key: "runs"},
		{Key: "latency", Show: number.Seconds}, {Key: "latency_low", Show: number.Seconds, Data: true}, {Key: "latency_high", Show: number.Seconds, Data: true},
		{Key: "bandwidth", Unit: "B/s"}, {Key: "bandwidth_low", Unit: "B/s", Data: true}, {Key: "bandwidth_high", Unit: "B/s", Data: true},
		{Key: "fit_low", Head: "fit off by", Show: number.Percent}, {Key: "fit_high", Head: "to", Show: number.Percent},
		{Key: "bytes", Head: "largest size", Show: number.Bytes}, {Key: "busbw", Head: "busbw at it", Unit: "B/s"}, {Key: "busbw_low", Unit: "B/s", Data: true}, {Key: "busbw_high", Unit: "B/s", Data: true}}}
	var whys []string
	ends := func(e *scaling.Estimate) (value, low, high *float64) {
		if e == nil {
			return nil, nil, nil
		}
		if e.Interval == nil {
			if why, _, _ := strings.Cut(e.Why, " ("); !slices.Contains(whys, why) {
				whys = append(whys, why)
			}
			return &e.Value, nil, nil
		}
		return &e.Value, &e.Interval.Low, &e.Interval.High
	}
	for _, c := range curves {
		last := exchange.Size{}
		for _, s := range c.Sizes {
			if s.BusBW != nil {
				last = s
			}
		}
		alpha, alphaLow, alphaHigh := ends(c.Alpha)
		beta, betaLow, betaHigh := ends(c.Beta)
		bus, busLow, busHigh := ends(last.BusBW)
		var low, high any
		if c.Alpha != nil {
			low, high = c.Low, c.High
		}
		t.Add(table.NonZero(c.Series), table.NonZero(c.Op), c.InPlace, c.Workers, table.NonZero(c.Nodes), c.Runs, alpha, alphaLow, alphaHigh, beta, betaLow, betaHigh,
			low, high, table.NonZero(last.Bytes), bus, busLow, busHigh)
	}
	t.Notes = append(t.Notes, "Medians over runs. A message of s bytes takes latency + s/bandwidth, by a fit to all sizes that is off by as much as it says at its worst ones.")
	if len(whys) > 0 {
		t.Notes = append(t.Notes, "No intervals where there are "+strings.Join(whys, "; ")+"; where there is one, CSV and JSON have it.")
	}
	return t
}
