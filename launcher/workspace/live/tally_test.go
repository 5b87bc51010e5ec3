package live

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// attempted writes the folder of an attempt at a planned run: one that ended after some seconds, or
// runs if seconds is 0.
func attempted(t *testing.T, folder rundir.Study, of, number int, status metrics.Status, seconds float64) rundir.Folder {
	t.Helper()
	p := launchtest.SmallPlan(t, "[1, 2, 4]").Points[of].Point
	run := folder.Run(p.ID, 1, number)
	launchtest.Claim(t, run, 0)
	files := map[string]any{run.Point(): p, run.Attempt(): launcher.Record{ID: run.ID(), Backend: "local", CreatedUnix: 1000}}
	if seconds > 0 {
		files[run.State()] = launcher.Verdict{Status: status, Detail: fmt.Sprintf("detail %d", number)}
		files[run.Exit(0)] = launcher.Exit{StartUnix: 1000, EndUnix: 1000 + seconds}
	}
	for path, content := range files {
		if err := rundir.WriteJSON(path, content, sharedfs.ModeOpen); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// A tally follows what happens in the run folders: attempts that end, new attempts, and runs that are
// forgotten. Node-hours: 3600 s and 1800 s of a node each are 1.5.
func TestTally(t *testing.T) {
	folder := rundir.OpenStudy(t.TempDir(), "s")
	if err := os.Mkdir(folder.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	plan := launchtest.SmallPlan(t, "[1, 2, 4]")
	if err := rundir.WriteJSON(folder.Plan(), plan, sharedfs.ModeOpen); err != nil {
		t.Fatal(err)
	}
	tally := newTally(folder, time.Nanosecond, query.Spending{}) // lists the folder at each look
	check := func(progress string, hours float64, cells ...string) {
		t.Helper()
		st := tally.look(context.Background())
		if st.Progress != progress || math.Abs(st.NodeHours-hours) > 1e-9 || len(st.Troubles) > 0 {
			t.Errorf("%q, %g node-hours, %q; want %q, %g", st.Progress, st.NodeHours, st.Troubles, progress, hours)
		}
		var got []string
		for _, row := range st.Grid.Rows {
			got = append(got, fmt.Sprint(row.Cells[0].Status, " ", row.Cells[0].Detail))
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", cells) {
			t.Errorf("cells %q, want %q", got, cells)
		}
	}
	check("3 runs: 3 planned", 0, "planned ", "planned ", "planned ")
	first := attempted(t, folder, 0, 1, metrics.Done, 3600)
	attempted(t, folder, 1, 1, metrics.Failed, 1800)
	for range 2 { // the second look reads nothing new
		check("3 runs: 1 planned, 1 done, 1 failed; about 1h00m left, one at a time", 1.5, "done detail 1", "failed detail 1", "planned ")
	}
	attempted(t, folder, 1, 2, metrics.Done, 3600)
	check("3 runs: 1 planned, 2 done; about 1h00m left, one at a time", 2.5, "done detail 1", "done detail 2", "planned ")
	if err := os.RemoveAll(first.Path()); err != nil {
		t.Fatal(err)
	}
	check("3 runs: 2 planned, 1 done; about 2h00m left, one at a time", 1.5, "planned ", "done detail 2", "planned ")
}
