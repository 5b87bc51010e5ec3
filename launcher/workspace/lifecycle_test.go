package workspace

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	_ "github.com/scalebench/scalebench/launcher/backend/slurm" // attempts name it
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// measured loads a study with two repeats of a point, and writes the folders of its runs as
// commands leave them: run 1 has ended well, run 2 has failed.
func measured(t *testing.T) (*Workspace, *Work, *[]string) {
	t.Helper()
	w, notes := open(t)
	w.WarnOf = func(list []Warning) {
		for _, one := range list {
			w.Warn("%s: %s", one.Kind, one.Text)
		}
	}
	w.Hold, w.Whole = func() {}, func(f func()) { f() }
	dir := t.TempDir()
	load(t, dir)
	k, err := w.Load(t.Context(), Request{Study: filepath.Join(dir, "demo.toml"), Overrides: []string{"repeats=2"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	put := func(path string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := rundir.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, status := range []metrics.Status{metrics.Done, metrics.Failed} {
		p := k.Plan.Points[i].Point
		run := k.Folder.Run(p.ID, p.Repeat, 1)
		if err := os.MkdirAll(run.Path(), 0o700); err != nil {
			t.Fatal(err)
		}
		put(run.Point(), p)
		put(run.Attempt(), launcher.Record{ID: run.ID(), Backend: "slurm", JobName: run.ID()})
		put(run.State(), launcher.Verdict{Status: status})
	}
	return w, k, notes
}

// stored returns the names of the runs that the database shows.
func stored(t *testing.T, w *Workspace) (names []string) {
	t.Helper()
	s, err := w.Select(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	return s.stored
}

// A run is collected, forgotten and restored; the folder and the database agree each time.
func TestCollectForgetRestore(t *testing.T) {
	w, k, notes := measured(t)
	w.Runs = k.Folder.Runs()
	var steps []int
	progress := func(done, total int) {
		if total != 2 {
			t.Errorf("progress of %d runs, want 2", total)
		}
		steps = append(steps, done)
	}
	if err := w.Collect(t.Context(), k.Folder, CollectOptions{Progress: progress}); err != nil {
		t.Fatal(err, *notes)
	}
	if want := []int{0, 1, 2}; !slices.Equal(steps, want) {
		t.Errorf("progress %v, want %v", steps, want)
	}
	if last := (*notes)[len(*notes)-1]; !strings.Contains(last, "1 done, 1 failed") {
		t.Errorf("last note %q; want it to count 1 done, 1 failed", last)
	}
	point := k.Plan.Points[0].Point.ID
	good, bad := "demo/"+point+"-r1-a1", "demo/"+point+"-r2-a1"
	if got := stored(t, w); len(got) != 2 || !slices.Contains(got, good) || !slices.Contains(got, bad) {
		t.Errorf("stored %q, want %s and %s", got, good, bad)
	}

	s, err := w.Select(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := s.Forget(t.Context(), ""); err != nil || !slices.Equal(names, []string{good}) {
		t.Fatalf("Forget = %q, %v; want %s", names, err, good)
	}
	if got := stored(t, w); !slices.Equal(got, []string{bad}) {
		t.Errorf("stored after Forget %q, want %s", got, bad)
	}
	if got := s.Path(good); got != filepath.Join(k.Folder.Trash().Path(), point+"-r1-a1") {
		t.Errorf("Path after Forget = %q", got)
	}
	// Collecting again does not bring it back.
	if err := w.Collect(t.Context(), k.Folder, CollectOptions{}); err != nil || len(stored(t, w)) != 1 {
		t.Errorf("collected again: %v, stored %q", err, stored(t, w))
	}
	if s, err = w.Select(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Forget(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "forgotten already") {
		t.Errorf("Forget twice: %v; want a refusal", err)
	}
	if names, err := s.Restore(t.Context()); err != nil || !slices.Equal(names, []string{good}) {
		t.Fatalf("Restore = %q, %v; want %s", names, err, good)
	}
	if got := stored(t, w); len(got) != 2 {
		t.Errorf("stored after Restore %q, want both", got)
	}
}

// The inventory, the choice and a retry agree on the runs left in a plan.
func TestInventoryChoiceRetry(t *testing.T) {
	w, k, _ := measured(t)
	in, err := k.Inventory(t.Context())
	point := k.Plan.Points[0].Point.ID
	if err != nil || in.Good[point] != 1 || in.Left[point] != 1 || !slices.Equal(in.Why[point], []string{"1 failed"}) {
		t.Errorf("Inventory = %+v, %v; want 1 good, 1 left because it failed", in, err)
	}
	if got, want := in.Summary(1), "1 point: 0 have results, 1 to run"; got != want {
		t.Errorf("Summary = %q, want %q", got, want)
	}
	choice, unread, err := k.Retry(t.Context(), nil, "")
	if err != nil || unread != 0 || choice == nil || len(choice.Plan.Points) != 1 || choice.Plan.Points[0].Point.Repeat != 2 {
		t.Fatalf("Retry = %+v, %d, %v; want repeat 2", choice, unread, err)
	}
	var refused *Error
	if _, _, err := k.Retry(t.Context(), []string{point + "-r1"}, ""); !errors.As(err, &refused) || !strings.Contains(refused.Hint, point+"-r2-a1") {
		t.Errorf("Retry of a good run: %v; want a refusal that names the failed one", err)
	}
	if choice, _, err := k.Retry(t.Context(), nil, "workers = 9"); choice != nil || err != nil {
		t.Errorf("Retry of no run = %+v, %v; want none", choice, err)
	}
	// A result in the database counts if its folder is gone.
	if err := w.Collect(t.Context(), k.Folder, CollectOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(k.Folder.Run(point, 1, 1).Path()); err != nil {
		t.Fatal(err)
	}
	if in, err := k.Inventory(t.Context()); err != nil || in.Good[point] != 1 {
		t.Errorf("without the folder: %+v, %v; want the result of the database", in, err)
	}
}

// A tag is kept in the folder and in the database.
func TestRemark(t *testing.T) {
	w, k, _ := measured(t)
	w.Runs = k.Folder.Runs()
	if err := w.Collect(t.Context(), k.Folder, CollectOptions{}); err != nil {
		t.Fatal(err)
	}
	n, err := w.Remark(t.Context(), "demo", func(r *metrics.Remarks) { r.Tags = []string{"first"} })
	if err != nil || n != 2 {
		t.Fatalf("Remark = %d, %v; want 2 runs", n, err)
	}
	p := k.Plan.Points[0].Point
	run := k.Folder.Run(p.ID, p.Repeat, 1)
	if said, ok, err := launcher.Remarks(run); err != nil || !ok || !slices.Equal(said.Tags, []string{"first"}) {
		t.Errorf("in the folder: %+v, %v, %v", said, ok, err)
	}
	db, err := w.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if said, err := db.Remarks(t.Context(), run.ID()); err != nil || !slices.Equal(said.Tags, []string{"first"}) {
		t.Errorf("in the database: %+v, %v", said, err)
	}
	if _, err := w.Remark(t.Context(), "demo/nothing", func(*metrics.Remarks) {}); err == nil {
		t.Error("a run that does not exist is not refused")
	}
}

func TestCommandRequest(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		command Command
		words   []string
		study   string   // the end of its path
		has     []string // overrides
		refused string
	}{
		"a study":             {words: []string{"demo.toml", "batch=64"}, study: "demo.toml", has: []string{"batch=64"}},
		"a command":           {Command{Workers: "1, 2", Repeats: 3}, []string{"--", "./train", "--lr", "0.1"}, "/train-lr-0.1.toml", []string{"study.repeats=3", "sweep.workers=[1, 2]", `command.run=["./train", "--lr", "0.1"]`}, ""},
		"its own name":        {Command{Name: "mine"}, []string{"--", "./train"}, "/mine.toml", []string{`study.name="mine"`}, ""},
		"a file":              {Command{Write: "kept.toml"}, []string{"--", "./train"}, "kept.toml", []string{"sweep.workers=[1]"}, ""},
		"keys come first":     {words: []string{"sweep.workers=[4]", "--", "./train"}, study: "/train.toml", has: []string{"sweep.workers=[4]"}},
		"no command":          {words: []string{"--"}, refused: "no command after --"},
		"a study file":        {words: []string{"--", "demo.toml"}, refused: "is a study file"},
		"a study, too":        {words: []string{"demo.toml", "--", "./train"}, refused: "give one or the other"},
		"an option too much":  {Command{Workers: "2", Name: "x"}, []string{"demo.toml"}, "", nil, "--name, --workers are for a command after --"},
		"no number of copies": {Command{Workers: "1,x"}, []string{"--", "./train"}, "", nil, "is not a number of workers"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := c.command.Request("", c.words)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v; want an error with %q", err, c.refused)
				}
				return
			}
			if err != nil || !strings.HasSuffix(r.Study, c.study) || r.Typed != slices.Contains(c.words, "--") {
				t.Errorf("%+v, %v; want study %s", r, err, c.study)
			}
			for _, override := range c.has {
				if !slices.Contains(r.Overrides, override) {
					t.Errorf("overrides %q lack %s", r.Overrides, override)
				}
			}
		})
	}
}
