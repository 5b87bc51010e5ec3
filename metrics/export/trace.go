package export

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/scalebench/scalebench/metrics/store"
)

var traceFormat = Format{
	Name:   "trace",
	About:  "the steps of one run on a time axis, with a track for each rank (Perfetto, chrome://tracing)",
	Suffix: "-trace.json",
	OneRun: true,
	file:   writeTrace,
}

// A traceEvent is an event of the Trace Event Format. Times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	Category string         `json:"cat,omitempty"`
	Start    float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// The threads of a rank. A step and its parts are on separate ones, since parts may overlap.
const (
	stepThread = iota + 1
	dataWaitThread
	computeThread
	communicationThread
	evaluationThread
)

// threadNames are in the order in which a rank's threads are shown.
var threadNames = [...]string{stepThread: "step", dataWaitThread: "data wait", computeThread: "compute", communicationThread: "communication", evaluationThread: "evaluation"}

// traceNote is stored with the trace, because the picture suggests more than was recorded.
const traceNote = "Recorded are how long each step and its parts took. A part is drawn from its step's start: when it began within the step is not recorded. Ranks are aligned by the clocks of their hosts."

func writeTrace(ctx context.Context, s *Source, w io.Writer) error {
	t := tracer{w: w}
	err := s.each(ctx, func(r *store.RunFacts) error {
		timelines, err := s.DB.Timelines(ctx, r.Run)
		if err != nil {
			return err
		}
		about := map[string]any{"program": s.Program, "run": text(r.Run), "status": r.Status, "detail": text(r.Detail), "workers": r.Workers,
			"parameters": r.Parameters, "note": traceNote, "origin_unix_seconds": t.align(timelines)}
		head, err := json.Marshal(about)
		if err != nil {
			return err
		}
		t.print("{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[", head)
		for i := range timelines {
			t.rank(&timelines[i])
		}
		if err := s.DB.EachStep(ctx, r.Run, t.step); err != nil {
			return err
		}
		t.print("\n]}\n")
		if t.steps == 0 {
			s.Notes = append(s.Notes, "The run recorded no steps; the trace has only its evaluations.")
		}
		return t.err
	})
	return err
}

// A tracer writes the events of a run.
type tracer struct {
	w      io.Writer
	err    error // the first one
	events int
	steps  int
	origin float64 // time 0 of the trace, in seconds since 1970
	ranks  map[[2]int]*rankClock
}

// A rankClock places the steps of one rank, by restart and rank, on the time axis.
type rankClock struct {
	*store.Timeline
	next float64 // when the next step begins, in seconds on the rank's clock
	at   int     // Events before this one lie before the next step
}

// align sets the origin of the time axis, the earliest start of a process, and returns it.
func (t *tracer) align(timelines []store.Timeline) float64 {
	t.ranks, t.origin = map[[2]int]*rankClock{}, math.Inf(1)
	for i := range timelines {
		one := &timelines[i]
		t.ranks[[2]int{one.Restart, one.Rank}] = &rankClock{Timeline: one}
		t.origin = min(t.origin, one.Unix)
	}
	if len(timelines) == 0 {
		t.origin = 0
	}
	return t.origin
}

// rank writes the names of a rank's tracks, and its evaluations.
func (t *tracer) rank(one *store.Timeline) {
	name := fmt.Sprintf("rank %d", one.Rank)
	if one.Ranks > 1 {
		name = fmt.Sprintf("ranks %d to %d", one.Rank, one.Rank+one.Ranks-1)
	}
	if one.Host != "" {
		name += " on " + text(one.Host)
	}
	meta := func(kind string, thread int, args map[string]any) {
		t.add(traceEvent{Name: kind, Phase: "M", Process: one.Rank + 1, Thread: thread, Args: args})
	}
	meta("process_name", 0, map[string]any{"name": name})
	meta("process_sort_index", 0, map[string]any{"sort_index": one.Rank})
	for thread := stepThread; thread <= evaluationThread; thread++ {
		meta("thread_name", thread, map[string]any{"name": threadNames[thread]})
		meta("thread_sort_index", thread, map[string]any{"sort_index": thread})
	}
	for _, e := range one.Events {
		if v := e.Evaluation; v != nil {
			args := map[string]any{"accuracy": v.Accuracy, "epoch": v.Epoch, "step": v.Step}
			if v.Loss != nil {
				args["loss"] = *v.Loss
			}
			t.slice(one, evaluationThread, "evaluation", e.Time-v.Seconds, v.Seconds, args)
		}
	}
}

// step writes a step and its parts.
func (t *tracer) step(s store.RankStep) error {
	c := t.ranks[[2]int{s.Restart, s.Rank}]
	if c == nil {
		return t.err // no start event says when this rank's clock began
	}
	c.until(s.Step)
	t.steps++
	args := map[string]any{"step": s.Step, "samples": s.Samples, "restart": s.Restart}
	t.slice(c.Timeline, stepThread, fmt.Sprintf("step %d", s.Step), c.next, s.Duration, args)
	for i, seconds := range []*float64{s.DataWait, s.Compute, s.Communication} {
		if thread := dataWaitThread + i; seconds != nil {
			t.slice(c.Timeline, thread, threadNames[thread], c.next, *seconds, map[string]any{"step": s.Step})
		}
	}
	c.next += s.Duration
	return t.err
}

// until moves the clock past the events that lie before a step: the start of the training, and the
// ends of epochs and evaluations, after which the next step begins.
func (c *rankClock) until(step int) {
	for ; c.at < len(c.Events); c.at++ {
		e := &c.Events[c.at]
		if e.Epoch != nil && e.Epoch.Step > step || e.Evaluation != nil && e.Evaluation.Step > step {
			return
		}
		c.next = max(c.next, e.Time)
	}
}

// slice writes a span of time on one thread of a rank. start is on the rank's clock, in seconds.
func (t *tracer) slice(one *store.Timeline, thread int, name string, start, seconds float64, args map[string]any) {
	const micro = 1e6
	duration := seconds * micro
	t.add(traceEvent{Name: name, Phase: "X", Category: threadNames[thread], Start: (one.Unix - t.origin + start) * micro, Duration: &duration,
		Process: one.Rank + 1, Thread: thread, Args: args})
}

func (t *tracer) add(e traceEvent) {
	line, err := json.Marshal(e)
	if t.err == nil {
		t.err = err
	}
	separator := ",\n"
	if t.events++; t.events == 1 {
		separator = "\n"
	}
	t.print("%s%s", separator, line)
}

func (t *tracer) print(format string, a ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, a...)
	}
}
