package advice

import (
	"fmt"
	"math"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// doublings is the number of times that the largest measured worker count is doubled for predictions if too
// little was measured to trust the model.
const doublings = 2

// ahead returns predictions for twice and four times the largest measured worker count, if too
// little was measured to trust the model. Such a count is never the answer; advice only suggests
// to measure it.
func (s *study) ahead() (list []Candidate) {
	if s.law != nil || s.sketch == nil || s.oneNode || s.sketch.law.Largest() != s.largest() {
		return nil
	}
	n := s.sketch.law.Largest()
	for range doublings {
		n *= 2
		e := s.sketch.rate(n)
		if e == nil {
			break
		}
		list = append(list, Candidate{Workers: n, Nodes: s.nodes(n), Basis: Predicted, Why: []string{}, Throughput: e})
	}
	return list
}

// foresee names a count that was not measured and may meet the limits, as a clause of the answer.
// It is called if no measured count meets them, and returns "" if no prediction does either.
func (s *study) foresee(limits []limit) string {
	measured := len(s.Candidates)
	for _, c := range s.ahead() {
		c.Efficiency = s.efficiency(c.Workers, *c.Throughput)
		s.time(&c)
		s.price(&c)
		c.Keeps = s.keeps(&c)
		s.Candidates = append(s.Candidates, c)
	}
	largest := s.Candidates[measured-1].Workers
	r := decision.Decide(s.question(limits, nil, math.MaxInt))
	if r.Chosen < measured {
		s.Candidates = s.Candidates[:measured]
		return ""
	}
	c := &s.Candidates[r.Chosen]
	s.Beyond = &c.Workers
	return fmt.Sprintf("; %d may (%s): measure %d first", c.Workers, s.odds(c), min(2*largest, c.Workers))
}

// gain returns, as a clause of the answer, the predicted throughput at twice the largest measured
// worker count relative to the measured one; "" without a prediction.
func (s *study) gain() string {
	ahead := s.ahead()
	if len(ahead) == 0 {
		return ""
	}
	c := ahead[0]
	p := c.Throughput
	point := s.point(c.Workers / 2)
	if point == nil || rate(point) == nil {
		return ""
	}
	own := rate(point).Value
	show := number.Alike(number.Significant, p.Value/own, *p.Low/own, *p.High/own)
	return fmt.Sprintf("; %d are predicted to have %s times its throughput [%s, %s]", c.Workers, show(p.Value/own), show(*p.Low/own), show(*p.High/own))
}
