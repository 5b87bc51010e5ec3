package extract

import (
	"cmp"
	"math"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// A rate that a log states is one of all workers in most programs, of one worker
// in some, and says which in few. So it is held against what the same log says of
// samples and time: near that, it is the run's; near a worker's share of it, it
// is one worker's, and the run's is as many times that; else nobody can say what
// it is of, and it makes no curve.

// nearly is how far, as a factor, two rates of the same may lie apart: one leaves
// out what the other counts (the first steps, a checkpoint), and half of it is
// still told from the whole.
const nearly = 4.0 / 3

func near(ratio float64) bool { return ratio >= 1/nearly && ratio <= nearly }

// ownRate is what a log says of samples over time, in samples/s over all
// workers; 0: it does not say.
type ownRate struct {
	training float64 // while it trained
	whole    float64 // from start to end, with what came between
}

// held is what became of a stated rate.
type held struct {
	keep  bool    // it is the run's, times
	times float64 // that: 1, or the workers
	note  string  // what was found
}

// hold judges a rate, in samples/s.
func (l *log) hold(stated float64, own ownRate) held {
	if !(own.training > 0) {
		return held{true, 1, "the log has nothing to check it against"}
	}
	n := float64(cmp.Or(l.o.Workers, l.res.Workers))
	far := func(rate float64) float64 { // from what the log bears out; +Inf: too far
		closest := math.Inf(1)
		for _, x := range []float64{own.training, own.whole} {
			if near(rate / x) {
				closest = min(closest, math.Abs(math.Log(rate/x)))
			}
		}
		return closest
	}
	all, one := far(stated), far(stated*n)
	switch {
	case !math.IsInf(all, 1) && all <= one:
		return held{true, 1, "the log's own samples over time agree"}
	case n > 1 && !math.IsInf(one, 1):
		return held{true, n, "by the log's own samples over time, its figure is one worker's; it is multiplied by the number of workers here"}
	case n > 1:
		return held{note: "by the log's own samples over time, its stated rate is neither all workers' nor one worker's"}
	}
	return held{note: "the log's stated rate does not match its own samples over time; give the number of workers"}
}

// contradicted renames a figure that its own log contradicts. Under the name stated_… it
// makes no curve. why says what contradicts it.
func (l *log) contradicted(f metrics.Figure, why string) metrics.Figure {
	f.Name, f.Better = statedPrefix+f.Name, ""
	f.Note = strings.TrimPrefix(f.Note+"; "+why, "; ")
	l.note("figures named %s… make no curve: %s", statedPrefix, why)
	return f
}

// statedPrefix begins the names of figures that their own log contradicts.
const statedPrefix = "stated_"

// rate adds the run's throughput, of rates in the log whose reduction times scale
// is in samples/s; one that is neither of all workers nor of one makes way for
// the log's own, which ownNote describes.
func (l *log) rate(reduce string, scale float64, rates []Value, note string, own ownRate, ownNote string) error {
	x, err := reduceBy(reduce, numbers(rates))
	if err != nil {
		return err
	}
	h := l.hold(scaled(x, scale), own)
	if h.keep {
		return l.reduced(metrics.FigureThroughput, "samples/s", reduce, scale*h.times, rates, note+"; "+h.note)
	}
	l.add(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureThroughput, Value: own.training, Unit: "samples/s", Note: ownNote + "; " + h.note}}, 1)
	return l.reduce(l.contradicted(metrics.Figure{Name: metrics.FigureThroughput, Unit: "samples/s", Reduce: reduce, Note: note}, h.note), scale, rates)
}

// ownCount is how many samples a log says it had trained on after how long.
type ownCount struct{ samples, seconds float64 }

// ownOf is the rate from the first count to the last, and from the start, times
// the ranks that each are the counts of.
func ownOf(counted []ownCount, ranks float64) ownRate {
	if len(counted) == 0 {
		return ownRate{}
	}
	first, last := counted[0], counted[len(counted)-1]
	own := ownRate{whole: ranks * last.samples / last.seconds, training: ranks * (last.samples - first.samples) / (last.seconds - first.seconds)}
	if !(own.training > 0) || !finite(own.training) {
		own.training = own.whole
	}
	if !(own.whole > 0) || !finite(own.whole) {
		return ownRate{}
	}
	return own
}
