package extract

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Some load generators write a table with the course of one load test: one row per second or so.

// moment is the largest time in seconds between two rows of a load at which they count as moments
// of one run. Two load tests are farther apart.
const moment = 2

var momentName = regexp.MustCompile(`(?i)^(?:unix[ _]?)?(?:timestamp|time)s?$`)

// moments fails if rows of one load are moments of one run, according to a column with
// their times. Such rows must not count as repeats.
func (s *survey) moments() {
	for _, o := range s.others {
		if !s.loads || !o.within || !momentName.MatchString(o.name) {
			continue
		}
		times := map[int][]float64{}
		s.eachRow(func(t *table, r surveyed) {
			if unix, err := parseTime(strings.TrimSpace(t.rows[0][o.at])); err == nil {
				times[r.point] = append(times[r.point], unix)
			}
		})
		for _, point := range slices.Sorted(maps.Keys(times)) {
			list := slices.Sorted(slices.Values(times[point]))
			longest := 0.0
			for i := 1; i < len(list); i++ {
				longest = math.Max(longest, list[i]-list[i-1])
			}
			if len(list) > 1 && longest <= moment {
				s.l.fail(0, "rows of one load are %.3g s apart or less, by column %s: they are moments of one run and not repeats of it. Import the summary of the run (Locust: its _stats.csv), or delete all rows but one; if each is a run, write %s",
					longest, clip(o.name), labelled(o.name))
			}
		}
	}
}

var failureName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:fail|failed|failure|failures|error|errors)(?:[^a-z]|$)`)

// failures adds a doubt if a column shows failed requests but none is mapped to their share. The
// rate may then include failed requests.
func (s *survey) failures() {
	if !s.loads || s.columns["errors"].Name != "" {
		return
	}
	for _, o := range s.others {
		if !o.numeric || !failureName.MatchString(o.name) {
			continue
		}
		for text := range o.values {
			if x, err := strconv.ParseFloat(text, 64); err == nil && x > 0 {
				s.say("not used: %s; requests failed, and the rates may include them: add a column with failed / all requests and map it to errors", clip(o.name))
				s.doubts = append(s.doubts, fmt.Sprintf("requests failed (column %s), and the rates may include them", clip(o.name)))
				return
			}
		}
	}
}
