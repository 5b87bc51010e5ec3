package nccl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
)

// Numbers and names as NCCL's release notes pair them.
func TestVersion(t *testing.T) {
	for number, want := range map[nccl.Version]string{2305: "2.3.5", 2804: "2.8.4", 20906: "2.9.6", 21003: "2.10.3", 21403: "2.14.3", 22703: "2.27.3", 23000: "2.30.0"} {
		if got := number.String(); got != want {
			t.Errorf("%d: %s, want %s", int(number), got, want)
		}
	}
	ascending := []nccl.Version{2305, 2804, 20906, 21003, 21403, 23000}
	for i, v := range ascending[1:] {
		if before := ascending[i]; !before.Before(v) || v.Before(before) || v.Before(v) {
			t.Errorf("%v and %v", before, v)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		nccl.BFloat16.String(): "bfloat16", nccl.Float8E5.String(): "float8e5m2", nccl.DataType(12).String(): "ncclDataType 12", nccl.DataType(-1).String(): "ncclDataType -1",
		nccl.Average.String(): "avg", nccl.Reduction(9).String(): "ncclRedOp 9", nccl.AllGather.String(): "all-gather", nccl.Kind(-2).String(): "collective -2",
		nccl.RemoteError.String(): "ncclRemoteError", nccl.Result(8).String(): "ncclResult 8",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if nccl.Float64.Size() != 8 || nccl.BFloat16.Size() != 2 || nccl.Int8.Size() != 1 || nccl.DataType(99).Size() != 0 {
		t.Error("sizes of types")
	}
	if b := (nccl.Operation{Kind: nccl.AllGather, Type: nccl.Float32, Count: 10}).Bytes(3); b != 120 {
		t.Errorf("an all-gather of 3 × 10 floats has %d bytes", b)
	}
}

// BenchmarkCalls measures the median time of calls on the host, as make gpu-check does. It
// includes the fake's lock and queue; the real NCCL
// launches a kernel instead.
func BenchmarkCalls(b *testing.B) {
	var list []gpurank.ProofCost
	s := sitAlone(b)
	for b.Loop() {
		var err error
		if list, err = gpurank.ProofCosts(context.Background(), s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // the time of all calls together is meaningless
	for i, unit := range []string{"ns/poll", "ns/enqueue", "ns/group-of-16"} {
		b.ReportMetric(list[i].Median, unit)
	}
}

// A step enqueues and waits without allocating.
func TestNoAllocation(t *testing.T) {
	s := sitAlone(t)
	buffer, err := s.Device.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	operations := []nccl.Operation{{Type: nccl.Float32, Count: 1, Send: uintptr(buffer), Recv: uintptr(buffer)}}
	ctx := context.Background()
	if n := testing.AllocsPerRun(20, func() {
		if err := errors.Join(s.Comm.Enqueue(ctx, operations...), s.Comm.Wait(ctx)); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
