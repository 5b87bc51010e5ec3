//go:build cgo

package gpurank

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/scalebench/scalebench/launcher/gpu/nccl"
)

// input returns element i of a rank's buffer: whole numbers so small that results over four ranks
// are exact in every type, including int8 and bfloat16. Products stay below 3⁴ = 81; averages are
// of multiples of 12, which 2, 3 and 4 ranks divide, and their sums stay below 4 × 24 = 96.
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

// expected returns the exact result of the reduction over all ranks.
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

// put appends a small whole number in the given type.
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
	case nccl.BFloat16: // the upper half of a float32; numbers below 256 have zeros in the lower half
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

// value returns an element as a value for display.
func value(b []byte, t nccl.DataType) any {
	switch t {
	case nccl.Int8:
		return int8(b[0])
	case nccl.Uint8:
		return b[0]
	case nccl.Int32:
		return int32(binary.LittleEndian.Uint32(b))
	case nccl.Uint32:
		return binary.LittleEndian.Uint32(b)
	case nccl.Int64:
		return int64(binary.LittleEndian.Uint64(b))
	case nccl.Uint64:
		return binary.LittleEndian.Uint64(b)
	case nccl.Float32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case nccl.Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case nccl.BFloat16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}
	return fmt.Sprintf("%#x", b) // float16
}
