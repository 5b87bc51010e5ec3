//go:build slurm

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// buildStepped builds both programs with a clock that jumps: testdata/clock, added to package
// main, puts itself between Go's runtime and the kernel's vDSO. (With a modified package time,
// everything down to SQLite would have to be compiled again.) The machine's own clock cannot be
// set for some processes only, and Go asks for the time without a system call that could be
// intercepted.
func buildStepped(dir string) error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("testdata/clock has no assembly for %s", runtime.GOARCH)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	for name, cgo := range map[string]string{"scalebench": "1", "scalebench-worker": "0"} {
		replace := map[string]string{}
		for _, file := range []string{"clock.go", "clock_amd64.s"} {
			replace[filepath.Join(root, "cmd", name, file)] = filepath.Join(root, "cmd/scalebench/testdata/clock", file+".txt")
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return err
		}
		list := filepath.Join(dir, name+".json")
		if err := os.WriteFile(list, overlay, 0o644); err != nil {
			return err
		}
		build := exec.Command("go", "build", "-overlay", list, "-ldflags=-checklinkname=0", // a variable of package runtime
			"-o", filepath.Join(dir, name), "github.com/scalebench/scalebench/cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build -overlay: %w\n%s", err, out)
		}
	}
	return nil
}

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
