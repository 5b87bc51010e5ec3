package study

import (
	"fmt"
	"time"
)

// Telemetry is the [telemetry] table: what is sampled on the nodes during a run. It
// does not affect results, so it is not part of a point's identity.
type Telemetry struct {
	Every Duration `toml:"every"` // sampling interval; 0: no sampling
}

var defaultTelemetry = Telemetry{Every: Duration(time.Second)}

// Bounds of the sampling interval.
const (
	shortestSampling = Duration(100 * time.Millisecond)
	longestSampling  = Duration(10 * time.Minute)
)

func (d *decoder) checkTelemetry(t Telemetry) {
	if e := t.Every; e != 0 && (e < shortestSampling || e > longestSampling) {
		d.rule("telemetry.every", fmt.Sprintf("want \"0s\" (no samples) or %v to %v, got %v", time.Duration(shortestSampling), longestSampling, e))
	}
}
