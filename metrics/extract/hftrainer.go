package extract

import (
	"cmp"
	"io"
	"math"
	"regexp"
	"strconv"

	"github.com/scalebench/scalebench/metrics"
)

// hfTrainer reads the Python dictionaries that Hugging Face's Trainer prints, and programs built on it
// such as axolotl and TRL. There are three kinds: for the loss of a step, for an evaluation, and
// for the whole run. They state no step, so losses have epochs as coordinates. axolotl's tokens/s
// are per GPU and leave out masked tokens, such as prompts.
var hfTrainer = Extractor{
	Name:  "hf-trainer",
	Kind:  "train",
	Reads: "{'loss': X, …, 'epoch': X}, {'eval_loss': X, …} and {'train_runtime': X, 'train_samples_per_second': X, …}",
	read:  readHFTrainer,
}

var (
	// The dictionary, with a progress bar before or after it.
	hfLine = regexp.MustCompile(`(?:^|[\s\]])(\{'[^{}]*\})\s*(?:\d+%\|.*)?$`)
	// A progress bar, and lines that the Trainer prints before training.
	hfBar      = regexp.MustCompile(`\d+%\|[^|]*\| (\d+)/(\d+) \[`)
	hfBegins   = regexp.MustCompile(`\*{5} Running (\w+) \*{5}|Num Epochs`) // Unsloth prints all in one line
	hfSteps    = regexp.MustCompile(`Total optimization steps = ([\d,]+)`)
	hfBatch    = regexp.MustCompile(`Total train batch size \([^)]*\) = ([\d,]+)`)
	hfExamples = regexp.MustCompile(`Num examples = ([\d,]+)`)
	// The Trainer prints this before the first step after a resume.
	hfContinues = regexp.MustCompile(`Continuing training from (?:checkpoint|epoch [1-9]\d*|global step [1-9]\d*)`)
	hfPair      = regexp.MustCompile(`'([^']+)': (?:'([^']*)'|([^',{}\s]+))(?:, |\}$)`)
)

const trainableTokensPerGPU = "trainable_tokens_per_second_per_gpu"

// hfMemory lists axolotl's names of memory figures in GiB, of its new and old versions.
var hfMemory = []stepField{
	{"memory/max_allocated (GiB)", allocatedMemory, 1 << 30, nil}, {"memory/max_mem_allocated(gib)", allocatedMemory, 1 << 30, nil},
	{"memory/device_reserved (GiB)", reservedMemory, 1 << 30, nil}, {"memory/device_mem_reserved(gib)", reservedMemory, 1 << 30, nil},
}

// hfRun is the parser's state while it reads one log of the Trainer.
type hfRun struct {
	*stepLog
	tokens  []Value
	timed   hfParts
	begins  bool    // the latest lines are those that the Trainer prints before training
	rate    Value   // samples/s in the summary
	others  []Value // samples/s in the summaries of other ranks
	began   float64 // the first epoch in the log
	epoch   float64 // the latest epoch; last is the line that states it
	last    int
	runtime Value      // train_runtime, of which only the line is needed; Line 0: not seen yet
	bar     hfProgress // the latest progress bar
	bars    int        // progress bars of different lengths
	planned float64    // steps that the training is to have; 0: not stated
}

// hfProgress holds the step counts of a progress bar and its line.
type hfProgress struct {
	done, total string
	line        int
}

func readHFTrainer(l *log, r io.Reader) {
	s := &hfRun{stepLog: newStepLog(l, &stepFormat{program: "the Trainer", starting: 1}), began: math.Inf(1)}
	if l.each(r, s.read); s.line == 0 {
		return
	}
	s.from.note(l)
	s.together()
	if len(s.tokens) > 0 {
		f := metrics.Figure{Name: trainableTokensPerGPU, Unit: "tokens/s", Reduce: "median",
			Note: "a GPU's tokens that the loss is of, in the step that is printed; the median over the log's lines, without the first of each start"}
		l.reduce(f, 1, s.tokens)
	}
	s.peaks()
	s.losses()
}

func (s *hfRun) read(ln line) {
	if m := hfContinues.FindString(ln.text); m != "" {
		s.timed.why = "the log says " + clip(m)
	}
	for _, m := range hfBar.FindAllStringSubmatch(ln.text, -1) {
		if m[2] != s.bar.total { // evaluations have bars of their own
			s.bars++
		}
		s.bar = hfProgress{m[1], m[2], ln.number}
	}
	s.examples(ln.text)
	m := hfLine.FindStringSubmatch(ln.text)
	if m == nil {
		return
	}
	fields := parts{}
	for _, pair := range hfPair.FindAllStringSubmatch(m[1], -1) { // a number with or without quotes
		fields.put(s.l, ln.number, pair[1], pair[2]+pair[3])
	}
	_, trained := fields["loss"]
	_, evaluated := fields["eval_loss"]
	_, ended := fields["train_runtime"]
	if !trained && !evaluated && !ended {
		return
	}
	if !s.from.takes(ln) {
		s.other(ln, fields)
		return
	}
	s.line = ln.number
	if _, dated := fields["epoch"]; trained && !dated {
		return // the line was cut off
	}
	at := s.number(ln.number, fields, "epoch")
	if !evaluated && s.bar.line == ln.number { // a bar on another line may be much older
		done, _ := strconv.ParseFloat(s.bar.done, 64)
		total, _ := strconv.ParseFloat(s.bar.total, 64)
		s.timed.progress(done, total, at.Number)
	}
	s.goes(ln.number, at.Number)
	for _, f := range hfMemory {
		if x, ok := fields[f.theirs]; ok {
			s.stepLog.number(ln.number, f.ours, x, f.scale)
		}
	}
	switch {
	case trained:
		s.trained(ln.number, at.Number, fields)
	case evaluated:
		s.evaluation(ln.number, at.Number, fields)
	default:
		s.ended(ln.number, fields)
	}
}

// examples records the number of samples per epoch. Evaluations print their number in the same
// way, so only the one before training counts.
func (s *hfRun) examples(text string) {
	if m := hfBegins.FindStringSubmatch(text); m != nil {
		s.begins = m[1] == "" || m[1] == "training"
	}
	for _, one := range []struct {
		re   *regexp.Regexp
		into *float64
	}{{hfSteps, &s.planned}, {hfBatch, &s.timed.batch}} {
		if m := one.re.FindStringSubmatch(text); m != nil {
			*one.into, _ = strconv.ParseFloat(ungrouped(m[1]), 64)
		}
	}
	if m := hfExamples.FindStringSubmatch(text); m != nil && s.begins && s.runtime.Line == 0 {
		s.timed.examples, _ = strconv.ParseFloat(ungrouped(m[1]), 64)
		s.begins = false
	}
}

// other records the samples/s in the summary of another rank.
func (s *hfRun) other(ln line, fields parts) {
	v := s.number(ln.number, fields, "train_samples_per_second")
	if v.Number > 0 {
		s.others = append(s.others, v)
	}
}

// together fails if ranks state different samples/s. The Trainer prints the rate of
// all ranks, so different rates mean that the ranks ran separate trainings.
func (s *hfRun) together() {
	for _, v := range s.others {
		if own := s.rate; own.Line > 0 && !within(v.Number, own.Number, sameValue) {
			s.l.fail(v.Line, "train_samples_per_second is %g, and %g in line %d: ranks of one run state the same rate, so these are separate trainings; split the log, one file each", v.Number, own.Number, own.Line)
		}
	}
}

// number returns the number in a field; the zero Value if the line lacks the field.
func (s *hfRun) number(ln int, fields parts, name string) (v Value) {
	if x, ok := fields[name]; ok {
		v = s.l.parse(ln, x)
	}
	return v
}

// goes records the epoch of a line. Epochs must rise, except after a restart from a checkpoint.
func (s *hfRun) goes(ln int, at float64) {
	switch {
	case at < 0 || at > 1e9:
		s.l.fail(ln, "epoch %g; want 0 or more", at)
	case at < s.epoch && at <= s.began:
		s.l.fail(ln, "epoch %g again, after epoch %g in line %d: two runs. One log is one run: split it", at, s.epoch, s.last)
	case at < s.epoch:
		s.l.note("training goes back from epoch %g in line %d to epoch %g in line %d: a restart from a checkpoint", s.epoch, s.last, at, ln)
		s.lines = 0
		s.timed.why = "training goes back to a checkpoint"
	}
	s.began, s.epoch, s.last = min(s.began, at), at, ln
}

func (s *hfRun) trained(ln int, at float64, fields parts) {
	s.lines++
	if x, ok := fields["tokens/train_per_sec_per_gpu"]; ok && s.lines > s.format.starting {
		s.tokens = append(s.tokens, s.l.parse(ln, x))
	}
	if s.lossOf(ln, "epoch", at, fields["loss"]); s.undefined > 0 {
		return
	}
	s.timed.loss(at, s.loss.Number)
}

func (s *hfRun) evaluation(ln int, at float64, fields parts) {
	s.evaluationOf(ln, "epoch", at, fields["eval_loss"])
	s.timed.evaluating += s.number(ln, fields, "eval_runtime").Number
	name := cmp.Or(s.l.o.Columns["accuracy"], "eval_accuracy")
	if x, ok := fields[name]; ok {
		s.l.namedAccuracy(metrics.Event{Evaluation: &metrics.Evaluation{Epoch: int(math.Ceil(at))}}, s.l.parse(ln, x), name)
	}
}

func (s *hfRun) ended(ln int, fields parts) {
	s.l.once(ln, "train_runtime", s.runtime)
	s.runtime = Value{Line: ln}
	if done, _ := strconv.ParseFloat(s.bar.done, 64); s.planned > 0 && s.bar.total == strconv.FormatFloat(s.planned, 'f', 0, 64) {
		s.timed.done = done
	} else if s.planned == 0 && s.bar.done == s.bar.total && s.bars == 1 {
		s.timed.done = done
	}
	s.rate = s.number(ln, fields, "train_samples_per_second")
	s.timed.summary(s.l, ln, func(name string) (v Value, ok bool) {
		v = s.number(ln, fields, name)
		return v, v.Line > 0
	})
}
