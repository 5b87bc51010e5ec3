//go:build cgo

package gpu

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// A Share is the part of a step's time that one kind of work takes.
type Share struct {
	What     string // a kernel's name, "products" or "input"
	Launches int
	Time     time.Duration
}

// Profile makes a step of n images, launched kernel by kernel, and returns how long the GPU took
// from each launch to the next, by the events between them. A wait for the host counts with the
// launch that follows it. The engine must have a single rank.
func (e *Engine) Profile(ctx context.Context, n int, learningRate float64) (total time.Duration, shares []Share, err error) {
	device := e.rank.Device
	type mark struct {
		what  string
		event cuda.Event
	}
	var marks []mark
	defer func() {
		for _, m := range marks {
			err = errors.Join(err, device.DestroyEvent(m.event))
		}
	}()
	record := func(what string) {
		event, err := device.NewEvent()
		if err == nil {
			marks = append(marks, mark{what, event})
			err = device.Record(event, e.stream)
		}
		e.net.do(err)
	}
	graphs := e.graphs
	e.graphs, e.net.multiplied = false, func() { record("products") }
	e.net.kernels.Launched = func(l ptx.Launch) { record(l.Kernel) }
	defer func() { e.graphs, e.net.multiplied, e.net.kernels.Launched = graphs, nil, nil }()
	e.begun++
	if err := e.await(ctx); err != nil {
		return 0, nil, err
	}
	record("")
	if err := e.upload(n); err != nil {
		return 0, nil, err
	}
	record("input")
	if err := e.pass(ctx, n); err != nil {
		return 0, nil, err
	}
	if e.Update(learningRate); e.failed != nil {
		return 0, nil, e.failed
	}
	if err := e.await(ctx); err != nil {
		return 0, nil, err
	}
	for i, m := range marks[1:] {
		took, err := device.Elapsed(marks[i].event, m.event)
		if err != nil {
			return 0, nil, err
		}
		at := slices.IndexFunc(shares, func(s Share) bool { return s.What == m.what })
		if at < 0 {
			at = len(shares)
			shares = append(shares, Share{What: m.what})
		}
		shares[at].Launches++
		shares[at].Time += took
		total += took
	}
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(b.Time, a.Time) })
	return total, shares, nil
}
