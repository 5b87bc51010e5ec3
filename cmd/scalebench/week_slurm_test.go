//go:build slurm

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestWeek is a new user's first week on a real cluster: testdata/week has what they type,
// including mistakes, and testdata/week/golden everything that they
// read. The trainings of most tasks print figures that follow from
// their worker count, batch and seed, so that every answer is known beforehand.
//
//	seen NAME               what the last command printed is golden/TASK-NAME
//	until PATTERN COMMAND   run COMMAND until it prints PATTERN
func TestWeek(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	root := filepath.Join(c.Dir, "week")
	bin := filepath.Join(root, "bin")
	copyPrograms(t, bin)
	folder := func(path string) string {
		t.Helper()
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	golden, examples, docs := folder("testdata/week/golden"), folder("../../examples"), folder("../../docs")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/week",
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		ContinueOnError:     *update,
		Setup: func(e *testscript.Env) error {
			for _, setting := range c.Env() {
				if name, value, _ := strings.Cut(setting, "="); name == "SLURM_CONF" {
					e.Setenv(name, value)
				} else if name == "PATH" {
					e.Setenv(name, bin+":"+value)
				}
			}
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("NO_COLOR", "1")
			e.Setenv("XDG_CACHE_HOME", "none") // which warnings were printed before depends on the time between commands
			e.Setenv("TZ", "UTC")
			e.Setenv("GOLDEN", golden)
			e.Setenv("EXAMPLES", examples)
			e.Setenv("DOCS", docs)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "seen": seen, "until": until},
	})
}

// Texts that differ between runs, in the order in which they are replaced.
var (
	ownFolder = regexp.MustCompile(`(/[^\s/:]+)+/week/script-[a-z0-9_-]+`)
	identity  = regexp.MustCompile(`-[0-9a-f]{10}\b|\b[0-9a-f]{16,64}\b`)
	numbers   = regexp.MustCompile(`\d+(?:[.,:T-]\d+)*Z?`)
	durations = regexp.MustCompile(`# (?:h|min|s|ms|µs)(?: # (?:min|s|ms))*\b`)
	spaces    = regexp.MustCompile(`[ ─-]{2,}`)

	// All nodes of the cluster are this machine, which may have too few CPUs for them.
	crowded = regexp.MustCompile(`(?m)^(?:warning|Doubtful): .* ranks on \S+ compute with \d+ threads on .*\n| Doubtful: [^.]* ranks on \S+ compute with \d+ threads on \d+ CPUs[^.]*\.`)
	because = regexp.MustCompile(`(Provisional because )[^;]* ranks on \S+ compute with \d+ threads on \d+ CPUs(?: \([^)]*\))?; `)
	// The machine may or may not drift during the test.
	adjusted = regexp.MustCompile(`(?m)^Speedups: ratios of medians corrected for the machine's drift.*\n|, corrected for the machine's drift`)
)

// seen compares the output with a golden file. Numbers are replaced by "#", because they are
// measured, unless the task says "seen -exact NAME".
func seen(ts *testscript.TestScript, neg bool, args []string) {
	exact := len(args) == 2 && args[0] == "-exact"
	if neg || !exact && len(args) != 1 {
		ts.Fatalf("usage: seen [-exact] NAME")
	}
	steady := func(text string) string {
		text = strings.ReplaceAll(text, "do not see the variation between allocations", "do not see the variation between…") // cut off depending on the digits before it
		return crowded.ReplaceAllString(adjusted.ReplaceAllString(because.ReplaceAllString(text, "$1"), ""), "")
	}
	text := steady(ts.ReadFile("stdout"))
	if said := steady(ts.ReadFile("stderr")); said != "" {
		text += "--- standard error\n" + said
	}
	host, err := os.Hostname()
	ts.Check(err)
	text = regexp.MustCompile(`\b(on|of) `+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(text, "$1 HOST")
	text = identity.ReplaceAllString(ownFolder.ReplaceAllString(text, "~"), "-HASH")
	if !exact {
		text = durations.ReplaceAllString(numbers.ReplaceAllString(text, "#"), "# s")
		text = spaces.ReplaceAllString(strings.ReplaceAll(text, "# node-seconds", "# node-hours"), "  ")
	}
	// Slurm decides how far a job gets before it is cancelled.
	text = strings.ReplaceAll(text, ", before it started", "")
	task := strings.TrimPrefix(filepath.Base(ts.Getenv("WORK")), "script-")
	path := filepath.Join(ts.Getenv("GOLDEN"), task+"-"+args[len(args)-1]+".txt")
	if *update {
		ts.Check(os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	ts.Check(err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		ts.Fatalf("%s (-want +got):\n%s", path, diff)
	}
}

// until repeats a command until its output matches, for at most two minutes.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND [ARGUMENT...]")
	}
	pattern := regexp.MustCompile(args[0])
	out := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...) // which may fail at first
		if out = ts.ReadFile("stdout"); pattern.MatchString(out) {
			return
		}
	}
	ts.Fatalf("%s never printed %s; last:\n%s", strings.Join(args[1:], " "), pattern, out)
}
