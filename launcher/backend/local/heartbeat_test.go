package local

import (
	"os"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// If a command on another host drives the attempt, only its heartbeat is visible. The clock of this host is not
// used to judge it.
func TestSurveyOfADriverElsewhere(t *testing.T) {
	plan := launchtest.SmallPlan(t, "[1]")
	creator := launcher.Creator{Folder: rundir.OpenStudy(t.TempDir(), "s")}
	for number, c := range []struct {
		name   string
		silent time.Duration
		none   bool
		want   metrics.Status
	}{
		{"begun this moment", 0, false, metrics.Running},
		{"shortly before the grace is over", driverGrace - time.Minute, false, metrics.Running},
		{"long silent", driverGrace + time.Minute, false, metrics.Lost},
		{"without a heartbeat, for whatever reason", 0, true, metrics.Running},
	} {
		// The same host's name, and another boot.
		record := launcher.Record{Backend: Name, PID: 1, PIDStart: "1", PIDSpace: "1b4e28ba-2fa1-11d2-883f-0016d3cca427 pid:[4026531836]"}
		a, err := creator.Create(launcher.Todo{Planned: plan.Points[0], Number: number + 1}, record, func(at rundir.Folder, _ *launcher.Attempt) error {
			return os.WriteFile(at.Heartbeat(), []byte("\n"), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		launchtest.Claim(t, a.Run, 0)
		then := time.Now().Add(-c.silent)
		if err := os.Chtimes(a.Run.Heartbeat(), then, then); err != nil {
			t.Fatal(err)
		}
		if c.none {
			if err := os.Remove(a.Run.Heartbeat()); err != nil {
				t.Fatal(err)
			}
		}
		states, err := launcher.Survey(t.Context(), []*launcher.Attempt{a})
		if err != nil || states[0].Status != c.want {
			t.Errorf("%s: %s (%s), want %s; %v", c.name, states[0].Status, states[0].Detail, c.want, err)
		}
		if left, err := os.ReadDir(a.Run.Path()); err != nil || len(left) < 5 {
			t.Fatal(err)
		} else {
			for _, f := range left {
				if f.Name()[0] == '.' {
					t.Errorf("%s: left behind %s", c.name, f.Name())
				}
			}
		}
	}
}
