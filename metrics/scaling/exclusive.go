package scaling

import (
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// exclusiveWarning returns a warning if some runs of a series had whole nodes and others shared
// theirs. It is "" if all were alike or did not record it. Jobs of others slow down only the runs
// that share, which biases ratios between the two.
func exclusiveWarning(c *Curve, s *series) string {
	runs := map[bool]map[Value]bool{true: {}, false: {}}
	for _, o := range s.runs {
		if exclusive, recorded := o.Parameters[measure.ExclusiveKey].(bool); recorded {
			runs[exclusive][axis(c.Axis).of(o)] = true
		}
	}
	whole, shared := runs[true], runs[false]
	if len(whole) == 0 || len(shared) == 0 {
		return ""
	}
	places := func(of map[Value]bool) string {
		return placesOf(c.Worker(), c.Axis, slices.DeleteFunc(slices.Clone(s.at), func(v Value) bool { return !of[v] }))
	}
	text := fmt.Sprintf("%s ran on whole nodes, %s on nodes that other jobs may share (%s)", places(whole), places(shared), measure.ExclusiveKey)
	switch b := c.Base; {
	case b == nil:
		return text + ": they may not be comparable"
	case !shared[b.At]:
		return text + ": on a busy cluster the base is too fast, and speedups are too low"
	case !whole[b.At]:
		return text + ": on a busy cluster the base is too slow, and speedups are too high"
	}
	return text + ": on a busy cluster speedups are biased"
}
