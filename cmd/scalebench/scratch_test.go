package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A scratch is a copy of the source with a few changes, and the programs built from it.
type scratch struct {
	t   *testing.T
	dir string
}

// An insertion is a new line and the existing line that it follows.
type insertion struct{ after, line string }

// newScratch builds programs from the source with new files, whose text is in
// testdata, and new lines in existing files.
func newScratch(t *testing.T, files map[string]string, lines map[string]insertion, programs ...string) *scratch {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s := &scratch{t, t.TempDir()}
	replace := map[string]string{}
	lay := func(target, text string) {
		replace[filepath.Join(root, target)] = s.write(strings.ReplaceAll(target, "/", "-"), text)
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for target, file := range files {
		lay(target, read(filepath.Join("testdata", file)))
	}
	for target, add := range lines {
		text := read(filepath.Join(root, target))
		if strings.Count(text, add.after) != 1 {
			t.Fatalf("%s does not have the line %q once", target, add.after)
		}
		lay(target, strings.Replace(text, add.after, add.after+add.line, 1))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", append([]string{"build", "-overlay", s.write("overlay.json", string(overlay)), "-o", s.dir + "/"}, programs...)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s
}

// write writes a file next to the programs and returns its path.
func (s *scratch) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// run runs the built scalebench and returns its output; it must end with the exit code.
func (s *scratch) run(code int, arguments ...string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.dir, "scalebench"), arguments...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "SCALEBENCH_DB="+filepath.Join(s.dir, "db"), "SCALEBENCH_RUNS="+filepath.Join(s.dir, "runs"), "SLURM_JOB_ID=")
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("scalebench %q: exit code %d\n%s", arguments, got, out)
	}
	return string(out)
}

// has checks that the text has all of these.
func (s *scratch) has(text string, all ...string) {
	s.t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			s.t.Errorf("lacks %s:\n%s", want, text)
		}
	}
}
