package workspace

import (
	"fmt"

	"github.com/scalebench/scalebench/metrics/number"
)

// RunsFailed is the error for work that was done although some runs have no good result.
type RunsFailed struct {
	Failed, Cancelled, Total int
	Cause                    string // most frequent cause, if more than one run failed for it
	Share                    int    // number of runs that failed for it
	Hint                     string // what the user can do
}

func (e *RunsFailed) Error() string {
	of := number.Count(e.Total, "run")
	if e.Failed == 0 && e.Cancelled > 0 {
		return fmt.Sprintf("%d of %s cancelled", e.Cancelled, of)
	}
	text := fmt.Sprintf("%d of %s failed", e.Failed, of)
	if e.Cancelled > 0 {
		text += fmt.Sprintf(", %d cancelled", e.Cancelled)
	}
	switch {
	case e.Cause == "":
		return text
	case e.Share == e.Failed:
		return text + ", all for one reason: " + e.Cause
	}
	return fmt.Sprintf("%s, %d for one reason: %s", text, e.Share, e.Cause)
}
