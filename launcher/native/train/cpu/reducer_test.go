package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/world"
)

// ranks calls f for every rank of a group, each in a goroutine.
func ranks(t testing.TB, size int, f func(rank int, g *collective.Group)) {
	t.Helper()
	ranksOver(t, "", size, f)
}

func ranksOver(t testing.TB, transport collective.Transport, size int, f func(rank int, g *collective.Group)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r := range size {
		w := world.World{Rank: r, Size: size, LocalRank: r, LocalSize: size, Nodes: 1, Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
		o := collective.Options{Timeout: 20 * time.Second, Transport: transport}
		if r == 0 {
			o.Listener = l
		}
		wg.Go(func() {
			g, err := collective.Join(context.Background(), w, "nonce", o)
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Close()
			f(r, g)
		})
	}
	wg.Wait()
}

func TestBucketCuts(t *testing.T) {
	for _, test := range []struct {
		n    int
		want []int
	}{
		{0, []int{0, 0}}, {1, []int{1, 0}}, {10, []int{10, 0}}, {11, []int{11, 1, 0}}, {50, []int{50, 40, 0}}, {51, []int{51, 41, 1, 0}}, {95, []int{95, 85, 45, 5, 0}},
	} {
		if diff := cmp.Diff(test.want, bucketCuts(test.n, 10, 40)); diff != "" {
			t.Errorf("%d elements (-want +got):\n%s", test.n, diff)
		}
	}
}

// contents returns the values of a rank's buffer in a step.
func contents(rank, step, n int) []float32 {
	random := rand.New(rand.NewPCG(uint64(rank), uint64(step)))
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(random.NormFloat64())
	}
	return list
}

// Gradients are written from the end of the buffer, as in a backward pass, while earlier ones are
// already being reduced. They become the sums over all ranks, with the same bits on each rank;
// so do the votes. With two ranks, the bits equal those of a
// reduction without buckets, since a + b is b + a.
func TestReducerSums(t *testing.T) {
	const votes, n, steps = 4, 10_000, 5
	for _, size := range []int{1, 2, 3} {
		for _, overlap := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d ranks, overlap %v", size, overlap), func(t *testing.T) {
				results := make([][]float32, size) // by rank, all steps
				ranks(t, size, func(rank int, g *collective.Group) {
					buffer := make([]float32, votes+n)
					r := newReducer(g, buffer, votes, bucketCuts(len(buffer), 300, 1000), overlap)
					defer r.close()
					for step := range steps {
						r.begin(context.Background())
						own := contents(rank, step, n)
						ballot := []float32{float32(rank), 1}
						to := n
						for _, from := range []int{9990, 9700, 6000, 5999, 3, 0} {
							copy(buffer[votes+from:votes+to], own[from:to])
							r.final(from, to)
							to = from
						}
						if _, err := r.finish(context.Background(), ballot); err != nil {
							t.Error(err)
						}
						if want := float32(size * (size - 1) / 2); ballot[0] != want || ballot[1] != float32(size) {
							t.Errorf("votes %v, want %v and %v", ballot, want, size)
						}
						results[rank] = append(results[rank], buffer[votes:]...)
					}
				})
				for rank, got := range results {
					if len(got) != steps*n {
						t.Fatalf("rank %d has %d elements", rank, len(got))
					}
					for i, v := range got {
						if math.Float32bits(v) != math.Float32bits(results[0][i]) {
							t.Fatalf("rank %d has %v at %d, rank 0 %v", rank, v, i, results[0][i])
						}
					}
				}
				for step := range steps {
					sum := make([]float64, n)
					for rank := range size {
						for i, v := range contents(rank, step, n) {
							sum[i] += float64(v)
						}
					}
					for i, want := range sum {
						got := results[0][step*n+i]
						if math.Abs(float64(got)-want) > 1e-5 || size <= 2 && got != float32(want) {
							t.Fatalf("step %d: %v at %d, the sum is %v", step, got, i, want)
						}
					}
				}
			})
		}
	}
}

// If ranks share memory, the bucket cuts do not change any bit.
func TestCutsChangeNoBit(t *testing.T) {
	const n = 5000
	var results [][]float32
	for _, cuts := range [][]int{{n, 0}, bucketCuts(n, 300, 1000), bucketCuts(n, 17, 333)} {
		sums := make([]float32, n)
		ranksOver(t, collective.SharedMemory, 3, func(rank int, g *collective.Group) {
			buffer := contents(rank, 1, n)
			r := newReducer(g, buffer, 0, cuts, true)
			defer r.close()
			r.begin(context.Background())
			r.final(0, n)
			if _, err := r.finish(context.Background(), nil); err != nil {
				t.Error(err)
			}
			if rank == 0 {
				copy(sums, buffer)
			}
		})
		results = append(results, sums)
	}
	for i, sums := range results[1:] {
		for k := range sums {
			if math.Float32bits(sums[k]) != math.Float32bits(results[0][k]) {
				t.Fatalf("cuts %d: %v at %d, %v without", i+1, sums[k], k, results[0][k])
			}
		}
	}
}

// Buckets are reduced during the backward pass: completed ones are summed although finish has not been called,
// and incomplete ones are untouched.
func TestReducerOverlaps(t *testing.T) {
	ranks(t, 2, func(rank int, g *collective.Group) {
		const cut = 1 << 19
		buffer := slices.Repeat([]float32{1}, 1<<20)
		r := newReducer(g, buffer, 4, []int{len(buffer), cut, 0}, true)
		defer r.close()
		r.begin(context.Background())
		r.final(cut-4, len(buffer)-4)
		r.wait()
		if i := slices.Index(buffer[cut:], 1); i >= 0 {
			t.Errorf("element %d is final and not summed", cut+i)
		}
		if i := slices.Index(buffer[:cut], 2); i >= 0 {
			t.Errorf("element %d is not final and summed", i)
		}
		hidden := r.busy
		busy, err := r.finish(context.Background(), nil)
		if err != nil {
			t.Error(err)
		}
		if hidden <= 0 || busy <= hidden {
			t.Errorf("busy for %v before finish and %v in all", hidden, busy)
		}
	})
}

// If a peer gives up while buckets are in flight, the step fails.
func TestReducerFails(t *testing.T) {
	ranks(t, 2, func(rank int, g *collective.Group) {
		if rank == 1 {
			g.Abort(errors.New("the disk is full"))
			return
		}
		buffer := make([]float32, 1<<20)
		r := newReducer(g, buffer, 4, []int{len(buffer), 1 << 19, 0}, true)
		defer r.close()
		r.begin(context.Background())
		r.final(0, len(buffer)-4)
		if _, err := r.finish(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("%v, want the reason of rank 1", err)
		}
	})
}
