package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Only unfinished folders and files that have not been changed for an hour, measured by the lease's clock, are
// removed. The targets of links stay.
func TestRemoveStale(t *testing.T) {
	study := OpenStudy(t.TempDir(), "s")
	now := time.Unix(4_000_000_000, 0) // not this host's time
	old, recent := now.Add(-2*time.Hour), now.Add(-59*time.Minute)
	entries := []struct {
		path  string // "/" at its end: a folder
		time  time.Time
		stays bool
	}{
		{".new-old/programs/", old, false},
		{".new-old/programs/rank.py", old, false},
		{".new-empty/", old, false},
		{".new-file", old, false},
		{".new-filled/", old, true},
		{".new-filled/point.json", recent, true},
		{".new-recent/", recent, true},
		{".new-ahead/", now.Add(time.Hour), true},
		{"native-w1-abc-r1-a1/.new-inside/", old, true},
		{"plan.json", old, true},
		{"elsewhere/kept", old, true},
		{"lease", now, true},
	}
	for _, e := range entries {
		path := filepath.Join(study.Path(), e.path)
		folder := filepath.Dir(path)
		if strings.HasSuffix(e.path, "/") {
			folder = path
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if folder != path {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, link := range []string{".new-old/link", ".new-link"} {
		if err := os.Symlink(filepath.Join(study.Path(), "elsewhere"), filepath.Join(study.Path(), link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(study.Path(), e.path), e.time, e.time); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(study.Path(), ".new-old"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := study.RemoveStale(); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(study.Path(), e.path)); (err == nil) != e.stays {
			t.Errorf("%s, last changed %v before: stays %v, want %v", e.path, now.Sub(e.time), err == nil, e.stays)
		}
	}
	for _, link := range []string{".new-old", ".new-link"} {
		if _, err := os.Lstat(filepath.Join(study.Path(), link)); err == nil {
			t.Errorf("%s stays", link)
		}
	}
}
