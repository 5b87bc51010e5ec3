//go:build slurm

package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmCollective runs the benchmark of collectives in jobs: two ranks on one node, two on
// two nodes, and four on two.
func TestSlurmCollective(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{Conf: "Licenses=turn:1"}))
	b.write("site.toml", "[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\noptions = { licenses = \"turn\" }\n")
	study := `[study]
name = "links"
[workload]
kind = "collective"
min_bytes = "1K"
max_bytes = "1M"
iterations = 5
[resources]
time = "1h"
[sweep]
workers = [2, 4]
workers_per_node = [1, 2]
[[exclude]]
workers = 4
workers_per_node = 1
`
	b.write("links.toml", study)
	b.must(0, nil, "submit", "links.toml", "--site", "site.toml", "--wait", "--interval", "1s")
	b.must(0, nil, "collect", "links")
	type row struct {
		Series    string
		Workers   int
		Runs      int
		Bandwidth *float64
		Bytes     float64
		BusBW     *float64
	}
	var fits, sizes []row
	b.must(0, &fits, "scaling", "links", "--format", "json")
	for _, r := range fits {
		// If other work delays the small messages, times do not grow with the size, and
		// latency and bandwidth, or the whole row, are missing.
		if r.Runs > 1 || r.Bandwidth != nil && !(*r.Bandwidth > 0) {
			t.Errorf("%+v", r)
		}
	}
	b.must(0, &sizes, "scaling", "links", "-m", "busbw", "--format", "json")
	placements := map[string]int{} // curves with a bus bandwidth at 1 MiB
	placement := regexp.MustCompile(`workers_per_node=. workers=.`)
	for _, r := range sizes {
		if r.Bytes == 1<<20 {
			placements[placement.FindString(r.Series)]++
		}
		if r.Runs != 1 || r.BusBW == nil || !(*r.BusBW > 0) {
			t.Errorf("%+v", r)
		}
	}
	if want := map[string]int{"workers_per_node=1 workers=2": 8, "workers_per_node=2 workers=2": 8, "workers_per_node=2 workers=4": 8}; !maps.Equal(placements, want) {
		t.Errorf("four operations in and out of place at each placement, got %v, want %v", placements, want)
	}
	for _, a := range b.attempts("links") {
		text, err := os.ReadFile(a.Run.RankLog(0))
		if err != nil || strings.Count(string(text), "# Collective test starting: ") != 4 {
			t.Errorf("the log of rank 0: %v\n%s", err, text)
		}
	}
	b.must(0, nil, "plot", "busbw", "links", "-o", filepath.Join(b.dir, "busbw.svg"))
}
