// Package loadtest sends requests to a service and measures how long the answers take;
// trial.go does so for the loads that a point lists, and searches for the largest rate.
//
// There are two loops, for two questions. The closed one keeps a number of requests
// in flight, as that many patient clients would, and finds how many answers a second
// the service gives. The open one sends at times that were drawn beforehand, whatever
// the service does, and finds how long callers wait at that rate: a latency counts
// from the time at which the request was to be sent, so that a service which stalls
// makes those wait who would have called meanwhile. A closed loop leaves them out
// (coordinated omission), and its latencies are not those of users.
//
// Every answer is checked by the Sender. Wrong ones and late ones are counted beside
// the latencies: an error that comes back at once makes a service look fast.
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

// Sender is one connection to a service. It is used by one goroutine at a time.
type Sender interface {
	// Send sends one request and checks the answer. The error wraps
	// os.ErrDeadlineExceeded where the answer did not come until the deadline.
	Send(deadline time.Time) error
	Close() error
}

// Chooser is a Sender that asks one of several replicas.
type Chooser interface {
	Sender
	// Asked is which one it asked last, 0-based; -1 where there is only one.
	Asked() int
}

// Reconnecter is a Sender whose connections a server may close between two requests.
type Reconnecter interface {
	Sender
	// Anew reports whether the last request needed a new connection for that reason.
	Anew() bool
}

// Options say what to send. Either InFlight or Schedule is set.
type Options struct {
	Dial func() (Sender, error)

	InFlight int           // closed loop: requests in flight
	Duration time.Duration // that it lasts

	// Schedule is when the open loop sends, from its start, ascending; Poisson draws one.
	Schedule []time.Duration
	// MaxInFlight bounds the connections of the open loop; a request that finds
	// none free waits for one, on the clock of its latency. 0 is 1024.
	MaxInFlight int

	// InProcess: what is measured computes in this process, whose CPU time is not the
	// client's alone.
	InProcess bool

	// Sleep waits for the time of a request of the open loop; nil: by the kernel's
	// clock, to some microseconds. Tests in virtual time bring their own.
	Sleep func(time.Duration)

	// Within is what the times of an answer may be at most for it to count in
	// Window.Within; what is missing is not bounded.
	Within map[Time]time.Duration

	Timeout time.Duration // after which an answer is late
	Window  time.Duration // the length of the stretches that are recorded; 0 is 1 s
}

// Poisson draws the times of calls that come independently of each other, rate of
// them a second on average, within d. Their number is random as well: tools that
// stretch the times so that the last is at d hide part of what happens to a queue.
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

// Run sends until the schedule, or the duration, has passed and all answers are in
// or late. Its error is of what kept it from sending at all; what the service did
// wrong is in the result.
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
			return nil, errors.New("no request falls into the time to measure; measure for longer, or at a higher rate")
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
	cpu    time.Duration // of this process, at the beginning
	record *record
	held   int           // Result.Held
	behind time.Duration // Result.Behind
	anew   atomic.Int64
}

// start begins the clock; what went before was connecting.
func (r *run) start() { r.begin, r.cpu = time.Now(), processCPU() }

// one sends a request that was to be sent at the time at, and that this client took up
// late by so much.
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

// again is the connection for the next request: a new one after an error, since an
// answer that came late would be taken for the next one's.
func (r *run) again(s Sender, err error) (Sender, error) {
	if err == nil {
		return s, nil
	}
	_ = s.Close() // of no more use
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

// open hands each request to the connection that was used last of those that are
// free: as few as the service's latency asks for are kept busy.
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
	blocked := time.Duration(0) // until when no connection was free: the service's delay, not the client's
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
			if err != nil { // a caller who finds nobody has an error, not the tool
				now := time.Since(r.begin)
				r.record.sent(now)
				r.record.done(request{at, now, now, late, -1, nil, &unconnected{err}})
				return
			}
			if err := r.one(s, at, late); err != nil {
				_ = s.Close() // an answer that came late would be taken for the next one's
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

// unconnected is the error of a request that found no connection.
type unconnected struct{ error }

func (e *unconnected) Unwrap() error { return e.error }

// late reports whether an answer did not come in time.
func late(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// processCPU is the CPU time of this process.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
