package cuda_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
)

// open loads the fake driver. Libraries are loaded only once, so GPUs must be set
// before.
func open(t *testing.T) (*cuda.Driver, error) {
	t.Helper()
	path, err := gputest.Build(t.TempDir(), "libcuda-double.so")
	if err != nil {
		t.Fatal(err)
	}
	return cuda.Open(func(string) string { return path })
}

func TestDriver(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_GPUS", "3")
	d, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := d.Devices(); n != 3 || err != nil || d.Version() != "12.4" || !strings.HasSuffix(d.Path(), "libcuda-double.so") {
		t.Errorf("%d devices, CUDA %s, %s, %v", n, d.Version(), d.Path(), err)
	}
	if name, err := d.Name(2); name != "DOUBLE, not a GPU" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	for _, ordinal := range []int{-1, 3} {
		if _, err := d.Name(ordinal); err == nil || !strings.Contains(err.Error(), "this process sees only 3") {
			t.Errorf("GPU %d: %v", ordinal, err)
		}
	}
}

func TestNoDriver(t *testing.T) {
	if _, err := cuda.Open(func(string) string { return "/nowhere/libcuda.so.1" }); err == nil || !strings.Contains(err.Error(), "CUDA's driver cannot be loaded: /nowhere/libcuda.so.1") {
		t.Errorf("%v", err)
	}
	t.Setenv("CUDA_DOUBLE_GPUS", "0")
	_, err := open(t)
	var refused *cuda.Error
	if !errors.As(err, &refused) || refused.Call != "cuInit" || refused.Number != 100 || !strings.Contains(err.Error(), "no CUDA-capable device is detected") {
		t.Errorf("a driver without a GPU: %v", err)
	}
}

func TestMemoryStreamsEvents(t *testing.T) {
	driver, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.Bind(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{0, -1} {
		if _, err := d.Alloc(n); err == nil {
			t.Errorf("%d bytes were allocated", n)
		}
	}
	p, err := d.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	begin, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	end, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	if reached, err := d.Reached(begin); !reached || err != nil {
		t.Errorf("an event that was never recorded: %v, %v", reached, err)
	}
	want := bytes.Repeat([]byte("scalebench"), 50)
	got := make([]byte, len(want))
	// A copy into the middle of an allocation, and an empty one.
	if err := errors.Join(d.Record(begin, s), d.Upload(p+300, want, s), d.Record(end, s), d.Upload(p, nil, s), d.Download(nil, p, s), d.Download(got, p+300, s)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%q came back", got)
	}
	if done, err := d.Done(s); !done || err != nil {
		t.Errorf("after a download: %v, %v", done, err)
	}
	took, err := d.Elapsed(begin, end)
	if err != nil || took < 0 || took > time.Minute {
		t.Errorf("%v, %v", took, err)
	}
	if back, err := d.Elapsed(end, begin); err != nil || back != -took {
		t.Errorf("%v forwards, %v backwards, %v", took, back, err)
	}
	if err := errors.Join(d.DestroyEvent(begin), d.DestroyEvent(end), d.DestroyStream(s), d.Free(p)); err != nil {
		t.Error(err)
	}
}
