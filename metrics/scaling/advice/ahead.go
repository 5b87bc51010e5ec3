package advice

import (
	"fmt"
	"math"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/model"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// doublings are how many times the largest measured count is predicted where too little
// was measured for a law.
const doublings = 2

// ahead is what package predict says of more workers than were measured, from few counts
// or few runs: nothing where a law was fitted, or refused for another reason than too
// few. Such a count is never the answer, only named to be measured.
func (s *study) ahead() (list []model.Prediction) {
	if s.law != nil || s.HoldOut != nil || s.oneNode || len(s.curve.Mixed) > 0 || s.curve.Scaling == "" || len(s.runs) < 2 {
		return nil
	}
	series, err := predict.Of(*s.curve, s.obs, "")
	if err != nil || series.Unit != measure.RateUnit(s.curve.Sample) {
		return nil
	}
	law, err := predict.Fit(series.Study, s.o.Confidence)
	if err != nil || law.Largest() != s.largest() {
		return nil
	}
	n := law.Largest()
	for range doublings {
		n *= 2
		batch, err := series.BatchAt(n)
		if err != nil {
			break
		}
		e, err := law.Predict(n, batch)
		if err != nil {
			break
		}
		list = append(list, model.Prediction{Workers: n, Value: batch / e.Value, Low: batch / e.High, High: batch / e.Low, Level: s.o.Confidence})
	}
	return list
}

// foresee names a count that was not measured and may keep the limits, where no measured
// one does; "" for none.
func (s *study) foresee(limits []limit) string {
	measured := len(s.Candidates)
	for _, p := range s.ahead() {
		c := Candidate{Workers: p.Workers, Nodes: s.nodes(p.Workers), Basis: Predicted, Overlays: map[model.Law]float64{}, Why: []string{},
			Throughput: &Estimate{p.Value, &p.Low, &p.High}}
		p.Steady = p.Low
		c.Efficiency = s.efficiency(p.Workers, p)
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
	return fmt.Sprintf("; %d may (%s likely): measure %d first", c.Workers, Likely(*c.Keeps), min(2*largest, c.Workers))
}

// gain is what the next doubling is predicted to bring over the largest measured count,
// in words; "" where nothing is.
func (s *study) gain() string {
	ahead := s.ahead()
	if len(ahead) == 0 {
		return ""
	}
	p := ahead[0]
	point := s.point(p.Workers / 2)
	if point == nil || rate(point) == nil {
		return ""
	}
	own := rate(point).Value
	show := number.Alike(number.Significant, p.Value/own, p.Low/own, p.High/own)
	return fmt.Sprintf("; %d are predicted to have %s times its throughput [%s, %s]", p.Workers, show(p.Value/own), show(p.Low/own), show(p.High/own))
}
