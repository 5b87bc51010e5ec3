package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/snappy"
)

// Sizes of written pages and row groups before compression: pages as in pyarrow, and groups that
// fit into memory.
const (
	pageSize  = 1 << 20
	groupSize = 64 << 20
)

// Writer writes a file. Any value may be null, no dictionaries are used, and pages are compressed
// with snappy, pyarrow's default.
type Writer struct {
	to      io.Writer
	at      int64
	columns []*written
	size    int // of the group
	rows    int64
	all     int64 // rows
	groups  [][]byte
}

// written is a column of the row group that is not in the file yet.
type written struct {
	Column
	values   []byte // of the page
	runs     []byte // encoded levels of the page
	level    uint32 // of the run
	run      uint64
	n        int64 // values of the page
	pages    []byte
	unpacked int64
}

// NewWriter starts a file. A dot in a column's name separates the name of its group; columns of a
// group must be adjacent.
func NewWriter(to io.Writer, columns ...Column) (*Writer, error) {
	w := &Writer{to: to}
	for _, c := range columns {
		c.levels = uint32(strings.Count(c.Name, ".")) + 1
		w.columns = append(w.columns, &written{Column: c})
	}
	return w, w.write([]byte(magic))
}

func (w *Writer) write(b []byte) error {
	n, err := w.to.Write(b)
	w.at += int64(n)
	return err
}

// Row adds a row, with a value for each column; nil is null.
func (w *Writer) Row(values ...[]byte) error {
	for i, c := range w.columns {
		level := c.levels
		if values[i] == nil {
			level--
		} else if c.Type == ByteArray {
			c.values = append(binary.LittleEndian.AppendUint32(c.values, uint32(len(values[i]))), values[i]...)
		} else {
			c.values = append(c.values, values[i]...)
		}
		if level != c.level {
			c.endRun()
		}
		c.level = level
		c.run++
		c.n++
		w.size += len(values[i])
		if len(c.values) >= pageSize {
			c.endPage()
		}
	}
	w.rows++
	if w.size >= groupSize {
		return w.endGroup()
	}
	return nil
}

func (c *written) endRun() {
	if c.run > 0 { // levels are below 256
		c.runs = append(binary.AppendUvarint(c.runs, c.run<<1), byte(c.level))
	}
	c.run = 0
}

func (c *written) endPage() {
	if c.endRun(); c.n == 0 {
		return
	}
	content := append(binary.LittleEndian.AppendUint32(nil, uint32(len(c.runs))), c.runs...)
	content = append(content, c.values...)
	packed := snappy.Encode(nil, content)
	data := new(message).integer(1, c.n).integer(2, plain).integer(3, rle).integer(4, rle)
	head := new(message).integer(1, dataPage).integer(2, int64(len(content))).integer(3, int64(len(packed))).
		integer(4, int64(int32(crc32.ChecksumIEEE(packed)))).within(5, data).end()
	c.pages = append(append(c.pages, head...), packed...)
	c.unpacked += int64(len(head) + len(content))
	c.values, c.runs, c.n = c.values[:0], c.runs[:0], 0
}

func (w *Writer) endGroup() error {
	var chunks [][]byte
	total := int64(0)
	for _, c := range w.columns {
		c.endPage()
		var path [][]byte
		for part := range strings.SplitSeq(c.Name, ".") {
			path = append(path, append(binary.AppendUvarint(nil, uint64(len(part))), part...))
		}
		about := new(message).integer(1, int64(c.Type)).list(2, kindInt32, binary.AppendVarint(nil, plain), binary.AppendVarint(nil, rle)).
			list(3, kindBinary, path...).integer(4, int64(packedSnappy)).long(5, w.rows).
			long(6, c.unpacked).long(7, int64(len(c.pages))).long(9, w.at)
		chunks = append(chunks, new(message).long(2, w.at).within(3, about).end())
		total += c.unpacked
		if err := w.write(c.pages); err != nil {
			return err
		}
		c.pages, c.unpacked = c.pages[:0], 0
	}
	w.groups = append(w.groups, new(message).list(1, kindStruct, chunks...).long(2, total).long(3, w.rows).end())
	w.all += w.rows
	w.rows, w.size = 0, 0
	return nil
}

// Close writes the rest and the footer.
func (w *Writer) Close() error {
	if w.rows > 0 {
		if err := w.endGroup(); err != nil {
			return err
		}
	}
	const optional = 1
	members, around := 0, ""
	var elements [][]byte
	for i, c := range w.columns {
		group, name, inGroup := strings.Cut(c.Name, ".")
		if !inGroup {
			group, name = "", c.Name
		}
		if group != around || group == "" {
			members++
		}
		if group != around && group != "" {
			n := 0
			for n = i; n < len(w.columns) && strings.HasPrefix(w.columns[n].Name, group+"."); n++ {
			}
			elements = append(elements, new(message).integer(3, optional).text(4, group).integer(5, int64(n-i)).end())
		}
		around = group
		e := new(message).integer(1, int64(c.Type)).integer(3, optional).text(4, name)
		if c.Annotated {
			e.integer(6, 0).within(10, new(message).within(1, new(message))) // annotation as text, in the older and the newer form
		}
		elements = append(elements, e.end())
	}
	root := new(message).text(4, "schema").integer(5, int64(members)).end()
	footer := new(message).integer(1, 1).list(2, kindStruct, append([][]byte{root}, elements...)...).
		long(3, w.all).list(4, kindStruct, w.groups...).text(6, "scalebench").end()
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return w.write(append(footer, magic...))
}
