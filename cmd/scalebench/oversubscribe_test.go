package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/world"
)

// More ranks than CPUs are an error, or run on request; then every command that shows their
// figures says so.
func TestOversubscribed(t *testing.T) {
	l := &localRun{dir: t.TempDir()}
	ranks := world.CPUs() + 1
	study := strings.NewReplacer(`"f"`, `"crowded"`, "epochs = 1000000", "epochs = 1", "workers = [3]", fmt.Sprintf("workers = [%d]", ranks)).Replace(failingStudy)
	for name, content := range map[string]string{"study.toml": study, "site.toml": fmt.Sprintf("worker = %q\n", buildWorker(t))} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := l.scalebench(t, "run", "study.toml", "--site", "site.toml").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte(fmt.Sprintf("the run needs %d CPUs (%d workers with 1 each), and this process may use %d", ranks, ranks, ranks-1))) {
		t.Errorf("run: %v\n%s", err, out)
	}
	if out, err := l.scalebench(t, "run", "study.toml", "--site", "site.toml", "--oversubscribe").CombinedOutput(); err != nil {
		t.Fatalf("run --oversubscribe: %v\n%s", err, out)
	}
	mark := regexp.MustCompile(fmt.Sprintf(`%d ranks on \S+ compute with %d threads on %d CPUs?`, ranks, ranks, ranks-1))
	runs, err := filepath.Glob(filepath.Join(l.dir, "runs", "crowded", "native-*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, %v", runs, err)
	}
	for _, command := range [][]string{
		{"show", "crowded/" + filepath.Base(runs[0])},
		{"scaling", "crowded"},
		{"plot", "throughput", "crowded", "-o", "t.svg"},
	} {
		// A short run need not have a steady state; then these fail, with the mark.
		if out, _ := l.scalebench(t, command...).CombinedOutput(); !mark.Match(out) {
			t.Errorf("%s does not say that %d ranks had %d CPUs:\n%s", command, ranks, ranks-1, out)
		}
	}
}

// The ranks of a program whose output is read record nothing themselves; their supervisors
// know the CPUs. One rank's figure for all keeps its warning in each table.
func TestOversubscribedCommand(t *testing.T) {
	l := &localRun{dir: t.TempDir()}
	ranks := world.CPUs() + 1
	for name, content := range map[string]string{"site.toml": fmt.Sprintf("worker = %q\n", buildWorker(t)), "study.toml": fmt.Sprintf(`
[study]
name = "spoken"
[command]
run = "echo speed: 7"
[[extract]]
name = "speed"
unit = "sentences/s"
pattern = 'speed: (?P<value>\d+)'
of = "rank"
better = "higher"
[sweep]
framework = ["command"]
workers = [%d]
`, ranks)} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := l.scalebench(t, "run", "study.toml", "--site", "site.toml", "--oversubscribe").CombinedOutput(); err != nil {
		t.Fatalf("run --oversubscribe: %v\n%s", err, out)
	}
	crowded := regexp.MustCompile(fmt.Sprintf(`%d ranks on \S+ compute with %d threads on %d CPUs?`, ranks, ranks, ranks-1))
	scaled := fmt.Sprintf("speed: one rank's times %d, not a measured aggregate", ranks)
	for _, command := range [][]string{{"scaling", "spoken", "-m", "speed", "-v"}, {"plot", "speed", "spoken", "-o", "s.svg", "-v"}, {"show", fmt.Sprintf("spoken/command-w%d", ranks)}} {
		out, _ := l.scalebench(t, command...).CombinedOutput()
		if !crowded.Match(out) || !bytes.Contains(out, []byte(scaled)) {
			t.Errorf("%s says neither that %d ranks had %d CPUs nor that one speaks for all:\n%s", command, ranks, ranks-1, out)
		}
	}
}
