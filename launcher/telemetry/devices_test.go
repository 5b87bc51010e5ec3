package telemetry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A hanging call delays one sample by a second. Its late answer is dropped, because it belongs to another
// moment; then readings continue.
func TestOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := []time.Duration{time.Second / 2, 5 * time.Second, 0, 0}
		calls := 0
		n := newNode(Options{Root: t.TempDir(), Devices: func() ([]Reading, map[string]string) {
			time.Sleep(took[calls])
			calls++
			return []Reading{Gauge("busy", "GPU 0", "x", "", 1, int64(calls))}, nil
		}})
		defer n.outside.end()
		for i, c := range []struct {
			waits time.Duration
			want  map[string]float64
		}{
			{time.Second / 2, map[string]float64{"busy GPU 0": 1}},
			{time.Second, map[string]float64{}},
			{0, map[string]float64{}}, // the second call still hangs
			{0, map[string]float64{"busy GPU 0": 3}},
			{0, map[string]float64{"busy GPU 0": 4}},
		} {
			if i == 3 {
				time.Sleep(5 * time.Second) // it has answered by now
			}
			before := time.Now()
			got := values(n.sample())
			if diff := cmp.Diff(c.want, got); diff != "" || time.Since(before) != c.waits {
				t.Errorf("sample %d: waited %v, want %v\n%s", i, time.Since(before), c.waits, diff)
			}
		}
	})
}
