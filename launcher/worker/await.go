package worker

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// awaitEvery is the interval at which a supervisor checks whether the first supervisor's program has ended.
// Tests change it.
var awaitEvery = time.Second

// await waits for the program that the first node's supervisor has started for all
// nodes. The first one reports how the program ended, so the code is 0 even if it
// failed; a signal, as srun sends after a failure, ends the wait.
func await(run rundir.Folder, restart int, signals <-chan os.Signal, heard func(os.Signal)) (code int, why string) {
	path := run.EventFile("supervisor", 0, restart)
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGUSR1 { // the time limit is near, which is the program's affair
				continue
			}
			heard(s)
			return 128 + int(s.(syscall.Signal)), "after " + s.String()
		case <-tick.C:
			if stopped(path) {
				return 0, ""
			}
		}
	}
}

// stopped reports whether an event file contains its writer's stop event. It returns false for a
// file that cannot be read yet.
func stopped(path string) bool {
	f, err := sharedfs.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for r := metrics.NewReader(f, path, 0, 0); ; {
		event, err := r.Next()
		if bad := (*metrics.LineError)(nil); errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return false
		}
		if event.Stop != nil {
			return true
		}
	}
}
