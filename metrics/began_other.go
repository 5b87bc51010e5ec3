//go:build !linux

package metrics

import "time"

// ProcessStart returns the present: on this system, the start of the process is not read.
func ProcessStart() time.Time { return time.Now() }
