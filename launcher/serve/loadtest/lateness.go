package loadtest

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency counts from the scheduled send time, so a client that sends late can only add to it. The most it may
// have added is known for each request. Every figure therefore has two values, as measured and with these
// delays subtracted; the true value lies between them.

// A lateness bounds how much requests sent now may be delayed because the client sent earlier ones late:
// requests sent together after a pause queue behind each other. A service at utilization ρ works off such a
// backlog in 1/(1-ρ) times the pause. ρ is at most nearCapacity, above which no percentile is reported.
type lateness struct {
	at    time.Duration // time of the last update
	delay time.Duration
}

// after returns the delay of a request sent at the given time, late by the given amount.
func (l *lateness) after(sent, late time.Duration) time.Duration {
	if sent > l.at {
		l.delay = max(0, l.delay-time.Duration((1-nearCapacity)*float64(sent-l.at)))
		l.at = sent
	}
	l.delay = max(l.delay, late)
	return l.delay
}

// lateAt returns why a percentile is unknown because the client sent late, or "" if it is known. The client may
// shift it by at most apart, the tolerance of the steady-state test.
func (v *Verdict) lateAt(of Time, q, seconds float64) string {
	least, ok := v.Total.least(of, q)
	if !ok || seconds-least <= apart*seconds {
		return ""
	}
	return lateWords(seconds, least)
}

// lateMean is lateAt for the mean latency.
func (v *Verdict) lateMean() string {
	mean, _ := v.Total.Mean()
	least := mean - v.Total.delaySum.Seconds()/float64(max(1, v.Total.Good))
	if mean-least <= apart*mean {
		return ""
	}
	return lateWords(mean, least)
}

func lateWords(measured, least float64) string {
	return fmt.Sprintf("the client sent requests late, which may cause up to %v of the %v measured; give it its own CPUs", seconds(measured-least), seconds(measured))
}

// least returns the percentile after subtracting the delays that the client may have caused. ok is
// false without answers, or if the client's lateness cannot affect this time.
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

// quantile returns the time within which a share q of the requests was answered. Late answers count as slower
// than all others; ok is false if the quantile falls among them.
func (w *Window) quantile(times *hdrhistogram.PackedHistogram, q float64) (seconds float64, ok bool) {
	known := times.TotalCount()
	if known == 0 || w.Good == 0 {
		return 0, false
	}
	// Scale the late answers: an answer can have several recorded times (gaps).
	timed := known + int64(math.Ceil(float64(w.Late)*float64(known)/float64(w.Good)))
	rank := int64(q*float64(timed)) + 1 // 1-based: the smallest rank with at least q at or below it
	if exact := q * float64(timed); exact == float64(int64(exact)) && exact > 0 {
		rank--
	}
	if rank > known {
		return 0, false
	}
	// Ask for a percentile slightly below the rank's own, so that rounding cannot select the next rank.
	return time.Duration(times.ValueAtPercentile(100 * (float64(rank) - 0.5) / float64(known))).Seconds(), true
}
