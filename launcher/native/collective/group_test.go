package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/world"
)

// worlds returns the worlds of size ranks on the loopback interface, and rank 0's
// listener.
func worlds(t testing.TB, size int) ([]world.World, net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	list := make([]world.World, size)
	for r := range list {
		list[r] = world.World{Rank: r, Size: size, LocalRank: r, LocalSize: size, Nodes: 1,
			Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
	}
	return list, l
}

// A way is a placement of ranks: the transport they ask for, and their hosts.
type way struct {
	name      string
	transport Transport
	hosts     func(rank int) string // nil: the real host
}

var ways = []way{
	{"tcp", TCP, nil},
	{"shm", SharedMemory, nil},
	{"two a host", "", func(r int) string { return fmt.Sprint("host ", r/2) }},
	{"round robin", "", func(r int) string { return fmt.Sprint("host ", r%2) }},
	{"one apart", "", func(r int) string { return fmt.Sprint("host ", min(r, 1)) }},
}

// everyWay runs a test for each way of placing ranks.
func everyWay(t *testing.T, body func(t *testing.T, w way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { body(t, w) })
	}
}

// together runs body on every rank of a fresh group and returns their errors.
func together(t testing.TB, size int, o Options, body func(*Group) error) []error {
	t.Helper()
	return way{}.together(t, size, o, body)
}

func (way way) together(t testing.TB, size int, o Options, body func(*Group) error) []error {
	t.Helper()
	places, l := worlds(t, size)
	errs := make([]error, size)
	var wg sync.WaitGroup
	for r, w := range places {
		o := o
		if way.transport != "" {
			o.Transport = way.transport
		}
		if way.hosts != nil {
			o.host = way.hosts(r)
		}
		if r == 0 {
			o.Listener = l
		}
		wg.Go(func() {
			g, err := Join(context.Background(), w, "nonce", o)
			if err != nil {
				errs[r] = err
				return
			}
			defer g.Close()
			errs[r] = body(g)
		})
	}
	wg.Wait()
	return errs
}

func noErrors(t testing.TB, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// lengths are array lengths in elements: 0, fewer than ranks, odd ones, the most that a node
// sums in one round and one more, several pieces, and several blocks of a
// ring of two.
var lengths = []int{0, 1, 3, 4, 1000, directBytes / 4, directBytes/4 + 1, 100_003, 600_001}

// inputs are normally distributed, so that the order of a sum shows in its bits.
func inputs(size, length int) [][]float32 {
	list := make([][]float32, size)
	for r := range list {
		random := rand.New(rand.NewPCG(uint64(r), 1))
		list[r] = make([]float32, length)
		for i := range list[r] {
			list[r][i] = float32(random.NormFloat64())
		}
	}
	return list
}

// checkSum compares got, the part of the sum of in from an element on, with the
// sum in double precision.
func checkSum(in [][]float32, from int, got []float32) error {
	for i := range got {
		var want, scale float64
		for r := range in {
			want += float64(in[r][from+i])
			scale += math.Abs(float64(in[r][from+i]))
		}
		if math.Abs(float64(got[i])-want) > 1e-6*scale {
			return fmt.Errorf("%d ranks, element %d: sum %v, want %v", len(in), from+i, got[i], want)
		}
	}
	return nil
}

func sameBits(a, b []float32) error {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return fmt.Errorf("element %d is %v and %v", i, a[i], b[i])
		}
	}
	return nil
}

func TestAllReduce(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for size := 1; size <= 5; size++ {
			var before [][]float32 // rank 0's results
			for range 2 {
				results := make([][][]float32, size)
				noErrors(t, w.together(t, size, Options{}, func(g *Group) error {
					for _, length := range lengths {
						in := inputs(size, length)
						v := in[g.Rank()]
						in[g.Rank()] = append([]float32(nil), v...)
						if err := g.AllReduce(context.Background(), v); err != nil {
							return err
						}
						if err := checkSum(in, 0, v); err != nil {
							return err
						}
						results[g.Rank()] = append(results[g.Rank()], v)
					}
					return nil
				}))
				if t.Failed() {
					return
				}
				for i := range lengths {
					for r := range size {
						if err := sameBits(results[r][i], results[0][i]); err != nil {
							t.Fatalf("%d ranks: ranks %d and 0 differ: %v", size, r, err)
						}
					}
					if before != nil {
						if err := sameBits(results[0][i], before[i]); err != nil {
							t.Fatalf("%d ranks: two runs differ: %v", size, err)
						}
					}
				}
				before = results[0]
			}
		}
	})
}

func TestReduceScatter(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for size := 1; size <= 5; size++ {
			noErrors(t, w.together(t, size, Options{}, func(g *Group) error {
				for _, length := range lengths {
					in := inputs(size, length)
					src := append([]float32(nil), in[g.Rank()]...)
					from, to := shareOf(g.Rank(), size, length)
					share := make([]float32, to-from)
					if err := g.ReduceScatter(context.Background(), share, src); err != nil {
						return err
					}
					if err := checkSum(in, from, share); err != nil {
						return err
					}
					if err := sameBits(src, in[g.Rank()]); err != nil {
						return fmt.Errorf("the source was changed: %w", err)
					}
					if err := g.ReduceScatter(context.Background(), src[from:to], src); err != nil {
						return err
					}
					if err := sameBits(src[from:to], share); err != nil {
						return fmt.Errorf("in place and not: %w", err)
					}
				}
				return nil
			}))
		}
	})
}

func TestAllGather(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for size := 1; size <= 5; size++ {
			noErrors(t, w.together(t, size, Options{}, func(g *Group) error {
				for _, length := range lengths {
					want := inputs(1, length)[0]
					from, to := shareOf(g.Rank(), size, length)
					all := make([]float32, length)
					if err := g.AllGather(context.Background(), all, want[from:to]); err != nil {
						return err
					}
					if err := sameBits(all, want); err != nil {
						return fmt.Errorf("%d of %d elements: %w", size, length, err)
					}
					clear(all)
					copy(all[from:to], want[from:to])
					if err := g.AllGather(context.Background(), all, all[from:to]); err != nil {
						return err
					}
					if err := sameBits(all, want); err != nil {
						return fmt.Errorf("%d of %d elements in place: %w", size, length, err)
					}
				}
				return nil
			}))
		}
	})
}

// A share of the wrong length is refused before anything is sent.
func TestSharesOfWrongLength(t *testing.T) {
	noErrors(t, together(t, 2, Options{}, func(g *Group) error {
		v := make([]float32, 10)
		for _, err := range []error{
			g.ReduceScatter(context.Background(), v[:6], v),
			g.AllGather(context.Background(), v, v[:4]),
		} {
			if err == nil || !strings.Contains(err.Error(), "of 10 elements: rank") {
				t.Errorf("rank %d: %v", g.Rank(), err)
			}
		}
		return g.Barrier(context.Background())
	}))
}

func TestSmallReductions(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		noErrors(t, w.together(t, 3, Options{}, func(g *Group) error {
			counts := []int64{int64(g.Rank()), 1 << 40}
			if err := g.AllReduceInt64(context.Background(), counts); err != nil {
				return err
			}
			if counts[0] != 3 || counts[1] != 3<<40 {
				return fmt.Errorf("int64: %v", counts)
			}
			sums := []float64{0.5 * float64(g.Rank())}
			if err := g.AllReduceFloat64(context.Background(), sums); err != nil {
				return err
			}
			if sums[0] != 1.5 {
				return fmt.Errorf("float64: %v", sums)
			}
			return nil
		}))
	})
}

func TestBroadcast(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for size := 1; size <= 5; size++ {
			noErrors(t, w.together(t, size, Options{}, func(g *Group) error {
				for _, length := range lengths {
					want := inputs(1, length)[0]
					v := make([]float32, length)
					if g.Rank() == 0 {
						copy(v, want)
					}
					if err := g.Broadcast(context.Background(), v); err != nil {
						return err
					}
					if err := sameBits(v, want); err != nil {
						return fmt.Errorf("%d ranks, %d elements: %w", size, length, err)
					}
				}
				return nil
			}))
		}
	})
}

func TestBarrierWaitsForAll(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		var entered atomic.Int32
		noErrors(t, w.together(t, 4, Options{}, func(g *Group) error {
			for round := range int32(5) {
				time.Sleep(time.Duration(g.Rank()) * time.Millisecond)
				entered.Add(1)
				if err := g.Barrier(context.Background()); err != nil {
					return err
				}
				if n := entered.Load(); n < 4*(round+1) {
					return fmt.Errorf("left barrier %d when %d had entered", round, n)
				}
			}
			return nil
		}))
	})
}

// The transport is the one asked for, or the reason for another is reported.
func TestTransport(t *testing.T) {
	for _, test := range []struct {
		way  way
		size int
		want Transport
		why  string
	}{
		{ways[0], 2, TCP, "asked for"},
		{ways[1], 3, SharedMemory, ""},
		{ways[2], 4, Mixed, ""},
		{ways[2], 2, SharedMemory, ""},
		{ways[3], 2, TCP, "separate host"},
		{ways[4], 3, Mixed, ""},
		{way{}, 1, SharedMemory, "one rank"},
	} {
		noErrors(t, test.way.together(t, test.size, Options{}, func(g *Group) error {
			if got, why := g.Transport(); got != test.want || !strings.Contains(why, test.why) || (why == "") != (test.why == "") {
				t.Errorf("%d ranks, %s: %s because %q, want %s because %q", test.size, test.way.name, got, why, test.want, test.why)
			}
			return nil
		}))
	}
}

// blames checks that err is a PeerError about rank.
func blames(t *testing.T, who int, err error, rank int, words string) {
	t.Helper()
	var peer *PeerError
	if !errors.As(err, &peer) {
		t.Errorf("rank %d: %v, want a PeerError", who, err)
		return
	}
	if peer.Rank != rank || peer.Phase == "" || !strings.Contains(err.Error(), words) {
		t.Errorf("rank %d: %q, want rank %d blamed with %q", who, err, rank, words)
	}
}

// dropDead closes a rank's connections without a message, as the kernel does for a killed process.
func dropDead(g *Group) error {
	g.control.closing.Store(true)
	for _, l := range g.control.lines {
		if l != nil {
			l.conn.Close()
		}
	}
	if g.ring != nil {
		return g.ring.line.close()
	}
	return nil
}

// Every rank names the rank to blame, at once, whichever rank it is.
func TestDeadPeer(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for _, size := range []int{2, 3, 5} {
			for dead := range size {
				errs := w.together(t, size, Options{Timeout: 60 * time.Second}, func(g *Group) error {
					v := make([]float32, 100_000)
					if err := g.AllReduce(context.Background(), v); err != nil {
						return err
					}
					if g.Rank() == dead {
						return dropDead(g)
					}
					begin := time.Now()
					err := g.AllReduce(context.Background(), v)
					if d := time.Since(begin); d > 20*time.Second {
						t.Errorf("rank %d took %v to notice", g.Rank(), d)
					}
					if again := g.Barrier(context.Background()); again == nil || again.Error() != err.Error() {
						t.Errorf("rank %d: a collective after the failure says %v", g.Rank(), again)
					}
					return err
				})
				for r, err := range errs {
					if r != dead {
						blames(t, r, err, dead, "gone")
						blames(t, r, err, dead, "all-reduce")
					}
				}
			}
		}
	})
}

// A rank that is alive but does not come is named within the timeout, with its last collective.
func TestLatePeer(t *testing.T) {
	const timeout = 900 * time.Millisecond
	everyWay(t, func(t *testing.T, w way) {
		t.Parallel()
		for _, size := range []int{2, 4} {
			for _, late := range []int{0, size - 1} {
				over := make(chan struct{})
				var others sync.WaitGroup
				others.Add(size - 1)
				go func() { others.Wait(); close(over) }()
				errs := w.together(t, size, Options{Timeout: timeout}, func(g *Group) error {
					if g.Rank() == late {
						<-over
						return nil
					}
					defer others.Done()
					begin := time.Now()
					err := g.AllReduce(context.Background(), make([]float32, 300_000))
					// On an idle machine this takes the timeout; if ten times as many
					// threads as cores want to run, all clocks of the verdict stretch.
					if d := time.Since(begin); d > 10*timeout {
						t.Errorf("rank %d took %v to notice, with a timeout of %v", g.Rank(), d, timeout)
					}
					return err
				})
				for r, err := range errs {
					if r != late {
						blames(t, r, err, late, "has not reached all-reduce")
					}
				}
			}
		}
	})
}

// A rank that is slow, but within the timeout, is not an error.
func TestSlowPeer(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		t.Parallel()
		noErrors(t, w.together(t, 3, Options{Timeout: 6 * time.Second}, func(g *Group) error {
			if g.Rank() == 1 {
				time.Sleep(2 * time.Second) // the timeout of the others is 4 s
			}
			return g.AllReduce(context.Background(), make([]float32, 10))
		}))
	})
}

func TestAbortIsPassedOn(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for aborting := range 4 {
			errs := w.together(t, 4, Options{Timeout: 20 * time.Second}, func(g *Group) error {
				if g.Rank() == aborting {
					g.Abort(errors.New("its disk is full"))
					return nil
				}
				return g.AllReduce(context.Background(), make([]float32, 100))
			})
			for r, err := range errs {
				if r != aborting {
					blames(t, r, err, aborting, "its disk is full")
				}
			}
		}
	})
}

// A rank that has left normally is named by the ranks that continue.
func TestLeaving(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for leaving := range 3 {
			errs := w.together(t, 3, Options{Timeout: 20 * time.Second}, func(g *Group) error {
				if err := g.AllReduce(context.Background(), make([]float32, 100)); err != nil || g.Rank() == leaving {
					return err
				}
				return g.AllReduce(context.Background(), make([]float32, 100))
			})
			for r, err := range errs {
				if r != leaving {
					blames(t, r, err, leaving, "ended normally after all-reduce 2")
				}
			}
		}
	})
}

func TestCancel(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		errs := w.together(t, 3, Options{Timeout: 20 * time.Second}, func(g *Group) error {
			ctx := context.Background()
			if g.Rank() == 1 {
				var cancel context.CancelCauseFunc
				ctx, cancel = context.WithCancelCause(ctx)
				time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("SIGTERM")) })
			}
			if g.Rank() == 0 {
				<-g.control.decided // keeps rank 1 waiting until rank 0 has heard of it
			}
			return g.AllReduce(ctx, make([]float32, 100))
		})
		for r, err := range errs {
			blames(t, r, err, 1, "SIGTERM")
		}
	})
}

// The end of a collective's context does not end a later collective with another context, even if
// it is reported while the later one begins.
func TestCancelAfterTheCollective(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 4_000
	}
	errs := together(t, 2, Options{Timeout: 20 * time.Second}, func(g *Group) error {
		for range rounds {
			ctx, cancel := context.WithCancel(context.Background())
			err := g.AllReduceInt64(ctx, []int64{1})
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	})
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// A context that ends between two collectives ends only the next collective that uses it.
func TestCancelBetween(t *testing.T) {
	left := make(chan struct{})
	errs := together(t, 2, Options{Timeout: 20 * time.Second}, func(g *Group) error {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		if g.Rank() == 1 {
			cancel(errors.New("SIGTERM"))
		}
		for range 2 { // when rank 1 has finished the second, all have finished the first
			if err := g.Barrier(context.Background()); err != nil {
				t.Errorf("rank %d: a barrier with another context: %v", g.Rank(), err)
			}
		}
		if g.Rank() == 1 {
			<-left
		} else {
			close(left) // rank 0 is out of the second, too
		}
		return g.AllReduce(ctx, make([]float32, 100))
	})
	for r, err := range errs {
		blames(t, r, err, 1, "SIGTERM")
	}
}

func TestDifferentCollectives(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for name, body := range map[string]func(g *Group, v []float32) error{
			"lengths": func(g *Group, v []float32) error {
				return g.AllReduce(context.Background(), v[:10+10*g.Rank()])
			},
			"long lengths": func(g *Group, v []float32) error {
				return g.AllReduce(context.Background(), v[:len(v)-100*g.Rank()])
			},
			"collectives": func(g *Group, v []float32) error {
				if g.Rank() == 0 {
					return g.Barrier(context.Background())
				}
				return g.AllReduce(context.Background(), v[:2])
			},
			"reduce-scatter": func(g *Group, v []float32) error {
				v = v[:10+10*g.Rank()]
				from, to := shareOf(g.Rank(), g.Size(), len(v))
				return g.ReduceScatter(context.Background(), v[from:to], v)
			},
			"all-gather and reduce-scatter": func(g *Group, v []float32) error {
				from, to := shareOf(g.Rank(), g.Size(), len(v))
				if g.Rank() == 0 {
					return g.AllGather(context.Background(), v, v[from:to])
				}
				return g.ReduceScatter(context.Background(), v[from:to], v)
			},
		} {
			errs := w.together(t, 2, Options{Timeout: 20 * time.Second}, func(g *Group) error { return body(g, make([]float32, 300_000)) })
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "same steps on arrays of the same length") {
					t.Errorf("%s: rank %d: %v, want a complaint about lengths", name, r, err)
				}
			}
			if errs[0] != nil && errs[1] != nil && errs[0].(*PeerError).Err.Error() != errs[1].(*PeerError).Err.Error() {
				t.Errorf("%s: %v, but %v", name, errs[0], errs[1])
			}
		}
	})
}

// A collective allocates nothing on any rank, with a context that can end.
func TestNoAllocations(t *testing.T) {
	const rounds = 100
	everyWay(t, func(t *testing.T, w way) {
		noErrors(t, w.together(t, 4, Options{}, func(g *Group) error {
			v, d, ctx := make([]float32, 10_000), []float64{1}, t.Context()
			from, to := shareOf(g.Rank(), g.Size(), len(v))
			var err error
			all := func() {
				err = errors.Join(err, g.AllReduce(ctx, v), g.AllReduce(ctx, v[:10]), g.AllReduceFloat64(ctx, d),
					g.ReduceScatter(ctx, v[from:to], v), g.AllGather(ctx, v, v[from:to]), g.Broadcast(ctx, v), g.Barrier(ctx))
			}
			if g.Rank() != 0 {
				for range rounds + 1 { // AllocsPerRun makes one more
					all()
				}
				return err
			}
			// All ranks' allocations are counted. The runtime's own, for timers and
			// threads, are few.
			if n := testing.AllocsPerRun(rounds, all); n >= 1 {
				t.Errorf("%v allocations over 4 ranks in 7 collectives", n)
			}
			return err
		}))
	})
}

func BenchmarkAllReduce(b *testing.B) {
	for _, length := range []int{1 << 10, 270_000} {
		b.Run(fmt.Sprintf("2x%d", length), func(b *testing.B) {
			b.SetBytes(int64(4 * length))
			noErrors(b, together(b, 2, Options{}, func(g *Group) error {
				v := make([]float32, length)
				for range b.N {
					if err := g.AllReduce(context.Background(), v); err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
}
