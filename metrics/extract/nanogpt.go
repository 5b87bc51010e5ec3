package extract

import (
	"io"
	"regexp"
	"strings"
)

// nanoGPT reads the output of nanoGPT's train.py. The time is that of the iteration
// printed, and of an evaluation where one came before it: such a line has no rate.
// Its MFU is a running mean of rank 0's, over the peak of an A100 whatever the GPU,
// and -100 % until it has a value.
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

func readNanoGPT(l *log, r io.Reader) error {
	s := newStepLog(l, "nanoGPT", 1)
	evaluated := false // since the latest iteration
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
		if !evaluated {
			if err := s.number(ln.number, stepSeconds, m[3], 1e-3); err != nil {
				return err
			}
		}
		evaluated = false
		if strings.HasPrefix(m[4], "-") {
			return nil
		}
		return s.number(ln.number, reportedMFU, m[4], 0.01)
	})
	if err != nil {
		return err
	}
	return s.finish()
}
