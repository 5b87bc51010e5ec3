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

// nanoForgets is after how many lines a running mean has less than 0.1 % of a line:
// each keeps nine tenths.
const nanoForgets = 66

var nanoLog = stepFormat{
	program: "nanoGPT", starting: 1,
	line:   regexp.MustCompile(`^iter (?P<step>\d+): loss (?P<loss>\S+), time (?P<time>\d+\.\d+)ms, mfu (?P<mfu>-?\d+\.\d+)%\s*$`),
	losses: []string{"loss"},
}

var (
	nanoEval   = regexp.MustCompile(`^step (\d+): train loss \S+, val loss (\S+)\s*$`)
	nanoTokens = regexp.MustCompile(`^tokens per iteration will be: (\S+)\s*$`)
)

// nanoRates are the rates of a log's lines. An evaluation is in the time of the next
// iteration, and in the running MFU of many.
type nanoRates struct {
	evaluated bool    // since the latest iteration
	since     int     // lines since the last one with an evaluation in its time
	mixed     []Value // MFUs in which evaluations are
}

func readNanoGPT(l *log, r io.Reader) error {
	f, rates := nanoLog, &nanoRates{since: nanoForgets}
	f.more = rates.step
	f.others = []stepLine{{nanoTokens, nanoStepTokens}, {nanoEval, func(s *stepLog, ln line, m []string) error {
		rates.evaluated = true
		return s.evaluationAt(ln, m[1], m[2])
	}}}
	s := f.log(l)
	if err := l.each(r, s.read); err != nil {
		return err
	}
	if err := s.finish(); err != nil || len(rates.mixed) == 0 {
		return err
	}
	if len(s.measured[reportedMFU]) > 0 {
		l.note("%d lines have no %s, since evaluations are in nanoGPT's running mean", len(rates.mixed), reportedMFU)
		return nil
	}
	mfu := metrics.Figure{Name: reportedMFU, Reduce: "last", Note: "by the program's own count of FLOPs and its own peak"}
	return l.reduce(l.contradicted(mfu, "evaluations are in nanoGPT's running MFU, and in none of its step times"), 0.01, rates.mixed[len(rates.mixed)-1:])
}

func nanoStepTokens(s *stepLog, ln line, m []string) error {
	if !s.from.takes(ln) {
		return nil
	}
	n, err := s.l.count(ln.number, "tokens per iteration of", ungrouped(m[1]))
	s.stepTokens = Value{float64(n), ln.number}
	return err
}

// step takes the time and the MFU of an iteration.
func (r *nanoRates) step(s *stepLog, ln line, _ int, fields parts) error {
	r.since++
	if r.evaluated {
		r.since = 0
		s.unrated = "an evaluation is in the time of every line"
	} else if err := s.number(ln.number, stepSeconds, fields["time"], 1e-3); err != nil {
		return err
	}
	r.evaluated = false
	switch mfu := fields["mfu"]; {
	case strings.HasPrefix(mfu, "-"):
		if r.since == 0 {
			r.since = nanoForgets // before the mean begins
		}
		return nil
	case r.since >= nanoForgets:
		return s.number(ln.number, reportedMFU, mfu, 0.01)
	default:
		return s.l.parseAll(ln.number, &r.mixed, mfu)
	}
}
