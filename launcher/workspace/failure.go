package workspace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// A Failure describes a run that ended without a good result.
type Failure struct {
	Status      metrics.Status
	Cause, Hint string // "" if unknown
	Log         string // path of its log or folder
}

// FailureOf returns the Failure of an attempt that failed.
func FailureOf(s launcher.State) Failure {
	return Failure{s.Status, s.Detail, worker.Hint(s.Status, s.Detail, s.Point.Lengths()), cmp.Or(s.Log(), s.Run.Path())}
}

// CommonCause returns how many failures, by run, have the most frequent cause, and one of these. Causes
// that differ only in numbers count as one.
func CommonCause(failed map[string]Failure) (most int, of Failure) {
	count := map[string]int{}
	for _, run := range slices.Sorted(maps.Keys(failed)) {
		f := failed[run]
		if f.Cause == "" || f.Status == metrics.Cancelled {
			continue
		}
		cause := number.Masked(f.Cause)
		if count[cause]++; count[cause] > most {
			most, of = count[cause], f
		}
	}
	return most, of
}

// CountCancelled returns how many runs were cancelled.
func CountCancelled(failed map[string]Failure) int {
	n := 0
	for _, f := range failed {
		if f.Status == metrics.Cancelled {
			n++
		}
	}
	return n
}
