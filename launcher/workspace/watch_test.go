package workspace

import (
	"testing"
	"time"
)

// While Slurm does not answer, queries become less frequent.
func TestWatcherBacksOff(t *testing.T) {
	v := Watcher{Interval: 30 * time.Second}
	for failures, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 4 * time.Minute} {
		if v.failures = failures; v.pause() != want {
			t.Errorf("after %d failures: %v, want %v", failures, v.pause(), want)
		}
	}
}
