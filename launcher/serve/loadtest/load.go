// Package loadtest sends requests to a service and measures how long the answers take. Service.Measure puts
// the service under each load that a point lists, then searches for the largest rate at which the latency stays
// within a limit.
//
// There are two loops. The closed loop keeps a fixed number of requests in flight and measures how many answers
// per second the service gives. The open loop sends at times drawn beforehand, no matter how the service
// responds, and measures how long callers wait at that rate. Latency counts from the scheduled send time, so a
// stall also counts for the requests that were due meanwhile. A closed loop does not send those (coordinated
// omission), so its latencies are not what users see.
//
// The Sender checks every answer. Wrong and late answers are counted separately from latencies: errors that
// return at once would make a service look fast.
package loadtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// A Sender is one connection to a service. Only one goroutine uses it at a time.
type Sender interface {
	// Send sends one request and checks the answer. The error wraps os.ErrDeadlineExceeded if no answer came by
	// the deadline.
	Send(deadline time.Time) error
	Close() error
}

// A Chooser is a Sender that spreads its requests over several replicas.
type Chooser interface {
	Sender
	// Asked returns the 0-based index of the replica asked last, or -1 if there is only one.
	Asked() int
}

// A Reconnecter is a Sender whose server may close the connection between two requests.
type Reconnecter interface {
	Sender
	// Reconnected reports whether the last request needed a new connection because the server had closed the old one.
	Reconnected() bool
}

// A Converser is a Sender whose requests belong to sessions of several turns.
type Converser interface {
	Sender
	// More reports whether the session of the last request has another turn, and how long the caller thinks
	// before it. The next Send is then that turn.
	More() (think time.Duration, ok bool)
}

// Options configure a run of requests. Set either InFlight (closed loop) or Schedule (open loop).
type Options struct {
	Dial func() (Sender, error)

	InFlight int           // callers of the closed loop, each with one request in flight at most
	Duration time.Duration // of the closed loop, Lead included
	Ramp     time.Duration // first part of Lead, over which the closed loop's callers start
	Requests int           // after Lead, after which the closed loop ends before Duration; 0 means unlimited

	// Schedule lists the send times of the open loop from its start, ascending. See Arrivals. Of a session of
	// several turns it has the first.
	Schedule []time.Duration
	// Lead is the first part of the run, which is not measured: a multiple of Window.
	Lead time.Duration
	// MaxInFlight bounds the connections of the open loop. A request that finds none free waits for one, and
	// the wait counts as latency. 0 means 1024.
	MaxInFlight int

	// InProcess is set if the service runs in this process, whose CPU time is then not only the client's.
	InProcess bool

	// Sleep waits until the next request of the open loop is due. nil uses the kernel's clock, accurate to some
	// microseconds. Tests in virtual time set it.
	Sleep func(time.Duration)

	// Cancel is the share of requests that the client abandons CancelAfter after sending them. They are drawn
	// from Seed, before it is known how long they take, and count only as cancelled.
	Cancel      float64
	CancelAfter time.Duration
	Seed        uint64

	// Each is called with every finished request, by one goroutine at a time; nil does nothing.
	Each func(Outcome)
	// SharedPrompts is set if requests are meant to have text in common, which the service may cache.
	SharedPrompts bool

	// Within holds the limits that an answer must keep to count in Window.Within. Times that are not in the map
	// have no limit.
	Within map[Time]time.Duration

	Timeout time.Duration // answers that take longer are late
	Window  time.Duration // length of the recorded windows; 0 means 1 s
}

// Run sends requests until the schedule or duration is over and every answer has arrived or is late. It returns
// an error if it could not send; wrong and late answers are in the result.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 1024
	}
	if o.Window == 0 {
		o.Window = time.Second
	}
	r := &run{Options: o}
	span, width := o.Duration, o.Window
	if o.Requests > 0 && o.Schedule == nil {
		width /= finer // the windows are cut when the number of requests is reached
	}
	if o.Schedule != nil {
		if len(o.Schedule) == 0 {
			return nil, errors.New("no request falls within the duration; set a longer duration or a higher rate")
		}
		span = (o.Schedule[len(o.Schedule)-1]/o.Window + 1) * o.Window
	}
	var err error
	if r.record, err = newRecord(span, width, o.Within); err != nil {
		return nil, err
	}
	r.record.closed, r.record.each = o.Schedule == nil, o.Each
	if o.Schedule == nil {
		err = r.closed(ctx)
	} else {
		err = r.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	windows, lead := r.record.list(), int(o.Lead/width)
	if width < o.Window {
		windows = regroup(windows, lead, finer, r.ended(width))
		lead /= finer
	}
	result := &Result{Windows: windows, Lead: lead, Shared: o.SharedPrompts, InFlight: o.InFlight, Asked: len(o.Schedule), Held: r.held, Behind: r.behind, Refused: r.record.refused, Reconnects: int(r.anew.Load()), MaxInFlight: o.MaxInFlight, FirstError: r.record.first,
		ClientCPU: (processCPU() - r.cpu).Seconds() / time.Since(r.begin).Seconds()}
	if !o.InProcess {
		result.CPUs = min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	}
	return result, nil
}

type run struct {
	Options
	begin  time.Time
	cpu    time.Duration // of this process when the run started
	record *record
	held   int           // Result.Held
	behind time.Duration // Result.Behind
	anew   atomic.Int64
	drawn  atomic.Int64 // number of draws of cancels
	sent   atomic.Int64 // requests that began after Lead, for Options.Requests
	enough atomic.Int64 // time when Requests was reached, in nanoseconds
}

// finer is the number of windows that are recorded for each one if the length of a run is not known beforehand.
const finer = 32

// start starts the clock. Connecting before it does not count.
func (r *run) start() { r.begin, r.cpu = time.Now(), processCPU() }

// one sends a request that was due at the time at and that the client started late by the given amount.
func (r *run) one(s Sender, at, late time.Duration) error {
	sent := time.Since(r.begin)
	r.record.sent(sent)
	wait := max(at, sent) + r.Timeout
	cancelled := r.cancels()
	if cancelled {
		wait = min(wait, sent+r.CancelAfter)
	}
	err := s.Send(r.begin.Add(wait))
	now := time.Since(r.begin)
	var answer *Stream
	if s, ok := s.(Streamer); ok && err == nil {
		if a, ok := s.Streamed(); ok {
			answer = &a
		}
	}
	if s, ok := s.(Reconnecter); ok && s.Reconnected() {
		r.anew.Add(1)
	}
	replica := -1
	if s, ok := s.(Chooser); ok {
		replica = s.Asked()
	}
	r.record.done(request{at, sent, now, late, replica, answer, err, cancelled})
	return err
}

// cancels draws whether the client abandons the next request.
func (r *run) cancels() bool {
	if r.Cancel == 0 {
		return false
	}
	n := uint64(r.drawn.Add(1))
	return rand.New(rand.NewPCG(r.Seed, n^0xca9ce1)).Float64() < r.Cancel
}

// again returns the connection for the next request. After an error it is a new one: a late answer on the old
// one would be taken for the next request's.
func (r *run) again(s Sender, err error) (Sender, error) {
	if err == nil {
		return s, nil
	}
	_ = s.Close() // the connection is closed because it is unusable, so the error does not matter
	return r.Dial()
}

// unconnected is the error of a request for which no connection could be opened.
type unconnected struct{ error }

func (e *unconnected) Unwrap() error { return e.error }

// late reports whether an answer did not arrive in time.
func late(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// processCPU returns the CPU time that this process has used.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
