package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
)

// Values iterates over a column's values in row order, with one page at a time in memory.
type Values struct {
	column Column
	file   *File
	index  int // of the column
	group  int // number of the present row group, from 1

	from     *bufio.Reader
	codec    codec
	begin    int64 // start of the chunk in the file
	length   int64 // remaining bytes of the chunk
	unpacked int64 // remaining bytes of the chunk when unpacked
	rest     int64 // remaining values of the chunk, including those of the page

	at         int64 // start of the page in the file
	left       int64 // remaining values of the page
	packed     []byte
	content    []byte // unpacked
	levels     runs
	values     values
	dictionary *dictionary
}

// values iterates over a page's values that are not null.
type values interface{ next() ([]byte, error) }

// Values returns an iterator over a column.
func (f *File) Values(column int) (*Values, error) {
	c := f.Columns[column]
	if c.Repeated {
		return nil, fmt.Errorf("column %s: rows have lists of values, which are not read", c.Name)
	}
	return &Values{column: c, file: f, index: column}, nil
}

// Next returns the value of the next row, which is valid until the next call; ok is false if it is
// null. After the last row, the error is io.EOF.
func (v *Values) Next() (value []byte, ok bool, err error) {
	for v.left == 0 {
		if v.rest == 0 {
			if v.group == len(v.file.groups) {
				return nil, false, io.EOF
			}
			v.open()
		}
		if err := v.turn(); err != nil {
			return nil, false, v.explain(err)
		}
	}
	v.left--
	v.rest--
	if v.column.levels > 0 {
		level, err := v.levels.next()
		if err == nil && level > v.column.levels {
			err = fmt.Errorf("a level of %d, where columns are %d deep", level, v.column.levels)
		}
		if err != nil {
			return nil, false, v.explain(err)
		}
		if level < v.column.levels {
			return nil, false, nil
		}
	}
	if value, err = v.values.next(); err != nil {
		return nil, false, v.explain(err)
	}
	return value, true, nil
}

func (v *Values) explain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // the file or its compressed data ended too early
		err = fmt.Errorf("cut off: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("row group %d, column %s, page at byte %d: %w", v.group, v.column.Name, v.at, err)
}

// open starts the next row group.
func (v *Values) open() {
	g := v.file.groups[v.group]
	c := g.chunks[v.index]
	v.group++
	section := io.NewSectionReader(v.file.from, c.at, c.length)
	if v.from == nil {
		v.from = bufio.NewReaderSize(section, int(min(c.length, 1<<20)))
	}
	v.from.Reset(section)
	v.codec, v.begin, v.length, v.unpacked, v.rest = c.codec, c.at, c.length, c.unpacked, g.rows
	v.at, v.dictionary = c.at, nil
}

// Kinds of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// A head is the header of a page.
type head struct {
	kind             int64
	unpacked, packed int64 // bytes
	checked          bool
	sum              uint32
	values           int64
	encoding         int64
	levels           int64 // encoding of the levels; in version 2 their size in bytes
	repetitions      int64 // version 2: size in bytes
	plain            bool  // version 2: the page is not compressed
}

func (h *head) read(c *compact) {
	h.kind, h.encoding, h.values = -1, -1, -1
	c.fields(kindStruct, func(id int64, kind byte) {
		switch id {
		case 1:
			h.kind = c.integer(kind)
		case 2:
			h.unpacked = c.integer(kind)
		case 3:
			h.packed = c.integer(kind)
		case 4:
			h.checked, h.sum = true, uint32(c.integer(kind))
		case 5, 7: // data, dictionary
			c.fields(kind, func(id int64, kind byte) {
				switch id {
				case 1:
					h.values = c.integer(kind)
				case 2:
					h.encoding = c.integer(kind)
				case 3:
					if h.levels = rle; kind > kindFalse { // for a dictionary: whether it is sorted
						h.levels = c.integer(kind)
					}
				default:
					c.skip(kind)
				}
			})
		case 8: // data page of version 2
			c.fields(kind, func(id int64, kind byte) {
				switch id {
				case 1:
					h.values = c.integer(kind)
				case 4:
					h.encoding = c.integer(kind)
				case 5:
					h.levels = c.integer(kind)
				case 6:
					h.repetitions = c.integer(kind)
				case 7:
					h.plain = kind == kindFalse
				default:
					c.skip(kind)
				}
			})
		default:
			c.skip(kind)
		}
	})
}

// turn reads the next page.
func (v *Values) turn() error {
	v.at = v.begin + v.file.groups[v.group-1].chunks[v.index].length - v.length
	if v.length == 0 {
		return fmt.Errorf("the column ends %d values early", v.rest)
	}
	c := &compact{from: v.from, left: v.length}
	var h head
	h.read(c)
	if c.err != nil {
		return fmt.Errorf("its head: %w", c.err)
	}
	v.unpacked -= v.length - c.left
	v.length = c.left
	switch {
	case h.packed < 0 || h.packed > v.length:
		return fmt.Errorf("it has %d bytes, of the column's %d that are left", h.packed, v.length)
	case h.packed > maxPage || h.unpacked < 0 || h.unpacked > maxPage:
		return fmt.Errorf("it has %d bytes, and %d when unpacked; want %d at most (write fewer rows to a page)", h.packed, h.unpacked, maxPage)
	case h.unpacked > v.unpacked:
		return fmt.Errorf("it has %d bytes when unpacked, the rest of the column %d", h.unpacked, v.unpacked)
	}
	packed := sized(&v.packed, int(h.packed))
	if _, err := io.ReadFull(v.from, packed); err != nil {
		return fmt.Errorf("the file changed while it was read: %w", err)
	}
	v.length -= h.packed
	v.unpacked -= h.unpacked
	if h.checked && crc32.ChecksumIEEE(packed) != h.sum {
		return errors.New("its checksum is wrong")
	}
	switch h.kind {
	case dataPage, dataPageV2:
		return v.data(h, packed)
	case dictionaryPage:
		if h.encoding != plain && h.encoding != plainDictionary {
			return fmt.Errorf("a dictionary in encoding %v", encodingName(h.encoding))
		}
		b, err := v.file.unpacker.do(v.codec, packed, &v.content, int(h.unpacked))
		if err == nil {
			v.dictionary, err = newDictionary(v.column, b, h.values)
		}
		v.packed, v.content = nil, nil // the dictionary remains valid
		return err
	case indexPage:
		return nil
	}
	return fmt.Errorf("a page of kind %d, which Parquet does not have", h.kind)
}

// data splits a page into its levels and values.
func (v *Values) data(h head, packed []byte) error {
	if h.values < 0 || h.values > v.rest {
		return fmt.Errorf("it has %d values, where %d are left", h.values, v.rest)
	}
	v.left = h.values
	n := int(h.unpacked)
	var levels []byte
	if h.kind == dataPageV2 { // its levels precede the compressed part
		if h.levels < 0 || h.repetitions != 0 || h.levels > min(h.packed, h.unpacked) {
			return fmt.Errorf("it has levels of %d and %d bytes, in %d", h.repetitions, h.levels, h.packed)
		}
		levels, packed, n = packed[:h.levels], packed[h.levels:], n-int(h.levels)
	}
	codec := v.codec
	if h.plain {
		codec = none
	}
	b, err := v.file.unpacker.do(codec, packed, &v.content, n)
	if err != nil {
		return err
	}
	if h.kind == dataPage && v.column.levels > 0 {
		if h.levels != rle {
			return fmt.Errorf("levels in encoding %v, which is not read", encodingName(h.levels))
		}
		if levels, b, err = prefixed(b); err != nil {
			return err
		}
	}
	v.levels = runs{b: levels, width: bits.Len32(v.column.levels)}
	v.values, err = v.decode(h.encoding, b)
	return err
}

// prefixed returns the bytes after a four-byte length, and the rest after these.
func prefixed(b []byte) (inner, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errors.New("it ends within a length")
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return nil, nil, fmt.Errorf("a value of %d bytes where %d are left", n, len(b))
	}
	return b[:n:n], b[n:], nil
}
