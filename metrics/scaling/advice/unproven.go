package advice

import "github.com/scalebench/scalebench/metrics/scaling/decision"

// unproven returns the measured counts that have no interval and are so close to a limit that
// more runs may tell whether they meet it.
func (s *study) unproven(limits []limit) (list []int) {
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Basis != Measured || c.Keeps != nil {
			continue
		}
		for _, l := range limits {
			if f := l.of(c); f != nil && f.Value < l.most*decision.Clear && f.Value > l.most/decision.Clear {
				list = append(list, c.Workers)
				break
			}
		}
	}
	return list
}
