package extract

import (
	"io"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// nanoGPT reads the output of nanoGPT's train.py. The time on a line is the duration of the printed
// iteration. If an evaluation preceded the iteration, the time includes it, and the line gives no
// rate. The MFU is rank 0's running mean over all lines, including those with an evaluation. It
// assumes the peak of an A100 on any GPU, and is -100 % until it has a value.
var nanoGPT = Extractor{
	Name:  "nanogpt",
	Kind:  "train",
	Reads: "iter N: loss X, time Xms, mfu X% and step N: train loss X, val loss X",
	read:  readNanoGPT,
}

// nanoForgets is the number of lines after which a line contributes less than 0.1 % to the
// running mean, in which its weight falls by a factor of 0.9 per line.
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

// nanoRates collects the rates of a log. An evaluation affects the time of the next iteration and
// the running MFU of many iterations.
type nanoRates struct {
	evaluated bool    // an evaluation followed the latest iteration
	since     int     // lines since the latest one whose time includes an evaluation
	mixed     []Value // MFUs that include evaluations
}

func readNanoGPT(l *log, r io.Reader) {
	f, rates := nanoLog, &nanoRates{since: nanoForgets}
	f.more = rates.step
	f.others = []stepLine{{nanoTokens, nanoStepTokens}, {nanoEval, func(s *stepLog, ln line, m []string) {
		rates.evaluated = true
		s.evaluationAt(ln, m[1], m[2])
	}}}
	s := newStepLog(l, &f)
	l.each(r, s.read)
	if s.finish(); len(rates.mixed) == 0 {
		return
	}
	if len(s.measured[reportedMFU]) > 0 {
		l.note("%s no %s, since evaluations are in nanoGPT's running mean", number.Have(len(rates.mixed), "line"), reportedMFU)
		return
	}
	mfu := metrics.Figure{Name: reportedMFU, Reduce: "last", Note: "by the program's own count of FLOPs and its own peak"}
	l.reduce(l.contradicted(mfu, "evaluations are in nanoGPT's running MFU, and in none of its step times"), 0.01, rates.mixed[len(rates.mixed)-1:])
}

func nanoStepTokens(s *stepLog, ln line, m []string) {
	if !s.from.takes(ln) {
		return
	}
	s.stepTokens = Value{float64(s.l.count(ln.number, "tokens per iteration of", ungrouped(m[1]))), ln.number}
}

// step records the time and the MFU of an iteration.
func (r *nanoRates) step(s *stepLog, ln line, _ int, fields parts) {
	r.since++
	if r.evaluated {
		r.since = 0
		s.unrated = "the time of every line includes an evaluation"
	} else {
		s.number(ln.number, stepSeconds, fields["time"], 1e-3)
	}
	r.evaluated = false
	switch mfu := fields["mfu"]; {
	case strings.HasPrefix(mfu, "-"):
		if r.since == 0 {
			r.since = nanoForgets // before the mean begins
		}
	case r.since >= nanoForgets:
		s.number(ln.number, reportedMFU, mfu, 0.01)
	default:
		r.mixed = append(r.mixed, s.l.parse(ln.number, mfu))
	}
}
