package study

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One factor at a time: the first values, then the other values of each key alone, for
// every framework and worker count, plus [[include]].
func TestOneFactor(t *testing.T) {
	of := func(sweep, rest string) string {
		return strings.Replace(minimal, "workers = [1, 2, 4]", sweep, 1) + rest
	}
	points := func(s *Study) (list []string) {
		for _, p := range plan(t, s, DefaultSite()).Points {
			list = append(list, fmt.Sprintf("%d workers, %d CPUs, batch %d", p.Point.Workers, p.Point.Resources.CPUsPerWorker, p.Point.Workload.Train.Batch))
		}
		return list
	}
	const axes = "design = \"one-factor\"\nworkers = [1, 2]\ncpus_per_worker = [8, 4, 2]\nbatch = [64, 32]"
	alone := []string{
		"1 workers, 8 CPUs, batch 64", "2 workers, 8 CPUs, batch 64", "1 workers, 8 CPUs, batch 32", "2 workers, 8 CPUs, batch 32",
		"1 workers, 4 CPUs, batch 64", "2 workers, 4 CPUs, batch 64", "1 workers, 2 CPUs, batch 64", "2 workers, 2 CPUs, batch 64",
	}
	if diff := cmp.Diff(alone, points(parse(t, of(axes, "")))); diff != "" {
		t.Errorf("one factor at a time (-want +got):\n%s", diff)
	}
	with := points(parse(t, of(axes, "[[include]]\ncpus_per_worker = [4, 2]\nbatch = 32\nworkers = 2\n")))
	if len(with) != len(alone)+2 || !strings.Contains(strings.Join(with, "\n"), "2 workers, 4 CPUs, batch 32\n") || strings.Contains(strings.Join(with, "\n"), "1 workers, 4 CPUs, batch 32") {
		t.Errorf("with more: %q", with)
	}
	// The reference point is marked once per worker count. The mark belongs to the plan, so
	// identities do not change.
	for design, want := range map[string]int{"one-factor": 2, "grid": 0} {
		n := 0
		for _, p := range plan(t, parse(t, of(strings.Replace(axes, "one-factor", design, 1), "")), DefaultSite()).Points {
			if p.Unconstrained {
				n++
				if p.Point.Resources.CPUsPerWorker != 8 || p.Point.Workload.Train.Batch != 64 {
					t.Errorf("%s: unconstrained with %d CPUs, batch %d", design, p.Point.Resources.CPUsPerWorker, p.Point.Workload.Train.Batch)
				}
			}
		}
		if n != want {
			t.Errorf("%s: %d unconstrained points, want %d", design, n, want)
		}
	}
	grid := points(parse(t, of(strings.Replace(axes, "one-factor", "grid", 1), "")))
	if len(grid) != 12 {
		t.Errorf("a grid has %d points, want 12", len(grid))
	}
	// The first values together, then the second values: machine sizes. A key with one
	// value keeps it.
	both := points(parse(t, of("design = \"together\"\nworkers = [1, 2]\ncpus_per_worker = [8, 4, 2]\nbatch = [64, 32, 16]\nlearning_rate = [0.1]", "")))
	want := []string{
		"1 workers, 8 CPUs, batch 64", "2 workers, 8 CPUs, batch 64", "1 workers, 4 CPUs, batch 32", "2 workers, 4 CPUs, batch 32",
		"1 workers, 2 CPUs, batch 16", "2 workers, 2 CPUs, batch 16",
	}
	if diff := cmp.Diff(want, both); diff != "" {
		t.Errorf("together (-want +got):\n%s", diff)
	}
	// A resource is enforced if the study is about resources, even if it has a single
	// value.
	for design, held := range map[string]bool{"together": true, "one-factor": true, "grid": false} {
		s := parse(t, of("design = \""+design+"\"\nworkers = [1]\nmemory = [\"4G\"]\nbatch = [64, 32]", ""))
		if p := plan(t, s, DefaultSite()).Points[0].Point; s.MustEnforce(MemoryKey) != held || p.Enforces(MemoryKey) != held {
			t.Errorf("%s: memory is held: %v, want %v", design, p.Enforces(MemoryKey), held)
		}
	}
	// Six more runs per point.
	more := strings.Replace(of("workers = [1]", ""), "[study]", "[study]\nfirst_repeat = 3\nrepeats = 4", 1)
	if list := plan(t, parse(t, more), DefaultSite()).Points; len(list) != 2 || list[0].Point.Repeat != 3 || list[1].Point.Repeat != 4 || list[1].Point.Seed-list[0].Point.Seed != 1 {
		t.Errorf("repeats 3 and 4: %+v", list)
	}
	// Ten keys with ten values: 10^10 combinations, 91 with one factor at a time.
	var many strings.Builder
	many.WriteString("design = \"one-factor\"\nworkers = [1]")
	for key := range 10 {
		fmt.Fprintf(&many, "\nparameters.p%d = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]", key)
	}
	source := of(many.String(), "[command]\nrun = \"x {p0} {p1} {p2} {p3} {p4} {p5} {p6} {p7} {p8} {p9}\"\nextract = [\"time\"]\n")
	source = strings.Replace(source, "[sweep]", "[sweep]\nframework = [\"command\"]", 1)
	s, err := Parse("study.toml", []byte(source), []Framework{{Name: "command", Command: true}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(points(s)); n != 91 {
		t.Errorf("ten keys of ten values: %d points, want 91", n)
	}

	for _, test := range []struct{ sweep, rest, want string }{
		{strings.Replace(axes, "one-factor", "one", 1), "", `sweep.design: "one"`},
		{strings.Replace(axes, "one-factor", "grid", 1), "[[include]]\nbatch = 32\n", `include: adds nothing to a sweep of every combination`},
		{"design = \"together\"\nworkers = [1]\ncpus_per_worker = [8, 4, 2]\nbatch = [64, 32]", "", `has 2 values and sweep.cpus_per_worker 3`},
		{axes, "[[include]]\nbatch = 16\n", `include[0].batch: has a value that sweep.batch does not list`},
		{axes, "[[include]]\nepochs = 3\n", `include[0].epochs: is not swept`},
		{axes, "[[include]]\n", `include[0]: is empty`},
	} {
		_, err := Parse("study.toml", []byte(of(test.sweep, test.rest)), frameworks)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: %v, want %s", test.sweep, test.rest, err, test.want)
		}
	}
}
