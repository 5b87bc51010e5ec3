package local

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// TestOnlooker checks that a user who may read a run folder but not write to it, such as support staff, sees
// how the run ended and no error.
func TestOnlooker(t *testing.T) {
	plan := launchtest.SmallPlan(t, "[1]")
	dir := t.TempDir()
	a, err := launcher.Creator{Folder: rundir.OpenStudy(dir, "s")}.Create(launcher.Todo{Planned: plan.Points[0], Number: 1}, launcher.Record{Backend: Name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	launchtest.Claim(t, a.Run, 0)
	exit := a.Run.Exit(0)
	then := time.Now().Add(-launcher.FileGrace - time.Minute)
	if err := rundir.WriteJSON(exit, launcher.Exit{StartUnix: metrics.Unix(then) - 10, EndUnix: metrics.Unix(then)}, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(exit, then, then); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(a.Run.Path(), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(a.Run.Path(), 0o755) })
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the testing package creates it for the owner only
		t.Fatal(err)
	}
	type answer struct {
		states []launcher.State
		err    error
	}
	said := make(chan answer)
	go func() {
		if os.Geteuid() == 0 { // who may write everywhere
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if err := syscall.Setfsuid(65534); err != nil {
				said <- answer{nil, err}
				return
			}
		}
		states, err := launcher.Survey(t.Context(), []*launcher.Attempt{a})
		said <- answer{states, err}
	}()
	got := <-said
	if got.err != nil {
		t.Fatal(got.err)
	}
	if state := got.states[0]; state.Err != nil || state.Status != metrics.Incomplete {
		t.Errorf("%s (%s), want %s; %v", state.Status, state.Detail, metrics.Incomplete, state.Err)
	}
	if _, err := os.Stat(a.Run.State()); !os.IsNotExist(err) {
		t.Errorf("a verdict in a folder that may not be written to: %v", err)
	}
}
