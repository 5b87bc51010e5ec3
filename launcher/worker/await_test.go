package worker

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
)

// A supervisor that waits ends when the first one has written its stop event, even a
// failed one, and on a signal; the early warning of the time limit does not end it.
func TestAwait(t *testing.T) {
	defer func(d time.Duration) { awaitEvery = d }(awaitEvery)
	awaitEvery = time.Millisecond
	run := rundir.OpenStudy(t.TempDir(), "s").Run("p", 1, 1)
	path := run.EventFile("supervisor", 0, 0)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	const start = `{"t":0,"start":{"format":1,"writer":"supervisor","framework":"command","rank":0,"world_size":4,"unix":1}}` + "\n"
	const stop = `{"t":1,"stop":{"status":"failed","cause":"exit code 1"}}` + "\n"
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"unfinished line": start + stop[:20], "no stop": start, "damaged": start + "{\n"} {
		if write(text); stopped(path) {
			t.Errorf("%s: stopped", name)
		}
	}
	if write(start + "{\n" + stop); !stopped(path) {
		t.Error("a stop event after a damaged line is not seen")
	}

	heard := 0
	listen := func(os.Signal) { heard++ }
	signals := make(chan os.Signal, 2)
	if code, why := await(run, 0, signals, listen); code != 0 || why != "" || heard != 0 {
		t.Errorf("the first one stopped: code %d, %q, heard %d", code, why, heard)
	}
	write(start)
	signals <- syscall.SIGUSR1
	signals <- syscall.SIGTERM
	if code, why := await(run, 0, signals, listen); code != 128+15 || why != "after terminated" || heard != 1 {
		t.Errorf("terminated: code %d, %q, heard %d", code, why, heard)
	}
}
