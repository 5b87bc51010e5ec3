package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A failure is a program that fails, and what the user must be told: what went wrong, where,
// and what to do.
type failure struct {
	name     string
	study    string // rest of the study file, after name and sweep
	files    map[string]string
	what     string // the status and the cause
	log      string // end of the path of the named log
	todo     string
	withheld string // text that must not be printed
}

// failsWith runs each study on this machine, with real processes.
func failsWith(t *testing.T, failures []failure) {
	worker := buildWorker(t)
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			l := &localRun{dir: dir}
			site := fmt.Sprintf("worker = %q\n", worker)
			files := map[string]string{"site.toml": site, "study.toml": "[study]\nname = \"f\"\n" + f.study + "[sweep]\nframework = [\"command\"]\nworkers = [1]\n"}
			for name, text := range f.files {
				files[name] = text
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := l.scalebench(t, "run", "study.toml", "--site", "site.toml", "--oversubscribe", "--unchecked")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitRunsFailed {
				t.Fatalf("%v:\n%s", err, out.String())
			}
			f.told(t, dir, out.String())
		})
	}
}

// told compares the output with what the user must be told.
func (f failure) told(t *testing.T, dir, out string) {
	t.Helper()
	lines := strings.Split(out, "\n")
	at := -1
	for i, line := range lines {
		if strings.Contains(line, "-r1-a1: ") && strings.Contains(line, f.what) {
			at = i
		}
	}
	if at < 0 || at+1 >= len(lines) {
		t.Fatalf("nothing says %q:\n%s", f.what, out)
	}
	if log := strings.TrimSpace(lines[at+1]); !filepath.IsAbs(log) || !strings.HasSuffix(log, f.log) {
		t.Errorf("the log is %q, want the full path of %s", log, f.log)
	} else if _, err := os.Stat(log); err != nil {
		t.Error(err)
	}
	if !strings.Contains(lines[at+2], f.todo) || f.todo == "" && strings.HasPrefix(lines[at+2], "  ") {
		t.Errorf("what to do is %q, want %q", lines[at+2], f.todo)
	}
	if f.withheld != "" && strings.Contains(out, f.withheld) {
		t.Errorf("the output shows %q:\n%s", f.withheld, out)
	}
}

// The programs are shell scripts, so no Python is needed.
func TestFailuresNameTheirCause(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	failsWith(t, []failure{
		{name: "interpreter not on PATH", study: "[command]\nrun = [\"no-such-python\", \"x.py\"]\n",
			what: fmt.Sprintf("failed: \"no-such-python\" is not on the PATH of %s; exit code 127", host), log: "rank-00000.log", todo: "Correct command.run"},
		{name: "interpreter missing", study: "[command]\nrun = [\"/opt/no/python\", \"x.py\"]\n",
			what: fmt.Sprintf("failed: \"/opt/no/python\" does not exist on %s", host), log: "rank-00000.log", todo: "Correct command.run"},
		{name: "not executable", study: "[command]\nrun = [\"/etc/passwd\"]\n",
			what: fmt.Sprintf("failed: \"/etc/passwd\" is not executable on %s", host), log: "rank-00000.log", todo: "Correct command.run"},
		{name: "script missing", study: "[command]\nrun = [\"sh\", \"nothing.sh\"]\n",
			what: "nothing.sh", log: "rank-00000.log", todo: "correct its path in command.run"},
		{name: "last line", study: "[command]\nrun = [\"sh\", \"x.sh\"]\n", files: map[string]string{"x.sh": "echo epoch 1\necho fatal: the data are gone >&2\nexit 7\n"},
			what: "failed: fatal: the data are gone; exit code 7", log: "rank-00000.log"},
		{name: "said when all was well", study: "[command]\nrun = [\"sh\", \"x.sh\"]\n", files: map[string]string{"x.sh": "echo epoch 1\nexit 7\n"},
			what: "failed: exit code 7; its last output was: epoch 1", log: "rank-00000.log"},
		{name: "silent", study: "[command]\nrun = [\"false\"]\n",
			what: "failed: exit code 1; it printed nothing", log: "rank-00000.log"},
		{name: "killed", study: "[command]\nrun = [\"sh\", \"x.sh\"]\n", files: map[string]string{"x.sh": "echo epoch 1\nkill -KILL $$\n"},
			what: "failed: killed by SIGKILL; its last output was: epoch 1; exit code 137", log: "rank-00000.log", todo: "raise resources.memory"},
		{name: "a secret", study: "[command]\nrun = [\"sh\", \"x.sh\", \"--api-key\", \"swordfish-4711\"]\n",
			files: map[string]string{"x.sh": "echo \"error: key $2 is refused; Authorization: Bearer abcdefghijklmnop0123\" >&2\nexit 1\n"},
			what:  "failed: error: key withheld is refused", log: "rank-00000.log", withheld: "swordfish-4711"},
		{name: "a traceback", study: "[command]\nrun = [\"sh\", \"x.sh\"]\n", files: map[string]string{"x.sh": `cat >&2 <<'END'
Traceback (most recent call last):
  File "/home/u/train.py", line 31, in <module>
    d['labels']
KeyError: 'labels'
END
exit 1
`}, what: "failed: KeyError: 'labels' (train.py:31); exit code 1", log: "rank-00000.log"},
	})
}
