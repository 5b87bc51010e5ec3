package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
)

// value returns the number at p.
func (b *bench) value(p cuda.Pointer) float32 {
	b.t.Helper()
	host, err := b.AllocPinned(4)
	b.do(err)
	b.do(b.EnqueueDownload(host, 0, 4, p, b.stream), b.end(b.stream))
	v := cuda.View[float32](host)[0]
	b.do(host.Free())
	return v
}

// one allocates a number, which is 1.
func (b *bench) one() cuda.Pointer {
	b.t.Helper()
	p, err := b.Alloc(4)
	b.do(err)
	b.do(b.Upload(p, []byte{0, 0, 0x80, 0x3f}, b.stream))
	return p
}

// Captured work runs only when the graph is launched, and then each time. Work on a second
// stream is ordered by the events.
func TestGraph(t *testing.T) {
	b := newFakeGPU(t)
	p, q := b.one(), b.one()
	second, err := b.NewStream()
	b.do(err)
	fork, err := b.NewEvent()
	b.do(err)
	join, err := b.NewEvent()
	b.do(err)
	twice := func(p cuda.Pointer, s cuda.Stream) error { return b.launchIn(p, 1, 2, s) }
	g, err := b.Capture(b.stream, func() error {
		return errors.Join(twice(p, b.stream), b.Record(fork, b.stream), b.Wait(second, fork), b.EnqueueCopy(q, p, 4, second), twice(q, second),
			b.Record(join, second), b.Wait(b.stream, join), b.EnqueueCopy(p, q, 4, b.stream))
	})
	b.do(err)
	if v := b.value(p); v != 1 {
		t.Errorf("%v after the capture; want 1", v)
	}
	for _, want := range []float32{4, 16, 64} {
		b.do(g.Launch(b.stream))
		if v := b.value(p); v != want {
			t.Errorf("%v; want %v", v, want)
		}
	}
	_, err = b.Reached(join)
	number(t, err, "cuEventQuery", 907)
	b.do(g.Destroy(), b.Record(join, second), b.end(second))
	if reached, err := b.Reached(join); !reached || err != nil {
		t.Errorf("an event recorded after a capture: %v, %v", reached, err)
	}
}

func TestGraphErrors(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_GRAPH_ERROR", "2")
	b := newFakeGPU(t)
	p := b.one()
	second, err := b.NewStream()
	b.do(err)
	event, err := b.NewEvent()
	b.do(err)
	elsewhere, err := b.NewEvent()
	b.do(err, b.Record(elsewhere, second))

	own := errors.New("the caller's own")
	for _, test := range []struct {
		name   string
		record func() error
		call   string
		number int
	}{
		{"allocates", func() error { _, err := b.Alloc(4); return err }, "cuMemAlloc", 900},
		{"copies Go's memory", func() error { return b.Upload(p, []byte{1}, b.stream) }, "cuMemcpyHtoDAsync", 900},
		{"asks", func() error { _, err := b.Done(second); return err }, "cuStreamQuery", 900},
		{"swallows that", func() error { _, _ = b.Done(second); return nil }, "cuStreamEndCapture", 901},
		{"waits for what is not captured", func() error { return b.Wait(b.stream, elsewhere) }, "cuStreamWaitEvent", 905},
		{"lets a stream go on", func() error {
			return errors.Join(b.Record(event, b.stream), b.Wait(second, event), b.Fill(p, 0, 4, second))
		}, "cuStreamEndCapture", 904},
		{"captures in a capture", func() error { _, err := b.Capture(b.stream, func() error { return nil }); return err }, "cuStreamBeginCapture", 1},
		{"fails", func() error { return own }, "", 0},
	} {
		g, err := b.Capture(b.stream, test.record) // on this goroutine, to which the device is bound
		var e *cuda.Error
		switch {
		case g != nil:
			t.Errorf("%s: there is a graph", test.name)
		case test.call == "" && !errors.Is(err, own), test.call != "" && (!errors.As(err, &e) || e.Call != test.call || e.Number != test.number):
			t.Errorf("%s: %v; want error %d of %s", test.name, err, test.number, test.call)
		}
	}
	// After a failed capture, the stream is usable again, and nothing has run.
	if v := b.value(p); v != 1 {
		t.Errorf("%v; want 1", v)
	}
	g, err := b.Capture(b.stream, func() error { return b.launch(p, 1, 2) })
	b.do(err)
	b.do(g.Launch(second))
	number(t, g.Launch(second), "cuGraphLaunch", 701)
	b.do(b.end(second))
	if v := b.value(p); v != 2 {
		t.Errorf("%v; want 2", v)
	}
}

// Drivers before CUDA 11.4 lack some functions of graphs; everything else works.
func TestNoGraphs(t *testing.T) {
	path, d := bind(t, "cuGraphInstantiateWithFlags")
	_, err := d.Capture(0, func() error { return nil })
	if want := "CUDA graphs need a driver for CUDA 11.4 or later; this one is for 12.4: " + path + " has no cuGraphInstantiateWithFlags"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}

// A real driver does not have the symbol that marks the fake. On the first GPU that this ran on,
// that symbol counted as missing, and no graph was captured.
func TestGraphsWithoutTheFakesMark(t *testing.T) {
	_, d := bind(t, "scalebenchDouble")
	if d.Driver().IsFake() {
		t.Fatal("the fake still has its mark")
	}
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.Capture(s, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Launch(s), g.Destroy(), d.DestroyStream(s)); err != nil {
		t.Error(err)
	}
}

// bind opens a fake driver that lacks a symbol, and its first GPU.
func bind(t *testing.T, without string) (path string, d *cuda.Device) {
	t.Helper()
	path, err := gputest.Build(t.TempDir(), "libcuda-double.so", without)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := cuda.Open(func(string) string { return path })
	if err != nil {
		t.Fatal(err)
	}
	if d, err = driver.Bind(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return path, d
}
