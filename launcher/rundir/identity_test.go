package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// Of many that claim a folder at once all get the same answer, and no temporary files remain. Later claims get
// the same answer.
func TestClaim(t *testing.T) {
	folder := OpenStudy(filepath.Join(t.TempDir(), "runs"), "s")
	if _, err := folder.Identity(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before anybody has claimed it: %v", err)
	}
	var all sync.WaitGroup
	answers := make([]Identity, 8)
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = folder.Claim(Identity{metrics.NewStudyID(), "s", "/home/a/s.toml"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, a := range answers {
		if a != answers[0] || a.ID == "" {
			t.Errorf("claim %d got %+v, the first %+v", i, a, answers[0])
		}
	}
	if entries, err := os.ReadDir(folder.Path()); err != nil || len(entries) != 2 { // itself and .gitignore
		t.Errorf("left behind: %v (%v)", entries, err)
	}
	moved := answers[0]
	moved.StudyFile = "/home/b/s.toml"
	if err := folder.Move(moved); err != nil {
		t.Fatal(err)
	}
	if got, err := folder.Claim(Identity{metrics.NewStudyID(), "s", "/home/c/s.toml"}); err != nil || got != moved {
		t.Errorf("after it has moved: %+v, %v; want %+v", got, err, moved)
	}
}

// Files that scalebench did not write are refused.
func TestIdentityRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"id": "abcdefghijklmnopqrstuvwxyz", "name": "s", "study_file": "/s.toml"}`: "",
		`{"id": "../s", "name": "s", "study_file": "/s.toml"}`:                       "is not a study id",
		`{"id": "abcdefghijklmnopqrstuvwxyz", "name": "t", "study_file": "/s.toml"}`: `belongs to study "t"`,
		`{"id": "abcdefghijklmnopqrstuvwxyz", "name": "s", "study_file": "s.toml"}`:  "is not an absolute path",
		`{"id": `: "cannot be read",
	} {
		folder := OpenStudy(t.TempDir(), "s")
		if err := errors.Join(os.Mkdir(folder.Path(), 0o755), os.WriteFile(filepath.Join(folder.Path(), "identity.json"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		_, err := folder.Identity()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A file is the same under every name that it has; a copy is another.
func TestSameFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("a"), []byte("x"), 0o644), os.WriteFile(at("copy"), []byte("x"), 0o644),
		os.Symlink("a", at("link")), os.Link(at("a"), at("second"))); err != nil {
		t.Fatal(err)
	}
	for other, want := range map[string]bool{"a": true, "link": true, "second": true, "copy": false, "none": false} {
		if got := SameFile(at("a"), at(other)); got != want {
			t.Errorf("a and %s: %t, want %t", other, got, want)
		}
	}
}
