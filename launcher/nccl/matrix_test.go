package nccl_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/scalebench/scalebench/launcher/cuda"
	"github.com/scalebench/scalebench/launcher/nccl"
)

// input is element i of a rank's buffer: whole numbers, small enough that
// results over four ranks are exact in every type, int8 and bfloat16 included.
// Products stay below 3⁴ = 81; averages are of multiples of 12, which 2, 3 and 4
// ranks divide, and their sums stay below 4 × 24 = 96.
func input(rank, i int, r nccl.Reduction, signed bool) int64 {
	switch r {
	case nccl.Product:
		return int64(1 + (rank+i)%3)
	case nccl.Average:
		return int64(12 * ((rank + i) % 3))
	}
	v := int64((7*rank + 3*i) % 23)
	if signed {
		v -= 11
	}
	return v
}

// expected is the reduction over all ranks, in whole numbers.
func expected(size, i int, r nccl.Reduction, signed bool) int64 {
	v := input(0, i, r, signed)
	for rank := 1; rank < size; rank++ {
		x := input(rank, i, r, signed)
		switch r {
		case nccl.Product:
			v *= x
		case nccl.Max:
			v = max(v, x)
		case nccl.Min:
			v = min(v, x)
		default:
			v += x
		}
	}
	if r == nccl.Average {
		v /= int64(size)
	}
	return v
}

// put appends a small whole number in a type's format.
func put(b []byte, t nccl.DataType, v int64) []byte {
	switch t {
	case nccl.Int8, nccl.Uint8:
		return append(b, byte(v))
	case nccl.Int32, nccl.Uint32:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	case nccl.Int64, nccl.Uint64:
		return binary.LittleEndian.AppendUint64(b, uint64(v))
	case nccl.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
	}
	bits := math.Float32bits(float32(v))
	switch t {
	case nccl.BFloat16: // the upper half; a number below 256 has nothing in the lower
		return binary.LittleEndian.AppendUint16(b, uint16(bits>>16))
	case nccl.Float16:
		half := uint16(bits >> 16 & 0x8000)
		if v != 0 { // exponents are biased by 127 and by 15; of 23 bits of fraction 10 are left
			half |= uint16(int(bits>>23&0xff)-127+15)<<10 | uint16(bits>>13&0x3ff)
		}
		return binary.LittleEndian.AppendUint16(b, half)
	}
	return binary.LittleEndian.AppendUint32(b, bits)
}

func values(t nccl.DataType, n int, of func(i int) int64) []byte {
	b := make([]byte, 0, int64(n)*t.Size())
	for i := range n {
		b = put(b, t, of(i))
	}
	return b
}

var matrixTypes = []nccl.DataType{nccl.Int8, nccl.Uint8, nccl.Int32, nccl.Uint32, nccl.Int64, nccl.Uint64, nccl.Float16, nccl.Float32, nccl.Float64, nccl.BFloat16}

// matrixCounts are lengths in elements. The last is more than the double moves
// at a time, for the two types that are moved most.
func matrixCounts(t nccl.DataType) []int {
	if t == nccl.Int64 || t == nccl.Float32 {
		return []int{1, 5, 1000, most}
	}
	return []int{1, 5, 1000}
}

const most = 70_000

// matrix does every collective with every type, reduction and length, in place
// and out of place.
func (s *seat) matrix(ctx context.Context, v *verdict) error {
	rank, size := s.comm.Rank(), s.comm.Size()
	bytesAtMost := int64(most * 8 * size)
	first, err := s.device.Alloc(bytesAtMost)
	if err != nil {
		return err
	}
	second, err := s.device.Alloc(bytesAtMost)
	if err != nil {
		return err
	}
	try := func(o nccl.Operation, sent, want []byte) error {
		if err := s.device.Upload(first, sent, s.stream); err != nil {
			return err
		}
		o.Send, o.Recv = uintptr(first), uintptr(second)
		if v.Checks%2 == 1 { // in place
			switch o.Recv = o.Send; o.Kind {
			case nccl.ReduceScatter:
				o.Recv += uintptr(rank * len(want))
			case nccl.AllGather:
				o.Send += uintptr(rank * len(sent))
				if err := s.device.Upload(first+cuda.Pointer(rank*len(sent)), sent, s.stream); err != nil {
					return err
				}
			}
		}
		if err := s.comm.Enqueue(ctx, o); err != nil {
			return err
		}
		if err := s.comm.Wait(ctx); err != nil {
			return err
		}
		got := make([]byte, len(want))
		if err := s.device.Download(got, cuda.Pointer(o.Recv), s.stream); err != nil {
			return err
		}
		v.Checks++
		if !bytes.Equal(got, want) && len(v.Wrong) < 5 {
			v.Wrong = append(v.Wrong, fmt.Sprintf("%v %v %v × %d", o.Kind, o.Type, o.Reduction, o.Count))
		}
		return nil
	}
	for _, t := range matrixTypes {
		signed := t != nccl.Uint8 && t != nccl.Uint32 && t != nccl.Uint64
		for _, n := range matrixCounts(t) {
			for range 2 { // Checks is then odd once
				for r := nccl.Sum; r <= nccl.Average; r++ {
					o := nccl.Operation{Kind: nccl.AllReduce, Type: t, Reduction: r, Count: int64(n)}
					mine := func(i int) int64 { return input(rank, i, r, signed) }
					all := func(i int) int64 { return expected(size, i, r, signed) }
					if err := try(o, values(t, n, mine), values(t, n, all)); err != nil {
						return err
					}
					o.Kind = nccl.ReduceScatter
					if err := try(o, values(t, n*size, mine), values(t, n, func(i int) int64 { return all(rank*n + i) })); err != nil {
						return err
					}
				}
				mine := func(i int) int64 { return input(rank, i, nccl.Sum, signed) }
				o := nccl.Operation{Kind: nccl.AllGather, Type: t, Count: int64(n)}
				if err := try(o, values(t, n, mine), values(t, n*size, func(i int) int64 { return input(i/n, i%n, nccl.Sum, signed) })); err != nil {
					return err
				}
				root := size - 1
				o = nccl.Operation{Kind: nccl.Broadcast, Type: t, Count: int64(n), Root: root}
				if err := try(o, values(t, n, mine), values(t, n, func(i int) int64 { return input(root, i, nccl.Sum, signed) })); err != nil {
					return err
				}
				// One check more, so that what was out of place comes in place.
				if err := try(o, values(t, n, mine), values(t, n, func(i int) int64 { return input(root, i, nccl.Sum, signed) })); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// perLength is how many checks matrix makes for a type and length.
const perLength = 2 * (5*2 + 3)

func TestEveryOperation(t *testing.T) {
	want := (3*len(matrixTypes) + 2) * perLength
	for size := 1; size <= 4; size++ {
		for r, v := range ranks(t, "matrix", size, nil) {
			if v.Error != "" || len(v.Wrong) > 0 || v.Checks != want {
				t.Errorf("%d ranks, rank %d: %d checks of %d, %q wrong, error %q", size, r, v.Checks, want, v.Wrong, v.Error)
			}
		}
	}
}

// A single wrong bit is noticed, where it is and nowhere else.
func TestWrongBit(t *testing.T) {
	list := ranks(t, "matrix", 2, map[int][]string{1: {"NCCL_DOUBLE_CORRUPT=27"}})
	if v := list[0]; v.Error != "" || len(v.Wrong) != 0 {
		t.Errorf("rank 0: %q, %q", v.Error, v.Wrong)
	}
	// The 27th is the first of int8 and 5 elements.
	if v := list[1]; v.Error != "" || len(v.Wrong) != 1 || v.Wrong[0] != "all-reduce int8 sum × 5" {
		t.Errorf("rank 1: %q, %q", v.Error, v.Wrong)
	}
}

// group is how a step sends its gradients: many buffers, one call.
func (s *seat) group(ctx context.Context, v *verdict) error {
	const buckets, n = 16, 3000
	memory, err := s.device.Alloc(buckets * n * 4)
	if err != nil {
		return err
	}
	operations := make([]nccl.Operation, buckets)
	for b := range operations {
		at := memory + cuda.Pointer(b*n*4)
		if err := s.device.Upload(at, values(nccl.Float32, n, func(i int) int64 { return input(s.comm.Rank(), b+i, nccl.Sum, true) }), s.stream); err != nil {
			return err
		}
		operations[b] = nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float32, Count: n, Send: uintptr(at), Recv: uintptr(at)}
	}
	if err := s.comm.Enqueue(ctx, operations...); err != nil {
		return err
	}
	if err := s.comm.Wait(ctx); err != nil {
		return err
	}
	for b := range operations {
		got := make([]byte, n*4)
		if err := s.device.Download(got, memory+cuda.Pointer(b*n*4), s.stream); err != nil {
			return err
		}
		v.Checks++
		if !bytes.Equal(got, values(nccl.Float32, n, func(i int) int64 { return expected(s.comm.Size(), b+i, nccl.Sum, true) })) {
			v.Wrong = append(v.Wrong, fmt.Sprint(b))
		}
	}
	return nil
}

func TestGroup(t *testing.T) {
	for r, v := range ranks(t, "group", 3, nil) {
		if v.Error != "" || len(v.Wrong) > 0 || v.Checks != 16 {
			t.Errorf("rank %d: %d checks, %q wrong, error %q", r, v.Checks, v.Wrong, v.Error)
		}
	}
}
