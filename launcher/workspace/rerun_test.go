package workspace

import (
	"testing"

	"github.com/scalebench/scalebench/launcher"
)

// The advice depends on the state of the runs: `run` does not restart runs that were cancelled under Slurm, and
// `retry` does not start runs that never started.
func TestNext(t *testing.T) {
	for _, tt := range []struct {
		progress launcher.Progress
		want     string
	}{
		{launcher.Progress{}, "Run it with `scalebench run s.toml` or `scalebench submit s.toml`; then `scalebench collect s`"},
		{launcher.Progress{Unbegun: 1, Underway: 2}, "2 runs are waiting or running, see `scalebench status s`; `scalebench run s.toml` or `scalebench submit s.toml` starts the run that has not started; then `scalebench collect s`"},
		{launcher.Progress{Ended: 3, Cancelled: 3}, "`scalebench retry s` submits the 3 cancelled runs again (`scalebench status s` says why); then `scalebench collect s`"},
		{launcher.Progress{Ended: 3, Cancelled: 1, Unbegun: 4}, "`scalebench retry s` submits the 3 runs that failed or were cancelled again (`scalebench status s` says why); `scalebench run s.toml` or `scalebench submit s.toml` starts the 4 runs that have not started; then `scalebench collect s`"},
		{launcher.Progress{Ended: 1}, "`scalebench retry s` submits the failed run again (`scalebench status s` says why); then `scalebench collect s`"},
		{launcher.Progress{EndedHere: 2}, "`scalebench run s.toml` repeats the 2 failed runs (`scalebench status s` says why); then `scalebench collect s`"},
	} {
		if got := next("s", "s.toml", tt.progress); got != tt.want {
			t.Errorf("%+v:\n%s; want\n%s", tt.progress, got, tt.want)
		}
	}
}
