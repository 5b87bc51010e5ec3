//go:build slurm

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

var clockClasses = []class{
	{name: "clock stepped under run", fire: clockStepped, lane: onThisHost},
	{name: "clock stepped under submit", fire: clockStepped, lane: onCluster},
	{name: "file times wrong", fire: fileTimesWrong, lane: onThisHost},
}

// steppedClock is the environment variable with the steps of the wall clock of programs that
// buildStepped builds: "AFTER:STEP,…", AFTER in milliseconds from
// the program's start, STEP in seconds.
const steppedClock = "FAULT_CLOCK"

// buildStepped builds both programs with a modified package time, whose Now
// jumps. The machine's own clock cannot be set for some processes only,
// and Go asks for the time without a system call that could be intercepted.
func buildStepped(dir string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return err
	}
	const before = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if !strings.Contains(string(text), before) {
		return fmt.Errorf("%s: time.Now no longer begins with %q", source, before)
	}
	patched := strings.Replace(string(text), before, before+"\tsec += stepped(mono - startNano)\n", 1)
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": patched, "stepped.go": steppedSource} {
		replace[filepath.Join(source, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		return err
	}
	for name, cgo := range map[string]string{"scalebench": "1", "scalebench-worker": "0"} {
		build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"),
			"-o", filepath.Join(dir, name), "github.com/scalebench/scalebench/cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build -overlay: %w\n%s", err, out)
		}
	}
	return nil
}

const steppedSource = `package time

import "syscall"

type step struct{ after, by int64 }

var steps = func() (list []step) {
	text, _ := syscall.Getenv("` + steppedClock + `")
	var s step
	n, sign := int64(0), int64(1)
	for _, c := range []byte(text + ",") {
		switch {
		case c == '-':
			sign = -1
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
		case c == ':':
			s.after, n, sign = n*1e6, 0, 1
		case text != "":
			s.by = n * sign
			list, n, sign = append(list, s), 0, 1
		}
	}
	return list
}()

// stepped returns the error of the wall clock in seconds, ns nanoseconds after the start.
func stepped(ns int64) (seconds int64) {
	for _, s := range steps {
		if ns >= s.after {
			seconds += s.by
		}
	}
	return seconds
}
`

// clockStepped lets the wall clock of the commands jump while they run, and on this machine also
// the clock of the workers.
func clockStepped(tr *trial) error {
	var steps []string
	for range 1 + tr.rng.IntN(3) {
		by := tr.between(time.Second, 3*time.Hour)
		if tr.rng.IntN(4) == 0 {
			by = 30 * 365 * 24 * time.Hour
		}
		steps = append(steps, fmt.Sprintf("%d:%s%d", tr.between(0, 3*time.Second).Milliseconds(), tr.one("", "-"), int(by.Seconds())))
	}
	tr.clock = strings.Join(steps, ",")
	tr.how = tr.clock
	tr.native = tr.rng.IntN(3) == 0
	tr.files()
	for _, args := range [][]string{tr.command(), {"status", tr.name}, {"collect"}} {
		if out, code := tr.run(args...); code != 0 && code != exitRunsFailed {
			tr.problem("with a clock that jumps: %s: exit code %d: %s", args[0], code, out)
		}
	}
	tr.clock = ""
	return nil
}

// fileTimesWrong sets the times of a study's files to the distant past or future, during and
// after its runs, as a file server with a wrong clock would.
func fileTimesWrong(tr *trial) error {
	times := map[string]time.Time{"1970": time.Unix(0, 0), "2 h ago": time.Now().Add(-2 * time.Hour),
		"in 2 h": time.Now().Add(2 * time.Hour), "2400": time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)}
	when := tr.one("1970", "2 h ago", "in 2 h", "2400")
	pattern := tr.one("*", "*/claim-0", "*/exit-0.json", "*/heartbeat", "*/events/*", "*/*", "lease", "*/state.json")
	tr.how = pattern + " of " + when
	done := make(chan struct{})
	ended := make(chan int)
	go func() { // repeatedly, so that some change during the runs
		n := 0
		for {
			files, _ := filepath.Glob(filepath.Join(tr.runs, tr.name, pattern))
			for _, path := range files {
				if os.Chtimes(path, times[when], times[when]) == nil {
					n++
				}
			}
			select {
			case <-done:
				ended <- n
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	out, code := tr.submit()
	for range 2 {
		for _, args := range [][]string{{"status", tr.name}, {"collect"}} {
			if out, code := tr.run(args...); code != 0 {
				tr.problem("%s: exit code %d: %s", args[0], code, out)
			}
		}
	}
	close(done)
	if n := <-ended; n == 0 && pattern != "lease" {
		return fmt.Errorf("no file %s ever appeared", pattern)
	}
	if code != 0 {
		tr.problem("%s: exit code %d: %s", tr.command()[0], code, out)
	}
	return nil
}
