package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/number"
)

// usualProbes is the usual number of loads that a search for the highest rate within a
// limit takes: one or two until one rate passes and another fails, five to bring them
// within 4 %, and two or more to confirm. A search may take several times as many.
const usualProbes = 10

// Lengths states how long the loads of each run of a service take, one sentence per length,
// and warns about points whose time limit is too short.
func (s *Study) Lengths(p *Plan) (says []string, doubts Problems) {
	for _, planned := range p.Points {
		w, limit := planned.Point.Workload.Serve, time.Duration(planned.Point.Resources.Time)
		if !planned.Point.Workload.UnderLoad() {
			continue
		}
		loads := len(w.Batch) * (len(w.Threads) + len(w.Rate))
		var parts []string
		if loads > 0 {
			parts = append(parts, number.Count(loads, "load"))
		}
		if w.Limit != "" {
			loads += len(w.Batch) * usualProbes
			parts = append(parts, fmt.Sprintf("a search of about %d loads per batch", usualProbes))
		}
		each := time.Duration(w.Duration)
		length := time.Duration(loads) * each
		say := fmt.Sprintf("each run: %s, %v each: about %v, plus start-up", strings.Join(parts, " and "), each, length)
		if !slices.Contains(says, say) {
			says = append(says, say)
		}
		if length > limit {
			doubt := Problem{File: s.File, Line: s.lines["resources.time"], Path: "resources.time",
				Message: fmt.Sprintf("the loads of a run take about %v, and the limit is %v; raise it, or shorten workload.duration", length, limit)}
			if !slices.Contains(doubts, doubt) {
				doubts = append(doubts, doubt)
			}
		}
	}
	return says, doubts
}
