package parquet

import (
	"errors"
	"fmt"
)

// Encodings of values, by their numbers in Parquet.
const (
	plain           = 0
	plainDictionary = 2
	rle             = 3
	rleDictionary   = 8
)

var encodings = map[int64]string{4: "BIT_PACKED", 5: "DELTA_BINARY_PACKED", 6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY", 9: "BYTE_STREAM_SPLIT"}

func encodingName(e int64) string {
	if name, ok := encodings[e]; ok {
		return name
	}
	return fmt.Sprint(e)
}

// decode returns an iterator over the values of a page.
func (v *Values) decode(encoding int64, b []byte) (values, error) {
	switch {
	case encoding == plain && v.column.Type == Boolean:
		return &bools{runs{b: b, width: 1, left: 8 * uint64(len(b)), end: len(b)}, [1]byte{}}, nil
	case encoding == plain:
		return &plainValues{b, v.column.width}, nil
	case encoding == plainDictionary || encoding == rleDictionary:
		if v.dictionary == nil {
			return nil, errors.New("it refers to a dictionary that is missing")
		}
		if len(b) == 0 { // all are null
			return &indexed{dictionary: v.dictionary}, nil
		}
		if b[0] > 32 {
			return nil, fmt.Errorf("indexes of %d bits", b[0])
		}
		return &indexed{runs{b: b[1:], width: int(b[0])}, v.dictionary}, nil
	case encoding == rle && v.column.Type == Boolean:
		inner, _, err := prefixed(b)
		return &bools{runs{b: inner, width: 1}, [1]byte{}}, err
	}
	return nil, fmt.Errorf("values in encoding %v, which is not read; write the column in PLAIN or with a dictionary", encodingName(encoding))
}

// plainValues iterates over values in PLAIN encoding: one after the other, byte strings with their
// length before them.
type plainValues struct {
	b     []byte
	width int // 0: bytes
}

func (p *plainValues) next() (value []byte, err error) {
	if p.width == 0 {
		value, p.b, err = prefixed(p.b)
		return value, err
	}
	if len(p.b) < p.width {
		return nil, errors.New("it has fewer values than its head says")
	}
	value, p.b = p.b[:p.width], p.b[p.width:]
	return value, nil
}

// bools iterates over booleans, which are stored as bits.
type bools struct {
	runs
	value [1]byte
}

func (b *bools) next() ([]byte, error) {
	v, err := b.runs.next()
	b.value[0] = byte(v)
	return b.value[:], err
}

// dictionary has the distinct values of a column.
type dictionary struct {
	b      []byte
	starts []uint32 // start of each byte string; other types have a fixed width
	width  int
	n      int
}

func newDictionary(c Column, b []byte, n int64) (*dictionary, error) {
	d := &dictionary{b: b, width: c.width, n: int(n)}
	each := max(c.width, 4) // minimum number of bytes per value
	if c.Type == Boolean || n < 0 || n > int64(len(b)/each) {
		return nil, fmt.Errorf("a dictionary of %d values of type %v in %d bytes", n, c.Type, len(b))
	}
	if c.width > 0 {
		return d, nil
	}
	d.starts = make([]uint32, n)
	for i, rest := 0, b; i < d.n; i++ {
		d.starts[i] = uint32(len(b) - len(rest))
		var err error
		if _, rest, err = prefixed(rest); err != nil {
			return nil, fmt.Errorf("entry %d of the dictionary: %w", i+1, err)
		}
	}
	return d, nil
}

// indexed iterates over values that are stored as indices into a dictionary.
type indexed struct {
	runs
	*dictionary
}

func (x *indexed) next() ([]byte, error) {
	i, err := x.runs.next()
	if err != nil {
		return nil, err
	}
	d := x.dictionary
	if uint64(i) >= uint64(d.n) {
		return nil, fmt.Errorf("entry %d of a dictionary of %d", uint64(i)+1, d.n)
	}
	if d.width > 0 {
		return d.b[int(i)*d.width:][:d.width], nil
	}
	value, _, err := prefixed(d.b[d.starts[i]:])
	return value, err
}
