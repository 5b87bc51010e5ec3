package nccl

// #include "table.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"
)

// DefaultTimeout is the time after which operations count as hanging.
const DefaultTimeout = 60 * time.Second

// Options configure one rank of a communicator.
type Options struct {
	Rank, Size int // rank, from 0, and number of ranks
	ID         UniqueID

	// Stream is the device's stream in which operations run (a cudaStream_t or CUstream). Done
	// reports whether all work in it has ended; it must not wait.
	Stream uintptr
	Done   func() (bool, error)

	// Timeout limits joining, and how long operations in the stream may take after the last one was added. It
	// must exceed the time difference between the fastest and the slowest rank. 0 means DefaultTimeout.
	Timeout time.Duration

	// Abort is called once if this rank gives up, to tell the other ranks why. Aborted receives the
	// reason of another rank that gives up. Without these two, each rank only notices by its own
	// Timeout.
	Abort   func(reason error)
	Aborted <-chan error

	// For the following values, zero means that NCCL chooses.
	NetName          string // network plugin
	MinCTAs, MaxCTAs int    // number of thread blocks that NCCL uses on the device
}

// A Comm is one rank's communicator. Only the goroutine for which the device is current may use it.
// All ranks must enqueue the same operations in the same order.
type Comm struct {
	library *Library
	o       Options
	comm    C.ncclComm_t

	sequence  int64       // number of operations enqueued
	completed int64       // number of operations known to have ended
	pending   []operation // operations that were enqueued and have not ended
	since     time.Time   // when the last operation was enqueued, or joining began
	failure   *Failure    // the first failure; later calls return it
	closed    bool

	// Memory for C calls, kept here so that calls do not allocate.
	array  []C.struct_nccl_operation
	failed C.int // index in array
	answer C.ncclResult_t
}

// An operation holds what a Failure reports about an Operation.
type operation struct {
	kind  Kind
	bytes int64
}

// A Failure is the error of a rank that gave up: the reason, and its operation at that time.
type Failure struct {
	Rank, Size int
	Sequence   int64         // number, from 1, of the first operation not known to have ended; 0: none was in progress
	Operation  string        // its kind, or "joining", "leaving", "idle"
	Bytes      int64         // size of the larger of its buffers on this rank
	Enqueued   int64         // the last operation enqueued
	Completed  int64         // the last operation known to have ended; 0: none
	Waited     time.Duration // time since the last operation was enqueued, or joining began
	Err        error
}

func (f *Failure) Error() string {
	what := f.Operation
	if f.Sequence > 0 {
		what = fmt.Sprintf("%s %d (%d bytes)", f.Operation, f.Sequence, f.Bytes)
	}
	return fmt.Sprintf("NCCL, rank %d of %d, %s, last completed %d of %d: %v", f.Rank, f.Size, what, f.Completed, f.Enqueued, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// ErrTimeout is the reason in the Failure of a rank that waited longer than Options.Timeout.
// Another rank hangs, is slower than that, or has died without notice.
var ErrTimeout = errors.New("timed out")

// Join makes this process one of o.Size ranks of a communicator, and returns its Comm when all
// ranks have joined.
func (l *Library) Join(ctx context.Context, o Options) (*Comm, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	switch {
	case o.Size < 1 || o.Size > math.MaxInt32:
		return nil, fmt.Errorf("NCCL: %d ranks; want 1 or more", o.Size)
	case o.Rank < 0 || o.Rank >= o.Size:
		return nil, fmt.Errorf("NCCL: rank %d is outside a world of %d", o.Rank, o.Size)
	case o.Done == nil:
		return nil, errors.New("NCCL: Options.Done is not set: nothing would say when operations have ended")
	case l.table.CommInitRankConfig == nil:
		return nil, fmt.Errorf("%v at %s: non-blocking communicators need %v or later; without them nothing can interrupt a rank that hangs", l, l.Path(), nonBlocking)
	}
	c := &Comm{library: l, o: o, since: time.Now()}
	settings := C.struct_nccl_settings{min_ctas: C.int(o.MinCTAs), max_ctas: C.int(o.MaxCTAs)}
	if o.NetName != "" {
		settings.net_name = C.CString(o.NetName) // not freed: NCCL does not document how long it uses it
	}
	r := C.nccl_init(l.table, &c.comm, C.int(o.Size), unsafe.Pointer(&o.ID), C.int(o.Rank), &settings)
	if err := l.check("ncclCommInitRankConfig", r, nil); err != nil {
		return nil, c.fail("joining", err, true)
	}
	if err := c.settle(ctx, "joining"); err != nil {
		return nil, err
	}
	var rank, size C.int
	if err := errors.Join(l.check("ncclCommUserRank", C.nccl_rank(l.table, c.comm, &rank), c.comm),
		l.check("ncclCommCount", C.nccl_count(l.table, c.comm, &size), c.comm)); err != nil {
		return nil, c.fail("joining", err, true)
	}
	if int(rank) != o.Rank || int(size) != o.Size {
		return nil, c.fail("joining", fmt.Errorf("the communicator has rank %d of %d; asked for %d of %d", rank, size, o.Rank, o.Size), true)
	}
	return c, nil
}

// Rank and Size are this communicator's.
func (c *Comm) Rank() int { return c.o.Rank }
func (c *Comm) Size() int { return c.o.Size }

// An Operation is one collective over buffers in device memory. In place, the smaller buffer is this rank's
// share of the larger one.
type Operation struct {
	Kind Kind
	Type DataType

	// Count is in elements: of either buffer in an all-reduce and a broadcast,
	// of the receive buffer in a reduce-scatter (the other holds Size times as
	// many), of the send buffer in an all-gather.
	Count      int64
	Send, Recv uintptr

	Reduction Reduction // for all-reduce and reduce-scatter
	Root      int       // for broadcast; other ranks' Send is not read
}

// Bytes returns the size of the larger of the two buffers, among size ranks.
func (o Operation) Bytes(size int) int64 {
	n := o.Count * o.Type.Size()
	if o.Kind == ReduceScatter || o.Kind == AllGather {
		n *= int64(size)
	}
	return n
}

func (o Operation) check(size int) error {
	switch {
	case o.Kind < 0 || int(o.Kind) >= len(kinds):
		return fmt.Errorf("NCCL has no %v", o.Kind)
	case !o.Type.valid():
		return fmt.Errorf("%v: NCCL has no %v", o.Kind, o.Type)
	case o.Count < 0 || o.Count > math.MaxInt64/8/int64(size):
		return fmt.Errorf("%v of %d elements", o.Kind, o.Count)
	case (o.Kind == AllReduce || o.Kind == ReduceScatter) && !o.Reduction.valid():
		return fmt.Errorf("%v: NCCL has no %v", o.Kind, o.Reduction)
	case o.Kind == Broadcast && (o.Root < 0 || o.Root >= size):
		return fmt.Errorf("%v from rank %d of %d", o.Kind, o.Root, size)
	}
	return nil
}

// Enqueue adds operations to the stream and returns; Wait waits until they have ended. Several
// operations are added as one group. An invalid operation makes the communicator fail, since the
// other ranks would wait for it.
func (c *Comm) Enqueue(ctx context.Context, operations ...Operation) error {
	if err := c.usable(); err != nil {
		return err
	}
	if err := c.overdue(ctx, "idle"); err != nil {
		return err
	}
	if len(operations) == 0 {
		return nil
	}
	c.array = c.array[:0]
	for _, o := range operations {
		if err := o.check(c.o.Size); err != nil {
			return c.fail("idle", err, true)
		}
		c.array = append(c.array, C.struct_nccl_operation{kind: C.int(o.Kind), _type: C.int(o.Type), reduction: C.int(o.Reduction),
			root: C.int(o.Root), send: C.uintptr_t(o.Send), recv: C.uintptr_t(o.Recv), count: C.size_t(o.Count)})
		c.pending = append(c.pending, operation{o.Kind, o.Bytes(c.o.Size)})
	}
	c.sequence += int64(len(operations))
	c.since = time.Now()
	r := C.nccl_enqueue(c.library.table, c.comm, C.uintptr_t(c.o.Stream), &c.array[0], C.int(len(operations)), &c.failed)
	switch Result(r) {
	case Success:
		return nil
	case InProgress:
		return c.settle(ctx, "idle")
	}
	return c.fail("idle", c.library.check("enqueuing "+operations[c.failed].Kind.String(), r, c.comm), true)
}

// Wait returns when everything in the stream has ended, or the communicator has failed; then its
// error is a *Failure, here and on all ranks that the abort reaches. If ctx is cancelled, the
// communicator fails as well.
func (c *Comm) Wait(ctx context.Context) error {
	return c.until(ctx, "idle", c.Poll)
}

// Poll reports whether everything in the stream has ended, without waiting.
func (c *Comm) Poll() (done bool, err error) {
	if err := c.usable(); err != nil {
		return false, err
	}
	// NCCL must be queried first, because a failed operation also ends, and NCCL reports the
	// failure before that.
	if done, err = c.o.Done(); err != nil {
		return false, c.fail("idle", err, true)
	}
	state, err := c.state()
	if err != nil {
		return false, c.fail("idle", err, true)
	}
	if done && state != InProgress {
		c.completed, c.pending = c.sequence, c.pending[:0]
		return true, nil
	}
	return false, c.overdue(context.Background(), "idle")
}

// state returns the communicator's state according to NCCL.
func (c *Comm) state() (Result, error) {
	if err := c.library.check("ncclCommGetAsyncError", C.nccl_state(c.library.table, c.comm, &c.answer), c.comm); err != nil {
		return 0, err
	}
	return Result(c.answer), c.library.check("NCCL reports", c.answer, c.comm)
}

// settle waits until a non-blocking call has taken effect.
func (c *Comm) settle(ctx context.Context, phase string) error {
	return c.until(ctx, phase, func() (bool, error) {
		state, err := c.state()
		if err != nil {
			return false, c.fail(phase, err, true)
		}
		return state != InProgress, nil
	})
}

func (c *Comm) until(ctx context.Context, phase string, ready func() (bool, error)) error {
	begin := time.Now()
	for {
		done, err := ready()
		if done || err != nil {
			return err
		}
		if err := c.overdue(ctx, phase); err != nil {
			return err
		}
		Pause(time.Since(begin))
	}
}

// overdue makes the communicator fail if there is a reason to stop waiting.
func (c *Comm) overdue(ctx context.Context, phase string) error {
	select {
	case reason := <-c.o.Aborted:
		if reason == nil { // the channel was closed
			reason = errors.New("no reason given")
		}
		return c.fail(phase, fmt.Errorf("another rank gave up: %w", reason), false)
	case <-ctx.Done():
		return c.fail(phase, fmt.Errorf("told to stop: %w", context.Cause(ctx)), true)
	default:
	}
	if waiting := len(c.pending) > 0 || phase != "idle"; waiting && time.Since(c.since) > c.o.Timeout {
		return c.fail(phase, fmt.Errorf("%w after %v: a rank hangs, has died, or is slower than the others by more than that", ErrTimeout, c.o.Timeout), true)
	}
	return nil
}

// Abort gives up because this rank cannot continue, and tells the others why.
func (c *Comm) Abort(reason error) {
	if c.failure == nil && !c.closed {
		_ = c.fail("idle", fmt.Errorf("gave up: %w", reason), true)
	}
}

// fail records what was running, tells the other ranks, and aborts, in this order: an abort that
// hangs must not keep the others waiting.
func (c *Comm) fail(phase string, reason error, tell bool) error {
	f := &Failure{Rank: c.o.Rank, Size: c.o.Size, Operation: phase, Enqueued: c.sequence, Completed: c.completed, Waited: time.Since(c.since), Err: reason}
	if len(c.pending) > 0 {
		f.Sequence, f.Operation, f.Bytes = c.completed+1, c.pending[0].kind.String(), c.pending[0].bytes
	}
	c.failure = f
	if tell && c.o.Abort != nil {
		c.o.Abort(f)
	}
	if c.comm != nil {
		if err := c.library.check("ncclCommAbort", C.nccl_abort(c.library.table, c.comm), nil); err != nil {
			f.Err = fmt.Errorf("%w; then %v", f.Err, err)
		}
		c.comm = nil
	}
	return f
}

func (c *Comm) usable() error {
	switch {
	case c.failure != nil:
		return c.failure
	case c.closed:
		return errors.New("NCCL: the communicator is closed")
	}
	return nil
}

// Close waits until all work in the stream has ended, and leaves the communicator together with the
// other ranks. After a failure it does nothing.
func (c *Comm) Close(ctx context.Context) error {
	if c.closed || c.failure != nil {
		return nil
	}
	if err := c.Wait(ctx); err != nil {
		return err
	}
	c.since = time.Now()
	if c.library.table.CommFinalize != nil {
		if err := c.library.check("ncclCommFinalize", C.nccl_finalize(c.library.table, c.comm), c.comm); err != nil {
			return c.fail("leaving", err, true)
		}
		if err := c.settle(ctx, "leaving"); err != nil {
			return err
		}
	}
	c.closed = true
	return c.library.check("ncclCommDestroy", C.nccl_destroy(c.library.table, c.comm), nil)
}
