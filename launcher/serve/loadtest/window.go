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

// Times from a nanosecond to an hour are recorded with three significant digits, so a percentile is at most 0.1
// % off. With a lower end of one microsecond the resolution would be half a microsecond, too coarse for short
// times.
const (
	shortest = int64(time.Nanosecond)
	longest  = int64(time.Hour)
	digits   = 3

	resolution = 0.001 // of a recorded time, as a fraction
)

// maxWindows bounds the memory of a record: a window takes some kB.
const maxWindows = 10_000

// A Window holds the results of the requests that were due within a stretch of time. Histograms are in
// nanoseconds and contain right answers only.
type Window struct {
	Begin, Length time.Duration // Begin counts from the first request

	Good     int64 // right answers in time
	Wrong    int64 // answers that are not what was expected, and lost connections
	Late     int64 // requests without an answer within the timeout
	Within   int64 // right answers with all times within Options.Within
	InFlight float64
	// Cancelled is the number of requests chosen to be abandoned. No other count includes them.
	Cancelled int64

	Latency *hdrhistogram.PackedHistogram // from the scheduled send time
	// Least is the lower bound of Latency, had the client sent in time.
	Least *hdrhistogram.PackedHistogram
	Lag   *hdrhistogram.PackedHistogram // how late the client sent, for all requests

	// Stall is the longest time without a right answer that began in this window. It counts from an answer, or
	// from a request sent when none was in flight.
	Stall time.Duration
	// Replicas holds the counts and Latency of each replica; nil if there is only one.
	Replicas []Window

	// answered is the number of right answers within the window. An answer of the closed loop that spans
	// several windows counts in parts.
	answered float64

	latencySum, serviceSum, delaySum time.Duration

	streams *streams
}

// Merge adds up consecutive windows. It adds counts and histograms and never averages percentiles.
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
		total.Cancelled += w.Cancelled
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

// replica returns one replica's part of each window.
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

// of returns the part of a replica, adding it if needed.
func (w *Window) of(replica int) *Window {
	for len(w.Replicas) <= replica {
		w.Replicas = append(w.Replicas, Window{Begin: w.Begin, Length: w.Length, Latency: histogram()})
	}
	return &w.Replicas[replica]
}

// Requests returns the number of requests that were due in the window.
func (w *Window) Requests() int64 { return w.Good + w.Wrong + w.Late }

// Rate returns right answers per second. In the closed loop an answer counts by the part of it that lies within
// the window: otherwise the requests in flight at the end of the window would be counted in full.
func (w *Window) Rate() float64 { return w.perSecond(float64(w.Good)) }

// perSecond returns the rate of something of which the right answers have n.
func (w *Window) perSecond(n float64) float64 {
	if w.answered > 0 && w.Good > 0 {
		n *= w.answered / float64(w.Good)
	}
	return n / w.Length.Seconds()
}

// Goodput returns right answers per second with all times within Options.Within.
func (w *Window) Goodput() float64 { return w.perSecond(float64(w.Within)) }

// Errors returns the share of requests without a right answer in time.
func (w *Window) Errors() float64 { return float64(w.Wrong+w.Late) / float64(max(1, w.Requests())) }

// Timeouts returns the share of requests without an answer within the timeout; Errors includes them. Requests
// in flight when a load ends have the same timeout.
func (w *Window) Timeouts() float64 { return float64(w.Late) / float64(max(1, w.Requests())) }

// Percentile returns the time in seconds within which a share q of the requests was answered (for
// Gap: a share q of the texts arrived). Late answers count as slower than all others. ok is false
// without answers, or if more than 1-q of them are late.
func (w *Window) Percentile(of Time, q float64) (seconds float64, ok bool) {
	times := w.times(of)
	if times == nil {
		return 0, false
	}
	return w.quantile(times, q)
}

// Mean returns the mean latency from the scheduled and from the actual send time, in seconds; 0 without an
// answer.
func (w *Window) Mean() (latency, service float64) {
	if w.Good == 0 {
		return 0, 0
	}
	n := float64(w.Good)
	return w.latencySum.Seconds() / n, w.serviceSum.Seconds() / n
}

// LittlesLawError returns by what fraction rate times mean service time differs from the measured number of requests in
// flight. By Little's law it is 0 for any service if the stretch begins and ends in the same state.
func (w *Window) LittlesLawError() float64 {
	if w.InFlight == 0 {
		return 0
	}
	_, service := w.Mean()
	return w.Rate()*service/w.InFlight - 1
}

// A record collects the results of all connections' requests.
type record struct {
	closed  bool
	each    func(Outcome) // Options.Each
	mu      sync.Mutex
	width   time.Duration
	within  map[Time]time.Duration
	windows []Window

	flying  int           // requests in flight
	counted time.Duration // area is complete up to this time
	area    []float64     // request-seconds, by window

	late lateness

	waiting bool          // a right answer is outstanding
	since   time.Duration // time of the latest change of the number in flight

	first   error // first error of a request
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

// advance adds the requests in flight up to now to area.
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

// stalled records a stall that ends now.
func (r *record) stalled(now time.Duration) {
	if i := int(r.since / r.width); r.waiting && i < len(r.windows) {
		r.windows[i].Stall = max(r.windows[i].Stall, now-r.since)
	}
}

// A request is a finished request. Times count from the start of the run.
type request struct {
	at, sent, now time.Duration // when it was scheduled, sent, and answered or given up
	late          time.Duration // how late the client started it
	replica       int           // index of the replica asked; -1 if there is only one
	answer        *Stream       // nil if the answer was not streamed
	err           error
	cancelled     bool // chosen to be abandoned by the client
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
		if !q.cancelled {
			r.spread(at, now)
		}
		r.stalled(now)
		r.waiting, r.since = r.flying > 0, now
	}
	if r.each != nil {
		r.each(q.outcome())
	}
	i := int(at / r.width)
	if i >= len(r.windows) {
		return
	}
	w := &r.windows[i]
	put(w.Lag, q.late)
	if q.cancelled {
		w.Cancelled++
		return
	}
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
	none := (*unconnected)(nil)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &none) && errors.Is(err, syscall.ECONNRESET) {
		r.refused++
	}
}

// spread adds an answer of the closed loop to every window that it overlaps.
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

// count adds a request with the given latency.
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

// put records a time, limited to the histogram's range.
func put(h *hdrhistogram.PackedHistogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 0), longest)) // within the range by construction
}

// list returns the windows.
func (r *record) list() []Window {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled(r.counted) // a stall that no answer has ended
	for i := range r.windows {
		r.windows[i].InFlight = r.area[i] / r.windows[i].Length.Seconds()
	}
	return slices.Clone(r.windows)
}

// A Result holds the measurements of one run.
type Result struct {
	Windows  []Window
	Lead     int  // windows at the start that are not measured
	Shared   bool // Options.SharedPrompts
	InFlight int  // requests in flight of the closed loop; 0 for the open loop
	Asked    int  // requests in the open loop's schedule
	// MaxInFlight is Options.MaxInFlight.
	MaxInFlight int
	Held        int // requests that found MaxInFlight others unanswered
	// Behind is the time that the last request of the open loop waited for a connection.
	Behind     time.Duration
	ClientCPU  float64 // CPUs that this process kept busy during the run
	CPUs       int     // CPUs that the process may use; 0 if the service runs in it
	Refused    int     // requests of the open loop whose connection was refused or reset
	Reconnects int     // requests that needed a new connection, since the server had closed theirs
	// FirstError is the error of the first request without a right answer in time; nil if there was none.
	FirstError error
}

// lead returns the length of the part that is not measured.
func (r *Result) lead() (d time.Duration) {
	for _, w := range r.Windows[:min(r.Lead, len(r.Windows))] {
		d += w.Length
	}
	return d
}
