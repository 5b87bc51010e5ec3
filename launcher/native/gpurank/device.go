//go:build cgo

// Package gpurank opens the GPU of one rank: the driver, the device and, if there are other ranks,
// an NCCL communicator with them (rendezvous.go). The trainer and the collective benchmark
// (bench.go) use it. proof.go checks that the results of every collective are right, bit for bit.
// Only workers built with GPU support link it.
package gpurank

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/world"
)

// shareVariable names a variable that, set to 1, lets several ranks of a host share its only GPU.
// This serves to check results. Timings then do not reflect the hardware.
const shareVariable = "SCALEBENCH_SHARE_GPU"

// A Rank is one rank's GPU and its connection to the other ranks. Only the goroutine that opened it
// may use it; that goroutine is locked to its thread.
type Rank struct {
	Device *cuda.Device
	Stream cuda.Stream // stream in which the communicator's operations run
	Comm   *Comm       // nil if the rank is alone, see OpenAlone

	library *nccl.Library
	driver  *cuda.Driver
	gpu     string
	shared  bool // whether other ranks use the same GPU
}

// Open makes an NCCL communicator for the ranks of g; w is this rank's place in the world. It looks
// for libraries through getenv (os.Getenv). The caller must still close g; Open makes a second
// group for its own messages between ranks. timeout is the maximum time that a rank waits for
// another; 0: the default.
func Open(ctx context.Context, g *collective.Group, w world.World, timeout time.Duration, getenv func(string) string) (*Rank, error) {
	library, err := nccl.Open(getenv)
	if err != nil {
		return nil, err
	}
	if getenv(shareVariable) == "1" {
		for name, value := range library.Sharing(w.Rank) {
			if err := os.Setenv(name, value); err != nil {
				return nil, err
			}
		}
	}
	s, err := OpenAlone(w, getenv)
	if err != nil {
		return nil, err
	}
	s.library = library
	if s.Stream, err = s.Device.NewStream(); err != nil {
		s.Device.Release()
		return nil, err
	}
	second, err := another(ctx, g, w, timeout)
	if err == nil {
		s.Comm, err = Join(ctx, s.library, second, nccl.Options{Stream: uintptr(s.Stream), Timeout: timeout,
			Done: func() (bool, error) { return s.Device.Done(s.Stream) }})
	}
	if err != nil {
		err = errors.Join(err, s.Device.DestroyStream(s.Stream))
		s.Device.Release()
		return nil, err
	}
	return s, nil
}

// OpenAlone opens the GPU of a rank that has no other ranks to communicate with. It needs no NCCL.
func OpenAlone(w world.World, getenv func(string) string) (*Rank, error) {
	s := &Rank{shared: getenv(shareVariable) == "1"}
	var err error
	if s.driver, err = cuda.Open(getenv); err != nil {
		return nil, err
	}
	n, err := s.driver.Devices()
	if err != nil {
		return nil, err
	}
	ordinal, err := ordinal(n, w)
	if err != nil {
		return nil, err
	}
	if s.gpu, err = s.driver.Name(ordinal); err != nil {
		return nil, err
	}
	if s.Device, err = s.driver.Bind(ordinal); err != nil {
		return nil, err
	}
	return s, nil
}

// ordinal returns which of the n GPUs that the process sees this rank uses. If each rank sees only
// its own GPU, it is that one; else it is chosen by the rank's number on the node.
func ordinal(n int, w world.World) (int, error) {
	switch {
	case n == 1:
		return 0, nil
	case n >= w.LocalSize:
		return w.LocalRank, nil
	}
	return 0, fmt.Errorf("this node has more ranks (%d) than GPUs (%d); give each rank a GPU (gpus_per_node in the site file), or start fewer ranks", w.LocalSize, n)
}

// another makes a second group of the ranks of g, for messages about NCCL, which could otherwise
// mix with the collectives in g. Rank 0 chooses a port and a nonce, and an all-reduce passes them
// to the others.
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

// TimingCaveats returns why the timings do not reflect the hardware. They must be stored with them.
func (s *Rank) TimingCaveats() []string {
	var list []string
	if s.driver.IsFake() || s.library != nil && s.library.IsFake() {
		list = append(list, "DOUBLE, not a GPU")
	}
	if s.shared {
		list = append(list, "ranks share a GPU, not performance")
	}
	return list
}

// GPU returns the model of this rank's GPU.
func (s *Rank) GPU() string { return s.gpu }

// Versions returns the versions of the libraries that move the data. For a test fake, the version
// says so.
func (s *Rank) Versions() map[string]string {
	list := map[string]string{"cuda-driver": s.driver.Version()}
	switch {
	case s.library == nil:
	case s.library.IsFake():
		list["nccl"] = s.library.String()
	default:
		list["nccl"] = s.library.Version().String()
	}
	return list
}

// Others returns an error if another rank has given up, with its reason, or if the communicator has
// failed; else nil. It does not wait.
func (s *Rank) Others() error {
	if s.Comm == nil {
		return nil
	}
	_, err := s.Comm.Poll()
	return err
}

// Abort tells the other ranks why this rank cannot continue.
func (s *Rank) Abort(reason error) {
	if s.Comm != nil {
		s.Comm.Abort(reason)
	}
}

// Leave leaves the communicator together with the other ranks. After an error, it tells them and
// does not wait.
func (s *Rank) Leave(ctx context.Context, err error) error {
	if err != nil {
		s.Abort(err)
		return err
	}
	if s.Comm == nil {
		return nil
	}
	return s.Comm.Close(ctx)
}
