package store

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// Two studies with the same name never overwrite each other's runs: the second one is an
// error, and the first one's runs stay unchanged.
func TestOtherStudyIsRefused(t *testing.T) {
	s := openStore(t)
	mine := Study{ID: "mine", Name: "s", Home: "/a/runs/s", File: "/a/s.toml"}
	if err := s.PutStudy(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	run := metrics.Run{ID: "s/p-r1-a1", Study: "s", StudyID: "mine", Point: "p", Repeat: 1, Attempt: 1, Framework: "native", Workers: 1, Status: metrics.Done, Detail: "mine"}
	if _, err := s.Ingest(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	other := run
	other.StudyID, other.Detail = "other", "other"
	if _, err := s.Ingest(t.Context(), other, nil); !errors.Is(err, ErrOtherStudy) {
		t.Errorf("a run of another study: %v", err)
	}
	if err := s.PutStudy(t.Context(), Study{ID: "other", Name: "s", Home: "/b/runs/s", File: "/b/s.toml"}); !errors.Is(err, ErrOtherStudy) {
		t.Errorf("another study: %v", err)
	}
	rows, err := s.Runs(t.Context(), Filter{Study: "s"})
	if err != nil || len(rows) != 1 || rows[0].Detail != "mine" {
		t.Errorf("runs: %+v, %v", rows, err)
	}
	mine.Home = "/c/runs/s"
	if err := s.PutStudy(t.Context(), mine); err != nil {
		t.Errorf("it moves: %v", err)
	}
	got, err := s.Study(t.Context(), "s")
	if diff := cmp.Diff(mine, got); diff != "" || err != nil {
		t.Errorf("-want +got (%v)\n%s", err, diff)
	}
}

// Imported runs create a study without a home. A study file of that name takes it over, and
// further runs can be imported into it.
func TestImportedStudy(t *testing.T) {
	s := openStore(t)
	importInto := func(digest string) {
		t.Helper()
		run := metrics.Run{Study: "s", Point: "p", Framework: "x", Workers: 1, Status: metrics.Done}
		if _, err := importAll(t, s, Imported{Run: run, From: Source{Path: "/log", SHA256: digest}}); err != nil {
			t.Fatal(err)
		}
	}
	importInto("1")
	imported, err := s.Study(t.Context(), "s")
	if err != nil || !imported.Imported() || imported.ID == "" {
		t.Fatalf("%+v, %v", imported, err)
	}
	mine := Study{ID: "mine", Name: "s", Home: "/a/runs/s", File: "/a/s.toml"}
	if err := s.PutStudy(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	importInto("2")
	if got, err := s.Study(t.Context(), "s"); err != nil || got != mine {
		t.Errorf("%+v, %v", got, err)
	}
}
