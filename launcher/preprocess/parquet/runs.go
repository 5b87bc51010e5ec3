package parquet

import (
	"encoding/binary"
	"errors"
)

// runs decodes small numbers, such as levels and indices: runs of equal numbers, and bit-packed
// runs of eight or more.
type runs struct {
	b     []byte
	width int // bits per number
	left  uint64
	equal bool
	value uint32
	at    int // index in b of the next number's first bit
	end   int // end of the run in b, in bytes
}

var errRuns = errors.New("it ends within its levels or indexes")

func (r *runs) next() (uint32, error) {
	for r.left == 0 {
		r.b, r.at, r.end = r.b[r.end:], 0, 0
		head, n := binary.Uvarint(r.b)
		if n <= 0 {
			return 0, errRuns
		}
		r.b = r.b[n:]
		if r.equal = head&1 == 0; r.equal {
			r.left, r.end = head>>1, (r.width+7)/8
			if r.end > len(r.b) {
				return 0, errRuns
			}
			r.value = 0
			for i, b := range r.b[:r.end] {
				r.value |= uint32(b) << (8 * i)
			}
			continue
		}
		// The last run may omit the padding to a multiple of eight numbers.
		r.left = head >> 1 * 8
		r.end = int(min(head>>1*uint64(r.width), uint64(len(r.b))))
		if head>>1 > maxPage {
			return 0, errors.New("a run has more numbers than a page can have")
		}
	}
	r.left--
	if r.equal {
		return r.value, nil
	}
	if r.at+r.width > 8*r.end {
		return 0, errRuns
	}
	v := uint64(0)
	for i, b := range r.b[r.at/8 : (r.at+r.width+7)/8] {
		v |= uint64(b) << (8 * i)
	}
	v >>= r.at % 8
	r.at += r.width
	return uint32(v & (1<<r.width - 1)), nil
}
