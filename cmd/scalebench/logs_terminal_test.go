package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A terminal may have no width (a serial line, a new pseudo-terminal): escapes of a log
// do not reach it either. A file gets the log as it is.
func TestLogsOnATerminalWithoutWidth(t *testing.T) {
	dir := t.TempDir()
	scalebench, worker := program(t, "scalebench"), buildWorker(t)
	const study = "[study]\nname = \"odd\"\n[workload]\nmodel = \"mlp\"\nmax_steps = 3\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = [1]\n"
	file := filepath.Join(dir, "study.toml")
	if err := os.WriteFile(file, []byte(study), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte("worker = \""+worker+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("SCALEBENCH_DB", filepath.Join(dir, "history.db"))
	if out, err := exec.Command(scalebench, "run", "study.toml", "--site", "site.toml").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	logs, err := filepath.Glob("runs/odd/*/rank-00000.log")
	if err != nil || len(logs) != 1 {
		t.Fatalf("%q, %v", logs, err)
	}
	const hostile = "begin\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\u202eend\n"
	if err := os.WriteFile(logs[0], []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]uint16{{0, 0}, {24, 0}, {0, 80}, {24, 80}} {
		control, terminal := newTerminal(t, size[0], size[1])
		c := exec.Command(scalebench, "logs", "odd", "--rank", "0")
		c.Stdout = terminal
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		if err := terminal.Close(); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(control) // ends with an error once no process has the terminal open
		if got := string(text); strings.ContainsAny(got, "\x1b\x07\u202e") || !strings.Contains(got, "begin") || !strings.Contains(got, "end") {
			t.Errorf("%d rows, %d columns: %q", size[0], size[1], got)
		}
	}
	if out, err := exec.Command(scalebench, "logs", "odd", "--rank", "0").Output(); err != nil || string(out) != hostile {
		t.Errorf("into a pipe: %q, %v", out, err)
	}
}
