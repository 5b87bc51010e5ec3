package store

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-sqlite3"

	"github.com/scalebench/scalebench/metrics"
)

// Arranging a study's runs keeps only distinct ones in memory. A run with another parameter
// or fingerprint, or with places within it, is a separate one; runs that do not count are
// skipped.
func TestRunsAlike(t *testing.T) {
	s := openStore(t)
	var list []Imported
	add := func(change func(*metrics.Run), events ...metrics.Event) {
		run, _, from := importedRun()
		run.Parameters = map[string]any{"lr": 0.1}
		change(&run)
		from.Part = fmt.Sprint(len(list))
		start := metrics.Event{Start: &metrics.Start{Format: metrics.FormatVersion, Writer: "rank", WorldSize: run.Workers, Ranks: run.Workers}}
		rate := metrics.Event{Figure: &metrics.Figure{Name: "throughput", Value: 100, Unit: "samples/s"}}
		list = append(list, Imported{Run: run, Events: slices.Values(append([]metrics.Event{start, rate}, events...)), From: from})
	}
	for i := range 50 {
		add(func(r *metrics.Run) { r.Point, r.Workers = []string{"a", "b"}[i%2], 1+i%2 })
	}
	add(func(r *metrics.Run) { r.Point, r.Workers, r.Parameters["lr"] = "a", 1, 0.1+1e-17*5 }) // equals 0.1 in 15 digits, but is another number
	add(func(r *metrics.Run) { r.Point, r.Workers, r.Parameters["lr"] = "a", 1, "0.1" })
	add(func(r *metrics.Run) { r.Point, r.Workers, r.Status = "a", 1, metrics.Failed })
	if _, err := importAll(t, s, list...); err != nil {
		t.Fatal(err)
	}
	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	err := s.withTx(t.Context(), func(tx *sql.Tx) error {
		alike, err := runsAlike(t.Context(), tx, "old")
		for _, ids := range alike {
			sizes = append(sizes, len(ids))
		}
		return err
	})
	if diff := cmp.Diff([]int{25, 1, 1, 25}, sizes); diff != "" || err != nil {
		t.Errorf("-want +got (%v)\n%s", err, diff)
	}
	if got := value(t, s, "SELECT count(DISTINCT run) FROM member"); got != "52" {
		t.Errorf("%s runs are on curves, want 52", got)
	}
}

// The names of curves are written in one pass over the runs. A study of a million runs is
// larger than the cache, so a pass per point would write the whole file each time.
func TestArrangeInOnePass(t *testing.T) {
	s := openStore(t)
	if _, err := importAll(t, s, rowsOf("aa", 1, 12)...); err != nil { // of three points, in turn
		t.Fatal(err)
	}
	c, err := s.write.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var written []int64
	if err := c.Raw(func(c any) error {
		c.(*sqlite3.SQLiteConn).RegisterUpdateHook(func(_ int, _, table string, row int64) {
			if table == "every_run" {
				written = append(written, row)
			}
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, written); diff != "" {
		t.Errorf("runs in the order in which they were written: -want +got\n%s", diff)
	}
	if got := value(t, s, "SELECT count(DISTINCT series), min(length(series) > 0) FROM runs"); got != "1|1" {
		t.Errorf("series, and whether all runs have one: %s", got)
	}
}
