// Package loadtest sends requests to a service and measures how long the answers take. A Service runs the loads
// that a point lists and searches for the largest rate within a limit.
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
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
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
	// Anew reports whether the last request needed a new connection because the server had closed the old one.
	Anew() bool
}

// Options configure a run of requests. Set either InFlight (closed loop) or Schedule (open loop).
type Options struct {
	Dial func() (Sender, error)

	InFlight int           // requests in flight of the closed loop
	Duration time.Duration // of the closed loop

	// Schedule lists the send times of the open loop from its start, ascending. See Poisson.
	Schedule []time.Duration
	// MaxInFlight bounds the connections of the open loop. A request that finds none free waits for one, and
	// the wait counts as latency. 0 means 1024.
	MaxInFlight int

	// InProcess is set if the service runs in this process, whose CPU time is then not only the client's.
	InProcess bool

	// Sleep waits until the next request of the open loop is due. nil uses the kernel's clock, accurate to some
	// microseconds. Tests in virtual time set it.
	Sleep func(time.Duration)

	// Within holds the limits that an answer must keep to count in Window.Within. Times that are not in the map
	// have no limit.
	Within map[Time]time.Duration

	Timeout time.Duration // after which an answer is late
	Window  time.Duration // length of the recorded windows; 0 means 1 s
}

// Poisson draws the times of independent calls that arrive at rate per second on average, within d. Their
// number is random, too: tools that stretch the times so that the last one falls on d underestimate how long
// queues get.
func Poisson(rate float64, d time.Duration, seed uint64) []time.Duration {
	r := rand.New(rand.NewPCG(seed, 0x5ca1eb))
	var list []time.Duration
	for t := 0.0; ; {
		t += r.ExpFloat64() / rate
		at := time.Duration(t * float64(time.Second))
		if at >= d {
			return list
		}
		list = append(list, at)
	}
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
	span := o.Duration
	if o.Schedule != nil {
		if len(o.Schedule) == 0 {
			return nil, errors.New("no request falls within the duration; set a longer duration or a higher rate")
		}
		span = (o.Schedule[len(o.Schedule)-1]/o.Window + 1) * o.Window
	}
	var err error
	if r.record, err = newRecord(span, o.Window, o.Within); err != nil {
		return nil, err
	}
	r.record.closed = o.Schedule == nil
	if o.Schedule == nil {
		err = r.closed(ctx)
	} else {
		err = r.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	result := &Result{Windows: r.record.list(), InFlight: o.InFlight, Asked: len(o.Schedule), Held: r.held, Behind: r.behind, Refused: r.record.refused, Anew: int(r.anew.Load()), MaxInFlight: o.MaxInFlight, FirstError: r.record.first,
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
}

// start starts the clock. Connecting before it does not count.
func (r *run) start() { r.begin, r.cpu = time.Now(), processCPU() }

// one sends a request that was due at the time at and that the client started late by the given amount.
func (r *run) one(s Sender, at, late time.Duration) error {
	sent := time.Since(r.begin)
	r.record.sent(sent)
	err := s.Send(r.begin.Add(max(at, sent) + r.Timeout))
	now := time.Since(r.begin)
	var answer *Stream
	if s, ok := s.(Streamer); ok && err == nil {
		if a, ok := s.Streamed(); ok {
			answer = &a
		}
	}
	if s, ok := s.(Reconnecter); ok && s.Anew() {
		r.anew.Add(1)
	}
	replica := -1
	if s, ok := s.(Chooser); ok {
		replica = s.Asked()
	}
	r.record.done(request{at, sent, now, late, replica, answer, err})
	return err
}

// again returns the connection for the next request. After an error it is a new one: a late answer on the old
// one would be taken for the next request's.
func (r *run) again(s Sender, err error) (Sender, error) {
	if err == nil {
		return s, nil
	}
	_ = s.Close() // unusable: the error is not of interest
	return r.Dial()
}

func (r *run) closed(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	senders := make([]Sender, r.InFlight)
	for i := range senders {
		var err error
		if senders[i], err = r.Dial(); err != nil {
			for _, s := range senders[:i] {
				_ = s.Close()
			}
			return fmt.Errorf("connection %d of %d: %w", i+1, r.InFlight, err)
		}
	}
	r.start()
	for _, s := range senders {
		all.Go(func() {
			defer func() {
				if s != nil {
					_ = s.Close()
				}
			}()
			for ctx.Err() == nil {
				at := time.Since(r.begin)
				if at >= r.Duration {
					return
				}
				var err error
				if s, err = r.again(s, r.one(s, at, 0)); err != nil {
					s = nil
					stop(fmt.Errorf("no new connections after an error: %w", err))
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// open gives each request the most recently used free connection, so that only as many connections stay busy as
// the service's latency requires.
func (r *run) open(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		mu   sync.Mutex
		free []Sender
		all  sync.WaitGroup
	)
	slots := make(chan struct{}, r.MaxInFlight)
	take := func() (Sender, error) {
		mu.Lock()
		defer mu.Unlock()
		if n := len(free); n > 0 {
			s := free[n-1]
			free = free[:n-1]
			return s, nil
		}
		return nil, nil
	}
	first, err := r.Dial()
	if err != nil {
		return err
	}
	free = append(free, first)
	if r.Sleep == nil {
		sleepInKernel()
	}
	r.start()
	blocked := time.Duration(0) // when a connection last became free: waiting for one is the service's delay, not the client's
	for _, at := range r.Schedule {
		r.until(ctx, at)
		select {
		case slots <- struct{}{}:
		default:
			r.held++
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
			}
			blocked = time.Since(r.begin)
		}
		if ctx.Err() != nil {
			break
		}
		due := max(at, blocked)
		r.behind = due - at
		all.Go(func() {
			defer func() { <-slots }()
			late := time.Since(r.begin) - due
			s, err := take()
			if s == nil {
				s, err = r.Dial()
			}
			if err != nil { // a refused connection is the service's error, not the tool's
				now := time.Since(r.begin)
				r.record.sent(now)
				r.record.done(request{at, now, now, late, -1, nil, &unconnected{err}})
				return
			}
			if err := r.one(s, at, late); err != nil {
				_ = s.Close() // a late answer would be taken for the next request's
				return
			}
			mu.Lock()
			defer mu.Unlock()
			free = append(free, s)
		})
	}
	all.Wait()
	for _, s := range free {
		_ = s.Close()
	}
	return context.Cause(ctx)
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
