package extract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// Names of figures in logs with a line every step or every few steps, as language-model trainings
// print. The figures are the program's statements, not our measurements. They have the names of
// our measures if they mean the same.
//
// Only the rate over all devices has a better direction, so that only it gets a speedup and an
// efficiency. Dividing other figures by the number of devices would be wrong: they apply to
// one device, or of a step whose batch may grow with the devices.
const (
	tokensPerSecond = measure.TokensPerSecond
	tokensPerGPU    = measure.TokensPerGPU
	stepSeconds     = "step_seconds"
	flopsPerGPU     = measure.ReportedFLOPS
	reportedMFU     = measure.ReportedMFU
	reservedMemory  = "reserved_memory"  // peak that the allocator reserved, per device
	allocatedMemory = "allocated_memory" // peak that tensors used, per device
	usedMemory      = "used_memory"      // as the device reports it
	mfuBy           = "mfu_"             // prefix of the name of an MFU; the convention follows
	hfuBy           = "hfu_"             // prefix for the HFU, which counts recomputed operations
	lossAt          = metrics.FigureLoss
	finalLoss       = "final_loss"
	evalLossAt      = metrics.FigureEvalLoss
	finalEvalLoss   = "final_eval_loss"
)

// steady lists figures per step of which the run's value is the median in the steady state.
var steady = []metrics.Figure{
	{Name: stepSeconds, Unit: "s"},
	{Name: tokensPerGPU, Unit: "tokens/s"},
	{Name: flopsPerGPU, Unit: "FLOP/s", Note: "model FLOP/s by the program's own count"},
	{Name: reportedMFU, Note: "by the program's own count of FLOPs and its own peak"},
}

// atPeak lists figures of which the run's value is the largest of all steps, including the first.
var atPeak = []metrics.Figure{{Name: reservedMemory, Unit: "B"}, {Name: allocatedMemory, Unit: "B"}, {Name: usedMemory, Unit: "B"}}

// stepLog is the parser's state while it reads a log of steps. A step counts once, even if
// several ranks print it. A smaller step number than before means a restart from a checkpoint, or
// another run if it is the first step in the log. Rates leave out the first lines after each
// start, in which programs compile and fill caches.
type stepLog struct {
	l      *log
	format *stepFormat // without a line if the format has its own code to parse lines

	from         first
	lines        int     // lines since the latest start
	startAt      float64 // time of day of the first line since the latest start; 0: unknown
	began        int     // first step in the log
	last, before int     // number of the latest step, and of the one before it
	line         int     // line of the latest step
	measured     map[string][]Value
	scale        map[string]float64

	clock          stepClock
	at             float64              // time of day of the current line; 0: unknown
	stated         []statedLoss         // losses in the log's order
	loss, evalLoss Value                // the latest losses; Line 0: none
	evaluated      int                  // step of evalLoss, if known
	undefined      int                  // line of the latest loss if that is not a finite number, else 0
	infinite       []int                // lines of all losses that are not finite numbers
	batch          Value                // samples per step over all ranks; Line 0: unknown
	tokens         Value                // tokens per sample; Line 0: unknown
	stepTokens     Value                // tokens per step over all ranks; Line 0: unknown
	samples        []Value              // samples/s of all devices that the log states
	named          map[string]bool      // unread fields for which there is a note
	others         map[string][]float64 // values of other ranks, in the log's unit
	unrated        string               // why lines have no rate; "" if they have one
	growth         []float64            // samples per step by the growth of the consumed samples
	consumed       Value                // the latest number of consumed samples; Line 0: none
	counted        int                  // lines of steps that count
	skipped        int                  // lines with iterations that were skipped or had no finite gradient
	wrongBatch     string               // why the stated batch is wrong; "" if it is not
	slowest        float64              // the longest stated step time, in the log's unit
	fastest        float64              // the shortest one
	wrongTime      string               // why the stated step times are wrong; "" if they are not
	undivided      string               // why the number of workers is not that of devices; "" if it is
}

// statedLoss is a loss in the log, of a step or an evaluation.
type statedLoss struct {
	name, at string  // name of the figure, and of its coordinate: "step" or "epoch"
	of       float64 // value of the coordinate
	v        Value
	time     float64 // time of day; 0: unknown
}

func newStepLog(l *log, format *stepFormat) *stepLog {
	return &stepLog{l: l, format: format, measured: map[string][]Value{}, scale: map[string]float64{}}
}

// takes reports whether the line is the one that counts for its step.
func (s *stepLog) takes(ln line, step int) bool {
	if !s.from.takes(ln) {
		return false
	}
	s.at = ln.time()
	switch {
	case s.line == 0:
		s.began, s.before = step, step
	case step <= s.last && s.overlaps():
		s.l.note("several processes print without a prefix (times of day overlap); only the first line of each step is read")
		return false
	case step == s.last || step == s.before && !s.dated():
		s.l.note("some steps are stated more than once, by several ranks or after a restart; the first line of each counts")
		return false
	case step > s.last:
		s.before = s.last
	case step <= s.began:
		s.l.fail(ln.number, "step %d again, after step %d in line %d: two runs. One log is one run: split it; if these are ranks of one run, log one of them, or give each a prefix (srun -l, torchrun)", step, s.last, s.line)
	default:
		s.l.note("training goes back from step %d to step %d in line %d: a restart from a checkpoint. Rates leave out %s and the time between the starts",
			s.last, step, ln.number, s.leftOut())
		s.lines, s.before = 0, step
	}
	if s.lines == 0 {
		s.startAt = s.at
	}
	s.last, s.line = step, ln.number
	s.lines++
	s.counted++
	s.clock.step(step, s.at)
	return true
}

// earlier is the number of seconds by which another rank's line may precede the first line of a start.
const earlier = 60

// overlaps reports whether the line's time of day is within the time since the latest start. If
// so, another process wrote the line; the line of a restart would be later than all lines before
// it.
func (s *stepLog) overlaps() bool {
	return s.dated() && s.at >= s.startAt-earlier && s.at <= s.clock.latest
}

// dated reports whether the lines since the latest start have times of day that can be compared.
func (s *stepLog) dated() bool { return s.at > 0 && s.startAt > 0 && s.clock.latest > s.startAt }

// unread adds one note for each field that is not read; the function read reports whether it is.
func (s *stepLog) unread(ln int, fields parts, read func(name string) bool) {
	var names []string
	for name, value := range fields {
		if !s.named[name] && !read(name) && decimal.MatchString(strings.TrimRight(value, "%")) {
			names = append(names, strconv.Quote(name))
			if s.named == nil {
				s.named = map[string]bool{}
			}
			s.named[name] = true
		}
	}
	if slices.Sort(names); len(names) > 0 {
		s.l.note("fields that are not read (line %d): %s", ln, strings.Join(names, ", "))
	}
}

// leftOut describes the lines that rates leave out, for notes.
func (s *stepLog) leftOut() string {
	if s.format.starting == 1 {
		return "the first line of each start"
	}
	return fmt.Sprintf("the first %d lines of each start", s.format.starting)
}

// add records a number of the current step; v times scale is in the figure's unit.
func (s *stepLog) add(name string, v Value, scale float64) {
	s.scale[name] = scale
	peak := slices.ContainsFunc(atPeak, func(f metrics.Figure) bool { return f.Name == name })
	switch {
	case v.Number < 0:
		s.l.fail(v.Line, "%s of %g; want 0 or more", name, v.Number)
	case !peak && s.lines <= s.format.starting, peak && v.Number == 0: // a program states 0 for memory that it does not count
		return
	case v.Number == 0: // below the printed precision, or not counted
		s.l.note("%s states a %s of 0, which is left out", s.format.program, name)
		return
	case name == reportedMFU && v.Number*scale > 1:
		s.l.note("%s states an MFU of %.4g %% in line %d, which is impossible: its peak or its FLOP count is wrong; %s is left out", s.format.program, v.Number*scale*100, v.Line, reportedMFU)
		return
	}
	s.measured[name] = append(s.measured[name], v)
	if name == stepSeconds {
		s.slowest, s.fastest = max(s.slowest, v.Number), min(cmp.Or(s.fastest, v.Number), v.Number)
	}
}

// number is like add, for a number in text form.
func (s *stepLog) number(ln int, name, text string, scale float64) {
	if !s.undefinedNumber(name, text) {
		s.add(name, s.l.parse(ln, text), scale)
	}
}

// undefinedNumber reports whether a program states nan or an infinite number, as of a step that seems to
// take no time, and adds a note.
func (s *stepLog) undefinedNumber(name, text string) bool {
	if !undefinedText(text) {
		return false
	}
	s.l.note("%s states a %s that is nan or infinite, which is left out", s.format.program, name)
	return true
}

// undefinedLoss lists how programs write a loss that is not finite.
var undefinedLoss = []string{"nan", "inf", "-inf", "+inf", "-nan", "infinity", "-infinity"}

// undefinedText reports whether text is how programs write a number that is not finite.
func undefinedText(text string) bool {
	return slices.Contains(undefinedLoss, strings.ToLower(strings.TrimSpace(text)))
}

// lossOf adds the loss of the current step. The coordinate at is "step" or "epoch", and step is
// its value.
func (s *stepLog) lossOf(ln int, at string, step float64, text string) {
	if undefinedText(text) {
		s.undefined, s.infinite = ln, append(s.infinite, ln)
		return
	}
	s.loss, s.undefined = s.l.parse(ln, text), 0
	s.stated = append(s.stated, statedLoss{lossAt, at, step, s.loss, s.at})
}

// evaluationOf adds the loss of an evaluation. It adds the loss once if several ranks print it.
func (s *stepLog) evaluationOf(ln int, at string, step float64, text string) {
	if undefinedText(text) {
		s.l.note("the evaluation in line %d has no finite loss", ln)
		return
	}
	s.evalLoss = s.l.parse(ln, text)
	s.stated = append(s.stated, statedLoss{evalLossAt, at, step, s.evalLoss, s.at})
}

// evaluationAt is like evaluationOf with a step as the coordinate. Only the first line with that
// step counts.
func (s *stepLog) evaluationAt(ln line, step, text string) {
	n := s.l.whole(ln.number, step)
	if !s.from.takes(ln) || s.evalLoss.Line > 0 && s.evaluated == n {
		return
	}
	s.evaluated, s.at = n, ln.time()
	s.evaluationOf(ln.number, "step", float64(n), text)
}

// batchOf sets the samples per step. If they change, steps before and after are not comparable,
// so earlier values are dropped.
func (s *stepLog) batchOf(v Value) {
	switch {
	case !(v.Number >= 1) || v.Number != math.Trunc(v.Number) || v.Number > metrics.MaxSamples:
		s.l.fail(v.Line, "a global batch of %g; want a whole number, 1 or more", v.Number)
	case s.batch.Line > 0 && s.batch.Number != v.Number:
		s.l.note("the global batch changes in line %d from %g to %g samples: rates are those of the last batch", v.Line, s.batch.Number, v.Number)
		s.another()
	}
	s.batch = v
}

// tokensOf sets the tokens per sample. If they change, earlier values are dropped.
func (s *stepLog) tokensOf(v Value) {
	if s.tokens.Line > 0 && s.tokens.Number != v.Number {
		s.l.note("a sample has %g tokens up to line %d, and %g from there on: rates are those of the last ones", s.tokens.Number, v.Line, v.Number)
		s.another()
	}
	s.tokens = v
}

// another drops the values recorded so far, because the size of the steps has changed.
func (s *stepLog) another() {
	for _, f := range steady {
		delete(s.measured, f.Name)
	}
	s.samples, s.growth = nil, nil
	s.clock.alike, s.clock.alikeFrom = nil, 0
}

// devicesAre sets the number of devices from this line on, which may change at a restart. by
// names the text that states it.
func (s *stepLog) devicesAre(n int, by string, line int) {
	if before := s.l.res.Workers; before > 0 && before != n {
		s.l.note("the log has runs on %d and then on %d devices: rates are those of the last", before, n)
		s.another()
		s.lines, s.startAt = 0, 0 // a new number of devices means a restart
	}
	s.l.workersAre(n, by, line)
}

// devices returns the number of devices; 0 if unknown. The number in the log takes precedence
// over the workers that the user gave, which may be hosts.
func (s *stepLog) devices() float64 {
	switch {
	case s.undivided != "":
		return 0
	case s.l.res.Workers > 0:
		return float64(s.l.res.Workers)
	}
	return float64(s.l.o.Workers)
}

// parts maps the names of a line's fields to their values.
type parts map[string]string

// put adds a field. A repeated name means that two lines were mixed.
func (f parts) put(l *log, ln int, name, value string) {
	name = strings.TrimSpace(name)
	if _, twice := f[name]; twice {
		l.fail(ln, "%s stands twice in the line: it is damaged", clip(name))
	}
	f[name] = strings.TrimSpace(value)
}

// fieldsOf returns the fields of a line, which have the form "name: value".
func (l *log) fieldsOf(ln int, text, separator string) parts {
	f := parts{}
	for part := range strings.SplitSeq(text, separator) {
		if name, value, ok := strings.Cut(part, ":"); ok {
			f.put(l, ln, name, value)
		}
	}
	return f
}
