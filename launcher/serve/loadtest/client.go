package loadtest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// calibration is how long a run's client is measured, over all sizes of requests; a
	// third of it with one request in flight, the rest with a crowd.
	calibration = 750 * time.Millisecond
	crowd       = 16
	// A neighbour that takes the CPU for a moment is no limit of the client's: its rate
	// is that of the best of so many stretches, without the first, in which the crowd
	// comes; where one has fewer answers than counted, it is that of all.
	stretches = 10
	counted   = 100
)

// client is what the load generator itself gets from a server that answers at once.
type client struct {
	rate     float64 // answers/s; 0: not known
	overhead float64 // seconds
}

// calibrate measures the client itself, against a server that answers at once. That
// server runs on the client's own CPUs, so a client alone is a little faster.
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
		if err != nil { // the loads are measured all the same
			if err := s.Doubt(fmt.Sprintf("batch %d: nothing is known of the client's own limit: %v", batch, err)); err != nil {
				return err
			}
			continue
		}
		s.client[batch] = client{rate, overhead}
	}
	return nil
}

// alone is the largest rate of the client by itself, and its median latency with one
// request in flight.
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
		return 0, 0, fmt.Errorf("the server that answers at once does not: %w", errors.Join(one.FirstError, many.FirstError))
	}
	return rate, overhead, nil
}
