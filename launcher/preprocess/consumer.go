package preprocess

import (
	"context"
	"time"
)

// A Consumer simulates a trainer: it takes samples from a queue one by one, and spends the time that its rate
// gives on each.
type Consumer struct {
	queue chan struct{}
	done  chan struct{}
	each  time.Duration
	// What it has done.
	samples int
	waited  time.Duration
	took    time.Duration
}

// queued is the number of finished samples that may wait before the producing threads block.
const queued = 256

// NewConsumer starts one that takes so many samples a second at most.
func NewConsumer(rate float64) *Consumer {
	c := &Consumer{queue: make(chan struct{}, queued), done: make(chan struct{}), each: time.Duration(float64(time.Second) / rate)}
	go c.run()
	return c
}

// Take hands a sample over, and waits while the queue is full.
func (c *Consumer) Take(ctx context.Context, _ Sample) error {
	select {
	case c.queue <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ahead is the longest computation done at once, about the precision of timers.
const ahead = 2 * time.Millisecond

func (c *Consumer) run() {
	defer close(c.done)
	begun := time.Now()
	free := begun // when it is through with what it has
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

// End lets it finish what is in the queue. It waited for so many of the seconds that
// it was there: the share is 1 − accelerator utilisation.
func (c *Consumer) End() (waited, took float64) {
	close(c.queue)
	<-c.done
	return c.waited.Seconds(), c.took.Seconds()
}
