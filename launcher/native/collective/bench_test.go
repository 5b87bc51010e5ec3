package collective

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/scalebench/scalebench/launcher/world"
)

// ranks runs body on every rank of a group in this process and returns
// their errors.
func ranks(t *testing.T, size int, body func(*Group) error) []error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, size)
	var wg sync.WaitGroup
	for rank := range size {
		w := world.World{Rank: rank, Size: size, LocalRank: rank, LocalSize: size, Nodes: 1,
			Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
		o := Options{}
		if rank == 0 {
			o.Listener = l
		}
		wg.Go(func() {
			g, err := Join(context.Background(), w, "nonce", o)
			if err != nil {
				errs[rank] = err
				return
			}
			defer g.Close()
			errs[rank] = body(g)
		})
	}
	wg.Wait()
	return errs
}

func TestRun(t *testing.T) {
	for _, size := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			results := make([][]BenchRow, size)
			for rank, err := range ranks(t, size, func(g *Group) error {
				return Bench(t.Context(), NewHostTransport("tcp", g), g, BenchOptions{Ops: Ops, MinBytes: 8, MaxBytes: 1 << 20, Warmup: 1, Iterations: 3,
					Report: func(r BenchRow) error { results[g.Rank()] = append(results[g.Rank()], r); return nil }})
			}) {
				if err != nil {
					t.Fatalf("rank %d: %v", rank, err)
				}
			}
			// 8 bytes are two elements: with three or more ranks some get no element.
			wantSkipped := 0
			if size > 2 {
				for _, op := range Ops {
					if op.parts() {
						wantSkipped++
					}
				}
			}
			if want := 2 * (18*len(Ops) - wantSkipped); len(results[0]) != want {
				t.Fatalf("%d results, want %d", len(results[0]), want)
			}
			for rank := range results {
				if !slices.Equal(results[rank], results[0]) {
					t.Errorf("rank %d has other results than rank 0", rank)
				}
			}
			for _, r := range results[0] {
				// The mean of equal times may differ from them by rounding.
				const ulps = 1e-12
				if !(r.Min > 0 && r.Min <= r.Median && r.Median <= r.P99 && r.Mean >= r.Min*(1-ulps) && r.Mean <= r.P99*(1+ulps)) {
					t.Errorf("%+v: times out of order", r)
				}
				if r.Op == ReduceScatter && r.Bytes%int64(4*size) != 0 {
					t.Errorf("%+v: the size is not a whole number of elements for each rank", r)
				}
			}
		})
	}
}

// spoilt changes one element of rank 1's result of one operation.
type spoilt struct {
	BenchTransport
	op    Op
	rank  int
	count int
}

func (s *spoilt) Do(ctx context.Context, c Call) error {
	err := s.BenchTransport.Do(ctx, c)
	if err == nil && s.rank == 1 && c.Op == s.op && c.Count >= s.count {
		v := make([]float32, 1)
		at := c.Receive.Offset + c.Count/2
		if err := s.Read(c.Receive.Buffer, at, v); err != nil {
			return err
		}
		v[0]++
		return s.Write(c.Receive.Buffer, at, v)
	}
	return err
}

func TestWrongElement(t *testing.T) {
	for _, op := range Ops {
		t.Run(string(op), func(t *testing.T) {
			reported := make([]int, 3)
			errs := ranks(t, 3, func(g *Group) error {
				b := &spoilt{BenchTransport: NewHostTransport("tcp", g), op: op, rank: g.Rank(), count: 20_000}
				return Bench(t.Context(), b, g, BenchOptions{Ops: []Op{op}, MinBytes: 1 << 10, MaxBytes: 1 << 20, Iterations: 2,
					Report: func(BenchRow) error { reported[g.Rank()]++; return nil }})
			})
			for rank, err := range errs {
				want := "0 of them on rank "
				if rank == 1 {
					want = "1 of them on rank 1; the first here is element "
				}
				if err == nil || !strings.Contains(err.Error(), "1 elements of the result are wrong over 3 ranks (out of place)") || !strings.Contains(err.Error(), want) {
					t.Errorf("rank %d: %v", rank, err)
				}
				if reported[rank] == 0 || reported[rank] > 20 {
					t.Errorf("rank %d reported %d results; want those before the wrong one", rank, reported[rank])
				}
			}
		})
	}
}

// A sum that omits a rank, or counts one twice, has another value.
func TestInputsTellRanksApart(t *testing.T) {
	const size = 8
	sum := func(i int, weight func(rank int) float32) (s float32) {
		for rank := range size {
			s += weight(rank) * input(rank, i)
		}
		return s
	}
	same := 0
	for i := range period {
		whole := sum(i, func(int) float32 { return 1 })
		for lost := range size {
			for twice := range size {
				if lost != twice && whole == sum(i, func(rank int) float32 {
					return map[int]float32{lost: 0, twice: 2}[rank] + map[bool]float32{true: 1}[rank != lost && rank != twice]
				}) {
					same++
				}
			}
		}
	}
	if same > 0 {
		t.Errorf("%d elements have the same sum with one rank in another's place", same)
	}
}

func TestBusFactor(t *testing.T) {
	for _, c := range []struct {
		op    Op
		ranks int
		want  float64
	}{{AllReduce, 2, 1}, {AllReduce, 8, 1.75}, {ReduceScatter, 2, 0.5}, {AllGather, 8, 0.875}, {Broadcast, 8, 1}} {
		if got := busFactor(c.op, c.ranks); got != c.want {
			t.Errorf("BusFactor(%s, %d) = %g, want %g", c.op, c.ranks, got, c.want)
		}
	}
}

func TestDistribution(t *testing.T) {
	var r BenchRow
	r.distribution([]float64{4, 1, 2, 3})
	if r.Min != 1 || r.Median != 2.5 || r.Mean != 2.5 || r.P99 != 4 || r.CV < 0.516 || r.CV > 0.517 {
		t.Errorf("%+v", r)
	}
}

// A row has a field for each column, for the shortest and the longest times.
func TestTableRows(t *testing.T) {
	for _, s := range []float64{1e-9, 1.234e-6, 99.96e-6, 0.0123456, 1.5, 7200} {
		var b strings.Builder
		table := NewBenchTable(&b, "tcp", 2, BenchOptions{})
		for _, inPlace := range []bool{false, true} {
			r := BenchRow{Op: AllReduce, Bytes: 1 << 33, InPlace: inPlace, Median: s, AlgBW: (1 << 33) / s, BusBW: 8.44e-5}
			if err := table.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		fields := strings.Fields(lines[len(lines)-1])
		if len(fields) != 13 {
			t.Fatalf("%g s: %d fields in %q", s, len(fields), fields)
		}
		if v, err := strconv.ParseFloat(fields[5], 64); err != nil || math.Abs(v/1e6-s) > 1e-3*s+1e-9 {
			t.Errorf("%g s is written %s", s, fields[5])
		}
	}
}

func TestRefused(t *testing.T) {
	good := BenchOptions{Ops: Ops, MinBytes: 8, MaxBytes: 8, Iterations: 1, Report: func(BenchRow) error { return nil }}
	for _, c := range []struct {
		change func(*BenchOptions)
		want   string
	}{
		{func(o *BenchOptions) { o.Ops = []Op{"all_to_all"} }, `unknown collective "all_to_all"; valid: [all_reduce`},
		{func(o *BenchOptions) { o.MinBytes = 3 }, "of 4 or more"},
		{func(o *BenchOptions) { o.MaxBytes = 4 }, "ascending"},
		{func(o *BenchOptions) { o.Iterations = 0 }, "0 iterations"},
	} {
		o := good
		c.change(&o)
		for _, err := range ranks(t, 2, func(g *Group) error { return Bench(t.Context(), NewHostTransport("tcp", g), g, o) }) {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		}
	}
	for _, err := range ranks(t, 1, func(g *Group) error { return Bench(t.Context(), NewHostTransport("tcp", g), g, good) }) {
		if err == nil || !strings.Contains(err.Error(), "a collective needs 2 ranks or more") {
			t.Errorf("one rank: %v", err)
		}
	}
}
