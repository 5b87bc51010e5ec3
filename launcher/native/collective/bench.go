package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// This file measures collectives, by the method of nccl-tests: for each
// message size a few operations to warm up, then so many that are timed, out of
// place and in place, and after the timing one on inputs whose result is known
// exactly. A single wrong element fails the benchmark: the speed of a wrong sum
// is no figure.
//
// An iteration lasts as long as its slowest rank. What is reported is the
// distribution over iterations, where nccl-tests prints a mean: a median and a
// 99th percentile tell a slow link from one that stalls.
//
// Times are in seconds, bandwidths in bytes/s.

// A Transport is one rank's way to move data: its buffers, and the collectives on
// them. Ranks call the same things in the same order.
type BenchTransport interface {
	// Name is how users call it: "tcp", "nccl".
	Name() string
	// Allocate makes both buffers, of so many float32 each. It is called once,
	// before anything else.
	Allocate(elements int) error
	// Write sets elements of a buffer from offset on.
	Write(b Buffer, offset int, values []float32) error
	// Read fills values from a buffer, from offset on.
	Read(b Buffer, offset int, values []float32) error
	// Do performs one collective. It returns when this rank's result stands in
	// c.Receive, and not before: its time is what is measured.
	Do(ctx context.Context, c Call) error
}

// Buffer is one of a rank's two.
type Buffer int

// The buffers. A collective in place has Output for both.
const (
	Input Buffer = iota
	Output
)

// Region is where in a buffer something begins, in elements.
type Region struct {
	Buffer Buffer
	Offset int
}

// Call is one collective on float32, with the meaning of NCCL's arguments.
type Call struct {
	Op Op
	// Count is how many elements are summed or handed out: of the whole array
	// for AllReduce and Broadcast, of a rank's part for ReduceScatter and
	// AllGather, whose whole array is as many times that as there are ranks.
	Count         int
	Send, Receive Region // equal in place; in each other for parts of a whole
}

// Op is a collective.
type Op string

// The collectives, named as in nccl-tests. A broadcast is rank 0's.
const (
	AllReduce     Op = "all_reduce"
	ReduceScatter Op = "reduce_scatter"
	AllGather     Op = "all_gather"
	Broadcast     Op = "broadcast"
)

// Ops are all there are.
var Ops = []Op{AllReduce, ReduceScatter, AllGather, Broadcast}

// parts reports whether each rank has a part of the whole array on one side.
func (op Op) parts() bool { return op == ReduceScatter || op == AllGather }

// BenchOptions are what to measure.
type BenchOptions struct {
	Ops      []Op
	MinBytes int64 // smallest size of the whole array
	MaxBytes int64 // largest; sizes double from MinBytes up to it
	Warmup   int   // operations before those that are timed, for each size
	// Iterations are timed, for each size.
	Iterations int
	// Report is told of each result as it is had, the same on every rank; an
	// error ends the benchmark.
	Report func(BenchRow) error
	// Skip is told of each size that an operation has no element for on every
	// rank; nil: nobody is.
	Skip func(Op, int64)
}

// BenchRow is one operation at one size, in place or not. The times are of
// iterations as long as their slowest rank took.
type BenchRow struct {
	Op         Op
	Bytes      int64 // of the whole array
	InPlace    bool
	Iterations int
	// Seconds.
	Min, Median, Mean, P99 float64
	CV                     float64 // standard deviation over mean
	AlgBW, BusBW           float64 // bytes/s, of the median
}

const elementBytes = 4

// Bench measures. The group is what the ranks agree by; a backend may move its
// data through the same one. All ranks return an error if one result was wrong
// on any of them.
func Bench(ctx context.Context, b BenchTransport, g *Group, o BenchOptions) error {
	switch {
	case g.Size() < 2:
		return errors.New("a collective needs 2 ranks or more, and there is only one")
	case g.Size() > maxRanks:
		return fmt.Errorf("%d ranks: sums over more than %d would not be exact, and could not be checked", g.Size(), maxRanks)
	case o.MinBytes < elementBytes || o.MaxBytes < o.MinBytes:
		return fmt.Errorf("sizes from %d to %d bytes; want %d or more, rising", o.MinBytes, o.MaxBytes, elementBytes)
	case o.Iterations < 1 || o.Warmup < 0:
		return fmt.Errorf("%d iterations after %d to warm up; want 1 or more, and 0 or more", o.Iterations, o.Warmup)
	}
	for _, op := range o.Ops {
		if !slices.Contains(Ops, op) {
			return fmt.Errorf("unknown collective %q; valid: %v", op, Ops)
		}
	}
	if err := b.Allocate(int(o.MaxBytes / elementBytes)); err != nil {
		return fmt.Errorf("buffers of %d bytes: %w", o.MaxBytes, err)
	}
	r := &runner{ctx: ctx, backend: b, group: g, options: o, size: g.Size(), rank: g.Rank()}
	for _, op := range o.Ops {
		for bytes := o.MinBytes; bytes <= o.MaxBytes; bytes *= 2 {
			for _, inPlace := range []bool{false, true} {
				c, ok := r.call(op, bytes, inPlace)
				if !ok {
					if o.Skip != nil && !inPlace {
						o.Skip(op, bytes)
					}
					continue
				}
				result, err := r.measure(c)
				if err != nil {
					return err
				}
				if err := o.Report(result); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// runner is one rank's benchmark.
type runner struct {
	ctx        context.Context
	backend    BenchTransport
	group      *Group
	options    BenchOptions
	rank, size int
}

// call lays a collective out in the buffers; ok is false when the size has no
// element for some rank.
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

// bytes is the size of the whole array, which is a whole number of elements for
// each rank.
func (r *runner) bytes(c Call) int64 {
	n := int64(c.Count) * elementBytes
	if c.Op.parts() {
		n *= int64(r.size)
	}
	return n
}

// measure times one operation at one size and then checks what it does.
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
		// Rank 0 waits for nobody in a broadcast: without a barrier before each it
		// would run ahead, and time how fast it fills buffers.
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

// slowest replaces each rank's times by the longest over the ranks. Every rank
// has a row in a sum, since a Group has no maximum.
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

// distribution sets the figures over iterations. A clock that did not move is
// its own resolution.
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

// busFactor is what algorithmic bandwidth is multiplied by to give bus
// bandwidth, by which a collective can be held against the speed of a link
// whatever the number of ranks (nccl-tests, doc/PERFORMANCE.md).
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
