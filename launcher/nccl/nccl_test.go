package nccl_test

import (
	"context"
	"testing"

	"github.com/scalebench/scalebench/launcher/nccl"
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

// What a call costs on the host. The double puts operations into a queue behind
// a lock, which is part of these; NCCL launches a kernel instead.
func BenchmarkPoll(b *testing.B) {
	c := join1(b)
	for b.Loop() {
		if _, err := c.Poll(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnqueue(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(map[int]string{1: "one", 16: "group of 16"}[n], func(b *testing.B) {
			c := join1(b)
			// Nothing is moved: the addresses are never followed.
			operations := make([]nccl.Operation, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Enqueue(context.Background(), operations...); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if err := c.Wait(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
