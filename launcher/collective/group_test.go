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
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/world"
)

// worlds are the places of size ranks on the loopback interface, and rank 0's
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

// together runs body on every rank of a fresh group and returns their errors.
func together(t testing.TB, size int, o Options, body func(*Group) error) []error {
	t.Helper()
	places, l := worlds(t, size)
	errs := make([]error, size)
	var wg sync.WaitGroup
	for r, w := range places {
		o := o
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

func TestAllReduce(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 7} {
		for _, length := range []int{0, 1, 3, 1000, 100_003} {
			t.Run(fmt.Sprintf("%dx%d", size, length), func(t *testing.T) {
				inputs, results := make([][]float32, size), make([][]float32, size)
				for r := range inputs {
					random := rand.New(rand.NewPCG(uint64(r), 1))
					inputs[r] = make([]float32, length)
					for i := range inputs[r] {
						inputs[r][i] = float32(random.NormFloat64())
					}
				}
				noErrors(t, together(t, size, Options{}, func(g *Group) error {
					v := append([]float32(nil), inputs[g.Rank()]...)
					results[g.Rank()] = v
					return g.AllReduce(context.Background(), v)
				}))
				for i := range length {
					var want, scale float64
					for r := range size {
						want += float64(inputs[r][i])
						scale += math.Abs(float64(inputs[r][i]))
					}
					if got := float64(results[0][i]); math.Abs(got-want) > 1e-6*scale {
						t.Fatalf("element %d: sum %v, want %v", i, got, want)
					}
					for r := range size {
						if math.Float32bits(results[r][i]) != math.Float32bits(results[0][i]) {
							t.Fatalf("element %d: rank %d has %v, rank 0 %v", i, r, results[r][i], results[0][i])
						}
					}
				}
			})
		}
	}
}

func TestReduceScatterAndAllGather(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5} {
		for _, length := range []int{0, 1, 3, 1000, 100_003} {
			noErrors(t, together(t, size, Options{}, func(g *Group) error {
				src := make([]float32, length)
				for i := range src {
					src[i] = float32(i%1000 + g.Rank())
				}
				from, to := Share(g.Rank(), size, length)
				share, all := make([]float32, to-from), make([]float32, length)
				for _, inPlace := range []bool{false, true} {
					if inPlace {
						share, all = src[from:to], src
					}
					if err := g.ReduceScatter(context.Background(), share, src); err != nil {
						return err
					}
					for i, got := range share {
						if want := float32(size*((from+i)%1000) + size*(size-1)/2); got != want {
							return fmt.Errorf("rank %d: sum %d of %d is %v, want %v", g.Rank(), from+i, length, got, want)
						}
					}
					if !inPlace && length > 0 && src[0] != float32(g.Rank()) {
						return fmt.Errorf("reduce-scatter changed its source")
					}
					if err := g.AllGather(context.Background(), all, share); err != nil {
						return err
					}
					for i, got := range all {
						if want := float32(size*(i%1000) + size*(size-1)/2); got != want {
							return fmt.Errorf("rank %d: gathered element %d of %d is %v, want %v", g.Rank(), i, length, got, want)
						}
					}
				}
				if err := g.ReduceScatter(context.Background(), make([]float32, to-from+1), src); err == nil {
					return errors.New("a share that is too long was taken")
				}
				return nil
			}))
		}
	}
}

func TestSmallReductions(t *testing.T) {
	noErrors(t, together(t, 3, Options{}, func(g *Group) error {
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
}

func TestBroadcast(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		for _, length := range []int{0, 1, 200_001} { // the last is several segments
			noErrors(t, together(t, size, Options{}, func(g *Group) error {
				v := make([]float32, length)
				for i := range v {
					v[i] = float32(i * (1 - g.Rank()))
				}
				if err := g.Broadcast(context.Background(), v); err != nil {
					return err
				}
				for i := range v {
					if v[i] != float32(i) {
						return fmt.Errorf("%d ranks, %d elements: element %d is %v", size, length, i, v[i])
					}
				}
				return nil
			}))
		}
	}
}

func TestBarrierWaitsForAll(t *testing.T) {
	var mu sync.Mutex
	entered := 0
	noErrors(t, together(t, 4, Options{}, func(g *Group) error {
		time.Sleep(time.Duration(g.Rank()) * 10 * time.Millisecond)
		mu.Lock()
		entered++
		mu.Unlock()
		if err := g.Barrier(context.Background()); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if entered != 4 {
			return fmt.Errorf("left the barrier when %d of 4 had entered", entered)
		}
		return nil
	}))
}

// blames checks that err is a PeerError about rank.
func blames(t *testing.T, who int, err error, rank int, words string) {
	t.Helper()
	var peer *PeerError
	if !errors.As(err, &peer) {
		t.Errorf("rank %d: %v, want a PeerError", who, err)
		return
	}
	if peer.Rank != rank || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "all-reduce") {
		t.Errorf("rank %d: %q, want rank %d blamed in an all-reduce with %q", who, err, rank, words)
	}
}

// The rank to blame is named on every rank, wherever in the ring it is.
func TestDeadPeer(t *testing.T) {
	for _, size := range []int{2, 3, 5} {
		for dead := range size {
			errs := together(t, size, Options{Timeout: 20 * time.Second}, func(g *Group) error {
				v := make([]float32, 1_000_000)
				if err := g.AllReduce(context.Background(), v); err != nil {
					return err
				}
				if g.Rank() == dead {
					return g.line.close() // as the kernel does for a killed process
				}
				begin := time.Now()
				err := g.AllReduce(context.Background(), v)
				if d := time.Since(begin); d > 15*time.Second {
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
				}
			}
		}
	}
}

func TestHungPeer(t *testing.T) {
	const timeout = 1200 * time.Millisecond
	for _, size := range []int{2, 4} {
		for hung := range size {
			t.Run(fmt.Sprintf("%d of %d", hung, size), func(t *testing.T) {
				t.Parallel()
				over := make(chan struct{})
				var others sync.WaitGroup
				others.Add(size - 1)
				go func() { others.Wait(); close(over) }()
				errs := together(t, size, Options{Timeout: timeout}, func(g *Group) error {
					if g.Rank() == hung {
						<-over
						return nil
					}
					defer others.Done()
					begin := time.Now()
					err := g.AllReduce(context.Background(), make([]float32, 3_000_000))
					if d := time.Since(begin); d > 2*timeout {
						t.Errorf("rank %d took %v to notice, with a timeout of %v", g.Rank(), d, timeout)
					}
					return err
				})
				for r, err := range errs {
					if r != hung {
						blames(t, r, err, hung, "has ")
					}
				}
			})
		}
	}
}

// A rank that is slow, but not too slow, is no error.
func TestSlowPeer(t *testing.T) {
	noErrors(t, together(t, 3, Options{Timeout: 3 * time.Second}, func(g *Group) error {
		if g.Rank() == 1 {
			time.Sleep(2200 * time.Millisecond) // beyond the first patience of 2 s
		}
		return g.AllReduce(context.Background(), make([]float32, 10))
	}))
}

func TestAbortIsPassedOn(t *testing.T) {
	errs := together(t, 4, Options{Timeout: 20 * time.Second}, func(g *Group) error {
		if g.Rank() == 2 {
			g.Abort(errors.New("its disk is full"))
			return nil
		}
		return g.AllReduce(context.Background(), make([]float32, 100))
	})
	for r, err := range errs {
		if r != 2 {
			blames(t, r, err, 2, "its disk is full")
		}
	}
}

func TestCancel(t *testing.T) {
	errs := together(t, 3, Options{Timeout: 20 * time.Second}, func(g *Group) error {
		ctx := context.Background()
		if g.Rank() == 1 {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("SIGTERM")) })
		}
		if g.Rank() == 0 {
			time.Sleep(time.Second) // keeps rank 1 waiting
		}
		return g.AllReduce(ctx, make([]float32, 100))
	})
	for r, err := range errs {
		blames(t, r, err, 1, "SIGTERM")
	}
}

func TestDifferentCollectives(t *testing.T) {
	errs := together(t, 2, Options{Timeout: 20 * time.Second}, func(g *Group) error {
		return g.AllReduce(context.Background(), make([]float32, 10+10*g.Rank()))
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "same length") {
			t.Errorf("rank %d: %v, want a complaint about lengths", r, err)
		}
	}
}

func TestAllReduceDoesNotAllocate(t *testing.T) {
	const rounds = 200
	noErrors(t, together(t, 2, Options{}, func(g *Group) error {
		v := make([]float32, 1000)
		ctx := context.Background()
		if g.Rank() == 1 {
			for range rounds + 1 { // AllocsPerRun makes one more
				if err := g.AllReduce(ctx, v); err != nil {
					return err
				}
			}
			return nil
		}
		var err error
		// Both ranks' allocations are counted.
		if n := testing.AllocsPerRun(rounds, func() { err = errors.Join(err, g.AllReduce(ctx, v)) }); n > 8 {
			t.Errorf("%v allocations a step over both ranks", n)
		}
		return err
	}))
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
