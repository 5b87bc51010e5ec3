//go:build cgo

package gpurank

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/world"
)

// This file lets the collective benchmark measure NCCL between GPUs. Only workers built with GPU
// support link it.

// A Transport moves the benchmark's data with NCCL, between two buffers on each rank's GPU. Only
// the goroutine that opened it may use it; that goroutine is locked to its thread.
type Transport struct {
	*Rank
	buffers [2]cuda.Pointer
}

// OpenTransport opens this rank's GPU and connects it with the other ranks' GPUs. The caller must
// still close g (see Open).
func OpenTransport(ctx context.Context, g *collective.Group, w world.World, timeout time.Duration, getenv func(string) string) (*Transport, error) {
	s, err := Open(ctx, g, w, timeout, getenv)
	if err != nil {
		return nil, err
	}
	return &Transport{Rank: s}, nil
}

// Name returns the name that users type, followed by the doubts, so that a table of times from a
// fake or a shared GPU is recognised as one.
func (b *Transport) Name() string {
	return strings.Join(append([]string{"nccl"}, b.TimingCaveats()...), ": ")
}

// Proof returns the data that RunProof needs to check this rank's collectives.
func (b *Transport) Proof() ProofRank {
	return ProofRank{Device: b.Device, Stream: b.Stream, Comm: b.Comm.Comm}
}

// Allocate makes the two buffers.
func (b *Transport) Allocate(elements int) error {
	for i := range b.buffers {
		var err error
		if b.buffers[i], err = b.Device.Alloc(4 * int64(elements)); err != nil {
			return err
		}
	}
	return nil
}

func (b *Transport) at(r collective.Region) cuda.Pointer {
	return b.buffers[r.Buffer] + cuda.Pointer(4*r.Offset)
}

// bytesOf returns the numbers' memory. The device uses the same layout: both are little-endian.
func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// Write copies values to the GPU.
func (b *Transport) Write(buffer collective.Buffer, offset int, values []float32) error {
	return b.Device.Upload(b.at(collective.Region{Buffer: buffer, Offset: offset}), bytesOf(values), b.Stream)
}

// Read copies values from the GPU.
func (b *Transport) Read(buffer collective.Buffer, offset int, values []float32) error {
	return b.Device.Download(bytesOf(values), b.at(collective.Region{Buffer: buffer, Offset: offset}), b.Stream)
}

var kinds = map[collective.Op]nccl.Kind{collective.AllReduce: nccl.AllReduce, collective.ReduceScatter: nccl.ReduceScatter, collective.AllGather: nccl.AllGather, collective.Broadcast: nccl.Broadcast}

// Do performs one collective and waits for its end on the device: the time
// includes launching it.
func (b *Transport) Do(ctx context.Context, c collective.Call) error {
	kind, known := kinds[c.Op]
	if !known {
		return fmt.Errorf("NCCL has no %q here", c.Op)
	}
	if err := b.Comm.Enqueue(ctx, nccl.Operation{Kind: kind, Type: nccl.Float32, Count: int64(c.Count), Send: uintptr(b.at(c.Send)), Recv: uintptr(b.at(c.Receive))}); err != nil {
		return err
	}
	return b.Comm.Wait(ctx)
}

// End leaves the communicator: see Rank.Leave.
func (b *Transport) End(ctx context.Context, err error) error { return b.Leave(ctx, err) }
