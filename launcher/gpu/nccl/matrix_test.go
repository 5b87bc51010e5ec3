package nccl_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
)

func TestEveryOperation(t *testing.T) {
	for size := 1; size <= 4; size++ {
		for r, v := range ranks(t, "matrix", size, nil) {
			if v.Error != "" || len(v.Wrong) > 0 || v.Checks != gpurank.ProofChecks {
				t.Errorf("%d ranks, rank %d: %d checks of %d, %q wrong, error %q", size, r, v.Checks, gpurank.ProofChecks, v.Wrong, v.Error)
			}
		}
	}
}

// A single wrong bit is detected, with its position. The 25th operation
// is the first on five elements: before it are 12 of either place on one.
func TestWrongBit(t *testing.T) {
	list := ranks(t, "matrix", 2, map[int][]string{1: {"NCCL_DOUBLE_CORRUPT=25"}})
	if v := list[0]; v.Error != "" || len(v.Wrong) != 0 {
		t.Errorf("rank 0: %q, %q", v.Error, v.Wrong)
	}
	if v := list[1]; v.Error != "" || len(v.Wrong) != 1 || !strings.HasPrefix(v.Wrong[0], "all-reduce int8 sum × 5 out of place: 1 of 5 elements are wrong") {
		t.Errorf("rank 1: %q, %q", v.Error, v.Wrong)
	}
}

const (
	buckets = 16
	perOne  = 3000 // elements
)

// group sends many buffers in one call, as a training step does with gradients. Rank r's element i of bucket b
// is r + i + b.
func (s *seat) group(ctx context.Context, v *verdict) error {
	memory, err := s.device.Alloc(buckets * perOne * 4)
	if err != nil {
		return err
	}
	fill := func(of func(i int) int) []byte {
		var list []byte
		for i := range perOne {
			list = binary.LittleEndian.AppendUint32(list, math.Float32bits(float32(of(i))))
		}
		return list
	}
	rank, size := s.comm.Rank(), s.comm.Size()
	operations := make([]nccl.Operation, buckets)
	for b := range operations {
		at := memory + cuda.Pointer(b*perOne*4)
		if err := s.device.Upload(at, fill(func(i int) int { return rank + i + b }), s.stream); err != nil {
			return err
		}
		operations[b] = nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float32, Count: perOne, Send: uintptr(at), Recv: uintptr(at)}
	}
	if err := s.comm.Enqueue(ctx, operations...); err != nil {
		return err
	}
	if err := s.comm.Wait(ctx); err != nil {
		return err
	}
	for b := range operations {
		got := make([]byte, perOne*4)
		if err := s.device.Download(got, memory+cuda.Pointer(b*perOne*4), s.stream); err != nil {
			return err
		}
		v.Checks++
		if !bytes.Equal(got, fill(func(i int) int { return size*(size-1)/2 + size*(i+b) })) {
			v.Wrong = append(v.Wrong, fmt.Sprint(b))
		}
	}
	return nil
}

func TestGroup(t *testing.T) {
	for r, v := range ranks(t, "group", 3, nil) {
		if v.Error != "" || len(v.Wrong) > 0 || v.Checks != buckets {
			t.Errorf("rank %d: %d checks, %q wrong, error %q", r, v.Checks, v.Wrong, v.Error)
		}
	}
}
