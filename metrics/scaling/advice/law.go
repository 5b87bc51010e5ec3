package advice

import (
	"errors"
	"fmt"
	"math"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

const (
	// An answer can use the fitted model only with lawCounts worker counts of lawRuns runs each,
	// of which lawTier fill whole nodes.
	lawCounts, lawRuns, lawTier = 5, 5, 4
	// farthest is the largest candidate as a multiple of the largest measured worker count.
	farthest = 4
)

// A carrier predicts throughputs at worker counts that were not measured, from a model fitted to
// a series.
type carrier struct {
	law    *predict.Law
	series *predict.Series
}

// rate returns the predicted throughput at a worker count; nil if the model does not apply there.
func (c *carrier) rate(workers int) *Estimate {
	e, err := c.at(workers)
	if err != nil {
		return nil
	}
	return e
}

func (c *carrier) at(workers int) (*Estimate, error) {
	batch, err := c.series.BatchAt(workers)
	if err != nil {
		return nil, err
	}
	e, err := c.law.Predict(workers, batch)
	if err != nil {
		return nil, err
	}
	e = e.Rate(batch)
	return &Estimate{Value: e.Value, Low: &e.Low, High: &e.High}, nil
}

// carried returns the throughput that the trusted model predicts for a worker count; nil if there
// is no such model or it does not apply there.
func (s *study) carried(workers int) *Estimate {
	if s.law == nil {
		return nil
	}
	return s.sketch.rate(workers)
}

// fit fits the model, or sets Refused to the reason why nothing is predicted beyond the measured
// counts.
func (s *study) fit() error {
	if len(s.runs) == 0 {
		s.Refused = "no run has finished successfully yet"
		return nil
	}
	if len(s.curve.Mixed) > 0 {
		names := []string{}
		for _, v := range s.curve.Mixed {
			names = append(names, v.String())
		}
		s.Refused = "the runs differ in what they ran on (" + list(names) + "), and no law describes all of them"
		return nil
	}
	kind := s.curve.Scaling
	switch {
	case kind == "weak", kind == "strong":
	case measure.KindOf(fmt.Sprint(s.curve.Parameters["workload.kind"])).PerWorker:
		// Each worker processes one sample at a time, independently of the number of workers. Its
		// work therefore does not shrink with more workers, as with weak scaling.
		kind = "weak"
	default:
		s.Refused = "the runs do not record whether scaling is weak or strong"
		return nil
	}
	why := s.missingData()
	if why != "" && s.oneNode { // nothing uses the model
		s.Refused = why
		return nil
	}
	var refusal *predict.Refusal
	series, err := predict.NewSeries(*s.curve, s.observed, kind, nil)
	if err == nil && series.Unit == measure.RateUnit(s.curve.Sample) {
		s.sketch = &carrier{series: series}
		s.sketch.law, err = predict.Fit(series.Study, s.o.Confidence)
	}
	if err != nil {
		s.sketch = nil
	}
	if why != "" {
		s.Refused = why
		return nil
	}
	switch {
	case errors.As(err, &refusal):
		s.Refused = refusal.Why
	case err != nil:
		return err
	}
	if s.sketch == nil {
		return nil
	}
	s.law, s.Law = s.sketch.law, s.sketch.law.Terms()
	if h := s.law.HoldOut; h != nil {
		s.HoldOut = new(h.Measured/h.Predicted.Value - 1)
	}
	s.edge = s.carried(s.law.Largest())
	if _, err := s.sketch.at(2 * s.law.Largest()); errors.As(err, &refusal) {
		s.Refused = refusal.Why
	} else if err != nil {
		s.Refused = err.Error()
	}
	return nil
}

// missingData says what is missing to trust the fitted model; "" if nothing is.
func (s *study) missingData() string {
	enough, tier, measured := 0, 0, 0
	for _, p := range s.curve.Points {
		runs := len(p.Of(measure.Throughput).Values)
		if runs > 0 {
			measured++
		}
		if runs >= lawRuns {
			enough++
			if p.Workers%s.node() == 0 {
				tier++
			}
		}
	}
	have := fmt.Sprintf("%d of the %d measured have", enough, measured)
	switch {
	case enough >= lawCounts && tier >= lawTier:
		return ""
	case enough >= lawCounts:
		return fmt.Sprintf("a fit of one network tier needs %d worker counts that fill whole nodes of %d; there are %d", lawTier, s.nodeSize, tier)
	case measured == 0:
		have = "no run has one"
	case enough == measured:
		have = fmt.Sprintf("there are %d", measured)
	case enough == 0 && measured == 1:
		have = "the one measured has fewer"
	case enough == 0:
		have = fmt.Sprintf("none of the %d measured has that many", measured)
	case enough == 1:
		have = fmt.Sprintf("one of the %d measured has", measured)
	}
	return fmt.Sprintf("that needs %d worker counts with %d or more runs each that have a steady state; %s", lawCounts, lawRuns, have)
}

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
	r := decision.Decide(s.question(limits, nil, math.MaxInt))
	if r.Chosen < measured {
		s.Candidates = s.Candidates[:measured]
		return ""
	}
	c := &s.Candidates[r.Chosen]
	s.Beyond = &c.Workers
	return s.perhaps(c)
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

// perhaps returns a clause on a count beyond the data that may be better than the answer.
func (s *study) perhaps(c *Candidate) string {
	if s.imported() {
		return fmt.Sprintf("; %d may (%s), and were not measured", c.Workers, s.odds(c))
	}
	return fmt.Sprintf("; %d may (%s): measure %d first", c.Workers, s.odds(c), min(2*s.largest(), c.Workers))
}
