package extract

import (
	"io"
	"regexp"

	"github.com/scalebench/scalebench/metrics"
)

// timm reads the output of timm's train.py. Its rate already covers all ranks. The rate in
// parentheses is the mean since the start of the epoch, first batches included.
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

// timmRun is the state of reading a log.
type timmRun struct {
	l            *log
	from         first
	rates, times []Value // of the last batch of each epoch
	epoch        int
	unrated      int // epochs since the last one with a last batch; 0: the latest has one
}

func readTimm(l *log, r io.Reader) error {
	t := &timmRun{l: l, epoch: -1}
	if err := l.each(r, t.line); err != nil {
		return err
	}
	t.from.note(l)
	// The mean time next to the rate is that of a global batch.
	var own ownRate
	if batch := l.o.globalBatch(); batch > 0 && len(t.times) > 0 {
		seconds, err := reduceBy("median", numbers(t.times[min(1, len(t.times)-1):]))
		if err != nil {
			return err
		}
		if x := batch / seconds; x > 0 && finite(x) {
			own = ownRate{x, x}
		}
	}
	return l.epochRates(t.rates, "timm's mean over an epoch, of all ranks together, input and logging included", own)
}

func (t *timmRun) line(ln line) error {
	if m := timmTrain.FindStringSubmatch(ln.text); m != nil && t.from.takes(ln) {
		return t.train(ln, m)
	}
	m := timmTest.FindStringSubmatch(ln.text)
	if m == nil || !t.from.takes(ln) || m[1] != m[2] {
		return nil
	}
	v, err := t.l.parse(ln.number, m[4])
	if err != nil {
		return err
	}
	return t.l.accuracy(metrics.Event{Evaluation: &metrics.Evaluation{Epoch: t.l.epoch(t.epoch, 0)}}, 0.01, v)
}

// train handles a line of the training.
func (t *timmRun) train(ln line, m []string) error {
	var count [3]int // epoch, batch, and batches per epoch
	for i := range count {
		var err error
		if count[i], err = t.l.whole(ln.number, m[i+1]); err != nil {
			return err
		}
	}
	e, i, n := count[0], count[1], count[2]
	if e < t.epoch {
		return t.l.errorAt(ln.number, "epoch %d follows epoch %d: two runs, or one that was restarted. One log is one run: split it", e, t.epoch)
	}
	if e > t.epoch {
		t.epoch, t.unrated = e, t.unrated+1
	}
	if i != n-1 && i != n { // the last batch, counted from 0 or from 1
		return nil
	}
	if t.unrated == 0 { // both ways to count matched in one epoch
		t.rates, t.times = t.rates[:len(t.rates)-1], t.times[:len(t.times)-1]
	}
	t.unrated = 0
	if err := t.l.parseAll(ln.number, &t.times, m[4]); err != nil {
		return err
	}
	return t.l.parseAll(ln.number, &t.rates, m[5])
}

// epochRates adds the run's throughput from one rate per epoch. It drops the first of
// several, in which caches fill and clocks rise.
func (l *log) epochRates(rates []Value, note string, own ownRate) error {
	switch {
	case len(rates) == 0:
		return nil
	case len(rates) == 1:
		note += "; of one epoch, its first steps included"
	default:
		rates = rates[1:]
		note += "; the median of the epochs, without the first"
	}
	for _, v := range rates {
		if v.Number < metrics.MinRate {
			return l.errorAt(v.Line, "a throughput of %g samples/s; want more than 0", v.Number)
		}
	}
	return l.rate("median", 1, rates, note, own, "the batch of all ranks over the mean time of a step")
}

// whole parses a whole number of at least 0.
func (l *log) whole(ln int, text string) (int, error) {
	v, err := l.parse(ln, text)
	if err != nil || v.Number != float64(int(v.Number)) || v.Number > 1<<40 || v.Number < 0 {
		return 0, l.errorAt(ln, "%s; want a whole number", clip(text))
	}
	return int(v.Number), nil
}

// epoch converts the log's epoch number to one that counts from 1. usual is the format's
// usual first number.
func (l *log) epoch(number, usual int) int {
	if l.o.FirstEpoch != nil {
		usual = *l.o.FirstEpoch
	}
	return max(0, number-usual+1)
}
