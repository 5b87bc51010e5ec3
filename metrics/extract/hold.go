package extract

import (
	"cmp"
	"math"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// Most programs log the rate of all workers, some that of one worker, and few say which. So
// a rate is compared with the rate that follows from the samples and times in the same log.
// If the two are near, it is the rate of all workers. If it is near one worker's share, it
// is multiplied by the workers. Otherwise its scope is unknown, and it is left out of
// curves.

// nearly is the largest ratio of two rates that measure the same thing. One may leave out
// what the other counts (the first steps, a checkpoint), but half of the rate must still
// differ.
const nearly = 4.0 / 3

func near(ratio float64) bool { return ratio >= 1/nearly && ratio <= nearly }

// ownRate is a rate computed from the samples and times in a log, in samples/s over all
// workers; 0 if the log lacks them.
type ownRate struct {
	training float64 // during training
	whole    float64 // from start to end, pauses included
}

// held is the verdict on a stated rate.
type held struct {
	keep  bool    // whether to use the rate
	times float64 // factor to the rate of all workers: 1, or the workers
	note  string  // the reason
}

// hold judges a stated rate in samples/s.
func (l *log) hold(stated float64, own ownRate) held {
	if !(own.training > 0) {
		return held{true, 1, "the log has nothing to check it against"}
	}
	n := float64(cmp.Or(l.o.Workers, l.res.Workers))
	far := func(rate float64) float64 { // ratio to the log's own rate; +Inf: too far
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

// contradicted renames a figure that its own log contradicts, so that curves leave it out.
// why says what contradicts it.
func (l *log) contradicted(f metrics.Figure, why string) metrics.Figure {
	f.Name, f.Better = statedPrefix+f.Name, ""
	f.Note = strings.TrimPrefix(f.Note+"; "+why, "; ")
	l.note("figures named %s… are left out of curves: %s", statedPrefix, why)
	return f
}

// statedPrefix starts the names of figures that their own log contradicts.
const statedPrefix = "stated_"

// rate adds the throughput of the run: the rates in the log, reduced and times scale, in
// samples/s. If they match neither all workers nor one, the log's own rate replaces them,
// and ownNote describes that rate.
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

// ownCount is the number of samples that a log says were trained on by a time.
type ownCount struct{ samples, seconds float64 }

// ownOf returns the rate between the first and last counts, and the rate from the start. A
// count covers one rank, so both are multiplied by ranks.
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
