package nccl_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
)

// A failure on rank 1 in the third of five all-reduces ends all three ranks within the limit.
// Each reports the cause and what it was doing. The limit is half of the time that they would
// wait for a silent rank, or leaves a busy machine
// time after the timeout.
func TestAbortOnAllRanks(t *testing.T) {
	for _, test := range []struct {
		scenario    string
		environment string  // of rank 1
		cause       string  // on rank 1
		elsewhere   string  // in the other ranks' errors
		within      float64 // in seconds, long enough for a busy machine; the timeout is a minute
	}{
		{"reported", "NCCL_DOUBLE_ERROR=3", "ncclRemoteError", "ncclRemoteError", 30},
		{"stopped", "", "told to stop: signal terminated", "signal terminated", 30},
		{"gives up", "", "the data is gone", "the data is gone", 30},
		{"mistaken", "", "this type is none of the double's", "this type is none of the double's", 30},
		{"killed", "", "", "rank 1 is gone", 30},
		{"stopped while it waits", "NCCL_DOUBLE_HANG=3", "signal terminated", "signal terminated", 30}, // rank 0 is
		{"hang", "NCCL_DOUBLE_HANG=3", "", "timed out", 40},                                            // after 5 s, by any rank's clock
		{"frozen", "", "", "timed out", 40},                                                            // the same
	} {
		t.Run(test.scenario, func(t *testing.T) {
			for r, v := range ranks(t, test.scenario, 3, map[int][]string{1: {test.environment}}) {
				if (test.scenario == "killed" || test.scenario == "frozen") && r == 1 {
					continue
				}
				if v.Failure == nil || v.Checks != 2 || v.Seconds > test.within {
					t.Errorf("rank %d: %d operations, after %.1f s: %q", r, v.Checks, v.Seconds, v.Error)
					continue
				}
				if r == 1 {
					contains(t, v.Error, test.cause)
				} else {
					contains(t, v.Error, test.elsewhere, "all-reduce 3 (4000 bytes), last completed 2 of 3")
				}
				f := v.Failure
				if f.Rank != r || f.Size != 3 || f.Completed != 2 {
					t.Errorf("rank %d: %+v", r, f)
				}
				if r != 1 && (f.Sequence != 3 || f.Operation != "all-reduce" || f.Bytes != 4000) {
					t.Errorf("rank %d: %+v", r, f)
				}
			}
		})
	}
}

func TestVersionsDiffer(t *testing.T) {
	for r, v := range ranks(t, "group", 3, map[int][]string{1: {"NCCL_DOUBLE_VERSION=22703"}}) {
		contains(t, v.Error, "the ranks have different versions of NCCL: a double of 2.28.0 on rank 0, 2; a double of 2.27.3 on rank 1", "SCALEBENCH_NCCL")
		if v.Checks != 0 {
			t.Errorf("rank %d went on", r)
		}
	}
}

// NCCL refuses two ranks on one GPU unless that is allowed explicitly; both ranks report it.
func TestOneGPU(t *testing.T) {
	each := func(variables func(rank string) []string) map[int][]string {
		return map[int][]string{0: append(variables("0"), "CUDA_DOUBLE_GPUS=1"), 1: append(variables("1"), "CUDA_DOUBLE_GPUS=1")}
	}
	for name, test := range map[string]struct {
		environment map[int][]string
		refused     bool
	}{
		"refused":     {each(func(string) []string { return nil }), true},
		"other hosts": {each(func(r string) []string { return []string{"NCCL_HOSTID=host" + r} }), false},
		"too old":     {each(func(string) []string { return []string{"NCCL_MULTI_RANK_GPU_ENABLE=1"} }), true},
		"allowed":     {each(func(string) []string { return []string{"NCCL_MULTI_RANK_GPU_ENABLE=1", "NCCL_DOUBLE_VERSION=23000"} }), false},
	} {
		for r, v := range ranks(t, "group", 2, test.environment) {
			if test.refused {
				contains(t, v.Error, "joining", "ncclInvalidUsage")
			} else if v.Error != "" || v.Checks != 16 {
				t.Errorf("%s, rank %d: %d checks, %s", name, r, v.Checks, v.Error)
			}
		}
	}
}

// A rank that waits for ranks that never come gives up.
func TestJoinAlone(t *testing.T) {
	l, d := open(t)
	device, err := d.Bind(0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Release()
	id, err := l.NewUniqueID()
	if err != nil {
		t.Fatal(err)
	}
	idle := func() (bool, error) { return true, nil }
	told := 0
	_, err = l.Join(context.Background(), nccl.Options{Rank: 0, Size: 2, ID: id, Done: idle, Timeout: 200 * time.Millisecond, Abort: func(error) { told++ }})
	var f *nccl.Failure
	if !errors.Is(err, nccl.ErrTimeout) || !errors.As(err, &f) || f.Operation != "joining" || told != 1 {
		t.Errorf("%v, %+v; the others were told %d times", err, f, told)
	}
	for _, o := range []nccl.Options{{Size: 0, Done: idle}, {Rank: 2, Size: 2, Done: idle}, {Rank: -1, Size: 2, Done: idle}, {Size: 1}} {
		if _, err := l.Join(context.Background(), o); err == nil {
			t.Errorf("%+v was joined", o)
		}
	}
	// An identifier that no rank created.
	if _, err := l.Join(context.Background(), nccl.Options{Size: 1, Done: idle}); err == nil {
		t.Error("joined with an empty identifier")
	} else {
		contains(t, err.Error(), "ncclCommInitRankConfig", "the identifier is damaged")
	}
}

// Without a device on this thread, NCCL refuses, and so do we.
func TestNoDevice(t *testing.T) {
	l, d := open(t)
	done := make(chan error)
	go func() { // a new goroutine, hence a thread without a device
		_, err := l.Join(context.Background(), nccl.Options{Size: 1, Done: func() (bool, error) { return true, nil }})
		done <- err
	}()
	if err := <-done; err == nil {
		t.Error("joined without a device")
	} else {
		contains(t, err.Error(), "no device is current")
	}
	if _, err := d.Bind(1); err == nil {
		t.Error("GPU 1 of 1 was bound")
	} else {
		contains(t, err.Error(), "GPU 1 was requested, but this process sees only 1")
	}
}

// sitAlone returns a communicator of one rank with its device.
func sitAlone(t testing.TB) gpurank.ProofRank {
	l, d := open(t)
	device, err := d.Bind(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(device.Release)
	stream, err := device.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	id, err := l.NewUniqueID()
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Join(context.Background(), nccl.Options{Size: 1, ID: id, Stream: uintptr(stream), Done: func() (bool, error) { return device.Done(stream) }})
	if err != nil {
		t.Fatal(err)
	}
	return gpurank.ProofRank{Device: device, Stream: stream, Comm: c}
}

// Invalid operations are refused before NCCL sees them. They end the communicator, because the
// other ranks wait for the valid one.
func TestInvalidOperations(t *testing.T) {
	for _, o := range []nccl.Operation{
		{Kind: 4}, {Kind: -1}, {Type: 12}, {Type: -1}, {Count: -1}, {Count: math.MaxInt64}, {Reduction: 5}, {Kind: nccl.Broadcast, Root: 1}, {Kind: nccl.Broadcast, Root: -1},
	} {
		c := sitAlone(t).Comm
		err := c.Enqueue(context.Background(), o)
		var f *nccl.Failure
		if !errors.As(err, &f) {
			t.Errorf("%+v: %v", o, err)
		}
		if again := c.Enqueue(context.Background()); again != err {
			t.Errorf("afterwards: %v", again)
		}
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("closing what has failed: %v", err)
		}
	}
	c := sitAlone(t).Comm
	for range 2 {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if err := c.Wait(context.Background()); err == nil {
		t.Error("waited on a closed communicator")
	}
}

func TestMissingFunction(t *testing.T) {
	dir := t.TempDir()
	getenv := func(path string) func(string) string {
		return func(name string) string { return map[string]string{nccl.Variable: path}[name] }
	}
	path, err := gputest.Build(dir, "libnccl-part.so", "ncclReduceScatter", "ncclCommAbort")
	if err != nil {
		t.Fatal(err)
	}
	_, err = nccl.Open(getenv(path))
	var missing *dl.MissingError
	if !errors.As(err, &missing) || missing.Path != path || strings.Join(missing.Symbols, " ") != "ncclCommAbort ncclReduceScatter" {
		t.Errorf("%v", err)
	}
	// An older library lacks newer functions; only their users fail, with an error that says so.
	if path, err = gputest.Build(dir, "libnccl-old.so", "ncclCommInitRankConfig", "ncclGetLastError", "ncclCommFinalize"); err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Open(getenv(path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Join(context.Background(), nccl.Options{Size: 1, Done: func() (bool, error) { return true, nil }}); err == nil {
		t.Error("joined with an NCCL that blocks")
	} else {
		contains(t, err.Error(), "need 2.14.3 or later", path)
	}
}

// The libraries are tried in this order, and AMD's library is recognised.
func TestSearch(t *testing.T) {
	built := os.Getenv(nccl.Variable)
	environment := t.TempDir()
	folder := filepath.Join(environment, "lib", "python3.12", "site-packages", "nvidia", "nccl", "lib")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	wheel := filepath.Join(folder, "libnccl.so.2")
	if err := os.Symlink(built, wheel); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"VIRTUAL_ENV": environment}
	getenv := func(name string) string { return variables[name] }
	if got := strings.Join(nccl.Candidates(getenv), " "); got != wheel+" libnccl.so.2 librccl.so.1" {
		t.Errorf("with an environment: %s", got)
	}
	l, err := nccl.Open(getenv)
	if err != nil {
		t.Fatal(err)
	}
	if !l.IsFake() || l.String() != "DOUBLE of NCCL 2.28.0 (not NCCL, not a GPU)" {
		t.Errorf("%v at %s", l, l.Path())
	}
	variables[nccl.Variable] = "/opt/librccl.so.1"
	if got := strings.Join(nccl.Candidates(getenv), " "); got != "/opt/librccl.so.1" {
		t.Errorf("with the variable: %s", got)
	}
	// If a named library does not exist, no other one is used.
	_, err = nccl.Open(getenv)
	if err == nil {
		t.Fatal("opened something else")
	}
	contains(t, err.Error(), "NCCL cannot be loaded", "/opt/librccl.so.1")

	amd, err := gputest.Build(t.TempDir(), "librccl.so.1")
	if err != nil {
		t.Fatal(err)
	}
	variables[nccl.Variable] = amd
	if l, err = nccl.Open(getenv); err != nil || l.Path() != amd {
		t.Errorf("%v, %v", l, err)
	}
}
