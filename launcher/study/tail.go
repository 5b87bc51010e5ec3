package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// needed returns the minimum number of requests for a percentile: the smallest n with
// shareⁿ ≤ 0.025. With fewer independent requests, even the largest one is too often below
// the percentile to bound a 95 % interval from order statistics.
func needed(share float64) int { return int(math.Ceil(math.Log(0.025) / math.Log(share))) }

// Tails warns if a service is measured too briefly, at the lowest rate of a point, for the
// reported percentiles and those of its limit.
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
		rate := slices.Min(w.Rate)
		requests := rate * w.Duration.Seconds()
		var lacking []string
		for _, share := range slices.Compact(shares) {
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
			Message: fmt.Sprintf("%v at %g requests/s are %.0f requests, too few for %s even if none waited for another; set duration = %q or more, several times that near the capacity, or leave low rates out",
				time.Duration(w.Duration), rate, requests, strings.Join(lacking, " and "), enough)}
		if !slices.Contains(list, doubt) {
			list = append(list, doubt)
		}
	}
	return list
}
