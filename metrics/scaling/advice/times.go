package advice

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// time sets the candidate's time: the measured one or, if none exists, the samples to the
// target divided by the throughput. If neither is known, it adds the reason to Why.
func (s *study) time(c *Candidate) {
	if s.timeless != "" {
		return
	}
	if s.Goal == "" {
		n := s.o.Samples
		s.timed(c, over(Estimate{Value: n, Low: &n, High: &n, oneSided: &decision.Belief{Value: n, Low: n, High: n, Level: 1}}, *c.Throughput))
		return
	}
	batch := s.batchAt(c.Workers)
	c.Miss = s.misses.chance(batch)
	why := s.samples(c, batch)
	if t := s.reached(c.Workers); t != nil {
		s.timed(c, s.measuredTime(c, t))
		return
	}
	if c.Basis == Measured && why == "" && s.missedAt(c.Workers) && !(c.Miss != nil && *c.Miss.High < 0.5) {
		why = s.point(c.Workers).Of(s.Goal).Why
	}
	if why == "" && c.Miss != nil && *c.Miss.High >= 0.5 {
		why = fmt.Sprintf("with a global batch of %g, half of the runs may miss %s", batch, s.goal())
	}
	if why != "" {
		c.Why = append(c.Why, "time: "+why)
		return
	}
	if g := s.modelled(c); g != nil {
		s.timed(c, g)
	}
}

// samples sets how many samples the candidate takes to the target, or returns why that is
// unknown.
func (s *study) samples(c *Candidate, batch float64) (why string) {
	switch {
	case batch >= s.lost:
		return s.lostRuns
	case s.conv != nil && !math.IsInf(s.lost, 1) && batch > slices.Max(s.conv.Batches()):
		return fmt.Sprintf("its global batch of %g lies between the largest that reaches the target and one that does not", batch)
	case batch == 0 || s.conv == nil:
		return "its global batch is not known"
	}
	n, err := s.conv.Predict(batch)
	if refusal := (*predict.Refusal)(nil); errors.As(err, &refusal) {
		return refusal.Why
	} else if err != nil {
		return err.Error()
	}
	c.Samples = &Estimate{Value: n.Value}
	if !math.IsNaN(n.Low) {
		c.Samples.Low, c.Samples.High = &n.Low, &n.High
	}
	return ""
}

// measuredTime returns the median of a candidate's measured times. With too few runs for an
// interval, it has the interval of the samples divided by the throughput, extended to include the
// median.
func (s *study) measuredTime(c *Candidate, t *scaling.Summary) *Estimate {
	f := *figure(t.Median)
	if f.Low != nil {
		return &f
	}
	why := "time: " + t.Median.Why
	if g := s.modelled(c); g != nil && g.Low != nil && s.law != nil && !t.Constant() {
		f.Low, f.High = new(min(*g.Low, f.Value)), new(max(*g.High, f.Value))
		why += "; the interval is that of samples over throughput"
	}
	c.Why = append(c.Why, why)
	return &f
}

// timed sets both times of the candidate from the time on the training clock.
func (s *study) timed(c *Candidate, training *Estimate) {
	c.Training, c.Seconds = training, training.plus(s.initAt(c.Workers))
}

// modelled returns the candidate's predicted time on the training clock: samples divided by
// throughput, plus the time outside steps. It returns nil if one of the two is unknown.
func (s *study) modelled(c *Candidate) *Estimate {
	if c.Samples == nil || c.Throughput == nil {
		return nil
	}
	steps := over(*c.Samples, *c.Throughput)
	if m := c.Miss; m != nil && *m.High < 0.5 {
		sigma := s.conv.Scatter()
		steps.Value *= later(m.Value, sigma)
		if steps.Low != nil {
			steps.Low, steps.High = new(*steps.Low*later(*m.Low, sigma)), new(*steps.High*later(*m.High, sigma))
		}
	}
	return sum(*steps, s.beside.predict(float64(c.Workers), steps.Value))
}

// missedAt reports whether runs with that many workers had the target, but too few reached it for
// a median of the time to it.
func (s *study) missedAt(workers int) bool {
	p := s.point(workers)
	if p == nil {
		return false
	}
	t := p.Of(s.Goal)
	return t.Runs > 0 && t.Median == nil
}

// Clock says which time the candidates' times (Candidate.Seconds) measure, in words that follow a
// time.
type Clock string

// The values of Clock.
const (
	Untimed Clock = ""                           // no candidate has a time
	Job     Clock = "with initialisation"        // counted from the start of the processes
	Trained Clock = "without initialisation"     // time on the training clock; initialisation was not recorded
	Stated  Clock = "on the program's own clock" // counted from the program's start of training to its target
)

// Clock returns the moment from which the candidates' times are counted.
func (a *Advice) Clock() Clock {
	clock := Untimed
	for _, c := range a.Candidates {
		switch {
		case c.Seconds == nil:
		case a.Goal == measure.ToTarget:
			return Stated
		case c.Seconds.Value > c.Training.Value:
			return Job
		default:
			clock = Trained
		}
	}
	return clock
}
