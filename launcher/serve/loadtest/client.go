package loadtest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// calibration is the total time of measuring the client, over all batch sizes. A third of it has 1
	// request in flight, the rest 16 (crowd).
	calibration = 750 * time.Millisecond
	crowd       = 16
	// Other programs that take the CPU for a moment must not lower the client's rate, so it is the rate of the
	// best stretch. The first stretch does not count: the crowd is still arriving. Stretches with fewer than
	// counted answers do not count either; if none has that many, the rate over all stretches counts.
	stretches = 10
	counted   = 100
)

// A client holds what the load generator itself achieves against a server that answers at once.
type client struct {
	rate     float64 // answers/s; 0 if unknown
	overhead float64 // seconds
}

// calibrate measures the client against a server that answers at once. That server uses the same CPUs, so the
// client's real limit is slightly higher.
func (s *Service) calibrate(ctx context.Context, batches []int) error {
	if s.Null == nil {
		return nil
	}
	s.client = map[int]client{}
	for _, batch := range batches {
		if err := s.Phase(fmt.Sprintf("calibrating the client, batch %d", batch)); err != nil {
			return err
		}
		rate, overhead, err := s.alone(ctx, batch, calibration/time.Duration(len(batches)))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil { // not fatal: the loads can still be measured
			if err := s.Warn(fmt.Sprintf("batch %d: the client's own limit is unknown: %v", batch, err)); err != nil {
				return err
			}
			continue
		}
		s.client[batch] = client{rate, overhead}
	}
	return nil
}

// alone returns the client's highest rate, and its median latency with one request in flight.
func (s *Service) alone(ctx context.Context, batch int, span time.Duration) (rate, overhead float64, err error) {
	dial, end, err := s.Null(ctx, batch)
	if err != nil {
		return 0, 0, err
	}
	defer end()
	closed := func(inFlight int, span time.Duration) (*Result, error) {
		return Run(ctx, Options{Dial: dial, InFlight: inFlight, Duration: span, Window: span / stretches, Timeout: time.Second})
	}
	one, err := closed(1, span/3)
	if err != nil {
		return 0, 0, err
	}
	total := Merge(one.Windows)
	overhead, answered := total.Percentile(Latency, 0.5)
	many, err := closed(crowd, span-span/3)
	if err != nil {
		return 0, 0, err
	}
	many.Windows = many.Windows[1:]
	total = Merge(many.Windows)
	rate = total.Rate()
	for _, w := range many.Windows {
		if w.Good >= counted {
			rate = max(rate, w.Rate())
		}
	}
	if rate == 0 || !answered {
		return 0, 0, fmt.Errorf("no answers from the calibration server: %w", errors.Join(one.FirstError, many.FirstError))
	}
	return rate, overhead, nil
}
