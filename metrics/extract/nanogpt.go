package extract

import (
	"io"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// nanoGPT reads the output of nanoGPT's train.py. The time is that of the iteration
// printed, and of an evaluation where one came before it: such a line has no rate.
// Its MFU is a running mean of rank 0's over the lines, those with an evaluation
// included, over the peak of an A100 whatever the GPU, and -100 % until it has a value.
var nanoGPT = Extractor{
	Name:  "nanogpt",
	Kind:  "train",
	Reads: "iter N: loss X, time Xms, mfu X% and step N: train loss X, val loss X",
	read:  readNanoGPT,
}

var (
	nanoStep   = regexp.MustCompile(`^iter (\d+): loss (\S+), time (\d+\.\d+)ms, mfu (-?\d+\.\d+)%\s*$`)
	nanoEval   = regexp.MustCompile(`^step (\d+): train loss \S+, val loss (\S+)\s*$`)
	nanoTokens = regexp.MustCompile(`^tokens per iteration will be: (\S+)\s*$`)
)

// nanoForgets is after how many lines a running mean has less than 0.1 % of a line:
// each keeps nine tenths.
const nanoForgets = 66

func readNanoGPT(l *log, r io.Reader) error {
	s := newStepLog(l, "nanoGPT", 1)
	evaluated := false   // since the latest iteration
	since := nanoForgets // lines since the last one with an evaluation in its time
	var mixed []Value    // MFUs in which evaluations are
	err := l.each(r, func(ln line) error {
		if m := nanoTokens.FindStringSubmatch(ln.text); m != nil && s.from.takes(ln) {
			n, err := l.count(ln.number, "tokens per iteration of", ungrouped(m[1]))
			s.stepTokens = Value{float64(n), ln.number}
			return err
		}
		if m := nanoEval.FindStringSubmatch(ln.text); m != nil {
			evaluated = true
			return s.evaluationAt(ln, m[1], m[2])
		}
		m := nanoStep.FindStringSubmatch(ln.text)
		if m == nil {
			return nil
		}
		step, err := l.whole(ln.number, m[1])
		if err != nil {
			return err
		}
		if ok, err := s.takes(ln, step); !ok {
			return err
		}
		if err := s.lossOf(ln.number, "step", float64(step), m[2]); err != nil {
			return err
		}
		since++
		if evaluated {
			since = 0
			s.unrated = "an evaluation is in the time of every line"
		} else if err := s.number(ln.number, stepSeconds, m[3], 1e-3); err != nil {
			return err
		}
		evaluated = false
		switch {
		case strings.HasPrefix(m[4], "-"):
			if since == 0 {
				since = nanoForgets // before the mean begins
			}
			return nil
		case since >= nanoForgets:
			return s.number(ln.number, reportedMFU, m[4], 0.01)
		}
		return l.parseAll(ln.number, &mixed, m[4])
	})
	if err != nil {
		return err
	}
	if err := s.finish(); err != nil || len(mixed) == 0 {
		return err
	}
	if len(s.measured[reportedMFU]) > 0 {
		l.note("%d lines have no %s, since evaluations are in nanoGPT's running mean", len(mixed), reportedMFU)
		return nil
	}
	f := metrics.Figure{Name: reportedMFU, Reduce: "last", Note: "by the program's own count of FLOPs and its own peak"}
	return l.reduce(l.contradicted(f, "evaluations are in nanoGPT's running MFU, and in none of its step times"), 0.01, mixed[len(mixed)-1:])
}
