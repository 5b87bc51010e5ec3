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
	hfPair = regexp.MustCompile(`'([^']+)': (?:'([^']*)'|([^',{}\s]+))(?:, |\}$)`)
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
	began, epoch, last, runtime := math.Inf(1), 0.0, 0, 0
	err := l.each(r, func(ln line) error {
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
			return s.lossOf(ln.number, "epoch", at, fields["loss"])
		case evaluated:
			if err := s.evaluationOf(ln.number, "epoch", at, fields["eval_loss"]); err != nil {
				return err
			}
			return l.hfAccuracy(ln.number, at, fields)
		case runtime > 0:
			return l.errorAt(ln.number, "a second train_runtime; the first is on line %d. One log is one run: split it", runtime)
		}
		runtime = ln.number
		return l.hfSummary(ln.number, fields)
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

// hfSummary takes the figures of the whole run. train_tokens_per_second is of a GPU
// in some versions and of all in others, which the log does not say.
func (l *log) hfSummary(ln int, fields parts) error {
	for _, f := range []struct{ theirs, ours, unit, note string }{
		{"train_runtime", metrics.FigureTrainSeconds, "s", "the Trainer's whole run time, evaluations and checkpoints included"},
		{"train_samples_per_second", metrics.FigureEndToEnd, "samples/s", "the samples of all epochs over the Trainer's whole run time"},
		{"train_samples_per_second", metrics.FigureThroughput, "samples/s", "over the Trainer's whole run time: warm-up, evaluations and checkpoints included"},
		{"train_tokens_per_second", "train_tokens_per_second", "tokens/s", "over the Trainer's whole run time; of a GPU or of all, by the version of transformers"},
	} {
		x, ok := fields[f.theirs]
		if !ok {
			continue
		}
		v, err := l.parse(ln, x)
		if err != nil {
			return err
		}
		if v.Number < 0 || v.Number == 0 && f.theirs == "train_runtime" {
			return l.errorAt(ln, "%s is %s; want more than 0", f.theirs, clip(x))
		}
		if v.Number == 0 {
			l.note("the Trainer states a %s of 0, less than it prints; it is left out", f.theirs)
			continue
		}
		l.figure(f.ours, f.unit, nil, v, f.note)
	}
	return nil
}
