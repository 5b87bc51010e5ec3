package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/store"
)

// open returns a workspace with a separate database, and the notes that it gives.
func open(t *testing.T) (*Workspace, *[]string) {
	t.Helper()
	t.Setenv("SCALEBENCH_RUNS", "")
	notes := &[]string{}
	say := func(format string, a ...any) { *notes = append(*notes, fmt.Sprintf(format, a...)) }
	return &Workspace{DB: filepath.Join(t.TempDir(), "db.sqlite"), Note: say, Warn: say,
		Detail:    func(string, ...any) {},
		Elsewhere: func(study, home string) { say("%s is in %s", study, home) }}, notes
}

// load writes a study file into a folder and plans the study.
func load(t *testing.T, dir string) (*study.Study, *study.Plan) {
	t.Helper()
	file := filepath.Join(dir, "demo.toml")
	if err := os.WriteFile(file, []byte("[study]\nname = \"demo\"\n[command]\nrun = \"true\"\n[sweep]\nframework = [\"command\"]\nworkers = [1]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	st, err := study.Load(file, framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := st.Plan(study.DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	return st, plan
}

func TestDatabase(t *testing.T) {
	for name, c := range map[string]struct{ option, env, data, want string }{
		"option first":          {"/o.db", "/e.db", "/data", "/o.db"},
		"then the environment":  {"", "/e.db", "/data", "/e.db"},
		"then the data folder":  {"", "", "/data", "/data/scalebench/scalebench.db"},
		"no relative data home": {"", "", "data", "/home/me/.local/share/scalebench/scalebench.db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SCALEBENCH_DB", c.env)
			t.Setenv("XDG_DATA_HOME", c.data)
			t.Setenv("HOME", "/home/me")
			got, err := (&Workspace{DB: c.option}).Database()
			if err != nil || got != c.want {
				t.Errorf("Database() = %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestStoreError(t *testing.T) {
	for _, c := range []struct {
		err  error
		mine bool
	}{
		{fmt.Errorf("runs: %w", store.ErrNotFound), true},
		{&fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}, true},
		{errors.New("disk I/O error"), false},
		{nil, false},
	} {
		err := StoreError(c.err)
		var mine *Error
		if errors.As(err, &mine) != c.mine || !errors.Is(err, c.err) {
			t.Errorf("StoreError(%v) = %#v; want an Error: %v", c.err, err, c.mine)
		}
	}
}

// A study has one home: a second study of its name is refused there, and the study is
// found by its name from anywhere once it is recorded.
func TestClaim(t *testing.T) {
	w, notes := open(t)
	dir := t.TempDir()
	st, plan := load(t, dir)
	folder, err := w.FolderOf(t.Context(), st, study.DefaultSite())
	if want := rundir.OpenStudy(filepath.Join(dir, "runs"), "demo"); err != nil || folder != want {
		t.Fatalf("FolderOf = %s, %v; want %s", folder, err, want)
	}
	if err := w.Claim(t.Context(), st, plan, folder); err != nil {
		t.Fatal(err)
	}
	id, err := folder.Identity()
	if err != nil || id.Name != "demo" || id.StudyFile != filepath.Join(dir, "demo.toml") {
		t.Errorf("identity %+v, %v; want demo and its file", id, err)
	}
	if got := w.Recorded(t.Context(), "demo"); got.ID != id.ID || got.Home != folder.Path() {
		t.Errorf("the database has %+v; want id %s in %s", got, id.ID, folder.Path())
	}
	if err := w.Claim(t.Context(), st, plan, folder); err != nil || len(*notes) > 0 {
		t.Errorf("a second claim by the same study: %v, notes %q; want none", err, *notes)
	}

	t.Chdir(t.TempDir())
	if got, err := w.FolderNamed(t.Context(), "demo"); err != nil || got != folder {
		t.Errorf("FolderNamed from another folder = %s, %v; want %s", got, err, folder)
	}
	if want := []string{"demo is in " + folder.Path()}; len(*notes) != 1 || (*notes)[0] != want[0] {
		t.Errorf("notes %q; want %q", *notes, want)
	}

	// Another study of the name: refused in this folder, and with this database.
	other, otherPlan := load(t, t.TempDir())
	named := *w
	named.Runs = folder.Runs()
	var refused *Error
	if _, err := named.FolderOf(t.Context(), other, study.DefaultSite()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "another study demo") {
		t.Errorf("FolderOf for another study of the name: %v; want a refusal", err)
	}
	theirs := rundir.OpenStudy(t.TempDir(), "demo")
	if err := w.Claim(t.Context(), other, otherPlan, theirs); !errors.As(err, &refused) || refused.Hint == "" {
		t.Errorf("Claim by another study of the name: %v; want a refusal with a hint", err)
	}
	if _, err := theirs.Identity(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused claim wrote an identity: %v", err)
	}
}

// Without a database the results are empty, without an error.
func TestResultsWithoutDatabase(t *testing.T) {
	w, _ := open(t)
	r, err := w.Results(t.Context(), "demo", rundir.OpenStudy(t.TempDir(), "demo"))
	if err != nil || len(r.Done)+len(r.Last)+len(r.Made)+len(r.Forgotten) != 0 {
		t.Errorf("Results = %+v, %v; want none", r, err)
	}
	if _, err := os.Stat(w.DB); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading results made a database: %v", err)
	}
}
