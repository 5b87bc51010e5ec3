package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/number"
)

// usualProbes is the number of loads that a search for the highest rate within a limit
// usually measures: about four until one rate passes and another fails within 30 %, and twelve
// for the interval of the rate. A search may need twice as many.
const usualProbes = 16

// Lengths returns sentences that state how long the loads of a run take, one for each
// different length. It only considers services. doubts are warnings about points whose time
// limit is too short.
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
