package extract

import (
	"cmp"
	"io"
	"math"

	"github.com/scalebench/scalebench/metrics"
)

// hfTrainerState reads trainer_state.json of Hugging Face's Trainer. The train_samples_per_second
// in it is the samples of all epochs divided by the whole run time, including warm-up,
// evaluations and checkpoints.
var hfTrainerState = Extractor{
	Name:  "hf-trainer-state",
	Kind:  "train",
	Apart: true,
	Reads: "JSON with log_history: eval_accuracy, train_samples_per_second",
	read:  readTrainerState,
}

type hfState struct {
	l        *log
	accuracy string // name of the field with the accuracy
	timed    hfParts
	ended    bool // train_runtime was read
}

func readTrainerState(l *log, r io.Reader) {
	doc := must(l.json(r))
	s := &hfState{l: l, accuracy: cmp.Or(l.o.Columns["accuracy"], "eval_accuracy")}
	top := l.object(doc)
	history := top.of["log_history"]
	if !doc.is('{') || !history.is('[') && !history.null() {
		l.fail(0, "not a Trainer's state: want a JSON object with a list named log_history")
	}
	s.steps(top)
	entry := l.object(value{}) // reused for each entry
	history.entries(func(at value) {
		if !at.is('{') {
			l.fail(0, "not a Trainer's state: line %d: an entry of log_history is not an object", at.line)
		}
		entry.read(at)
		s.entry(entry)
	})
}

func (s *hfState) steps(top members) {
	done, ok := top.number("global_step")
	if !ok {
		return
	}
	total, ok := top.number("max_steps")
	if !ok {
		return
	}
	epoch, _ := top.number("epoch")
	s.timed.done = done.Number
	if total.Number >= 1 {
		s.timed.progress(done.Number, total.Number, epoch.Number)
	}
}

func (s *hfState) entry(m members) {
	of := map[string]Value{}
	for _, name := range []string{"step", "epoch", s.accuracy, "eval_runtime", "eval_loss", "loss", "train_runtime"} {
		if m.of[name].is('"') {
			s.l.fail(m.of[name].line, "%s is text; want a number", name)
		}
		if v, ok := m.number(name); ok {
			of[name] = v
		}
	}
	step, epoch, evaluating := of["step"], of["epoch"], of["eval_runtime"].Number
	if epoch.Number < 0 || epoch.Number > 1e9 || step.Number < 0 || step.Number > 1e12 {
		s.l.fail(max(epoch.Line, step.Line), "epoch %g, step %g; want counts, 0 or more", epoch.Number, step.Number)
	}
	if v, ok := of[s.accuracy]; ok {
		e := &metrics.Evaluation{Epoch: int(math.Ceil(epoch.Number)), Step: int(step.Number), Seconds: max(0, evaluating)}
		s.l.namedAccuracy(metrics.Event{Evaluation: e}, v, s.accuracy)
	}
	if v, ok := of["eval_loss"]; ok {
		s.l.figure("eval_loss", "", map[string]any{"epoch": epoch.Number}, v, "")
	}
	if v, ok := of["loss"]; ok && epoch.Line > 0 {
		s.timed.loss(epoch.Number, v.Number)
	}
	s.timed.evaluating += evaluating
	v, ok := of["train_runtime"]
	switch {
	case !ok:
		return
	case s.ended:
		s.l.fail(v.Line, "a second train_runtime. One file is one run")
	}
	s.ended = true
	if step.Number > 0 {
		s.timed.done = step.Number
	}
	s.timed.summary(s.l, v.Line, m.number)
}
