package launcher

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// A scheduler may forget a cancelled job, and the policy restarts lost attempts, but not those that a user
// cancelled.
func TestCancelIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 1)
		r.Watch, r.Choice.Policy.Retries = true, study.Retries{Lost: 5}
		r.ends = func(string) metrics.Status { return metrics.Lost }
		go func() {
			time.Sleep(10 * time.Second)
			cancelAll(t, r.Folder)
		}()
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1")
		if d := cmp.Diff([]string{"p-r1-a1 cancelled"}, r.ended); d != "" {
			t.Errorf("ended (-want +got):\n%s", d)
		}
		// Another command for the same study does not restart it, and reports it.
		next := command(r.scheduler, r.Folder, 1)
		o, err = next.drive(t)
		next.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1")
		if o.Cancelled != 1 {
			t.Errorf("%d runs left out as cancelled, want 1", o.Cancelled)
		}
		next.Choice.Cancelled = true // as retry does
		o, err = next.drive(t)
		next.check(t, o, err, 0, 1, "", 60*time.Second, "0s p-r1-a1, 1m0s p-r1-a2")
	})
}

// An attempt that succeeds in spite of its cancellation counts as done.
func TestCancelTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 1)
		r.Watch = true
		go func() {
			time.Sleep(10 * time.Second)
			cancelAll(t, r.Folder)
		}()
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1")
		if d := cmp.Diff([]string{"p-r1-a1 done"}, r.ended); d != "" || o.Cancelled != 0 {
			t.Errorf("ended, with %d cancelled (-want +got):\n%s", o.Cancelled, d)
		}
	})
}

func cancelAll(t *testing.T, folder rundir.Study) {
	attempts, err := Attempts(folder)
	if err != nil {
		t.Error(err)
		return
	}
	states, err := Survey(t.Context(), attempts)
	if err == nil {
		_, err = Cancel(t.Context(), states)
	}
	if err != nil {
		t.Error(err)
	}
}

// A forgotten run is started again, also by a command that is already running, and never under
// its old name.
func TestForgottenRunStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 2)
		r.Watch = true
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1, 0s p-r2-a1")
		first := r.Folder.Run("p", 1, 1)
		if err := first.Forget(); err != nil {
			t.Fatal(err)
		}
		if gone, err := r.Folder.Trash().Attempts(); err != nil || len(gone) != 1 || gone[0].Number != 1 {
			t.Fatalf("trash: %+v, %v", gone, err)
		}
		next := command(r.scheduler, r.Folder, 2)
		next.Watch = true
		o, err = next.drive(t)
		next.check(t, o, err, 0, 0, "", 120*time.Second, "0s p-r1-a1, 0s p-r2-a1, 1m0s p-r1-a2")
		// After a restore both are present, and nothing is restarted.
		if err := r.Folder.Trash().Run("p", 1, 1).Restore(); err != nil {
			t.Fatal(err)
		}
		o, err = next.drive(t)
		next.check(t, o, err, 0, 0, "", 120*time.Second, "0s p-r1-a1, 0s p-r2-a1, 1m0s p-r1-a2")
		// Restoring does not overwrite an existing folder.
		if err := os.MkdirAll(filepath.Join(r.Folder.Trash().Path(), first.Name(), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := first.Forget(); !errors.Is(err, fs.ErrExist) {
			t.Errorf("forgotten onto another: %v", err)
		}
		if _, err := os.Stat(first.Attempt()); err != nil {
			t.Error(err)
		}
	})
}
