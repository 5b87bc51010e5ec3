package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/inquiry"
)

// figure finds the measure that a question about numbers of workers is asked of: any
// with one value per run and a better direction.
func (s *session) figure(ctx context.Context, o curveOptions) (*measure.Measure, error) {
	a, err := s.analyse(ctx, o)
	if err != nil {
		return nil, err
	}
	m, err := inquiry.Find(a.Observations, o.measure)
	switch {
	case err != nil:
		return nil, unanswered(err)
	case m.At != "":
		return nil, &usageError{err: fmt.Errorf("--measure %s: each run has many values of it (%s); choose a measure with one value per run", m.Name, strings.Join(m.At.Keys(), ", ")),
			hint: "`" + appName + " scaling STUDY -m " + m.Name + "` prints them."}
	case m.Missable:
		return nil, usagef("--measure %s is a time to a target: --target asks about it", m.Name)
	case m.Better == measure.Neither:
		return nil, &usageError{err: fmt.Errorf("--measure %s: neither a higher nor a lower value is better, so there is no best number of workers", m.Name),
			hint: "If the program reports it, set better = \"higher\" (or \"lower\") in its [[extract]], then run `" + appName + " collect`."}
	}
	return &m, nil
}

// asThroughput asks about a measure in place of the throughput.
func (o *curveOptions) asThroughput(m measure.Measure) {
	o.measure = measure.Throughput
	o.prepare = func(obs []scaling.Observation, _ []scaling.Planned) { scaling.AsThroughput(obs, m) }
}
