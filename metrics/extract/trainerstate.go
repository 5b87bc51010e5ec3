package extract

import (
	"fmt"
	"io"
	"math"

	"github.com/scalebench/scalebench/metrics"
)

// hfTrainerState reads trainer_state.json of Hugging Face's Trainer. Its
// train_samples_per_second is the samples of all epochs over the whole run time,
// warm-up, evaluations and checkpoints included.
var hfTrainerState = Extractor{
	Name:  "hf-trainer-state",
	Kind:  "train",
	Apart: true,
	Reads: "JSON with log_history: eval_accuracy, train_samples_per_second",
	read:  readTrainerState,
}

func readTrainerState(l *log, r io.Reader) error {
	doc, err := l.json(r)
	if err != nil {
		return err
	}
	accuracy := "eval_accuracy"
	if name, ok := l.o.Columns["accuracy"]; ok {
		accuracy = name
	}
	found, entry := false, map[string]value{}
	var timed hfParts
	doc.members(entry)
	history := entry["log_history"]
	if !doc.is('{') || !history.is('[') && !history.null() {
		return fmt.Errorf("%s: not a Trainer's state: want a JSON object with a list named log_history", l.o.File)
	}
	return history.entries(func(at value) error {
		if !at.is('{') {
			return fmt.Errorf("%s: not a Trainer's state: line %d: an entry of log_history is not an object", l.o.File, at.line)
		}
		at.members(entry)
		number := func(key string) (v Value, ok bool, err error) {
			x := entry[key]
			switch {
			case x.null():
				return v, false, nil
			case x.is('"'):
				return v, false, l.errorAt(x.line, "%s is text; want a number", key)
			}
			v, err = l.parse(x.line, string(x.text))
			return v, err == nil, err
		}
		step, _, err := number("step")
		if err != nil {
			return err
		}
		epoch, _, err := number("epoch")
		if err != nil {
			return err
		}
		if epoch.Number < 0 || epoch.Number > 1e9 || step.Number < 0 || step.Number > 1e12 {
			return l.errorAt(max(epoch.Line, step.Line), "epoch %g, step %g; want counts, 0 or more", epoch.Number, step.Number)
		}
		if v, ok, err := number(accuracy); err != nil {
			return err
		} else if ok {
			e := &metrics.Evaluation{Epoch: int(math.Ceil(epoch.Number)), Step: int(step.Number)}
			if s, ok, err := number("eval_runtime"); err != nil {
				return err
			} else if ok && s.Number > 0 {
				e.Seconds = s.Number
			}
			if err := l.namedAccuracy(metrics.Event{Evaluation: e}, v, accuracy); err != nil {
				return err
			}
		}
		if v, ok, err := number("eval_loss"); err != nil {
			return err
		} else if ok {
			l.figure("eval_loss", "", map[string]any{"epoch": epoch.Number}, v, "")
		}
		if v, ok, err := number("loss"); err != nil {
			return err
		} else if ok && epoch.Line > 0 {
			timed.loss(epoch.Number, v.Number)
		}
		if v, ok, err := number("eval_runtime"); err != nil {
			return err
		} else if ok {
			timed.evaluating += v.Number
		}
		v, ok, err := number("train_runtime")
		switch {
		case err != nil || !ok:
			return err
		case found:
			return l.errorAt(v.Line, "a second train_runtime. One file is one run")
		}
		found = true
		return timed.summary(l, v.Line, number)
	})
}
