package extract

import (
	"fmt"
	"io"
	"regexp"

	"github.com/scalebench/scalebench/metrics"
)

// deepSpeed reads the lines that DeepSpeed's ThroughputTimer and its pipeline engine print. Both
// print rates over all ranks: the global batch divided by the time of a step. The timer prints a
// running average, which begins at the third step, and the rate of the current step. The pipeline
// engine prints the rate since its previous line. A GB is 1024³ bytes.
var deepSpeed = Extractor{
	Name:  "deepspeed",
	Kind:  "train",
	Reads: "RunningAvgSamplesPerSec=X, CurrSamplesPerSec=X, MemAllocated=XGB, MaxMemAllocated=XGB, or steps: N loss: X iter time (s): X samples/sec: X",
	read:  readDeepSpeed,
}

var (
	deepSpeedTimer = regexp.MustCompile(`(?:epoch=\d+/micro_step=\d+/global_step=|\] \d+/)(\d+), RunningAvgSamplesPerSec=([^,\s]+), CurrSamplesPerSec=([^,\s]+), MemAllocated=([^,\s]+)GB, MaxMemAllocated=([^,\s]+)GB\s*$`)
	deepSpeedOld   = regexp.MustCompile(`\] \d+/\d+, SamplesPerSec=`)
)

var deepSpeedPipe = stepFormat{
	program: "DeepSpeed", starting: 1,
	line:   regexp.MustCompile(`(?:^|[\s:\]])steps: (?P<step>\d+) loss: (?P<loss>\S+) (?:\S+: \S+ )*iter time \(s\): (?P<time>\d+\.\d+) samples/sec: (?P<rate>\d+\.\d+)\s*$`),
	losses: []string{"loss"},
	fields: []stepField{{"time", stepSeconds, 1, nil}},
}

func readDeepSpeed(l *log, r io.Reader) {
	timer := &deepSpeedTimes{stepLog: newStepLog(l, &stepFormat{program: "DeepSpeed", starting: 1})}
	var rates []Value // rates of the pipeline engine
	f := deepSpeedPipe
	f.more = func(s *stepLog, ln line, _ int, fields parts) {
		v := l.rateAbove0(ln.number, fields["rate"])
		if s.lines > s.format.starting {
			rates = append(rates, v)
		}
	}
	f.others = []stepLine{{deepSpeedTimer, func(_ *stepLog, ln line, m []string) {
		timer.take(ln, m)
	}}, {deepSpeedOld, func(*stepLog, line, []string) {
		l.note("SamplesPerSec= is not read, because old versions of DeepSpeed count micro-batches as steps; without gradient accumulation, read it with [[extract]] name = \"throughput\", pattern = ', SamplesPerSec=(?P<value>[\\d.]+)', unit = \"samples/s\", per = \"step\"")
	}}}
	pipe := newStepLog(l, &f)
	l.each(r, pipe.read)
	const sample = "over all ranks; a sample is what the data loader calls one, a sequence for most"
	switch {
	case len(rates) > 0:
		l.reduced(metrics.FigureThroughput, "samples/s", "median", 1, rates, "DeepSpeed's samples/sec "+sample+"; the median over the log's lines, without the first of each start")
	case len(timer.averages) > 0:
		timer.rate(sample)
	}
	if pipe.line == 0 {
		timer.from.note(l)
		timer.peaks()
		return
	}
	pipe.measured[allocatedMemory], pipe.scale[allocatedMemory] = timer.measured[allocatedMemory], 1<<30
	pipe.finish()
}

// deepSpeedTimes is the parser's state for the lines of the ThroughputTimer.
type deepSpeedTimes struct {
	*stepLog
	averages []deepSpeedAverage
	current  Value // the latest rate of a step
}

// deepSpeedAverage is the running average that the timer printed at a step.
type deepSpeedAverage struct {
	step float64
	v    Value
}

// untimed is the number of first steps that the timer's averages leave out.
const untimed = 2

// take parses a line of the timer. It ignores the averages up to step 2, which are infinite or
// negative.
func (t *deepSpeedTimes) take(ln line, m []string) {
	step, ok := t.takesText(ln, m[1])
	if !ok {
		return
	}
	if t.number(ln.number, allocatedMemory, m[5], 1<<30); step <= untimed {
		return
	}
	if !t.undefinedNumber("running average", m[2]) {
		t.averages = append(t.averages, deepSpeedAverage{float64(step), t.l.rateAbove0(ln.number, m[2])})
	}
	if !t.undefinedNumber("rate of a step", m[3]) {
		t.current = t.l.rateAbove0(ln.number, m[3])
	}
}

// rate adds the run's throughput. With gradient accumulation, the average that older versions
// print is too low: they leave out the time of two micro-steps, but divide by the number of steps
// minus two. The rate between two printed averages does not have this error, so the two rates are
// compared.
func (t *deepSpeedTimes) rate(sample string) {
	f := metrics.Figure{Name: metrics.FigureThroughput, Unit: "samples/s"}
	begin, end := t.averages[0], t.averages[len(t.averages)-1]
	f.Value, f.Note = end.v.Number, "DeepSpeed's running average "+sample+"; the last one, over all steps since the start but for the first two"
	batches := func(a deepSpeedAverage) float64 { return (a.step - untimed) / a.v.Number } // seconds, divided by the samples per step
	between := (end.step - begin.step) / (batches(end) - batches(begin))
	wrong := t.contradicts(f.Value)
	switch {
	case end.step > begin.step && between > 0 && finite(between) && !within(between, f.Value, sameValue):
		f.Value, f.Note = between, "the steps between DeepSpeed's first running average and its last over their time; a sample is what the data loader calls one"
		t.l.note("DeepSpeed's running average (%.4g samples/s) miscounts the first steps, or they were slow: the rate between its lines (%.4g) is used", end.v.Number, between)
	case wrong != "":
		f = t.l.contradicted(f, wrong)
	case end.step == begin.step && !within(t.current.Number, f.Value, nearly):
		f = t.l.contradicted(f, fmt.Sprintf("its only running average is %.4g samples/s, and the step that is printed has %.4g", f.Value, t.current.Number))
	}
	t.l.add(metrics.Event{Figure: &f}, f.Value/end.v.Number, end.v)
}

// contradicts returns how the times of day and the batch that the user gave contradict a rate; ""
// if they do not.
func (t *deepSpeedTimes) contradicts(rate float64) string {
	span, _, median := t.betweenLines()
	if batch := t.l.o.globalBatch(); span > clockSpan && batch > 0 && !within(rate*median, batch, 1.25) {
		return fmt.Sprintf("%.4g samples/s in the %.4g s of a step by the times of day are %.4g samples, and the batch is %g", rate, median, rate*median, batch)
	}
	return ""
}

// rateAbove0 parses a rate in samples/s, which must be above 0.
func (l *log) rateAbove0(ln int, text string) Value {
	v := l.parse(ln, text)
	if v.Number < metrics.MinRate {
		l.fail(ln, "a rate of %s samples/s; want more than 0", clip(text))
	}
	return v
}
