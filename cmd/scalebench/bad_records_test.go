package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// One bad record does not affect others: each command names its folder, continues with the
// other runs, still reaches Slurm, and reports neither a bug nor that Slurm is down.
func TestOneBadRecord(t *testing.T) {
	worker, scalebench := buildWorker(t), program(t, "scalebench")
	model := filepath.Join(t.TempDir(), "model")
	if err := os.MkdirAll(filepath.Join(model, "slurm"), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(model, "site.toml", fmt.Sprintf("worker = %q\n[[partitions]]\nname = \"cpu\"\n", worker))
	put(model, "study.toml", "[study]\nname = \"odd\"\nrepeats = 3\n[workload]\nmodel = \"mlp\"\nmax_steps = 3\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = [1]\n")
	run := func(args ...string) (string, int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a hang
		defer cancel()
		c := exec.CommandContext(ctx, scalebench, args...)
		c.Dir = model
		c.Env = append(os.Environ(), "HOME="+model, "SCALEBENCH_DB="+filepath.Join(model, "history.db"), slurmtest.FakeVariable+"="+filepath.Join(model, "slurm"))
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		var exit *exec.ExitError
		if err := powerless(c); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.String(), c.ProcessState.ExitCode()
	}
	if out, code := run("submit", "study.toml", "--site", "site.toml"); code != 0 {
		t.Fatalf("submit: %d\n%s", code, out)
	}
	runs, err := filepath.Glob(filepath.Join(model, "runs/odd/*-r?-a1"))
	if err != nil || len(runs) != 3 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	bad, good := filepath.Base(runs[0]), filepath.Base(runs[1])
	for _, c := range []struct {
		file, key string
		value     any
	}{
		{"attempt.json", "job_name", "a,b"},
		{"attempt.json", "job_name", "a b"},
		{"job.json", "job_id", "1,2"},
		{"job.json", "cluster", "all,"},
	} {
		path := filepath.Join(runs[0], c.file)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var keys map[string]any
		if err := json.Unmarshal(before, &keys); err != nil {
			t.Fatal(err)
		}
		keys[c.key] = c.value
		text, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		put(runs[0], c.file, string(text))
		for _, o := range []struct {
			args []string
			code int
			want string // in addition to the bad folder
		}{
			{[]string{"status", "odd"}, 3, good},
			{[]string{"collect", "odd"}, 3, "collected "},
			{[]string{"collect"}, 3, "collected "},
			{[]string{"submit", "study.toml", "--site", "site.toml"}, 3, ""},
			{[]string{"retry", "odd"}, 3, ""},
			{[]string{"forget", "odd", "--where", "workers=7"}, -1, ""},
			{[]string{"logs", "odd/" + good}, 2, "has no log"},
			{[]string{"cancel", "odd", "--where", "workers=7"}, -1, ""},
		} {
			out, code := run(o.args...)
			if o.code >= 0 && code != o.code || code == 1 || code == 4 {
				t.Errorf("%s of %s is %v: %v: exit code %d\n%s", c.key, c.file, c.value, o.args, code, out)
			}
			if o.args[0] != "logs" && code == 3 && !strings.Contains(out, bad) || !strings.Contains(out, o.want) || strings.Contains(out, "cannot be reached") {
				t.Errorf("%s of %s is %v: %v does not name %s, or the others\n%s", c.key, c.file, c.value, o.args, bad, out)
			}
		}
		put(runs[0], c.file, string(before))
	}
	// Damage to a colleague's study in the same runs folder does not affect mine.
	const other = "runs/other"
	for what, spoil := range map[string]func(dir string) error{
		"closed":              func(dir string) error { return os.Chmod(dir, 0) },
		"a closed plan":       func(dir string) error { return os.Chmod(filepath.Join(dir, "plan.json"), 0) },
		"a plan that is null": func(dir string) error { return os.WriteFile(filepath.Join(dir, "plan.json"), []byte("null"), 0o644) },
		"a plan of another form": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "plan.json"), []byte(`{"points":{}}`), 0o644)
		},
		"no identity":    func(dir string) error { return os.Remove(filepath.Join(dir, "identity.json")) },
		"a bad identity": func(dir string) error { return os.WriteFile(filepath.Join(dir, "identity.json"), []byte("x"), 0o644) },
		"closed runs":    func(dir string) error { return os.Chmod(filepath.Join(dir, bad), 0) },
		"a bad record": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, bad, "attempt.json"), []byte("{}"), 0o644)
		},
		"a link to itself": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink("other", dir)) },
	} {
		dir := filepath.Join(model, other)
		if out, err := exec.Command("cp", "-a", filepath.Join(model, "runs/odd"), dir).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"status"}, {"collect"}, {"status", "odd"}, {"collect", "odd"}, {"retry", "odd"}, {"submit", "study.toml", "--site", "site.toml"}, {"cancel", "odd", "--where", "workers=7"}} {
			out, code := run(args...)
			mine := len(args) > 1
			if code != 0 && code != 2 && code != 3 || mine && args[0] != "cancel" && code != 0 {
				t.Errorf("%s: %v: exit code %d\n%s", what, args, code, out)
			}
		}
		_ = os.Chmod(dir, 0o700)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}
