package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// This file measures collectives by the method of nccl-tests: for each message size it runs some
// warm-up operations, then the timed ones, out of place and in place. After the timing, one more
// operation runs on inputs whose result is known exactly. A single wrong element fails the
// benchmark, because the speed of a wrong sum means nothing.
//
// An iteration lasts as long as its slowest rank. Where nccl-tests prints a mean, this benchmark
// reports the median and the 99th percentile over iterations, which tell a slow link from one that
// stalls.
//
// Times are in seconds, bandwidths in bytes/s.

// A BenchTransport is one rank's way to move data: its buffers and the collectives on them. All
// ranks make the same calls in the same order.
type BenchTransport interface {
	// Name returns the name that users type: "tcp", "nccl".
	Name() string
	// Allocate makes both buffers, each with the given number of float32 elements. It is called
	// once, before anything else.
	Allocate(elements int) error
	// Write copies values into a buffer, starting at offset.
	Write(b Buffer, offset int, values []float32) error
	// Read fills values from a buffer, starting at offset.
	Read(b Buffer, offset int, values []float32) error
	// Do performs one collective. It returns only when this rank's result is complete in
	// c.Receive, because the benchmark times this call.
	Do(ctx context.Context, c Call) error
}

// A Buffer selects one of a rank's two buffers.
type Buffer int

// The buffers. An in-place collective uses Output for both sides.
const (
	Input Buffer = iota
	Output
)

// A Region is a position in a buffer; Offset is in elements.
type Region struct {
	Buffer Buffer
	Offset int
}

// A Call is one collective on float32. Its fields have the meaning of NCCL's arguments.
type Call struct {
	Op Op
	// Count is the number of elements: of the whole array for AllReduce and Broadcast, of one
	// rank's part for ReduceScatter and AllGather, whose whole array is Count times the number of
	// ranks.
	Count         int
	Send, Receive Region // equal for in-place calls, except that one may be a part of the other
}

// An Op is a collective.
type Op string

// The collectives, named as in nccl-tests. Broadcast sends rank 0's values.
const (
	AllReduce     Op = "all_reduce"
	ReduceScatter Op = "reduce_scatter"
	AllGather     Op = "all_gather"
	Broadcast     Op = "broadcast"
)

// Ops lists all collectives.
var Ops = []Op{AllReduce, ReduceScatter, AllGather, Broadcast}

// parts reports whether one side of the collective is divided among the ranks.
func (op Op) parts() bool { return op == ReduceScatter || op == AllGather }

// BenchOptions say what to measure.
type BenchOptions struct {
	Ops      []Op
	MinBytes int64 // smallest size of the whole array
	MaxBytes int64 // largest; sizes double from MinBytes up to it
	Warmup   int   // operations before those that are timed, for each size
	// Iterations is the number of timed operations for each size.
	Iterations int
	// Report is called with each result as soon as it is known, with the same values on every rank.
	// An error ends the benchmark.
	Report func(BenchRow) error
}

// A BenchRow is the result of one operation at one size, in place or out of place. Each iteration
// counts with the time of its slowest rank.
type BenchRow struct {
	Op         Op
	Bytes      int64 // of the whole array
	InPlace    bool
	Iterations int
	// in seconds
	Min, Median, Mean, P99 float64
	CV                     float64 // standard deviation over mean
	AlgBW, BusBW           float64 // bytes/s, from the median
}

const elementBytes = 4

// Bench runs the benchmark. The ranks coordinate through the group; a transport may also use it to
// move its data. If a result is wrong on any rank, all ranks return an error.
func Bench(ctx context.Context, b BenchTransport, g *Group, o BenchOptions) error {
	if err := o.check(g.Size()); err != nil {
		return err
	}
	if err := b.Allocate(int(o.MaxBytes / elementBytes)); err != nil {
		return fmt.Errorf("buffers of %d bytes: %w", o.MaxBytes, err)
	}
	r := &runner{ctx: ctx, backend: b, group: g, options: o, size: g.Size(), rank: g.Rank()}
	for _, op := range o.Ops {
		for bytes := o.MinBytes; bytes <= o.MaxBytes; bytes *= 2 {
			if err := r.bench(op, bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// check reports what is wrong with the options for so many ranks.
func (o BenchOptions) check(ranks int) error {
	switch {
	case ranks < 2:
		return errors.New("a collective needs 2 ranks or more, and there is only one")
	case ranks > maxRanks:
		return fmt.Errorf("%d ranks: sums over more than %d would not be exact, and could not be checked", ranks, maxRanks)
	case o.MinBytes < elementBytes || o.MaxBytes < o.MinBytes:
		return fmt.Errorf("sizes from %d to %d bytes; want ascending sizes of %d or more", o.MinBytes, o.MaxBytes, elementBytes)
	case o.Iterations < 1 || o.Warmup < 0:
		return fmt.Errorf("%d iterations and %d for warm-up; want 1 or more, and 0 or more", o.Iterations, o.Warmup)
	}
	for _, op := range o.Ops {
		if !slices.Contains(Ops, op) {
			return fmt.Errorf("unknown collective %q; valid: %v", op, Ops)
		}
	}
	return nil
}

// bench measures one operation at one size, out of place and in place.
func (r *runner) bench(op Op, bytes int64) error {
	for _, inPlace := range []bool{false, true} {
		c, ok := r.call(op, bytes, inPlace)
		if !ok { // too small to give every rank an element
			continue
		}
		result, err := r.measure(c)
		if err != nil {
			return err
		}
		if err := r.options.Report(result); err != nil {
			return err
		}
	}
	return nil
}

// A runner runs the benchmark on one rank.
type runner struct {
	ctx        context.Context
	backend    BenchTransport
	group      *Group
	options    BenchOptions
	rank, size int
}

// call places a collective's data in the buffers. ok is false if the size is too small to give
// every rank an element.
func (r *runner) call(op Op, bytes int64, inPlace bool) (c Call, ok bool) {
	c = Call{Op: op, Count: int(bytes / elementBytes), Send: Region{Buffer: Input}, Receive: Region{Buffer: Output}}
	if op.parts() {
		c.Count /= r.size
	}
	if inPlace {
		c.Send.Buffer = Output
		switch part := r.rank * c.Count; op {
		case ReduceScatter:
			c.Receive.Offset = part
		case AllGather:
			c.Send.Offset = part
		}
	}
	return c, c.Count > 0
}

// bytes returns the size of the whole array, a whole number of elements for each rank.
func (r *runner) bytes(c Call) int64 {
	n := int64(c.Count) * elementBytes
	if c.Op.parts() {
		n *= int64(r.size)
	}
	return n
}

// measure times one operation at one size and then checks its result.
func (r *runner) measure(c Call) (BenchRow, error) {
	result := BenchRow{Op: c.Op, Bytes: r.bytes(c), InPlace: c.Send.Buffer == c.Receive.Buffer, Iterations: r.options.Iterations}
	if err := r.fill(c); err != nil {
		return result, r.failed(c, err)
	}
	for range r.options.Warmup {
		if err := r.backend.Do(r.ctx, c); err != nil {
			return result, r.failed(c, err)
		}
	}
	seconds := make([]float64, r.options.Iterations)
	for i := range seconds {
		// Rank 0 does not wait for the others in a broadcast. Without a barrier it would run ahead,
		// and its times would only show how fast it fills buffers.
		if i == 0 || c.Op == Broadcast {
			if err := r.group.Barrier(r.ctx); err != nil {
				return result, err
			}
		}
		begin := time.Now()
		if err := r.backend.Do(r.ctx, c); err != nil {
			return result, r.failed(c, err)
		}
		seconds[i] = time.Since(begin).Seconds()
	}
	if err := r.slowest(seconds); err != nil {
		return result, err
	}
	result.distribution(seconds)
	result.AlgBW = float64(result.Bytes) / result.Median
	result.BusBW = result.AlgBW * busFactor(c.Op, r.size)
	return result, r.check(c)
}

func (r *runner) failed(c Call, err error) error {
	return fmt.Errorf("%s of %d bytes through %s: %w", c.Op, r.bytes(c), r.backend.Name(), err)
}

// slowest replaces each time by the longest over the ranks. A Group has no maximum, so each rank
// fills its own row of an array that is summed.
func (r *runner) slowest(seconds []float64) error {
	n := len(seconds)
	all := make([]float64, n*r.size)
	copy(all[r.rank*n:], seconds)
	if err := r.group.AllReduceFloat64(r.ctx, all); err != nil {
		return err
	}
	for rank := range r.size {
		for i, s := range all[rank*n : (rank+1)*n] {
			seconds[i] = max(seconds[i], s)
		}
	}
	return nil
}

// distribution computes the statistics over iterations. A time of zero counts as the clock's
// resolution, 1 ns.
func (t *BenchRow) distribution(seconds []float64) {
	for i := range seconds {
		seconds[i] = max(seconds[i], 1e-9)
	}
	slices.Sort(seconds)
	n := len(seconds)
	var sum, squares float64
	for _, s := range seconds {
		sum += s
	}
	t.Mean = sum / float64(n)
	for _, s := range seconds {
		squares += (s - t.Mean) * (s - t.Mean)
	}
	if n > 1 {
		t.CV = math.Sqrt(squares/float64(n-1)) / t.Mean
	}
	t.Min = seconds[0]
	t.Median = (seconds[(n-1)/2] + seconds[n/2]) / 2
	t.P99 = seconds[int(math.Ceil(0.99*float64(n)))-1]
}

// busFactor returns the ratio of bus bandwidth to algorithmic bandwidth. Bus bandwidth can be
// compared with a link's speed at any number of ranks (nccl-tests, doc/PERFORMANCE.md).
func busFactor(op Op, ranks int) float64 {
	n := float64(ranks)
	switch op {
	case AllReduce:
		return 2 * (n - 1) / n
	case ReduceScatter, AllGather:
		return (n - 1) / n
	}
	return 1
}
