package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
)

// text returns a grid as lines: of each row the values, then the cells.
func (g *Grid) text() (lines []string) {
	lines = append(lines, strings.Join(append(append([]string{}, g.Heads...), g.Columns...), " "))
	for _, r := range g.Rows {
		line := strings.Join(r.Values, " ")
		for _, c := range r.Cells {
			switch {
			case c.Runs > 0:
				line += fmt.Sprintf(" %d", c.Runs)
			case c.Status == "":
				line += " -"
			default:
				line += " " + strings.TrimSpace(string(c.Status)+" "+c.Run)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *attemptsOf) at(point string, workers, repeat, number int, status metrics.Status) {
	one := attempt(point, repeat, number, status, 1000, 0)
	one.Point.Workers = workers
	*s = append(*s, one)
}

type attemptsOf []launcher.State

// A run counts by its last attempt; rows are sorted by workers.
func TestGridOfRuns(t *testing.T) {
	var s attemptsOf
	s.at("w10", 10, 1, 1, metrics.Running)
	s.at("w2", 2, 1, 1, metrics.Failed)
	s.at("w2", 2, 1, 2, metrics.Done)
	s.at("w2", 2, 3, 1, metrics.OutOfMemory)
	planned := unbegun("w10", 2)
	planned[0].Point.Workers = 10
	want := []string{
		"framework workers 1 2 3",
		"native 2 done w2-r1-a2 - out_of_memory w2-r3-a1",
		"native 10 running w10-r1-a1 planned -",
	}
	if d := cmp.Diff(want, NewGrid(BriefsOf(s, planned)).text()); d != "" {
		t.Error(d)
	}
}

// With more than 400 runs, each point has counts; a failed run is listed. 2 points of 250 runs: one
// has 249 done and 1 failed, the other 100 done and 150 planned.
func TestGridOfCounts(t *testing.T) {
	var s attemptsOf
	for i := range 250 {
		status := metrics.Done
		if i == 7 {
			status = metrics.Failed
		}
		s.at("w1", 1, i+1, 1, status)
	}
	for i := range 100 {
		s.at("w2", 2, i+1, 1, metrics.Done)
	}
	var planned []launcher.Unbegun
	for i := range 150 {
		one := unbegun("w2", 101+i)[0]
		one.Point.Workers = 2
		planned = append(planned, one)
	}
	g := NewGrid(BriefsOf(s, planned))
	want := []string{
		"framework workers planned done failed",
		"native 1 - 249 1",
		"native 2 150 100 -",
	}
	if d := cmp.Diff(want, g.text()); d != "" {
		t.Error(d)
	}
	if len(g.Notable) != 1 || g.Notable[0].Run != "w1-r8-a1" {
		t.Errorf("listed: %v, want w1-r8-a1", g.Notable)
	}
}

// With more than 200 points, rows are worker counts: 201 points of 4 workers and 100 of 8, each with
// one run, of which every tenth failed: 21 and 10.
func TestGridByWorkers(t *testing.T) {
	var s attemptsOf
	for i := range 301 {
		workers, status := 4, metrics.Done
		if i >= 201 {
			workers = 8
		}
		if i%10 == 0 && i <= 200 || i > 200 && i%10 == 1 {
			status = metrics.Failed
		}
		s.at(fmt.Sprintf("p%d", i), workers, 1, 1, status)
	}
	g := NewGrid(BriefsOf(s, nil))
	want := []string{
		"framework workers points done failed",
		"native 4 201 180 21",
		"native 8 100 90 10",
	}
	if d := cmp.Diff(want, g.text()); d != "" {
		t.Error(d)
	}
	if len(g.Notable) != 31 {
		t.Errorf("%d runs listed, want 31", len(g.Notable))
	}
}
