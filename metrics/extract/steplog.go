package extract

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// Figures of logs that have a line for each step, or for every few, as those of
// language models do. None is a measure that is declared: each is the program's own
// statement, and becomes a measure by its name. Only the rate over all devices says
// which way it is better, and so has a speedup and an efficiency: what is of one
// device, or of a step whose batch may grow with the devices, is not to be divided
// by how many there are.
const (
	tokensPerSecond = measure.TokensPerSecond
	tokensPerGPU    = measure.TokensPerGPU
	stepSeconds     = "step_seconds"
	flopsPerGPU     = measure.ReportedFLOPS
	reportedMFU     = measure.ReportedMFU
	reservedMemory  = "reserved_memory"  // by the allocator, of a device, at the peak
	allocatedMemory = "allocated_memory" // of it, in tensors
	usedMemory      = "used_memory"      // as the device itself counts
	mfuBy           = "mfu_"             // and a convention of package mfu
	hfuBy           = "hfu_"             // the same, with what is computed again
	lossAt          = metrics.FigureLoss
	finalLoss       = "final_loss"
	evalLossAt      = metrics.FigureEvalLoss
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
	format   *stepFormat // nil: the format reads lines itself
	program  string      // in notes: "torchtitan"
	starting int         // lines of each start that are left out of the rates
	// convention is the one of package mfu by which the program counts; "" for none.
	convention string

	from         first
	lines        int     // of this start so far
	startAt      float64 // time of day of the first of these; 0: it has none
	began        int     // the log's first step
	last, before int     // the latest step, and the one that was printed before it
	line         int     // that the latest step stands in
	measured     map[string][]Value
	scale        map[string]float64

	clock          stepClock
	at             float64      // time of day of the line that is read; 0: it has none
	stated         []statedLoss // in the log's order
	loss, evalLoss Value        // the latest; Line 0: none
	evaluated      int          // the step of evalLoss, where it is known
	undefined      int          // line of the latest loss that is no number; 0: it is one
	batch          Value        // samples of a step over all ranks; Line 0: not said
	tokens         Value        // of a sample; Line 0: not said
	stepTokens     Value        // of a step over all ranks; Line 0: not said
	samples        []Value      // samples/s of all devices, as the log states them
	named          bool         // its unread fields are noted
	unrated        string       // why lines have no rate; "": they have
	undivided      string       // why the workers are not the devices; "": they are
}

// statedLoss is a loss of a step, or of an evaluation.
type statedLoss struct {
	name, at string // figure, and what it is at: "step" or "epoch"
	of       float64
	v        Value
	time     float64 // of day; 0: not known
}

func newStepLog(l *log, program string, starting int) *stepLog {
	return &stepLog{l: l, program: program, starting: starting, measured: map[string][]Value{}, scale: map[string]float64{}}
}

// takes reports whether the line is the one by which a step counts.
func (s *stepLog) takes(ln line, step int) (bool, error) {
	if !s.from.takes(ln) {
		return false, nil
	}
	s.at = stamp(ln.text)
	switch {
	case s.line == 0:
		s.began, s.before = step, step
	case step <= s.last && s.overlaps():
		s.l.note("several processes print, which no prefix tells apart: their times of day overlap. The first line of each step counts")
		return false, nil
	case step == s.last || step == s.before && !s.dated():
		s.l.note("some steps are stated more than once, by several ranks or after a restart; the first line of each counts")
		return false, nil
	case step > s.last:
		s.before = s.last
	case step <= s.began:
		return false, s.l.errorAt(ln.number, "step %d again, after step %d in line %d: two runs. One log is one run: split it; if these are ranks of one run, log one of them, or give each a prefix (srun -l, torchrun)", step, s.last, s.line)
	default:
		s.l.note("training goes back from step %d to step %d in line %d: a restart from a checkpoint. Rates leave out %s, and the time between the starts is in none",
			s.last, step, ln.number, s.leftOut())
		s.lines, s.before = 0, step
	}
	if s.lines == 0 {
		s.startAt = s.at
	}
	s.last, s.line = step, ln.number
	s.lines++
	s.clock.step(step, s.at)
	return true, nil
}

// earlier is by how much, in seconds, one rank's line may be earlier than the first line of
// a start.
const earlier = 60

// overlaps reports whether the line's time of day is within this start. A restart is later
// than all lines before it; another process is not.
func (s *stepLog) overlaps() bool {
	return s.dated() && s.at >= s.startAt-earlier && s.at <= s.clock.latest
}

// dated reports whether times of day tell the lines of this start apart.
func (s *stepLog) dated() bool { return s.at > 0 && s.startAt > 0 && s.clock.latest > s.startAt }

// unread notes the fields of a line, "name: number", that are not read.
func (s *stepLog) unread(ln int, fields parts, read func(name string) bool) {
	if s.named { // once, of the first line
		return
	}
	s.named = true
	var names []string
	for name, value := range fields {
		if !read(name) && decimal.MatchString(strings.TrimRight(value, "%")) {
			names = append(names, strconv.Quote(name))
		}
	}
	if slices.Sort(names); len(names) > 0 {
		s.l.note("fields that are not read (line %d): %s", ln, strings.Join(names, ", "))
	}
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
	s.stated = append(s.stated, statedLoss{lossAt, at, step, v, s.at})
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
	s.stated = append(s.stated, statedLoss{evalLossAt, at, step, v, s.at})
	return nil
}

// evaluationAt is evaluationOf at a step, by the first line that states it.
func (s *stepLog) evaluationAt(ln line, step, text string) error {
	n, err := s.l.whole(ln.number, step)
	if err != nil || !s.from.takes(ln) || s.evalLoss.Line > 0 && s.evaluated == n {
		return err
	}
	s.evaluated, s.at = n, stamp(ln.text)
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
	s.samples = nil
}

// devicesAre takes the number of devices from here on, which by states in a line: a
// restart may have another.
func (s *stepLog) devicesAre(n int, by string, line int) {
	if before := s.l.res.Workers; before > 0 && before != n {
		s.l.note("the log has runs on %d and then on %d devices: rates are those of the last", before, n)
		s.another()
		s.lines, s.startAt = 0, 0 // other devices: it was started again
	}
	s.l.workersAre(n, by, line)
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
