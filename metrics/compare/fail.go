package compare

import (
	"errors"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// FailAt returns an error, to stop a script, if points are worse by at least limit (a
// fraction of A), or if no point could be judged; else nil.
func (r *Comparison) FailAt(limit float64) error {
	var worse []string
	judged := 0
	for _, p := range r.Pairs {
		if p.Verdict != Insufficient {
			judged++
		}
		// Without a ratio, most runs of B miss the target, which exceeds any limit.
		if p.Verdict == Worse && (p.Loss == nil || *p.Loss >= limit) {
			worse = append(worse, p.Series+", "+scaling.Places(p.Axis, p.At))
		}
	}
	switch {
	case len(worse) > 0:
		return fmt.Errorf("%d of %s worse by %s or more: %s", len(worse), number.Count(len(r.Pairs), "point"), number.ExactPercent(limit), strings.Join(worse, "; "))
	case judged == 0 && len(r.Pairs) > 0 && strings.Contains(r.Pairs[0].Why, otherProgram):
		return errors.New(r.Pairs[0].Why)
	case judged == 0:
		return errors.New("no point has enough runs to tell whether it is worse; a single point needs 4 runs a side, several points need 5 or 6 each")
	}
	return nil
}
