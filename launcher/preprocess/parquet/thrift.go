package parquet

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Kinds of values in Thrift's compact protocol.
const (
	kindTrue   = 1
	kindFalse  = 2
	kindByte   = 3
	kindInt16  = 4
	kindInt32  = 5
	kindInt64  = 6
	kindDouble = 7
	kindBinary = 8
	kindList   = 9
	kindSet    = 10
	kindMap    = 11
	kindStruct = 12
)

// maxDepth is the maximum nesting depth of structures; Parquet's need seven.
const maxDepth = 32

// compact reads metadata in Thrift's compact protocol
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). It stores
// only the requested fields, so a wrong length costs no memory. After the first error, all values
// are 0 or empty.
type compact struct {
	from  *bufio.Reader
	left  int64 // maximum number of further bytes
	depth int
	err   error
}

func (c *compact) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// ReadByte implements io.ByteReader for package binary.
func (c *compact) ReadByte() (byte, error) {
	if c.err == nil && c.left == 0 {
		c.fail("it ends within a value")
	}
	if c.err != nil {
		return 0, c.err
	}
	b, err := c.from.ReadByte()
	if err != nil {
		c.err = fmt.Errorf("the file changed while it was read: %w", err)
	}
	c.left--
	return b, c.err
}

func (c *compact) uvarint() uint64 {
	v, err := binary.ReadUvarint(c)
	if err != nil {
		c.fail("a number of more than 64 bits")
		return 0
	}
	return v
}

// integer reads an integer of any size.
func (c *compact) integer(kind byte) int64 {
	switch {
	case kind < kindByte || kind > kindInt64:
		c.fail("a value of kind %d where an integer belongs", kind)
		return 0
	case kind == kindByte:
		b, _ := c.ReadByte() // c has the error
		return int64(int8(b))
	}
	return c.zigzag()
}

func (c *compact) zigzag() int64 {
	v := c.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// length reads the length of the bytes that follow.
func (c *compact) length() int64 {
	n := c.uvarint()
	if c.err == nil && n > uint64(c.left) {
		c.fail("a text of %d bytes where %d are left", n, c.left)
	}
	if c.err != nil {
		return 0
	}
	return int64(n)
}

// text reads a text of at most most bytes.
func (c *compact) text(kind byte, most int64) string {
	if kind != kindBinary {
		c.fail("a value of kind %d where a text belongs", kind)
		return ""
	}
	n := c.length()
	if n > most {
		c.fail("a name of %d bytes; want %d at most", n, most)
	}
	if c.err != nil {
		return ""
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.from, b); err != nil {
		c.fail("the file changed while it was read: %w", err)
	}
	c.left -= n
	return string(b)
}

// deeper calls do with the nesting depth increased by one.
func (c *compact) deeper(do func()) {
	if c.depth++; c.depth > maxDepth {
		c.fail("structures %d deep; want %d at most", c.depth, maxDepth)
	} else {
		do()
	}
	c.depth--
}

// fields calls do for each field of a structure; do must read or skip the value.
func (c *compact) fields(kind byte, do func(id int64, kind byte)) {
	if kind != kindStruct {
		c.fail("a value of kind %d where a structure belongs", kind)
		return
	}
	c.deeper(func() {
		for id := int64(0); c.err == nil; {
			head, _ := c.ReadByte() // c has the error
			if head&15 == 0 {
				return
			}
			if id += int64(head >> 4); head>>4 == 0 {
				id = c.zigzag()
			}
			do(id, head&15)
		}
	})
}

// elements calls do for each element of a list; an element has at least one byte.
func (c *compact) elements(kind byte, do func(kind byte)) {
	if kind != kindList && kind != kindSet {
		c.fail("a value of kind %d where a list belongs", kind)
		return
	}
	c.deeper(func() {
		head, _ := c.ReadByte() // c has the error
		n := uint64(head >> 4)
		if n == 15 {
			n = c.uvarint()
		}
		for ; n > 0 && c.err == nil; n-- {
			do(head & 15)
		}
	})
}

// skip skips a field's value.
func (c *compact) skip(kind byte) {
	if kind != kindTrue && kind != kindFalse { // a boolean's value is part of its kind
		c.skipElement(kind)
	}
}

func (c *compact) skipElement(kind byte) {
	switch kind {
	case kindTrue, kindFalse, kindByte:
		_, _ = c.ReadByte() // c has the error
	case kindInt16, kindInt32, kindInt64:
		c.uvarint()
	case kindDouble:
		c.discard(8)
	case kindBinary:
		c.discard(c.length())
	case kindList, kindSet:
		c.elements(kind, c.skipElement)
	case kindMap:
		c.deeper(func() {
			n := c.uvarint()
			if n == 0 {
				return
			}
			kinds, _ := c.ReadByte() // c has the error
			for ; n > 0 && c.err == nil; n-- {
				c.skipElement(kinds >> 4)
				c.skipElement(kinds & 15)
			}
		})
	case kindStruct:
		c.fields(kind, func(_ int64, kind byte) { c.skip(kind) })
	default:
		c.fail("a value of kind %d, which Thrift does not have", kind)
	}
}

func (c *compact) discard(n int64) {
	if n > c.left {
		c.fail("it ends within a value")
	}
	if c.err != nil {
		return
	}
	for c.left -= n; n > 0 && c.err == nil; {
		k, err := c.from.Discard(int(min(n, 1<<30)))
		if n -= int64(k); err != nil {
			c.fail("the file changed while it was read: %w", err)
		}
	}
}

// message is a structure being written.
type message struct {
	b    []byte
	last int // id of the previous field
}

func (m *message) field(id int, kind byte) {
	m.b = append(m.b, byte(id-m.last)<<4|kind) // ids ascend, by less than 16
	m.last = id
}

func (m *message) integer(id int, v int64) *message {
	m.field(id, kindInt32)
	m.b = binary.AppendVarint(m.b, v)
	return m
}

func (m *message) long(id int, v int64) *message {
	m.field(id, kindInt64)
	m.b = binary.AppendVarint(m.b, v)
	return m
}

func (m *message) text(id int, s string) *message {
	m.field(id, kindBinary)
	m.b = append(binary.AppendUvarint(m.b, uint64(len(s))), s...)
	return m
}

func (m *message) within(id int, inner *message) *message {
	m.field(id, kindStruct)
	m.b = append(m.b, inner.end()...)
	return m
}

// list appends a list of encoded elements of one kind.
func (m *message) list(id int, kind byte, elements ...[]byte) *message {
	m.field(id, kindList)
	if n := len(elements); n < 15 {
		m.b = append(m.b, byte(n)<<4|kind)
	} else {
		m.b = binary.AppendUvarint(append(m.b, 15<<4|kind), uint64(n))
	}
	for _, e := range elements {
		m.b = append(m.b, e...)
	}
	return m
}

// end returns the encoded structure.
func (m *message) end() []byte { return append(m.b, 0) }
