package extract

import (
	"io"
	"regexp"

	"github.com/scalebench/scalebench/metrics"
)

// deepSpeed reads the lines of DeepSpeed's ThroughputTimer and of its pipeline engine.
// Rates count all ranks: the global batch over the time of a step. The timer's running
// average starts at the third step, and its current rate is that of the printed step. The
// pipeline engine prints the rate since its previous line. A GB is 1024³ bytes.
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

func readDeepSpeed(l *log, r io.Reader) error {
	timer := newStepLog(l, "DeepSpeed", 1)
	var average Value // the latest one of the timer
	var rates []Value // those of the pipeline engine
	f := deepSpeedPipe
	f.more = func(s *stepLog, ln line, _ int, fields parts) error {
		v, err := l.rateAbove0(ln.number, fields["rate"])
		if err == nil && s.lines > s.starting {
			rates = append(rates, v)
		}
		return err
	}
	f.others = []stepLine{{deepSpeedTimer, func(_ *stepLog, ln line, m []string) error {
		_, ok, err := timer.takesText(ln, m[1])
		if !ok {
			return err
		}
		if average, err = l.rateAbove0(ln.number, m[2]); err != nil {
			return err
		}
		return timer.number(ln.number, allocatedMemory, m[5], 1<<30)
	}}, {deepSpeedOld, func(*stepLog, line, []string) error {
		l.note("SamplesPerSec= is of an older DeepSpeed, which counts micro-batches as steps; without gradient accumulation, read it with [[extract]] name = \"throughput\", pattern = ', SamplesPerSec=(?P<value>[\\d.]+)', unit = \"samples/s\", per = \"step\"")
		return nil
	}}}
	pipe := f.log(l)
	if err := l.each(r, pipe.read); err != nil {
		return err
	}
	const sample = "over all ranks; a sample is what the data loader calls one, a sequence for most"
	switch {
	case len(rates) > 0:
		if err := l.reduced(metrics.FigureThroughput, "samples/s", "median", 1, rates, "DeepSpeed's samples/sec "+sample+"; the median over the log's lines, without the first of each start"); err != nil {
			return err
		}
	case average.Line > 0:
		l.figure(metrics.FigureThroughput, "samples/s", nil, average, "DeepSpeed's running average "+sample+"; the last one, over all steps since the start but for the first two")
	}
	if pipe.line == 0 {
		timer.from.note(l)
		return timer.peaks()
	}
	pipe.measured[allocatedMemory], pipe.scale[allocatedMemory] = timer.measured[allocatedMemory], 1<<30
	return pipe.finish()
}

// rateAbove0 parses a rate, which must be positive.
func (l *log) rateAbove0(ln int, text string) (Value, error) {
	v, err := l.parse(ln, text)
	if err == nil && v.Number < metrics.MinRate {
		err = l.errorAt(ln, "a rate of %s samples/s; want more than 0", clip(text))
	}
	return v, err
}
