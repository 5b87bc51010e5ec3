package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Runs are assigned to the same curves as by package scaling with all of their places. To save
// memory with millions of places, the store passes only one place per operation.
func TestSpans(t *testing.T) {
	for name, bound := range map[string]func(run int) any{
		"alike":           func(int) any { return "1h" },
		"bounded apart":   func(run int) any { return fmt.Sprint(run%2, "h") }, // at sizes that they have in common
		"bounded by half": func(run int) any { return fmt.Sprint(run/2, "h") },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			var list []Imported
			for i := range 4 {
				run, _, from := importedRun()
				run.Kind, run.Point, run.Workers, from.Part = "collective", fmt.Sprint("p", i), 2+2*(i/2), fmt.Sprint(i)
				run.Parameters = map[string]any{"resources.time": bound(i), "op": "ours"} // a label may have a coordinate's name
				events := []metrics.Event{{Start: &metrics.Start{Format: metrics.FormatVersion, Writer: "rank", WorldSize: run.Workers, Ranks: run.Workers}}}
				for _, op := range []string{"all_reduce", ""} {
					for size := range 5 + i {
						m := busbw.Measurement{Op: op, Bytes: float64(int(64) << ((size + 3*i) % 7)), InPlace: size%2 == 0, Seconds: new(1e-6 * float64(size+1)), BusBW: new(1e9)}
						for _, f := range m.Figures() {
							events = append(events, metrics.Event{Figure: &f})
						}
					}
				}
				list = append(list, Imported{Run: run, Events: slices.Values(events), From: from})
			}
			if _, err := importAll(t, s, list...); err != nil {
				t.Fatal(err)
			}
			if err := s.Arrange(t.Context()); err != nil {
				t.Fatal(err)
			}
			obs, _, err := s.Observations(t.Context(), "old")
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			places := 0
			for _, one := range scaling.Arrange(obs, nil) {
				for _, m := range one.Members {
					want = append(want, fmt.Sprintf("%s|%s|%s|%s|%s", one.Name, one.Base, m.Run, m.Place, m.At))
				}
			}
			for _, o := range obs {
				places += len(o.Places)
			}
			got := table(t, s, `SELECT s.name, s.base, r.name, p.at, m.at FROM member m JOIN series s ON s.id = m.series JOIN run r ON r.id = m.run JOIN place p ON p.id = m.place`)
			slices.Sort(want)
			if diff := gocmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" || len(want) < places {
				t.Errorf("%d members of %d places (-want +got):\n%s", len(want), places, diff)
			}
			if name != "alike" {
				return
			}
			err = s.withTx(t.Context(), func(tx *sql.Tx) error {
				o := newObserver(t.Context(), tx, Filter{})
				o.ids = jsonList([]int{1, 2, 3, 4})
				if err := cmp.Or(o.runs(), o.parameters(), o.places()); err != nil {
					return err
				}
				for i, v := range o.list { // two operations, in place and out, with a fit or without
					if n := len(v.Places); n > 2*2*2 || n == 0 {
						t.Errorf("run %d is arranged by %d of %d places", i, n, len(obs[i].Places))
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
