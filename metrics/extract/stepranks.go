package extract

import (
	"maps"
	"slices"
)

// Ranks that work in step take the same time for a step. If they state different times, they ran
// separate trainings, or one device is slower. In both cases, the rate of one rank differs from that of
// the run.

// mostOthers limits how many other ranks are compared, and how many values of each.
const mostOthers = 64

// compared lists the figures that must agree between the ranks of one run.
var compared = []string{tokensPerGPU, stepSeconds}

// otherRank records the figures that another rank states for a step.
func (s *stepLog) otherRank(ln line, m []string) {
	s.from.others = true
	var fields parts
	if try(func() { fields = s.format.split(s.l, ln.number, m) }) != nil {
		return // that rank's line is damaged; it is not needed
	}
	for _, name := range compared {
		for _, field := range s.format.fields {
			text, ok := field.text(fields)
			if !ok || field.ours != name {
				continue
			}
			x, ok := parsed(text)
			if list := s.others[ln.source]; ok && len(list) < mostOthers && (list != nil || len(s.others) < mostOthers) {
				if s.others == nil {
					s.others = map[string][]float64{}
				}
				s.others[ln.source] = append(list, x)
			}
			return
		}
	}
}

// ranksDiffer adds a note if other ranks state different figures from the rank that is read.
func (s *stepLog) ranksDiffer() {
	for _, name := range compared {
		if len(s.measured[name]) == 0 {
			continue
		}
		own := median(s.measured[name])
		for _, source := range slices.Sorted(maps.Keys(s.others)) {
			list := s.others[source]
			if len(list) <= s.format.starting {
				continue
			}
			if other, err := reduceBy("median", list[s.format.starting:]); err == nil && !near(other/own) {
				s.l.note("rank %s states a %s of %.4g, and rank %s, which is read, %.4g: ranks in step state the same, so these may be separate trainings, one log each", source, name, other, s.from.source, own)
				return
			}
		}
		return
	}
}
