package report

import (
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// reasons lists the different reasons why estimates in a table are missing.
type reasons []string

// add adds the reasons why estimates are missing, without details in parentheses, which the table
// shows. Estimates at the base need no reason.
func (r *reasons) add(estimates ...*scaling.Estimate) {
	for _, e := range estimates {
		if e == nil || e.Why == "" || e.Why == scaling.AtBase || e.Why == cost.AtBaseline {
			continue
		}
		if why, _, _ := strings.Cut(e.Why, " ("); !slices.Contains(*r, why) {
			*r = append(*r, why)
		}
	}
}

// notes returns a note that explains a dash by the reasons. of names what is missing, as in " for
// an interval".
func (r reasons) notes(of string) []string {
	if len(r) == 0 {
		return nil
	}
	return []string{number.Absent + of + ": " + strings.Join(r, "; ") + "."}
}
