//go:build cgo

// Package gpu is the collective benchmark's way through NCCL, between GPUs. Only
// the worker's GPU variant links it.
package gpu

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/gpu/nccl/proof"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/collective/bench"
	"github.com/scalebench/scalebench/launcher/native/rendezvous"
	"github.com/scalebench/scalebench/launcher/world"
)

// ShareVariable set to 1 lets several ranks of a host use its one GPU, to see
// that results are right. Nothing that is then measured is of any hardware.
const ShareVariable = "SCALEBENCH_SHARE_GPU"

// A Transport is one rank's GPU: two buffers, a stream and a communicator. It
// belongs on the goroutine that opened it, which is locked to its thread.
type Transport struct {
	library *nccl.Library
	driver  *cuda.Driver
	device  *cuda.Device
	name    string // of the GPU
	stream  cuda.Stream
	comm    *rendezvous.Comm
	shared  bool // the GPU, with other ranks
	buffers [2]cuda.Pointer
}

// Open makes the ranks of g, whose place in the world is w, a communicator of
// NCCL. Libraries are looked for as getenv (os.Getenv) says. g stays the
// caller's; the ranks make another one, for what NCCL's ranks tell each other.
// timeout is how long a rank waits for another; 0: the default.
func Open(ctx context.Context, g *collective.Group, w world.World, timeout time.Duration, getenv func(string) string) (*Transport, error) {
	b := &Transport{}
	var err error
	if b.library, err = nccl.Open(getenv); err != nil {
		return nil, err
	}
	if b.shared = getenv(ShareVariable) == "1"; b.shared {
		for name, value := range b.library.Sharing(w.Rank) {
			if err := os.Setenv(name, value); err != nil {
				return nil, err
			}
		}
	}
	if b.driver, err = cuda.Open(getenv); err != nil {
		return nil, err
	}
	n, err := b.driver.Devices()
	if err != nil {
		return nil, err
	}
	ordinal, err := ordinal(n, w)
	if err != nil {
		return nil, err
	}
	if b.name, err = b.driver.Name(ordinal); err != nil {
		return nil, err
	}
	if b.device, err = b.driver.Bind(ordinal); err != nil {
		return nil, err
	}
	if b.stream, err = b.device.NewStream(); err != nil {
		return nil, err
	}
	second, err := another(ctx, g, w, timeout)
	if err != nil {
		return nil, err
	}
	b.comm, err = rendezvous.Join(ctx, b.library, second, nccl.Options{Stream: uintptr(b.stream), Timeout: timeout,
		Done: func() (bool, error) { return b.device.Done(b.stream) }})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// ordinal is this rank's GPU among the n that its process sees: its own where
// each rank was given one, else the one of its place on the node.
func ordinal(n int, w world.World) (int, error) {
	switch {
	case n == 1:
		return 0, nil
	case n >= w.LocalSize:
		return w.LocalRank, nil
	}
	return 0, fmt.Errorf("this node has more ranks (%d) than GPUs (%d); give each rank a GPU (gpus_per_node in the site file), or start fewer ranks", w.LocalSize, n)
}

// another makes a second group of the ranks of g: a collective of the benchmark
// must not meet, in one group, what NCCL's ranks tell each other meanwhile. Rank
// 0 finds a port and a nonce, and a sum tells the others.
func another(ctx context.Context, g *collective.Group, w world.World, timeout time.Duration) (*collective.Group, error) {
	o := collective.Options{Transport: collective.TCP, Timeout: timeout, JoinTimeout: timeout}
	if g.Size() == 1 {
		return collective.Join(ctx, w, "", o)
	}
	var word [3]int64 // the port and a nonce
	if g.Rank() == 0 {
		ip, err := netip.ParseAddr(w.Address)
		if err != nil {
			return nil, fmt.Errorf("rank 0's address %q: %w", w.Address, err)
		}
		if o.Listener, err = net.Listen("tcp", netip.AddrPortFrom(ip, 0).String()); err != nil {
			return nil, err
		}
		var nonce [16]byte
		rand.Read(nonce[:]) // never fails
		word = [3]int64{int64(o.Listener.Addr().(*net.TCPAddr).Port), int64(binary.LittleEndian.Uint64(nonce[:])), int64(binary.LittleEndian.Uint64(nonce[8:]))}
	}
	if err := g.AllReduceInt64(ctx, word[:]); err != nil {
		return nil, err
	}
	w.Port = int(word[0])
	return collective.Join(ctx, w, fmt.Sprintf("%x %x", uint64(word[1]), uint64(word[2])), o)
}

// Name is how users call this backend, with its doubts, so that no table of its
// times is taken for one of GPUs that each have their own rank.
func (b *Transport) Name() string {
	return strings.Join(append([]string{"nccl"}, b.Doubts()...), ": ")
}

// Doubts are why what is measured is no figure of the hardware; they belong
// beside it wherever it is kept.
func (b *Transport) Doubts() []string {
	var list []string
	if b.library.Double() {
		list = append(list, "DOUBLE, not a GPU")
	}
	if b.shared {
		list = append(list, "ranks share a GPU, not performance")
	}
	return list
}

// GPU is the model of this rank's.
func (b *Transport) GPU() string { return b.name }

// Seat is what this rank works with.
func (b *Transport) Seat() proof.Seat {
	return proof.Seat{Device: b.device, Stream: b.stream, Comm: b.comm.Comm}
}

// Versions are those of what the data goes through. The double's says what it is.
func (b *Transport) Versions() map[string]string {
	library := b.library.Version().String()
	if b.library.Double() {
		library = b.library.String()
	}
	return map[string]string{"nccl": library, "cuda-driver": b.driver.Version()}
}

// Allocate makes the two buffers.
func (b *Transport) Allocate(elements int) error {
	for i := range b.buffers {
		var err error
		if b.buffers[i], err = b.device.Alloc(4 * int64(elements)); err != nil {
			return err
		}
	}
	return nil
}

func (b *Transport) at(r bench.Region) cuda.Pointer {
	return b.buffers[r.Buffer] + cuda.Pointer(4*r.Offset)
}

// bytesOf are the numbers as they lie in memory, which is how the device has
// them: both are little-endian.
func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// Write copies values to the GPU.
func (b *Transport) Write(buffer bench.Buffer, offset int, values []float32) error {
	return b.device.Upload(b.at(bench.Region{Buffer: buffer, Offset: offset}), bytesOf(values), b.stream)
}

// Read copies values from the GPU.
func (b *Transport) Read(buffer bench.Buffer, offset int, values []float32) error {
	return b.device.Download(bytesOf(values), b.at(bench.Region{Buffer: buffer, Offset: offset}), b.stream)
}

var kinds = map[bench.Op]nccl.Kind{bench.AllReduce: nccl.AllReduce, bench.ReduceScatter: nccl.ReduceScatter, bench.AllGather: nccl.AllGather, bench.Broadcast: nccl.Broadcast}

// Do performs one collective and waits for its end on the device: the time
// includes launching it.
func (b *Transport) Do(ctx context.Context, c bench.Call) error {
	kind, known := kinds[c.Op]
	if !known {
		return fmt.Errorf("NCCL has no %q here", c.Op)
	}
	if err := b.comm.Enqueue(ctx, nccl.Operation{Kind: kind, Type: nccl.Float32, Count: int64(c.Count), Send: uintptr(b.at(c.Send)), Recv: uintptr(b.at(c.Receive))}); err != nil {
		return err
	}
	return b.comm.Wait(ctx)
}

// End leaves the communicator in order, together with the other ranks; after an
// error it tells them and does not wait.
func (b *Transport) End(ctx context.Context, err error) error {
	if err != nil {
		b.comm.Abort(err)
		return err
	}
	return b.comm.Close(ctx)
}
