package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNewFigure adds a figure in a scratch copy, as CONTRIBUTING.md says: one file and
// one value in the list. plot, the report, help and completion then have it.
func TestNewFigure(t *testing.T) {
	s := newScratch(t, map[string]string{"metrics/figure/share.go": "figure/share.go.txt"},
		map[string]insertion{"metrics/figure/preset.go": {after: "draw: breakdown},\n",
			line: "		{Name: \"share\", Title: \"Share of a worker\", About: \"throughput of each worker\", draw: single(share)},\n"}}, "./cmd/scalebench")
	s.write("runs.csv", "workers,throughput\n1,100\n2,180\n")
	s.run(0, "import", "runs.csv", "--from", "csv", "--set", "study=small", "--set", "framework=pytorch", "--set", "workload.scaling=weak")

	s.has(s.run(0, "plot", "share", "small", "-o", "share.svg"), "Markers: medians, divided by the workers.")
	s.has(s.run(0, "plot", "--help"), "share              throughput of each worker")
	s.has(s.run(0, "__complete", "plot", "sha"), "share\t")
	s.run(0, "report", "small", "-o", "page.html")
	page, err := os.ReadFile(filepath.Join(s.dir, "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	s.has(string(page), "Share of a worker", "Markers: medians, divided by the workers.")
}
