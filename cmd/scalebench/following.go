package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// watch shows the progress of runs: a bar, and a line for each ended run.
type watch struct {
	s      *session
	what   string
	bar    *progress
	total  int                          // number of runs to start or in progress
	failed map[string]workspace.Failure // runs without a good result, by name
	again  string                       // how to repeat failed runs

	tellFailure func() // called after the first failure
}

func newWatch(s *session, what, again string) *watch {
	return &watch{s: s, what: what, bar: &progress{s: s}, failed: map[string]workspace.Failure{}, again: again}
}

// found shows the numbers of runs to start and in progress; Drive calls it.
func (w *watch) found(todo, underway int) {
	if w.total = todo + underway; w.total > 0 {
		w.bar = w.s.startProgress(w.what, w.total)
	}
}

func (w *watch) warn(err error) { w.s.warn("%v", err) }

func (w *watch) observe(states []launcher.State) {
	running := 0
	var rate float64
	var last launcher.State
	for _, state := range states {
		switch {
		case state.Status.Terminal():
			w.ended(state)
		case state.Status == metrics.Running:
			running++
			rate += state.Traces.Throughput
			last = state
		}
	}
	switch {
	case running == 1:
		text := fmt.Sprintf("%s, %s", last.Run.Name(), number.Count(last.Point.Workers, "worker"))
		if last.Traces.Throughput > 0 {
			text += ": " + query.Reached(last)
		}
		w.bar.describe(text)
	case running > 1:
		w.bar.describe(fmt.Sprintf("%s, about %s %s together", number.Count(running, "run"), number.Significant(rate), measure.RateUnit(last.Point.Workload.Train.Sample)))
	}
}

// ended prints a line about a run that has ended.
func (w *watch) ended(state launcher.State) {
	line := fmt.Sprintf("%s: %s", state.Record.ID, state.Status)
	if state.Detail != "" {
		line += ": " + state.Detail
	}
	run := fmt.Sprintf("%s-r%d", state.Point.ID, state.Point.Repeat)
	switch {
	case state.Status.Good():
		delete(w.failed, run) // the failure was an earlier attempt's
	case state.Status == metrics.OutOfMemory && state.Point.Enforces(study.MemoryKey):
		line += fmt.Sprintf("\n  %v is too little for this point: that is its result, and its other repeats are not run", state.Point.Resources.Memory)
	case state.Status == metrics.OutOfMemory && state.Point.ExhaustionIsResult():
		line += "\n  this layout does not fit in memory: that is its result, and its other repeats are not run"
	default:
		f := workspace.FailureOf(state)
		w.failed[run] = f
		if w.tellFailure != nil && f.Status != metrics.Cancelled {
			w.tellFailure()
			w.tellFailure = nil
		}
		if f.Status != metrics.Cancelled { // the log of a cancelled run gives no reason
			line += "\n  " + f.Log
		}
		if f.Hint != "" {
			line += "\n  " + f.Hint
		}
	}
	w.bar.advance(1)
	w.bar.finished("%s", line)
}

// verdict returns an error if at least one of the command's runs failed; else nil.
func (w *watch) verdict() error {
	if len(w.failed) == 0 {
		return nil
	}
	e := &workspace.RunsFailed{Cancelled: workspace.CountCancelled(w.failed), Total: max(w.total, len(w.failed)), Hint: w.again}
	if e.Failed = len(w.failed) - e.Cancelled; e.Failed > 0 {
		e.Hint = "`scalebench logs RUN` prints a run's log. " + w.again
		if n, f := workspace.CommonCause(w.failed); n > 1 {
			e.Cause, e.Share = f.Cause, n
			e.Hint = "A log: " + f.Log + "\n" + strings.TrimSpace(f.Hint+" "+w.again)
		}
	}
	return e
}

// verdictWith returns the verdict of a command that also fails with err. It returns
// nil if err prevented the command's work, so that runs did not fail by themselves.
func (w *watch) verdictWith(err error) error {
	var partial *workspace.PartialError
	if err != nil && !(errors.As(err, &partial) && partial.Runs > 0) {
		return nil
	}
	return w.verdict()
}
