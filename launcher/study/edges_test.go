package study

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Each rule is tested at its limits.
func TestRulesAtTheirEdges(t *testing.T) {
	half, more := measure.Target{Of: measure.OfAccuracy, Value: 0.5}, measure.Target{Of: measure.OfAccuracy, Value: 0.75}
	for _, c := range []struct {
		name  string
		check func(any) string
		valid []any
		wrong []any
	}{
		{"within 1 and 3", within(1, 3), []any{1, 2, 3, int64(3)}, []any{0, 4, -1}},
		{"at least 0.5", atLeast(0.5), []any{0.5, 1.0}, []any{0.4999, math.NaN(), math.Inf(1), math.Inf(-1)}},
		{"above 0.5", above(0.5), []any{0.5001, 1.0}, []any{0.5, 0.0, math.NaN(), math.Inf(1)}},
		{"a fraction", fraction, []any{0.0, 0.5, 0.999}, []any{1.0, -0.001, math.NaN()}},
		{"a share", share, []any{0.001, 0.999}, []any{0.0, 1.0, math.NaN()}},
		{"ascending", ascending, []any{[]int(nil), []int{1}, []int{1, 2, 9}}, []any{[]int{0}, []int{1, 1}, []int{2, 1}, []int{-1, 1}}},
		{"one line", oneLine, []any{"", "a b"}, []any{"a\nb", "a\rb", "a\x00b"}},
		{"not empty", notEmpty, []any{"a"}, []any{""}},
		{"among", among("a", "b"), []any{"a", "b"}, []any{"", "c", "ab"}},
		{"targets", targets, []any{[]measure.Target(nil), []measure.Target{half, more}}, []any{[]measure.Target{half, half}, []measure.Target{half, more, half}}},
		{"a type of MPI", mpiType, []any{"", "pmix", "pmi2", "a_1", strings.Repeat("a", 32)}, []any{"Pmix", "a-b", "a b", strings.Repeat("a", 33)}},
	} {
		for _, v := range c.valid {
			if wrong := c.check(v); wrong != "" {
				t.Errorf("%s: %v is refused: %s", c.name, v, wrong)
			}
		}
		for _, v := range c.wrong {
			if c.check(v) == "" {
				t.Errorf("%s: %v is taken", c.name, v)
			}
		}
	}
	for path, edges := range map[string][2]int64{
		"resources.workers_per_node": {0, 4096}, "resources.cpus_per_worker": {1, 4096}, "resources.memory": {0, 1 << 50},
		"resources.time": {int64(time.Minute), int64(366 * 24 * time.Hour)},
	} {
		check := resourceRules[path]
		for _, v := range edges {
			if wrong := check(v); wrong != "" {
				t.Errorf("%s: %d is refused: %s", path, v, wrong)
			}
		}
		if check(edges[0]-1) == "" || check(edges[1]+1) == "" {
			t.Errorf("%s: values beyond %d are taken", path, edges)
		}
	}
}

// Workers per node: the study's value, or else as many as the node has GPUs or CPUs for, or
// else all.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name        string
		workers     int
		r           Resources
		q           Partition
		each, nodes int // 0: not divisible
	}{
		{"as the study says", 8, Resources{Device: "cpu", CPUsPerWorker: 1, WorkersPerNode: 2}, Partition{CPUsPerNode: 64}, 2, 4},
		{"fewer workers than that", 1, Resources{Device: "cpu", CPUsPerWorker: 1, WorkersPerNode: 2}, Partition{CPUsPerNode: 64}, 1, 1},
		{"by GPUs", 8, Resources{Device: "gpu", CPUsPerWorker: 16}, Partition{GPUsPerNode: 4, CPUsPerNode: 16}, 4, 2},
		{"by CPUs", 8, Resources{Device: "cpu", CPUsPerWorker: 4}, Partition{GPUsPerNode: 1, CPUsPerNode: 16}, 4, 2},
		{"by CPUs that are left over", 8, Resources{Device: "cpu", CPUsPerWorker: 7}, Partition{CPUsPerNode: 16}, 2, 4},
		{"a CPU a worker too few", 2, Resources{Device: "cpu", CPUsPerWorker: 4}, Partition{CPUsPerNode: 2}, 1, 2},
		{"one CPU", 3, Resources{Device: "cpu", CPUsPerWorker: 1}, Partition{CPUsPerNode: 1}, 1, 3},
		{"nothing known", 8, Resources{Device: "cpu", CPUsPerWorker: 4}, Partition{}, 8, 1},
		{"GPUs not known", 8, Resources{Device: "gpu", CPUsPerWorker: 4}, Partition{CPUsPerNode: 16}, 4, 2},
		{"does not divide", 6, Resources{Device: "gpu", CPUsPerWorker: 1}, Partition{GPUsPerNode: 4}, 0, 0},
	} {
		x := &expansion{study: &Study{}, said: map[string]bool{}}
		p := &Point{Workload: Workload{Kind: "train"}, Workers: c.workers, Resources: c.r}
		wrong := x.spread(p, c.q)
		switch {
		case c.nodes == 0:
			if !strings.Contains(wrong, "6 workers do not divide into nodes of 4") || len(x.problems) != 1 {
				t.Errorf("%s: %q, %v", c.name, wrong, x.problems)
			}
		case wrong != "" || p.WorkersPerNode != c.each || p.Nodes != c.nodes:
			t.Errorf("%s: %d on each of %d nodes, %q; want %d on each of %d", c.name, p.WorkersPerNode, p.Nodes, wrong, c.each, c.nodes)
		}
	}
}

// A point on 2 nodes with 4 workers each, 4 CPUs and 1 GiB per worker, at each limit of a
// partition and one beyond.
func TestFitsAtTheEdges(t *testing.T) {
	const gib = Bytes(1 << 30)
	point := func() *Point {
		return &Point{Workload: Workload{Kind: "train"}, Workers: 8,
			Resources: Resources{Device: "cpu", WorkersPerNode: 4, CPUsPerWorker: 4, Memory: gib, Time: Duration(time.Hour)}}
	}
	for _, c := range []struct {
		name string
		q    Partition
		want string
	}{
		{"no limits", Partition{}, ""},
		{"min_workers", Partition{MinWorkers: 8}, ""},
		{"above that", Partition{MinWorkers: 9}, "min_workers is 9"},
		{"max_workers", Partition{MaxWorkers: 8}, ""},
		{"below that", Partition{MaxWorkers: 7}, "max_workers is 7"},
		{"one", Partition{MaxWorkers: 1}, "max_workers is 1"},
		{"max_time", Partition{MaxTime: Duration(time.Hour)}, ""},
		{"below that", Partition{MaxTime: Duration(time.Hour - time.Second)}, "max_time is"},
		{"max_nodes", Partition{MaxNodes: 2}, ""},
		{"below that", Partition{MaxNodes: 1}, "max_nodes is 1, but the point takes 2"},
		{"cpus_per_node", Partition{CPUsPerNode: 16}, ""},
		{"below that", Partition{CPUsPerNode: 15}, "4 ranks a node with 4 CPUs each, but a node has 15"},
		{"memory_per_node", Partition{MemoryPerNode: 4 * gib}, ""},
		{"below that", Partition{MemoryPerNode: 4*gib - 1}, "4 ranks a node with"},
	} {
		x := &expansion{study: &Study{}, said: map[string]bool{}}
		if got := x.fits(point(), c.q); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for gpus, want := range map[int]string{0: "gpus_per_node is not set", 3: "4 workers a node, but 3 GPUs", 4: "", 5: ""} {
		p := point()
		p.Resources.Device = "gpu"
		x := &expansion{study: &Study{}, said: map[string]bool{}}
		if got := x.fits(p, Partition{GPUsPerNode: gpus}); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d GPUs: %q, want %q", gpus, got, want)
		}
	}
	short, long := Partition{Name: "short", MaxTime: Duration(time.Minute)}, Partition{Name: "long", MaxTime: Duration(time.Hour)}
	for _, c := range []struct {
		list []Partition
		want bool // all are too short
	}{{[]Partition{short}, true}, {[]Partition{short, long}, false}, {[]Partition{short, {Name: "any"}}, false}, {nil, false}} {
		if got := tooShort(c.list, Duration(time.Hour)); (got != "") != c.want {
			t.Errorf("%v: %q", c.list, got)
		}
	}
}

func TestStageFolder(t *testing.T) {
	for dir, valid := range map[string]bool{"/tmp": true, "$TMPDIR": true, "$TMPDIR/x": true, "tmp": false, "t/tmp": false, "t$TMPDIR": false, "~/x": false} {
		_, err := ParseSite("site.toml", []byte("[stage]\ndir = \""+dir+"\"\n"))
		if (err == nil) != valid {
			t.Errorf("stage.dir = %q: %v, want valid: %v", dir, err, valid)
		}
	}
}
