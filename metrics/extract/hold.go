package extract

import (
	"cmp"
	"math"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// Most programs log the rate of all workers, some the rate of one worker, and few say which. So the
// stated rate is compared with a rate computed from the samples and times in the same log. If the
// two differ by less than a third, the stated rate is the rate of all workers. If it is that close to
// one worker's share, it is multiplied by the number of workers. Otherwise it is unknown what the
// stated rate covers, and curves leave it out.

// nearly is the largest ratio of two rates that count as measurements of the same thing. One may
// leave out what the other includes (the first steps, a checkpoint). The limit must be below 2,
// because one of two workers has half of the rate.
const nearly = 4.0 / 3

func near(ratio float64) bool { return ratio >= 1/nearly && ratio <= nearly }

// ownRate is the rate of all workers in samples/s, computed from the samples and times in a log;
// 0 if the log lacks them.
type ownRate struct {
	training float64 // during training, without pauses
	whole    float64 // from start to end, with pauses
}

// held is the result of comparing a stated rate with the log's ownRate.
type held struct {
	keep  bool    // the rate can be used
	times float64 // factor from the stated rate to the rate of all workers: 1, or the number of workers
	note  string  // the reason, for the figure's note
}

// hold compares a rate in samples/s that the log states with the rate that follows from the log's
// samples and times, and decides whether and how to use it.
func (l *log) hold(stated float64, own ownRate) held {
	if !(own.training > 0) {
		return held{true, 1, "the log has nothing to check it against"}
	}
	n := float64(cmp.Or(l.o.Workers, l.res.Workers))
	far := func(rate float64) float64 { // ratio to the closest rate in own; +Inf if none is near
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

// contradicted renames a figure that other numbers in its log contradict, so that curves leave it
// out, and adds a note. why says what contradicts it.
func (l *log) contradicted(f metrics.Figure, why string) metrics.Figure {
	f.Name, f.Better = statedPrefix+f.Name, ""
	f.Note = strings.TrimPrefix(f.Note+"; "+why, "; ")
	l.note("figures named %s… are left out of curves: %s", statedPrefix, why)
	return f
}

// statedPrefix is the prefix of the names of figures that other numbers in their log contradict.
const statedPrefix = "stated_"

// rate adds the run's throughput in samples/s: the stated rates, reduced to one number by the
// method reduce, times scale. If it agrees neither with the rate of all workers in own nor with
// one worker's share of it, the rate in own is added instead, with the note ownNote.
func (l *log) rate(reduce string, scale float64, rates []Value, note string, own ownRate, ownNote string) {
	h := l.hold(scaled(must(reduceBy(reduce, numbers(rates))), scale), own)
	if h.keep {
		l.reduced(metrics.FigureThroughput, "samples/s", reduce, scale*h.times, rates, note+"; "+h.note)
		return
	}
	l.add(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureThroughput, Value: own.training, Unit: "samples/s", Note: ownNote + "; " + h.note}}, 1)
	l.reduce(l.contradicted(metrics.Figure{Name: metrics.FigureThroughput, Unit: "samples/s", Reduce: reduce, Note: note}, h.note), scale, rates)
}

// positive fails if a throughput is not above 0. where begins the message.
func (l *log) positive(where string, rates []Value) {
	for _, v := range rates {
		if v.Number < metrics.MinRate {
			l.fail(v.Line, "%sa throughput of %g samples/s; want more than 0", where, v.Number)
		}
	}
}

// ownCount is the number of samples that, according to the log, were trained on after a number of
// seconds.
type ownCount struct{ samples, seconds float64 }

// ownOf returns the rate between the first and the last count, and the rate from the start to the
// last count. The counts cover one rank, so both rates are multiplied by ranks.
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
