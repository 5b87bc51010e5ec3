package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// needed returns how many requests are at least needed for a 95 % interval of a
// percentile: the smallest n with shareⁿ ≤ 0.025. The interval is bounded by order
// statistics. With fewer independent requests, even the largest latency is below the
// percentile with a probability of more than 2.5 %, so it cannot be the upper bound.
func needed(share float64) int { return int(math.Ceil(math.Log(0.025) / math.Log(share))) }

// Tails returns warnings about services that are measured too briefly: at the lowest rate
// of a point, too few requests are sent for the percentiles that are reported or limited.
func (s *Study) Tails(p *Plan) Problems {
	var list Problems
	for _, planned := range p.Points {
		w := planned.Point.Workload.Serve
		if len(w.Rate) == 0 {
			continue
		}
		shares := []float64{0.95, 0.99}
		bounds, _ := w.Limit.Of()
		for _, b := range bounds {
			shares = append(shares, b.Share)
		}
		slices.Sort(shares)
		shares = slices.Compact(shares)
		rate := slices.Min(w.Rate)
		requests := rate * w.Duration.Seconds()
		var lacking []string
		for _, share := range shares {
			if requests < float64(needed(share)) {
				lacking = append(lacking, fmt.Sprintf("P%g (%d)", 100*share, needed(share)))
			}
		}
		if len(lacking) == 0 {
			continue
		}
		most := needed(shares[len(shares)-1])
		enough := (time.Duration(math.Ceil(float64(most)/rate)) * time.Second).String()
		doubt := Problem{File: s.File, Line: s.lines["workload.duration"], Path: "workload.duration",
			Message: fmt.Sprintf("%v at %g requests/s are %.0f requests, too few for %s; set duration = %q or more (several times that near the capacity), or leave low rates out",
				time.Duration(w.Duration), rate, requests, strings.Join(lacking, " and "), enough)}
		if !slices.Contains(list, doubt) {
			list = append(list, doubt)
		}
	}
	return list
}
