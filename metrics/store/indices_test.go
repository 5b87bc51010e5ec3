package store

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// rowsOf returns n runs of a table, starting with row number from.
func rowsOf(sha string, from, n int) (list []Imported) {
	for i := range n {
		run, events, source := importedRun()
		run.Point = fmt.Sprintf("i%d", i%3)
		source.Path, source.SHA256, source.Part, source.Rows, source.Origin = "/t.csv", sha, fmt.Sprint("row ", from+i), fmt.Sprint(from+i), "origin"
		list = append(list, Imported{Run: run, Events: slices.Values(events), From: source})
	}
	return list
}

const indexList = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name"

// importedWith imports runs in one transaction that drops the indices after few runs, and
// reports for each run whether the indices were missing.
func importedWith(t *testing.T, s *Store, few int, list []Imported) (without []bool, reports []Report) {
	t.Helper()
	if err := s.withTx(t.Context(), func(tx *sql.Tx) error {
		all := newImporting(t.Context(), s, tx)
		all.indices.few = few
		for _, one := range list {
			report, err := all.one(one)
			if err != nil {
				return err
			}
			without, reports = append(without, len(all.indices.dropped) > 0), append(reports, report)
		}
		return all.settle()
	}); err != nil {
		t.Fatal(err)
	}
	return without, reports
}

func repeated(value bool, n int) (list []bool) {
	for range n {
		list = append(list, value)
	}
	return list
}

// An import drops the indices once it has stored as many runs as existed before, and a few.
// Any lookup recreates them, and the stored data is the same.
func TestImportIndices(t *testing.T) {
	s, plain := openStore(t), openStore(t)
	indices := table(t, s, indexList)
	stored := func(name string, few int, list []Imported, want []bool) {
		t.Helper()
		before, _ := importedWith(t, plain, 1<<30, list)
		if diff := cmp.Diff(repeated(false, len(list)), before); diff != "" {
			t.Errorf("%s: indices went away at once: %s", name, diff)
		}
		got, _ := importedWith(t, s, few, list)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: without indices, -want +got\n%s", name, diff)
		}
		if diff := cmp.Diff(indices, table(t, s, indexList)); diff != "" {
			t.Errorf("%s: -before +after\n%s", name, diff)
		}
		if got := value(t, s, "PRAGMA integrity_check"); got != "ok" {
			t.Errorf("%s: %s", name, got)
		}
		for _, s := range []*Store{plain, s} { // ids are drawn
			if _, err := s.write.Exec("UPDATE study SET id = name"); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := dump(t, plain), dump(t, s); a != b {
			t.Errorf("%s: %s", name, firstDifference(a, b))
		}
	}
	// With an empty database, the indices are missing from the fourth run on.
	stored("a new table", 4, rowsOf("aa", 1, 10), append(repeated(false, 3), repeated(true, 7)...))
	// With 10 stored runs, they are missing from the tenth on; rows of a stored study have their
	// points looked up before.
	other := rowsOf("bb", 1, 12)
	for i := range other {
		other[i].From.Origin = "other"
	}
	stored("another table", 4, other, append(repeated(false, 9), repeated(true, 3)...))
	// The table has grown, so each row is looked up.
	grown := rowsOf("cc", 1, 40)
	stored("a grown table", 4, grown, repeated(false, 40))
	// The same rows in one import: the second time they are looked up.
	twice := rowsOf("dd", 1, 60)
	for i := range twice {
		twice[i].Run.Study, twice[i].From.Origin = "new", "dd"
	}
	twice = append(twice, twice[3], twice[59])
	stored("a table twice", 4, twice, append(append(repeated(false, 51), repeated(true, 9)...), false, false))
	// Runs whose steps are read back need the index of their files.
	read := rowsOf("ee", 1, 130)
	for i := range read {
		read[i].Run.Study, read[i].From.Origin = "newer", "ee"
	}
	read[120].Events = slices.Values(append(slices.Collect(read[120].Events)[:1:1], stepsEvent(3, metrics.Steps{Tick: 1, Duration: fill(1, 2), Samples: fill(1, 3)})))
	stored("steps", 4, read, append(append(repeated(false, 111), repeated(true, 9)...), repeated(false, 10)...))
}

// A file's name is stored once for all of its runs, and removed with the last of them.
func TestSources(t *testing.T) {
	s := openStore(t)
	list := rowsOf("aa", 1, 5)
	sources := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, table(t, s, "SELECT path, sha256, (SELECT count(*) FROM import WHERE source = source.id) FROM source ORDER BY id")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	if _, err := importAll(t, s, list...); err != nil {
		t.Fatal(err)
	}
	sources("/t.csv|aa|5")
	for i := range list { // the same elsewhere, with another label
		list[i].From.Path, list[i].From.Replace = "/moved.csv", true
		list[i].Run.Parameters["platform"] = "other"
		if i == 2 {
			if _, err := importAll(t, s, list[:3]...); err != nil {
				t.Fatal(err)
			}
			sources("/t.csv|aa|2", "/moved.csv|aa|3")
		}
	}
	if _, err := importAll(t, s, list...); err != nil {
		t.Fatal(err)
	}
	sources("/moved.csv|aa|5")
}
