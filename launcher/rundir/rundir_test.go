package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// Of many commands that begin the same attempt, one gets it, and its folder is
// whole.
func TestCreateOnce(t *testing.T) {
	study := OpenStudy(t.TempDir(), "s")
	run := study.Run("native-w1-abc", 1, 1)
	var wait sync.WaitGroup
	results := make([]error, 16)
	for i := range results {
		wait.Add(1)
		go func() {
			defer wait.Done()
			results[i] = run.Create(func(at Folder) error { return WriteFile(at.Point(), []byte{byte(i)}, 0o600) })
		}()
	}
	wait.Wait()
	winner := -1
	for i, err := range results {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("both %d and %d created the run", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, fs.ErrExist):
			t.Errorf("%d: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody created the run")
	}
	if content, err := os.ReadFile(run.Point()); err != nil || content[0] != byte(winner) {
		t.Errorf("the run holds %v of another than %d (%v)", content, winner, err)
	}
	if left, _ := filepath.Glob(filepath.Join(study.Path(), ".new-*")); len(left) > 0 {
		t.Errorf("temporary folders are left: %v", left)
	}
}

func TestCreateThatFailsLeavesNothing(t *testing.T) {
	study := OpenStudy(t.TempDir(), "s")
	want := errors.New("disk full")
	if err := study.Run("p", 1, 1).Create(func(Folder) error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(study.Path()); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// The type of a file follows from its name, regardless of other files in the folder.
func TestListing(t *testing.T) {
	runs := t.TempDir()
	study := OpenStudy(runs, "s")
	run := study.Run("native-w4-0a1b2c3d4e", 12, 3)
	if got, want := run.ID(), "s/native-w4-0a1b2c3d4e-r12-a3"; got != want {
		t.Errorf("id is %s, want %s", got, want)
	}
	for _, file := range []string{study.Plan(), run.EventFile("rank", 3, 1), run.EventFile("supervisor", 100000, 0),
		filepath.Join(run.Events(), "rank-00003-0.jsonl.swp"), filepath.Join(study.Path(), "notes-r1-a1"), // a file, no run
		filepath.Join(study.Path(), "other", "x"), filepath.Join(run.Claim(0), "x"), filepath.Join(run.Claim(11), "x")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	attempts, err := study.Attempts()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Attempt{{run, "native-w4-0a1b2c3d4e", 12, 3}}, attempts); d != "" {
		t.Error(d)
	}
	files, err := run.EventFiles()
	if err != nil {
		t.Fatal(err)
	}
	want := []metrics.EventFile{
		{Path: run.EventFile("rank", 3, 1), Folder: string(run), Writer: "rank", Rank: 3, Restart: 1},
		{Path: run.EventFile("supervisor", 100000, 0), Folder: string(run), Writer: "supervisor", Rank: 100000},
	}
	if d := cmp.Diff(want, files); d != "" {
		t.Error(d)
	}
	if restarts, err := run.Restarts(); err != nil || !cmp.Equal(restarts, []int{0, 11}) {
		t.Errorf("restarts %v, %v", restarts, err)
	}
	if names, err := Studies(runs); err != nil || !cmp.Equal(names, []string{"s"}) {
		t.Errorf("studies %v, %v", names, err)
	}
}

// A power failure may truncate the id in a claim. Owner then returns "" rather than another job's id.
func TestOwnerOfATornClaim(t *testing.T) {
	run := OpenStudy(t.TempDir(), "s").Run("p", 1, 1)
	if err := os.MkdirAll(run.Claim(0), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"12345\n": "12345", "95_3\n": "95_3", "12": "", "": "", "\x00\x00\x00\n": "", "x\n": ""} {
		if err := os.WriteFile(filepath.Join(run.Claim(0), "job_id"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run.Owner(); got != want {
			t.Errorf("%q: owner %q, want %q", text, got, want)
		}
	}
}
