package extract

import (
	"io"
	"math"
	"regexp"

	"github.com/scalebench/scalebench/metrics"
)

// hfTrainer reads the dictionaries that Hugging Face's Trainer prints, and axolotl,
// TRL and others that are made of it: of a step's loss, of an evaluation, and of the
// whole run. They name no step, so that losses are at epochs. axolotl's tokens/s are
// those of a GPU that the loss is of: prompts that are masked do not count.
var hfTrainer = Extractor{
	Name:  "hf-trainer",
	Kind:  "train",
	Reads: "{'loss': X, …, 'epoch': X}, {'eval_loss': X, …} and {'train_runtime': X, 'train_samples_per_second': X, …}",
	read:  readHFTrainer,
}

var (
	// A progress bar may stand before it.
	hfLine = regexp.MustCompile(`(?:^|[\s\]])(\{'[^{}]*\})\s*$`)
	// As the Trainer prints before the first step of a training that goes on.
	hfContinues = regexp.MustCompile(`Continuing training from (?:checkpoint|epoch [1-9]\d*|global step [1-9]\d*)`)
	hfPair      = regexp.MustCompile(`'([^']+)': (?:'([^']*)'|([^',{}\s]+))(?:, |\}$)`)
)

const trainableTokensPerGPU = "trainable_tokens_per_second_per_gpu"

// hfMemory are axolotl's names, newer and older ones, in GiB.
var hfMemory = []struct{ theirs, ours string }{
	{"memory/max_allocated (GiB)", allocatedMemory}, {"memory/max_mem_allocated(gib)", allocatedMemory},
	{"memory/device_reserved (GiB)", reservedMemory}, {"memory/device_mem_reserved(gib)", reservedMemory},
}

func readHFTrainer(l *log, r io.Reader) error {
	s := newStepLog(l, "the Trainer", 1)
	var tokens []Value
	var timed hfParts
	began, epoch, last, runtime := math.Inf(1), 0.0, 0, 0
	err := l.each(r, func(ln line) error {
		if m := hfContinues.FindString(ln.text); m != "" {
			timed.why = "the log says " + clip(m)
		}
		m := hfLine.FindStringSubmatch(ln.text)
		if m == nil {
			return nil
		}
		fields := parts{}
		for _, pair := range hfPair.FindAllStringSubmatch(m[1], -1) { // a number with or without quotes
			if err := fields.put(l, ln.number, pair[1], pair[2]+pair[3]); err != nil {
				return err
			}
		}
		_, trained := fields["loss"]
		_, evaluated := fields["eval_loss"]
		_, ended := fields["train_runtime"]
		if !trained && !evaluated && !ended || !s.from.takes(ln) {
			return nil
		}
		s.line = ln.number
		at := 0.0
		if x, ok := fields["epoch"]; ok {
			v, err := l.parse(ln.number, x)
			if err != nil {
				return err
			}
			if at = v.Number; at < 0 || at > 1e9 {
				return l.errorAt(ln.number, "epoch %g; want 0 or more", at)
			}
		} else if trained {
			return nil // cut
		}
		switch {
		case at < epoch && at <= began:
			return l.errorAt(ln.number, "epoch %g again, after epoch %g in line %d: two runs. One log is one run: split it", at, epoch, last)
		case at < epoch:
			l.note("training goes back from epoch %g in line %d to epoch %g in line %d: a restart from a checkpoint", epoch, last, at, ln.number)
			s.lines = 0
			timed.why = "training goes back to a checkpoint"
		}
		began, epoch, last = min(began, at), at, ln.number
		for _, f := range hfMemory {
			if x, ok := fields[f.theirs]; ok {
				if err := s.number(ln.number, f.ours, x, 1<<30); err != nil {
					return err
				}
			}
		}
		switch {
		case trained:
			s.lines++
			if x, ok := fields["tokens/train_per_sec_per_gpu"]; ok && s.lines > s.starting {
				if err := l.parseAll(ln.number, &tokens, x); err != nil {
					return err
				}
			}
			if err := s.lossOf(ln.number, "epoch", at, fields["loss"]); err != nil || s.undefined > 0 {
				return err
			}
			timed.loss(at, s.loss.Number)
			return nil
		case evaluated:
			if err := s.evaluationOf(ln.number, "epoch", at, fields["eval_loss"]); err != nil {
				return err
			}
			if x, ok := fields["eval_runtime"]; ok {
				v, err := l.parse(ln.number, x)
				if err != nil {
					return err
				}
				timed.evaluating += v.Number
			}
			return l.hfAccuracy(ln.number, at, fields)
		case runtime > 0:
			return l.errorAt(ln.number, "a second train_runtime; the first is on line %d. One log is one run: split it", runtime)
		}
		runtime = ln.number
		return timed.summary(l, ln.number, func(name string) (v Value, ok bool, err error) {
			x, ok := fields[name]
			if ok {
				v, err = l.parse(ln.number, x)
			}
			return v, ok, err
		})
	})
	if err != nil || s.line == 0 {
		return err
	}
	s.from.note(l)
	if len(tokens) > 0 {
		f := metrics.Figure{Name: trainableTokensPerGPU, Unit: "tokens/s", Reduce: "median",
			Note: "a GPU's tokens that the loss is of, in the step that is printed; the median over the log's lines, without the first of each start"}
		if err := l.reduce(f, 1, tokens); err != nil {
			return err
		}
	}
	if err := s.peaks(); err != nil {
		return err
	}
	s.losses()
	return nil
}

// hfAccuracy takes an evaluation's accuracy, as of trainer_state.json.
func (l *log) hfAccuracy(ln int, epoch float64, fields parts) error {
	name := "eval_accuracy"
	if own, ok := l.o.Columns["accuracy"]; ok {
		name = own
	}
	x, ok := fields[name]
	if !ok {
		return nil
	}
	v, err := l.parse(ln, x)
	if err != nil {
		return err
	}
	return l.namedAccuracy(metrics.Event{Evaluation: &metrics.Evaluation{Epoch: int(math.Ceil(epoch))}}, v, name)
}
