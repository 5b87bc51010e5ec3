//go:build cgo

package gpurank

import (
	"context"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/nccl"
)

// ProofCost is the host time of a call, without the work that it starts on the device.
type ProofCost struct {
	Call   string  `json:"call"`
	Calls  int     `json:"calls"`  // number of timed calls
	Median float64 `json:"median"` // ns
	Min    float64 `json:"min"`    // ns
	P99    float64 `json:"p99"`    // ns
}

// ProofCosts measures how long single calls take. Each time includes some tens of ns
// for reading the clock.
func ProofCosts(ctx context.Context, s ProofRank) ([]ProofCost, error) {
	buffer, err := s.Device.Alloc(16 * 256)
	if err != nil {
		return nil, err
	}
	defer s.Device.Free(buffer)
	group := make([]nccl.Operation, 16)
	for i := range group {
		at := uintptr(buffer) + uintptr(256*i)
		group[i] = nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float32, Count: 1, Send: at, Recv: at}
	}
	var list []ProofCost
	for _, c := range []struct {
		name  string
		calls int
		call  func() error
	}{
		{"poll of stream and communicator", 2000, func() error { _, err := s.Comm.Poll(); return err }},
		{"one all-reduce enqueued", 1000, func() error { return s.Comm.Enqueue(ctx, group[0]) }},
		{"16 all-reduces enqueued as a group", 300, func() error { return s.Comm.Enqueue(ctx, group...) }},
	} {
		ns := make([]float64, c.calls)
		for i := -20; i < c.calls; i++ { // the first 20 calls are for warm-up
			begin := time.Now()
			err := c.call()
			took := time.Since(begin)
			if err == nil {
				err = s.Comm.Wait(ctx)
			}
			if err != nil {
				return list, err
			}
			if i >= 0 {
				ns[i] = float64(took.Nanoseconds())
			}
		}
		slices.Sort(ns)
		list = append(list, ProofCost{Call: c.name, Calls: c.calls, Median: ns[c.calls/2], Min: ns[0], P99: ns[c.calls*99/100]})
	}
	return list, nil
}
