package metrics

import (
	"testing"
	"testing/synctest"
	"time"
)

// If the process is suspended between the two readings, it reads both clocks again, so that the
// pause does not count as a difference.
func TestClocksAreReadTogether(t *testing.T) {
	for waits, want := range map[int]int{0: 1, 3: 4, 100: 10} {
		synctest.Test(t, func(t *testing.T) {
			reads := 0
			var at time.Time
			now, known := together(func() bool {
				if reads++; reads <= waits {
					time.Sleep(100 * time.Millisecond)
				}
				at = time.Now()
				return true
			})
			if !known || reads != want {
				t.Errorf("%d waits: %d readings, want %d", waits, reads, want)
			}
			if waits < 10 && !now.Equal(at) {
				t.Errorf("%d waits: the clocks are %v apart", waits, at.Sub(now))
			}
		})
	}
}
