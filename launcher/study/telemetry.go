package study

import (
	"fmt"
	"time"
)

// Telemetry is the [telemetry] table: what is read of the nodes while a run goes
// on. Like [policy] it is no part of a point's identity: a run with it measures
// the same as one without.
type Telemetry struct {
	Every Duration `toml:"every"` // between two samples; 0: none are taken
}

var defaultTelemetry = Telemetry{Every: Duration(time.Second)}

// The least and the most that may be between two samples.
const (
	shortestSampling = Duration(100 * time.Millisecond)
	longestSampling  = Duration(10 * time.Minute)
)

func (d *decoder) checkTelemetry(t Telemetry) {
	if e := t.Every; e != 0 && (e < shortestSampling || e > longestSampling) {
		d.rule("telemetry.every", fmt.Sprintf("want \"0s\" (no samples) or %v to %v, got %v", time.Duration(shortestSampling), longestSampling, e))
	}
}
