package loadtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Times are recorded from a nanosecond to an hour with three significant digits: a
// percentile is at most 0.1 % off. From a microsecond on, it would be half of one.
const (
	shortest = int64(time.Nanosecond)
	longest  = int64(time.Hour)
	digits   = 3

	resolution = 0.001 // of a recorded time, as a fraction
)

// maxWindows bounds what a record takes: some kB a window.
const maxWindows = 10_000

// Window is what became of the requests that were to be sent within a stretch of
// time. Histograms are in nanoseconds, and of good answers alone.
type Window struct {
	Begin, Length time.Duration // from the first request on

	Good     int64 // right answers in time
	Wrong    int64 // answers that are not what was expected, and lost connections
	Late     int64 // no answer within the timeout
	Within   int64 // of the right answers, those with all times within Options.Within
	InFlight float64

	Latency *hdrhistogram.PackedHistogram // from the time at which it was to be sent
	// Least is what Latency would at least be if the client had sent in time.
	Least *hdrhistogram.PackedHistogram
	Lag   *hdrhistogram.PackedHistogram // how late the client was with it, of all requests

	// Stall is the longest time without a right answer that began in it, counted from
	// an answer, or from a request that was sent when none was in flight.
	Stall time.Duration
	// Replicas are the same of each replica, nil where there is only one; they have
	// counts and Latency alone.
	Replicas []Window

	// answered is how many right answers fall into it, an answer that takes longer in
	// parts: of the closed loop, whose requests begin with the window.
	answered float64

	latencySum, serviceSum, delaySum time.Duration

	streams *streams
}

// Merge adds up windows that follow each other: counts and histograms are added,
// never percentiles averaged.
func Merge(list []Window) Window {
	total := Window{Latency: histogram(), Least: histogram(), Lag: histogram()}
	replicas := 0
	if len(list) > 0 {
		total.Begin = list[0].Begin
	}
	for _, w := range list {
		total.Length += w.Length
		total.Good += w.Good
		total.answered += w.answered
		total.Wrong += w.Wrong
		total.Late += w.Late
		total.Within += w.Within
		total.InFlight += w.InFlight * w.Length.Seconds()
		total.latencySum += w.latencySum
		total.serviceSum += w.serviceSum
		total.delaySum += w.delaySum
		total.Stall = max(total.Stall, w.Stall)
		total.Latency.Merge(w.Latency)
		if w.Least != nil {
			total.Least.Merge(w.Least)
			total.Lag.Merge(w.Lag)
		}
		replicas = max(replicas, len(w.Replicas))
		if w.streams != nil {
			if total.streams == nil {
				total.streams = newStreams()
			}
			total.streams.merge(w.streams)
		}
	}
	for i := range replicas {
		total.Replicas = append(total.Replicas, Merge(replica(list, i)))
	}
	if total.Length > 0 {
		total.InFlight /= total.Length.Seconds()
	}
	return total
}

// replica are one replica's parts of windows.
func replica(list []Window, i int) []Window {
	own := make([]Window, len(list))
	for k, w := range list {
		own[k] = Window{Begin: w.Begin, Length: w.Length}
		if i < len(w.Replicas) {
			own[k] = w.Replicas[i]
		}
		if own[k].Latency == nil {
			own[k].Latency = histogram()
		}
	}
	return own
}

// of is the part of a replica.
func (w *Window) of(replica int) *Window {
	for len(w.Replicas) <= replica {
		w.Replicas = append(w.Replicas, Window{Begin: w.Begin, Length: w.Length, Latency: histogram()})
	}
	return &w.Replicas[replica]
}

// Requests are all that were to be sent in it.
func (w *Window) Requests() int64 { return w.Good + w.Wrong + w.Late }

// Rate is right answers a second. Of the closed loop an answer counts by the part of it
// that lies within the window: its requests begin with it, so that those that end
// behind it are too many, as many as there are in flight.
func (w *Window) Rate() float64 { return w.perSecond(float64(w.Good)) }

// perSecond is the rate of something that right answers have n of.
func (w *Window) perSecond(n float64) float64 {
	if w.answered > 0 && w.Good > 0 {
		n *= w.answered / float64(w.Good)
	}
	return n / w.Length.Seconds()
}

// Goodput is right answers a second with all times within Options.Within.
func (w *Window) Goodput() float64 { return w.perSecond(float64(w.Within)) }

// Errors is the share of requests that got no right answer in time.
func (w *Window) Errors() float64 { return float64(w.Wrong+w.Late) / float64(max(1, w.Requests())) }

// Timeouts is the share of requests that had no answer within the timeout, a part of
// Errors. Those still under way when a load ends are waited for as long.
func (w *Window) Timeouts() float64 { return float64(w.Late) / float64(max(1, w.Requests())) }

// Percentile is the time of an answer, in seconds, that a share q of the requests
// (of the texts, for Gap) stays within. A late answer counts as slower than all
// others, so that there is none where more than 1-q of them are late; ok is false
// then, and without an answer.
func (w *Window) Percentile(of Time, q float64) (seconds float64, ok bool) {
	times := w.times(of)
	if times == nil {
		return 0, false
	}
	return w.quantile(times, q)
}

// Mean is the mean latency, and that from the actual send, in seconds; 0 without an
// answer.
func (w *Window) Mean() (latency, service float64) {
	if w.Good == 0 {
		return 0, 0
	}
	n := float64(w.Good)
	return w.latencySum.Seconds() / n, w.serviceSum.Seconds() / n
}

// Little is how far rate times mean time in service is from the requests in flight
// that were counted, as a fraction of those: 0 where the figures agree (Little's
// law). It holds for any service over a stretch that begins and ends alike.
func (w *Window) Little() float64 {
	if w.InFlight == 0 {
		return 0
	}
	_, service := w.Mean()
	return w.Rate()*service/w.InFlight - 1
}

// record is where all connections write down what became of their requests.
type record struct {
	closed  bool // it is of a closed loop
	mu      sync.Mutex
	width   time.Duration
	within  map[Time]time.Duration
	windows []Window

	flying  int           // requests in flight
	counted time.Duration // until then they have been added up
	area    []float64     // request-seconds, by window

	late lateness

	waiting bool          // for a right answer
	since   time.Duration // when that began

	first   error // that a request had
	refused int   // requests whose connection was refused or reset
}

func newRecord(span, width time.Duration, within map[Time]time.Duration) (*record, error) {
	n := int((span + width - 1) / width)
	if n > maxWindows {
		return nil, fmt.Errorf("measuring %s in windows of %s makes %d of them, and at most %d can be recorded; use longer windows", span, width, n, maxWindows)
	}
	r := &record{width: width, within: within, windows: make([]Window, n), area: make([]float64, n)}
	for i := range r.windows {
		r.windows[i] = Window{Begin: time.Duration(i) * width, Length: min(width, span-time.Duration(i)*width), Latency: histogram(), Least: histogram(), Lag: histogram()}
	}
	return r, nil
}

func histogram() *hdrhistogram.PackedHistogram {
	return hdrhistogram.NewPacked(shortest, longest, digits)
}

// advance adds up the requests in flight until a time.
func (r *record) advance(now time.Duration) {
	for r.counted < now {
		i := int(r.counted / r.width)
		if i >= len(r.windows) {
			r.counted = now
			return
		}
		until := min(now, r.windows[i].Begin+r.width)
		r.area[i] += float64(r.flying) * (until - r.counted).Seconds()
		r.counted = until
	}
}

func (r *record) sent(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	if r.flying++; !r.waiting {
		r.waiting, r.since = true, now
	}
}

// stalled notes a stall that ends now.
func (r *record) stalled(now time.Duration) {
	if i := int(r.since / r.width); r.waiting && i < len(r.windows) {
		r.windows[i].Stall = max(r.windows[i].Stall, now-r.since)
	}
}

// A request is what became of one. Times count from the start of the run.
type request struct {
	at, sent, now time.Duration // when it was to be sent, was sent, and had its answer or none
	late          time.Duration // of at, by the client
	replica       int           // that was asked; -1: the only one
	answer        *Stream       // nil where it did not come text by text
	err           error
}

// done records a request.
func (r *record) done(q request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, sent, now, err := q.at, q.sent, q.now, q.err
	delay := min(r.late.after(sent, q.late), now-at)
	r.advance(now)
	if r.flying--; r.flying <= 0 {
		r.late = lateness{}
	}
	if err == nil {
		r.spread(at, now)
		r.stalled(now)
		r.waiting, r.since = r.flying > 0, now
	}
	i := int(at / r.width)
	if i >= len(r.windows) {
		return
	}
	w := &r.windows[i]
	put(w.Lag, q.late)
	if q.replica >= 0 {
		w.of(q.replica).count(now-at, err)
	}
	w.count(now-at, err)
	switch {
	case err == nil:
		w.serviceSum += now - sent
		w.delaySum += delay
		put(w.Least, now-at-delay)
		if within(r.within, now-at, sent-at, q.answer) {
			w.Within++
		}
		if q.answer != nil {
			if w.streams == nil {
				w.streams = newStreams()
			}
			w.streams.add(sent-at, delay, *q.answer)
		}
	case r.first == nil:
		r.first = err
	}
	if none := (*unconnected)(nil); errors.As(err, &none) && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)) {
		r.refused++
	}
}

// spread adds an answer of the closed loop to the windows that it lies in.
func (r *record) spread(at, now time.Duration) {
	if !r.closed {
		return
	}
	for i := int(at / r.width); i < len(r.windows); i++ {
		w := &r.windows[i]
		part := min(now, w.Begin+w.Length) - max(at, w.Begin)
		switch {
		case now == at:
			w.answered++
			return
		case part <= 0:
			return
		}
		w.answered += float64(part) / float64(now-at)
	}
}

// count adds a request that took so long.
func (w *Window) count(latency time.Duration, err error) {
	switch {
	case err == nil:
		w.Good++
		w.latencySum += latency
		put(w.Latency, latency)
	case late(err):
		w.Late++
	default:
		w.Wrong++
	}
}

// put records a time; one beyond the range counts as its end.
func put(h *hdrhistogram.PackedHistogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 0), longest)) // within the range by construction
}

// list are the windows as far as they are full.
func (r *record) list() []Window {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled(r.counted) // one that no answer ended
	for i := range r.windows {
		r.windows[i].InFlight = r.area[i] / r.windows[i].Length.Seconds()
	}
	return slices.Clone(r.windows)
}

// Result is what a run of requests came to.
type Result struct {
	Windows  []Window
	InFlight int // of the closed loop; 0 for the open one
	Asked    int // requests of the open loop's schedule
	// MaxInFlight is Options's.
	MaxInFlight int
	Held        int // those that found MaxInFlight others without an answer
	// Behind is how long the last request of the open loop waited for a connection.
	Behind    time.Duration
	ClientCPU float64 // CPUs that this process kept busy meanwhile
	CPUs      int     // that it may use; 0: it is what is measured, too
	Refused   int     // requests of the open loop whose connection was refused or reset
	Anew      int     // requests that needed a new connection, since the server had closed theirs
	// FirstError is of the first request without a right answer in time; nil: all had
	// one.
	FirstError error
}
