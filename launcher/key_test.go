package launcher

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/redact"
)

// secretStudy returns a study whose command has a secret and a plain variable.
func secretStudy(t *testing.T, name string) *study.Study {
	t.Helper()
	s, err := study.Parse(filepath.Join(t.TempDir(), "study.toml"), []byte("[study]\nname = \""+name+`"
[command]
run = "train {api_key}"
environment = { COLOR = "blue", API_TOKEN = "hunter2hunter2" }
[parameters]
api_key = "alpha-1"
[sweep]
framework = ["command"]
workers = [1]
`), framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func freeze(t *testing.T, folder rundir.Study, s *study.Study, key redact.Key) *study.Plan {
	t.Helper()
	s.Key = key
	plan, err := s.Plan(study.DefaultSite())
	if err == nil {
		err = Freeze(folder, plan, s, study.DefaultSite())
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Once a study is frozen its key is the one in its folder, regardless of the database. Studies in one runs
// folder share it.
func TestKey(t *testing.T) {
	dir, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	key := func(folder rundir.Study, database string) redact.Key {
		t.Helper()
		k, err := Key(folder, filepath.Join(dir, database))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	folder := rundir.OpenStudy(runs, "s")
	first := key(folder, "a/a.db")
	freeze(t, folder, secretStudy(t, "s"), first)
	for _, c := range []struct {
		folder   rundir.Study
		database string
		same     bool
	}{
		{folder, "a/a.db", true}, {folder, "b/b.db", true}, {rundir.OpenStudy(runs, "other"), "c.db", true},
		{rundir.OpenStudy(runs, "other"), "a/a.db", true}, {rundir.OpenStudy(filepath.Join(dir, "elsewhere"), "s"), "a/a.db", true},
		{rundir.OpenStudy(filepath.Join(dir, "elsewhere"), "s"), "d.db", false},
	} {
		if same := bytes.Equal(key(c.folder, c.database), first); same != c.same {
			t.Errorf("%s with %s: same key: %t", c.folder.Path(), c.database, same)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(key(folder, "a/a.db"), first) {
		t.Error("without the database the key is another one")
	}

	// Commands with different databases that begin a study at the same time do not both create its key.
	s := secretStudy(t, "s")
	s.Key = redact.NewKey()
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	if err := Freeze(folder, plan, s, study.DefaultSite()); !errors.Is(err, errAnotherKey) {
		t.Errorf("two keys for one study: %v", err)
	}

	if err := os.Chmod(folder.Key(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Key(folder, filepath.Join(dir, "a.db")); err == nil {
		t.Error("a key that everybody can read is used")
	}
}

// Plain secrets that an earlier version left in a run folder are hidden when it is
// read, and different ones stay different.
func TestPlainPointsAreSealed(t *testing.T) {
	folder := rundir.OpenStudy(filepath.Join(t.TempDir(), "runs"), "s")
	key := redact.NewKey()
	plan := freeze(t, folder, secretStudy(t, "s"), nil)
	for i, secret := range []string{"alpha-1", "beta-2"} {
		p := plan.Points[0].Point
		p.Repeat, p.Own = i+1, study.Own{"api_key": {Value: secret}}
		run := folder.Run(p.ID, p.Repeat, 1)
		for path, v := range map[string]any{run.Point(): p, run.Attempt(): Record{ID: run.ID(), Backend: "fake-beside"}} {
			text, err := json.Marshal(v)
			if err == nil {
				err = errors.Join(os.MkdirAll(run.Path(), 0o755), os.WriteFile(path, text, 0o644))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, keyed := range []bool{false, true} {
		if keyed {
			if err := keepKey(folder, key); err != nil {
				t.Fatal(err)
			}
		}
		attempts, err := Attempts(folder)
		if err != nil || len(attempts) != 2 {
			t.Fatal(attempts, err)
		}
		var got []any
		for _, a := range attempts {
			if a.Unreadable != nil || a.Unkeyed == keyed {
				t.Errorf("keyed %t: %v, %t", keyed, a.Unreadable, a.Unkeyed)
			}
			got = append(got, a.Point.Own["api_key"].Value)
		}
		if got[0] == got[1] || got[0] == "alpha-1" || got[0] == "withheld" || keyed && (got[0] != key.Hide("alpha-1") || got[1] != key.Hide("beta-2")) {
			t.Errorf("keyed %t: %v", keyed, got)
		}
	}
}
