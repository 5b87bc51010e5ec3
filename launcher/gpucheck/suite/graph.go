//go:build cgo

package suite

import (
	"errors"
	"fmt"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// pinned reads the number at p through pinned memory.
func (b *bench) pinned(p cuda.Pointer) float32 {
	b.Helper()
	host, err := b.device.AllocPinned(4)
	b.did(err)
	b.did(b.device.EnqueueDownload(host, 0, 4, p, b.stream))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		done, err := b.device.Done(b.stream)
		b.did(err)
		if done {
			break
		}
		if time.Now().After(deadline) {
			b.Fatal("a stream with one copy did not finish within a minute")
		}
	}
	v := cuda.View[float32](host)[0]
	b.did(host.Free())
	return v
}

// graph captures kernels and copies on two streams, joined by events. Nothing runs
// during the capture, and everything runs at each launch of the graph.
func graph(b *bench) {
	zero := b.single([]float64{0})
	p, q := b.single([]float64{1}), b.single([]float64{1})
	// w − rate·(gradient + decay·w) is 2·w.
	twice := func(w, velocity cuda.Pointer, s cuda.Stream) error {
		return b.SGD(s, ptx.SGD{Weights: w, Velocity: velocity, Gradients: zero, Count: 1, Rate: 1, Decay: -1})
	}
	first, other := b.single([]float64{0}), b.single([]float64{0})
	// The driver may load a kernel at its first launch, which a capture forbids.
	b.did(twice(b.single([]float64{1}), b.single([]float64{0}), b.stream))
	second, err := b.device.NewStream()
	b.did(err)
	fork, err := b.device.NewEvent()
	b.did(err)
	join, err := b.device.NewEvent()
	b.did(err)
	g, err := b.device.Capture(b.stream, func() error {
		return errors.Join(twice(p, first, b.stream), b.device.Record(fork, b.stream), b.device.Wait(second, fork),
			b.device.EnqueueCopy(q, p, 4, second), twice(q, other, second),
			b.device.Record(join, second), b.device.Wait(b.stream, join), b.device.EnqueueCopy(p, q, 4, b.stream))
	})
	if missing := (*dl.MissingError)(nil); errors.As(err, &missing) && b.device.Driver().Before(11, 4) {
		b.Logf("%v; training launches each kernel separately", err)
		return
	}
	b.did(err)
	// After the capture, then after each launch: doubled on both streams.
	for i, want := range []float32{1, 4, 16, 64} {
		if i > 0 {
			b.did(g.Launch(b.stream))
		}
		gpucheck.Same(b.T, gpucheck.Difference{What: fmt.Sprintf("a number after %d launches of the graph", i), Launch: b.wrote(p)}, []float32{b.pinned(p)}, []float32{want})
	}
	b.did(errors.Join(g.Destroy(), b.device.DestroyEvent(fork), b.device.DestroyEvent(join), b.device.DestroyStream(second)))
}
