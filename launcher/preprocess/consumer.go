package preprocess

import (
	"context"
	"time"
)

// A Consumer simulates a trainer of a given maximum rate. It takes samples from a queue one by one,
// and waits 1/rate for each.
type Consumer struct {
	queue chan struct{}
	done  chan struct{}
	each  time.Duration
	// Results, valid after it has ended.
	samples int
	waited  time.Duration
	took    time.Duration
}

// queued is the maximum number of finished samples in the queue; then the producing threads block.
const queued = 256

// NewConsumer starts a Consumer that takes at most rate samples per second.
func NewConsumer(rate float64) *Consumer {
	c := &Consumer{queue: make(chan struct{}, queued), done: make(chan struct{}), each: time.Duration(float64(time.Second) / rate)}
	go c.run()
	return c
}

// Take hands a sample to the consumer. It waits while the queue is full.
func (c *Consumer) Take(ctx context.Context, _ Sample) error {
	select {
	case c.queue <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ahead is the time by which the simulated computation may run ahead of the clock before the
// consumer sleeps. Timers are about this precise.
const ahead = 2 * time.Millisecond

func (c *Consumer) run() {
	defer close(c.done)
	begun := time.Now()
	free := begun // time when the consumer will have finished its samples
	for range c.queue {
		if now := time.Now(); now.After(free) {
			c.waited += now.Sub(free)
			free = now
		}
		c.samples++
		free = free.Add(c.each)
		if left := time.Until(free); left > ahead {
			time.Sleep(left)
		}
	}
	time.Sleep(time.Until(free))
	c.took = free.Sub(begun)
}

// End waits until the consumer has used all samples in the queue. It returns the seconds that the
// consumer waited for samples, and the seconds of the whole time. waited/took is 1 − accelerator
// utilisation.
func (c *Consumer) End() (waited, took float64) {
	close(c.queue)
	<-c.done
	return c.waited.Seconds(), c.took.Seconds()
}
