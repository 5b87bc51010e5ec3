// Package parquet reads columns of Parquet files and writes simple files
// (https://parquet.apache.org/docs/file-format). The files may come from anywhere, so each size in
// a file is checked against the file's own size and a limit before memory is allocated for it.
//
// Common libraries do not check sizes: a few wrong bytes in a footer or page header make them
// allocate gigabytes, or panic. A separate check before using them would have to read the footer
// and every page header, and unpack every page, which is most of this package.
package parquet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits on the parts of a file that are in memory: for each column that is read, a page, its
// compressed form, and a dictionary with its offsets (four bytes each). A footer takes about three
// times its size.
const (
	maxPage    = 1 << 30
	maxFooter  = 32 << 20
	maxColumns = 1 << 14
	maxPath    = 1 << 10 // bytes of a column's name
)

// A Type is the storage type of values.
type Type int

// The types, by their numbers in Parquet.
const (
	Boolean Type = iota // a byte, 0 or 1
	Int32               // little-endian, like all that follow
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedLenByteArray
)

var types = []string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

func (t Type) String() string { return types[t] }

// Column is a column with values. The groups that contain it are part of its name.
type Column struct {
	Name      string // including the enclosing groups, as in image.bytes
	Type      Type
	Annotated bool // bytes are text, a decimal or the like; integers are dates or the like
	Unsigned  bool
	Repeated  bool // rows have lists of values, which is not supported
	width     int  // bytes of a value; 0: it differs
	levels    uint32
}

// File is an open file. Only one goroutine may use it.
type File struct {
	Columns  []Column
	Rows     int64
	from     io.ReaderAt
	groups   []group
	unpacker unpacker
}

// group is a group of rows, with a chunk of each column.
type group struct {
	rows   int64
	chunks []chunk
}

// A chunk locates the pages of a column.
type chunk struct {
	at, length int64
	unpacked   int64 // bytes of its pages when unpacked, including their headers
	values     int64
	codec      codec
}

const magic = "PAR1"

// tail is the number of bytes at the end of a file that are read first; most footers are shorter.
const tail = 64 << 10

// Open reads a file's footer.
func Open(from io.ReaderAt, size int64) (*File, error) {
	const ends = int64(len(magic)) + 4 + int64(len(magic)) // magic at the start, length of the footer, magic at the end
	if size < ends {
		return nil, fmt.Errorf("%d bytes are no Parquet file, which has %d at least", size, ends)
	}
	last := make([]byte, min(size, tail))
	if n, err := from.ReadAt(last, size-int64(len(last))); n < len(last) {
		return nil, fmt.Errorf("the file changed while it was read: %w", err)
	}
	length, end := int64(binary.LittleEndian.Uint32(last[len(last)-8:])), string(last[len(last)-4:])
	switch {
	case end == "PARE":
		return nil, errors.New("the file is encrypted, which is not read")
	case end != magic:
		return nil, fmt.Errorf("it does not end with %q; this is no Parquet file, or it is cut off", magic)
	case length > size-ends || length > maxFooter:
		return nil, fmt.Errorf("its footer has %d bytes, in a file of %d; want %d at most", length, size, maxFooter)
	}
	begin := size - 8 - length
	footer := io.Reader(io.NewSectionReader(from, begin, length))
	if n := int64(len(last)) - 8 - length; n >= 0 {
		footer = bytes.NewReader(last[n:])
	}
	f := &File{from: from}
	c := &compact{from: bufio.NewReader(footer), left: length}
	if f.footer(c, begin); c.err != nil {
		return nil, fmt.Errorf("footer at byte %d: %w", begin, c.err)
	}
	return f, nil
}

// footer reads the columns and row groups from the footer, which starts at begin.
func (f *File) footer(c *compact, begin int64) {
	rows, free := int64(0), begin-int64(len(magic))
	c.fields(kindStruct, func(id int64, kind byte) {
		switch id {
		case 2:
			if f.Columns != nil {
				c.fail("it has two schemas")
			}
			var elements []element
			c.elements(kind, func(kind byte) {
				if elements = append(elements, readElement(c, kind)); len(elements) > 2*maxColumns {
					c.fail("more than %d columns and groups", 2*maxColumns)
				}
			})
			if c.err == nil {
				f.Columns, c.err = columns(elements)
			}
		case 3:
			f.Rows = c.integer(kind)
		case 4:
			n := 0
			c.elements(kind, func(kind byte) {
				n++
				g := readGroup(c, kind)
				if c.err != nil || g.rows == 0 {
					return
				}
				if err := f.check(g, begin, &free); err != nil {
					c.fail("row group %d: %w", n, err)
					return
				}
				if g.rows > f.Rows-rows {
					c.fail("row group %d has %d rows, the whole file %d", n, g.rows, f.Rows)
				}
				rows += g.rows
				f.groups = append(f.groups, g)
			})
		default:
			c.skip(kind)
		}
	})
	switch {
	case c.err != nil:
	case f.Columns == nil:
		c.fail("there is no schema")
	case rows != f.Rows:
		c.fail("its row groups have %d rows, the whole file %d", rows, f.Rows)
	}
}

// check returns an error if a group does not match the columns, or its chunks are not within the
// file before the footer (end). free is the number of bytes that are in no chunk yet.
func (f *File) check(g group, end int64, free *int64) error {
	if g.rows < 0 || len(g.chunks) != len(f.Columns) {
		return fmt.Errorf("%d rows of %d columns; the schema before has %d", g.rows, len(g.chunks), len(f.Columns))
	}
	for i, c := range g.chunks {
		column := f.Columns[i]
		bad := func(format string, args ...any) error {
			return fmt.Errorf("column %s: %s", column.Name, fmt.Sprintf(format, args...))
		}
		switch {
		case c.at < int64(len(magic)) || c.at > end || c.length < 1 || c.length > end-c.at:
			return bad("its %d bytes from byte %d on are not within the %d before the footer", c.length, c.at, end)
		case c.length > *free:
			return bad("its %d bytes and those of the columns before are more than the file has; some must overlap", c.length)
		case c.unpacked < 1 || c.unpacked > c.codec.most(c.length):
			return bad("%d bytes, said to be %d when unpacked; %v cannot pack so much", c.length, c.unpacked, c.codec)
		case c.values != g.rows && !column.Repeated:
			return bad("%d values for %d rows", c.values, g.rows)
		}
		*free -= c.length
	}
	return nil
}

// element is a column or group of the schema. The members of a group follow it.
type element struct {
	name       string
	kind       int64 // a Type; -1: none
	width      int64
	repetition int64 // 0: one value; 1: one or none; 2: any number
	children   int64
	annotated  bool
	unsigned   bool
}

func readElement(c *compact, kind byte) element {
	e := element{kind: -1}
	c.fields(kind, func(id int64, kind byte) {
		switch id {
		case 1:
			e.kind = c.integer(kind)
		case 2:
			e.width = c.integer(kind)
		case 3:
			e.repetition = c.integer(kind)
		case 4:
			e.name = c.text(kind, maxPath)
		case 5:
			e.children = c.integer(kind)
		case 6: // the older form of field 10, which writers still add
			converted := c.integer(kind)
			e.annotated, e.unsigned = true, converted >= 11 && converted <= 14
		case 10:
			e.annotated = true
			c.skip(kind)
		default:
			c.skip(kind)
		}
	})
	return e
}

// columns returns the columns of a schema.
func columns(elements []element) (found []Column, err error) {
	if len(elements) == 0 {
		return nil, errors.New("there is no schema")
	}
	root, rest := elements[0], elements[1:]
	var walk func(n int64, around []string, above Column) error
	walk = func(n int64, around []string, above Column) error {
		if len(around) >= maxDepth {
			return fmt.Errorf("columns %d deep; want %d at most", len(around), maxDepth)
		}
		for ; n > 0; n-- {
			if len(rest) == 0 {
				return errors.New("the schema ends within a group of columns")
			}
			e := rest[0]
			rest = rest[1:]
			path := append(around, e.name)
			c := Column{Name: strings.Join(path, "."), Type: Type(e.kind), Annotated: e.annotated, Unsigned: e.unsigned,
				Repeated: above.Repeated || e.repetition == 2, levels: above.levels}
			if e.repetition != 0 {
				c.levels++
			}
			switch {
			case len(c.Name) > maxPath:
				return fmt.Errorf("a column's name has %d bytes; want %d at most", len(c.Name), maxPath)
			case e.repetition < 0 || e.repetition > 2:
				return fmt.Errorf("column %s: repetition %d, which Parquet does not have", c.Name, e.repetition)
			case e.kind < 0 && e.children < 1:
				return fmt.Errorf("column %s has no type", c.Name)
			case e.kind < 0:
				if err := walk(e.children, path, c); err != nil {
					return err
				}
				continue
			case e.kind >= int64(len(types)):
				return fmt.Errorf("column %s: type %d, which Parquet does not have", c.Name, e.kind)
			case c.Type == FixedLenByteArray && (e.width < 1 || e.width > maxPage):
				return fmt.Errorf("column %s: values of %d bytes", c.Name, e.width)
			case len(found) == maxColumns:
				return fmt.Errorf("more than %d columns", maxColumns)
			}
			c.width = [...]int{1, 4, 8, 12, 4, 8, 0, int(e.width)}[c.Type]
			found = append(found, c)
		}
		return nil
	}
	if err := walk(root.children, nil, Column{}); err != nil {
		return nil, err
	}
	if len(rest) > 0 || len(found) == 0 {
		return nil, fmt.Errorf("the schema has %d columns, and %d that belong nowhere", len(found), len(rest))
	}
	return found, nil
}

func readGroup(c *compact, kind byte) (g group) {
	c.fields(kind, func(id int64, kind byte) {
		switch id {
		case 1:
			c.elements(kind, func(kind byte) {
				if g.chunks = append(g.chunks, readChunk(c, kind)); len(g.chunks) > maxColumns {
					c.fail("a row group has more than %d columns", maxColumns)
				}
			})
		case 3:
			g.rows = c.integer(kind)
		default:
			c.skip(kind)
		}
	})
	return g
}

func readChunk(c *compact, kind byte) (k chunk) {
	dictionary := int64(0)
	c.fields(kind, func(id int64, kind byte) {
		switch id {
		case 1:
			if c.text(kind, maxPath); c.err == nil {
				c.fail("a column is in another file, which is not read")
			}
		case 3:
			c.fields(kind, func(id int64, kind byte) {
				switch id {
				case 4:
					k.codec = codec(c.integer(kind))
				case 5:
					k.values = c.integer(kind)
				case 6:
					k.unpacked = c.integer(kind)
				case 7:
					k.length = c.integer(kind)
				case 9:
					k.at = c.integer(kind)
				case 11:
					dictionary = c.integer(kind)
				default:
					c.skip(kind)
				}
			})
		case 8:
			c.fail("a column is encrypted, which is not read")
		default:
			c.skip(kind)
		}
	})
	if dictionary > 0 && dictionary < k.at { // some writers use 0 for "no dictionary"
		k.at = dictionary
	}
	return k
}
