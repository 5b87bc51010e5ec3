package extract

import (
	"io"
	"regexp"

	"github.com/scalebench/scalebench/metrics"
)

// timm reads the output of timm's train.py. Its rate already covers all ranks. The rate in
// parentheses is the mean since the start of the epoch, including the first batches.
var timm = Extractor{
	Name:  "timm",
	Kind:  "train",
	Reads: "Train: E [ I/N (100%)] … (Ts, R/s) and Test: [ I/N] … Acc@1: A (A)",
	read:  readTimm,
}

var (
	timmTrain = regexp.MustCompile(`^Train: (\d+) \[ *(\d+)/(\d+) +\( *\d+%\)\]  Loss: *\S+ \( *\S+\)  Time: \d+\.\d+s, +\d+\.\d+/s  \( *(\d+\.\d+)s, +(\d+\.\d\d)/s\)  LR: \S+  Data: \d+\.\d+ \(\d+\.\d+\)\s*$`)
	timmTest  = regexp.MustCompile(`^Test: \[ *(\d+)/(\d+)\]  Time: \d+\.\d+ \(\d+\.\d+\)  Loss: +\S+ \( *(\S+)\)  Acc@1: +\d+\.\d+ \( *(\d+\.\d{3})\)  Acc@5: +\d+\.\d+ \( *\d+\.\d{3}\)\s*$`)
)

// timmRun is the parser's state while it reads one log of timm.
type timmRun struct {
	l      *log
	from   first
	epoch  int
	epochs []timmLine // the last line of each epoch
	short  bool       // the last update of an epoch had fewer samples than the others
}

// timmLine is a training line of the log. Its means are those since the start of the epoch.
type timmLine struct {
	batch      int
	time, rate Value   // means since the start of the epoch
	samples    float64 // samples per update
}

func readTimm(l *log, r io.Reader) {
	t := &timmRun{l: l, epoch: -1}
	l.rules(r, rule{timmTrain, t.train}, rule{timmTest, t.test})
	t.from.note(l)
	rates, times := t.whole()
	// The mean time that is printed next to the rate is the time of a global batch.
	var own ownRate
	if batch := l.o.globalBatch(); batch > 0 && len(times) > 0 {
		if x := batch / median(times[min(1, len(times)-1):]); x > 0 && finite(x) {
			own = ownRate{x, x}
		}
	}
	if t.short {
		l.note("timm's mean rate is too low, because an epoch's last update is smaller: it is recomputed with the samples of the update before")
	}
	l.epochRates(rates, "timm's mean over an epoch, of all ranks together, input and logging included", own)
}

// whole returns the rates and times of the epochs whose last line is as far as that of the
// longest epoch. Some versions do not print the last update of an epoch.
func (t *timmRun) whole() (rates, times []Value) {
	last := 0
	for _, e := range t.epochs {
		last = max(last, e.batch)
	}
	for _, e := range t.epochs {
		if e.batch == last {
			rates, times = append(rates, e.rate), append(times, e.time)
		}
	}
	return rates, times
}

// test adds the accuracy of an evaluation, from its last line.
func (t *timmRun) test(ln line, m []string) {
	if t.from.takes(ln) && m[1] == m[2] {
		t.l.accuracy(metrics.Event{Evaluation: &metrics.Evaluation{Epoch: t.l.epoch(t.epoch, 0)}}, 0.01, t.l.parse(ln.number, m[4]), nil)
	}
}

func (t *timmRun) train(ln line, m []string) {
	if !t.from.takes(ln) {
		return
	}
	e, batch, batches := t.l.whole(ln.number, m[1]), t.l.whole(ln.number, m[2]), t.l.whole(ln.number, m[3])
	seconds, rate := t.l.parse(ln.number, m[4]), t.l.parse(ln.number, m[5])
	one := timmLine{batch: min(batch, batches-1), time: seconds, rate: rate, samples: seconds.Number * rate.Number}
	if e < t.epoch {
		t.l.fail(ln.number, "epoch %d follows epoch %d: two runs, or one that was restarted. One log is one run: split it", e, t.epoch)
	} else if e > t.epoch || len(t.epochs) == 0 {
		t.epoch = e
		t.epochs = append(t.epochs, one)
		return
	}
	before := &t.epochs[len(t.epochs)-1]
	// The allowed deviation includes the rounding of times to three decimals.
	if few := 0.98 - 0.0005/max(one.time.Number, 0.001); one.batch == batches-1 && one.samples < few*before.samples {
		one.samples = before.samples
		one.rate.Number = before.samples / one.time.Number
		t.short = true
	}
	*before = one
}

// epochRates adds the run's throughput, computed from one rate per epoch. If there are several,
// it drops the first, in which caches fill and clocks rise.
func (l *log) epochRates(rates []Value, note string, own ownRate) {
	switch {
	case len(rates) == 0:
		return
	case len(rates) == 1:
		note += "; of one epoch, its first steps included"
	default:
		rates = rates[1:]
		note += "; the median of the epochs, without the first"
	}
	l.positive("", rates)
	l.rate("median", 1, rates, note, own, "the batch of all ranks over the mean time of a step")
}

// whole parses an integer of at least 0.
func (l *log) whole(ln int, text string) int {
	v := l.parse(ln, text)
	if v.Number != float64(int(v.Number)) || v.Number > 1<<40 || v.Number < 0 {
		l.fail(ln, "%s; want a whole number", clip(text))
	}
	return int(v.Number)
}

// epoch converts an epoch number in the log to one that counts from 1. usual is the number that
// the format usually gives the first epoch.
func (l *log) epoch(number, usual int) int {
	if l.o.FirstEpoch != nil {
		usual = *l.o.FirstEpoch
	}
	return max(0, number-usual+1)
}
