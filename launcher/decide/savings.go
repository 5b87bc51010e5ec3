package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
)

// savings returns a text that says how many of the runs that the design allows were made, and why others were not; ""
// if all were made.
func (s *Study) savings(views []View, done map[study.Run]bool) string {
	good := map[string]int{}
	for r := range done {
		good[r.Point]++
	}
	points := map[string]bool{}
	made := 0
	for _, p := range s.Plan.Points {
		if !points[p.Point.ID] && (!p.Between || good[p.Point.ID] > 0) {
			points[p.Point.ID] = true
			made += good[p.Point.ID]
		}
	}
	most := len(points) * s.most()
	if made >= most {
		return ""
	}
	text := fmt.Sprintf("%d of at most %s were made.", made, number.Count(most, "run"))
	var fewer []string
	limited := false
	for _, v := range views {
		if v.Advice == nil {
			continue
		}
		limited = limited || v.Advice.Limited()
		for _, n := range slices.Sorted(maps.Keys(v.Runs)) {
			if v.Runs[n] < slices.Max(slices.Collect(maps.Values(v.Runs))) && !slices.Contains(v.Open, n) {
				fewer = append(fewer, fmt.Sprint(n))
			}
		}
	}
	if fewer = slices.Compact(fewer); len(fewer) > 0 {
		text += fmt.Sprintf(" Fewest with workers = %s, which can hardly change the answer.", strings.Join(number.Few(fewer, 6), ", "))
	}
	if limited {
		text += " Limits are judged by one-sided intervals."
	}
	return text
}
