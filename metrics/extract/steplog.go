package extract

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/mfu"
)

// Figures of logs that have a line for each step, or for every few, as those of
// language models do. None is a measure that is declared: each is the program's own
// statement, and becomes a measure by its name. Only the rate over all devices says
// which way it is better, and so has a speedup and an efficiency: what is of one
// device, or of a step whose batch may grow with the devices, is not to be divided
// by how many there are.
const (
	tokensPerSecond = measure.TokensPerSecond
	tokensPerGPU    = "tokens_per_second_per_gpu" // of a device, whatever kind it is
	stepSeconds     = "step_seconds"
	flopsPerGPU     = "reported_flops_per_gpu" // model FLOP/s, by the program's own count
	reportedMFU     = "reported_mfu"           // by its own count and its own peak
	reservedMemory  = "reserved_memory"        // by the allocator, of a device, at the peak
	allocatedMemory = "allocated_memory"       // of it, in tensors
	usedMemory      = "used_memory"            // as the device itself counts
	mfuBy           = "mfu_"                   // and a convention of package mfu
	lossAt          = "loss"                   // of a step
	finalLoss       = "final_loss"
	evalLossAt      = "eval_loss"
	finalEvalLoss   = "final_eval_loss"
)

// steady are those of a step in the steady state: their median is the run's.
var steady = []metrics.Figure{
	{Name: stepSeconds, Unit: "s"},
	{Name: tokensPerGPU, Unit: "tokens/s"},
	{Name: flopsPerGPU, Unit: "FLOP/s", Note: "model FLOP/s by the program's own count"},
	{Name: reportedMFU, Note: "by the program's own count of FLOPs and its own peak"},
}

// atPeak are those of which the largest is the run's, the first steps included.
var atPeak = []metrics.Figure{{Name: reservedMemory, Unit: "B"}, {Name: allocatedMemory, Unit: "B"}, {Name: usedMemory, Unit: "B"}}

// stepLog is what a log says of steps. A line of a step counts once, whichever
// ranks print it. A step number that goes back is a restart from a checkpoint;
// back to where the log began, it is another run. What the first lines of each
// start measure is no rate of the training: they compile, and fill caches.
type stepLog struct {
	l        *log
	program  string // in notes: "torchtitan"
	starting int    // lines of each start that are left out of the rates
	// convention is the one of package mfu by which the program counts; "" for none.
	convention string

	from         first
	lines        int // of this start so far
	began        int // the log's first step
	last, before int // the latest step, and the one that was printed before it
	line         int // that the latest step stands in
	measured     map[string][]Value
	scale        map[string]float64

	stated         []statedLoss // in the log's order
	loss, evalLoss Value        // the latest; Line 0: none
	evaluated      int          // the step of evalLoss, where it is known
	undefined      int          // line of the latest loss that is no number; 0: it is one
	batch          Value        // samples of a step over all ranks; Line 0: not said
	tokens         Value        // of a sample; Line 0: not said
	stepTokens     Value        // of a step over all ranks; Line 0: not said
	undivided      string       // why the workers are not the devices; "": they are
}

// statedLoss is a loss of a step, or of an evaluation.
type statedLoss struct {
	name, at string // figure, and what it is at: "step" or "epoch"
	of       float64
	v        Value
}

func newStepLog(l *log, program string, starting int) *stepLog {
	return &stepLog{l: l, program: program, starting: starting, measured: map[string][]Value{}, scale: map[string]float64{}}
}

// takes reports whether the line is the one by which a step counts.
func (s *stepLog) takes(ln line, step int) (bool, error) {
	if !s.from.takes(ln) {
		return false, nil
	}
	switch {
	case s.line == 0:
		s.began, s.before = step, step
	case step == s.last || step == s.before:
		s.l.note("some steps are stated more than once, by several ranks or after a restart; the first line of each counts")
		return false, nil
	case step > s.last:
		s.before = s.last
	case step <= s.began:
		return false, s.l.errorAt(ln.number, "step %d again, after step %d in line %d: two runs. One log is one run: split it", step, s.last, s.line)
	default:
		s.l.note("training goes back from step %d to step %d in line %d: a restart from a checkpoint. Rates leave out %s, and the time between the starts is in none",
			s.last, step, ln.number, s.leftOut())
		s.lines, s.before = 0, step
	}
	s.last, s.line = step, ln.number
	s.lines++
	return true, nil
}

// leftOut is what no rate is taken from, in words.
func (s *stepLog) leftOut() string {
	if s.starting == 1 {
		return "the first line of each start"
	}
	return fmt.Sprintf("the first %d lines of each start", s.starting)
}

// add adds a number of the step whose line was taken, which times scale is in the
// figure's unit.
func (s *stepLog) add(name string, v Value, scale float64) error {
	if s.scale[name] = scale; slices.ContainsFunc(atPeak, func(f metrics.Figure) bool { return f.Name == name }) {
		switch {
		case v.Number < 0:
			return s.l.errorAt(v.Line, "%s of %g; want 0 or more", name, v.Number)
		case v.Number == 0: // the program does not count it on this device
			return nil
		}
		s.measured[name] = append(s.measured[name], v)
		return nil
	}
	switch {
	case v.Number < 0:
		return s.l.errorAt(v.Line, "%s of %g; want 0 or more", name, v.Number)
	case s.lines <= s.starting:
		return nil
	case v.Number == 0: // less than the last digit that is printed, or not counted
		s.l.note("%s states a %s of 0, which is left out", s.program, name)
		return nil
	case name == reportedMFU && v.Number*scale > 1:
		s.l.note("%s states an MFU of %.4g %% in line %d: more than all that the device can do, so its peak or its count of FLOPs is another's; %s is left out", s.program, v.Number*scale*100, v.Line, reportedMFU)
		return nil
	}
	s.measured[name] = append(s.measured[name], v)
	return nil
}

// number adds a number as it is written.
func (s *stepLog) number(ln int, name, text string, scale float64) error {
	v, err := s.l.parse(ln, text)
	if err != nil {
		return err
	}
	return s.add(name, v, scale)
}

// undefinedLoss are the ways in which programs write a loss that is no number.
var undefinedLoss = []string{"nan", "inf", "-inf", "+inf", "-nan", "infinity", "-infinity"}

// lossOf adds the loss of the step whose line was taken, at a step or an epoch.
func (s *stepLog) lossOf(ln int, at string, step float64, text string) error {
	if slices.Contains(undefinedLoss, strings.ToLower(text)) {
		s.undefined = ln
		return nil
	}
	v, err := s.l.parse(ln, text)
	if err != nil {
		return err
	}
	s.loss, s.undefined = v, 0
	s.stated = append(s.stated, statedLoss{lossAt, at, step, v})
	return nil
}

// evaluationOf adds the loss of an evaluation, which several ranks may print.
func (s *stepLog) evaluationOf(ln int, at string, step float64, text string) error {
	if slices.Contains(undefinedLoss, strings.ToLower(text)) {
		s.l.note("the evaluation in line %d has no finite loss", ln)
		return nil
	}
	v, err := s.l.parse(ln, text)
	if err != nil {
		return err
	}
	s.evalLoss = v
	s.stated = append(s.stated, statedLoss{evalLossAt, at, step, v})
	return nil
}

// evaluationAt is evaluationOf at a step, by the first line that states it.
func (s *stepLog) evaluationAt(ln line, step, text string) error {
	n, err := s.l.whole(ln.number, step)
	if err != nil || !s.from.takes(ln) || s.evalLoss.Line > 0 && s.evaluated == n {
		return err
	}
	s.evaluated = n
	return s.evaluationOf(ln.number, "step", float64(n), text)
}

// batchOf says how many samples the step of the taken line has. While a batch is
// ramped up, every step is another one: what came before is left out.
func (s *stepLog) batchOf(v Value) error {
	switch {
	case !(v.Number >= 1) || v.Number != math.Trunc(v.Number) || v.Number > metrics.MaxSamples:
		return s.l.errorAt(v.Line, "a global batch of %g; want a whole number, 1 or more", v.Number)
	case s.batch.Line > 0 && s.batch.Number != v.Number:
		s.l.note("the global batch changes in line %d from %g to %g samples: rates are those of the last batch", v.Line, s.batch.Number, v.Number)
		s.another()
	}
	s.batch = v
	return nil
}

// tokensOf says how many tokens a sample of the taken line has; they may grow too.
func (s *stepLog) tokensOf(v Value) error {
	if s.tokens.Line > 0 && s.tokens.Number != v.Number {
		s.l.note("a sample has %g tokens up to line %d, and %g from there on: rates are those of the last ones", s.tokens.Number, v.Line, v.Number)
		s.another()
	}
	s.tokens = v
	return nil
}

// another leaves out what was measured so far, of steps of another size.
func (s *stepLog) another() {
	for _, f := range steady {
		delete(s.measured, f.Name)
	}
}

// devicesAre is how many the log says that there are from here on: a restart may have
// others.
func (s *stepLog) devicesAre(n int) {
	if before := s.l.res.Workers; before > 0 && before != n {
		s.l.note("the log has runs on %d and then on %d devices: rates are those of the last", before, n)
		s.another()
		s.lines = 0
	}
	s.l.res.Workers = n
}

// devices are how many the run had; 0: not known. What the log says of itself goes
// first: workers may be hosts.
func (s *stepLog) devices() float64 {
	switch {
	case s.undivided != "":
		return 0
	case s.l.res.Workers > 0:
		return float64(s.l.res.Workers)
	}
	return float64(s.l.o.Workers)
}

// finish adds the run's figures.
func (s *stepLog) finish() error {
	l := s.l
	if s.line == 0 {
		return nil
	}
	s.from.note(l)
	rated := false
	for _, f := range steady {
		values := s.measured[f.Name]
		if len(values) == 0 {
			continue
		}
		rated = true
		f.Reduce = "median"
		f.Note = strings.Join(slices.DeleteFunc([]string{f.Note, "the median over the log's lines, without " + s.leftOut()}, func(s string) bool { return s == "" }), "; ")
		if err := l.reduce(f, s.scale[f.Name], values); err != nil {
			return err
		}
	}
	if !rated {
		l.note("no rate is taken: the log has nothing beyond %s, in which programs compile and fill caches", s.leftOut())
	}
	if err := s.peaks(); err != nil {
		return err
	}
	if err := s.rates(); err != nil {
		return err
	}
	s.losses()
	return nil
}

// peaks adds those of memory.
func (s *stepLog) peaks() error {
	for _, f := range atPeak {
		values := s.measured[f.Name]
		if len(values) == 0 {
			continue
		}
		f.Reduce, f.Note = "max", "of a device, of the ranks that are read; the largest that the log states"
		if err := s.l.reduce(f, s.scale[f.Name], values); err != nil {
			return err
		}
	}
	return nil
}

// rates adds those over all devices: samples/s where the log says how many samples a
// step has, tokens/s where it says how many tokens.
func (s *stepLog) rates() error {
	l, n := s.l, s.devices()
	seconds := s.measured[stepSeconds]
	// A step's time makes the rate of something that a step has so many of.
	over := func(f metrics.Figure, each float64) error {
		median, err := Reduce("median", numbers(seconds))
		if err != nil {
			return err
		}
		if f.Value = each / scaled(median, s.scale[stepSeconds]); !finite(f.Value) {
			return l.errorAt(seconds[len(seconds)-1].Line, "%s is not a finite number", f.Name)
		}
		if len(seconds) > 1 {
			f.Reduce = "median"
		}
		l.add(metrics.Event{Figure: &f}, f.Value/median, seconds...)
		return nil
	}
	if s.batch.Line > 0 && len(seconds) > 0 {
		if err := over(metrics.Figure{Name: metrics.FigureThroughput, Unit: "samples/s", Note: "the global batch over the median step time; a sample is a sequence"}, s.batch.Number); err != nil {
			return err
		}
	}
	each := s.measured[tokensPerGPU]
	if err := s.sequence(); err != nil {
		return err
	}
	if len(each) > 0 {
		median, err := Reduce("median", numbers(each))
		if err != nil {
			return err
		}
		if err := s.utilisation(scaled(median, s.scale[tokensPerGPU]), func(f metrics.Figure, scale float64) error {
			f.Reduce = "median"
			return l.reduce(f, s.scale[tokensPerGPU]*scale, each)
		}); err != nil {
			return err
		}
	}
	switch {
	case len(each) > 0 && s.undivided != "":
		l.note("%s is left out, which is a device's rate times their number: %s", tokensPerSecond, s.undivided)
	case len(each) > 0 && n > 0:
		taken := ""
		if l.res.Workers == 0 {
			taken = ", for which the workers are taken"
		}
		l.note("%s is a device's rate times the number of devices%s, not a measured aggregate", tokensPerSecond, taken)
		return l.reduce(metrics.Figure{Name: tokensPerSecond, Unit: "tokens/s", Better: "higher", Reduce: "median", Note: "a device's rate times the number of devices"}, s.scale[tokensPerGPU]*n, each)
	case len(each) > 0:
		l.note("%s needs the number of devices, which the log does not say: give --workers", tokensPerSecond)
	case len(seconds) > 0 && (s.stepTokens.Line > 0 || s.batch.Line > 0 && s.tokens.Number > 0):
		tokens, of := s.stepTokens.Number, "the tokens of a step"
		if s.stepTokens.Line == 0 {
			tokens, of = s.batch.Number*s.tokens.Number, "the global batch times the sequence length"
		}
		if err := over(metrics.Figure{Name: tokensPerSecond, Unit: "tokens/s", Better: "higher", Note: of + " over the median step time"}, tokens); err != nil || n == 0 {
			return err
		}
		if err := over(metrics.Figure{Name: tokensPerGPU, Unit: "tokens/s", Note: of + " over the median step time and the number of devices"}, tokens/n); err != nil {
			return err
		}
		median, err := Reduce("median", numbers(seconds))
		if err != nil {
			return err
		}
		return s.utilisation(tokens/n/scaled(median, s.scale[stepSeconds]), func(f metrics.Figure, scale float64) error { return over(f, tokens/n*scale) })
	}
	return nil
}

// sequence is the tokens of a sample as the model has them, where the log does not say.
func (s *stepLog) sequence() error {
	m := s.l.o.Model
	switch {
	case m == nil:
	case s.tokens.Line == 0:
		s.tokens.Number = float64(m.Sequence)
	case s.tokens.Number != float64(m.Sequence):
		return s.l.errorAt(s.tokens.Line, "a sample has %g tokens; the model has sequence = %d", s.tokens.Number, m.Sequence)
	}
	return nil
}

// utilisation adds the MFU by each convention, where it is known what was trained and
// on which device: a device's tokens/s times scale, as add makes it of them.
func (s *stepLog) utilisation(tokens float64, add func(f metrics.Figure, scale float64) error) error {
	l := s.l
	if l.o.Model == nil {
		return nil
	}
	l.utilised = true
	peak, err := l.o.Model.Peak()
	if err != nil {
		return err
	}
	for _, c := range mfu.Conventions {
		flops, err := c.FLOPs(l.o.Model.Architecture)
		if err == nil {
			_, err = mfu.Of(flops, tokens, peak)
		}
		if err != nil {
			l.note("no %s%s: %v", mfuBy, c.Name, err)
			continue
		}
		f := metrics.Figure{Name: mfuBy + c.Name, Note: fmt.Sprintf("%.4g FLOPs a token: %s; of a peak of %.4g TFLOP/s in %s", flops, c.Says, peak/1e12, l.o.Model.Dtype)}
		if err := add(f, flops/peak); err != nil {
			return err
		}
		if c.Name == s.convention {
			s.restated(flops * tokens)
		}
	}
	return nil
}

// restated notes where the program's own FLOP/s are not those that its convention
// gives for the model.
func (s *stepLog) restated(flops float64) {
	values := s.measured[flopsPerGPU]
	stated, err := Reduce("median", numbers(values))
	if err != nil {
		return // it states none
	}
	if stated *= s.scale[flopsPerGPU]; math.Abs(stated/flops-1) > 0.02 {
		s.l.note("%s states %.4g TFLOP/s of a device; by %s's count the model takes %.4g: it is another model, or the program counts otherwise", s.program, stated/1e12, s.convention, flops/1e12)
	}
}

// losses adds the last ones as figures of the run, and then all of them: a log has
// many, and people read its first figures.
func (s *stepLog) losses() {
	final := func(name string, v Value, note string) {
		s.l.add(metrics.Event{Figure: &metrics.Figure{Name: name, Value: v.Number, Note: note}}, 1, v)
	}
	switch {
	case s.undefined > 0:
		s.l.note("the loss is no finite number in line %d, the last that states one: the training diverged", s.undefined)
	case s.loss.Line > 0:
		final(finalLoss, s.loss, "the last training loss that the log states")
	}
	if s.evalLoss.Line > 0 {
		final(finalEvalLoss, s.evalLoss, "the last evaluation's loss that the log states")
	}
	for _, one := range s.stated {
		s.l.figure(one.name, "", map[string]any{one.at: one.of}, one.v, "")
	}
}

// parts are those of a line, by their names.
type parts map[string]string

// put adds one. A name that comes twice is of a line made of two.
func (f parts) put(l *log, ln int, name, value string) error {
	name = strings.TrimSpace(name)
	if _, twice := f[name]; twice {
		return l.errorAt(ln, "%s stands twice in the line: it is damaged", clip(name))
	}
	f[name] = strings.TrimSpace(value)
	return nil
}

// fieldsOf are the parts of a line between separators, each "name: value".
func (l *log) fieldsOf(ln int, text, separator string) (parts, error) {
	f := parts{}
	for part := range strings.SplitSeq(text, separator) {
		if name, value, ok := strings.Cut(part, ":"); ok {
			if err := f.put(l, ln, name, value); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}
