package loadtest

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A latency counts from the time at which a request was to be sent, so a client that is
// late only adds to it. What it may have added is bounded for each request, and each
// figure has two values: as measured, and with these bounds taken out. The true one lies
// between them.

// lateness is by how much requests that are sent now may be delayed by a client that sent
// others late. Requests that it sends together after a pause wait for each other. A
// service at a share ρ of its capacity works such a backlog off in 1/(1-ρ) of the pause,
// and no percentile is given above nearCapacity.
type lateness struct {
	at    time.Duration // when it was
	delay time.Duration
}

// after returns the delay of a request that was sent at a time, late by so much.
func (l *lateness) after(sent, late time.Duration) time.Duration {
	if sent > l.at {
		l.delay = max(0, l.delay-time.Duration((1-nearCapacity)*float64(sent-l.at)))
		l.at = sent
	}
	l.delay = max(l.delay, late)
	return l.delay
}

// lateAt returns why a percentile is not known because the client sent late; "" where it
// is. It may be off by apart, the precision that a steady state is judged by.
func (v *Verdict) lateAt(of Time, q, seconds float64) string {
	least, ok := v.Total.least(of, q)
	if !ok || seconds-least <= apart*seconds {
		return ""
	}
	return lateWords(seconds, least)
}

// lateMean is lateAt of the mean latency.
func (v *Verdict) lateMean() string {
	mean, _ := v.Total.Mean()
	least := mean - v.Total.delaySum.Seconds()/float64(max(1, v.Total.Good))
	if mean-least <= apart*mean {
		return ""
	}
	return lateWords(mean, least)
}

func lateWords(measured, least float64) string {
	return fmt.Sprintf("the client sent late, which may be up to %v of the %v measured; give it its own CPUs", seconds(measured-least), seconds(measured))
}

// least is the percentile with the delays taken out that the client may have caused; ok is
// false for a time that its lateness does not add to, and without an answer.
func (w *Window) least(of Time, q float64) (seconds float64, ok bool) {
	times := w.Least
	if of != Latency {
		if w.streams == nil {
			return 0, false
		}
		times = w.streams.least[of]
	}
	if times == nil {
		return 0, false
	}
	return w.quantile(times, q)
}

// quantile is the time that a share q of the answers stays within, a late one counting as
// slower than all others; ok is false where that is one of the late ones.
func (w *Window) quantile(times *hdrhistogram.PackedHistogram, q float64) (seconds float64, ok bool) {
	known := times.TotalCount()
	if known == 0 || w.Good == 0 {
		return 0, false
	}
	// A late answer has as many of them as the others.
	timed := known + int64(math.Ceil(float64(w.Late)*float64(known)/float64(w.Good)))
	rank := int64(q*float64(timed)) + 1 // 1-based; the smallest that at least q are within
	if exact := q * float64(timed); exact == float64(int64(exact)) && exact > 0 {
		rank--
	}
	if rank > known {
		return 0, false
	}
	// A little below the rank's own percentile, so that rounding cannot go past it.
	return time.Duration(times.ValueAtPercentile(100 * (float64(rank) - 0.5) / float64(known))).Seconds(), true
}
