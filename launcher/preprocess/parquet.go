package preprocess

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// parquetBuffer is how many bytes of a file are read at once, at least. A footer is usually shorter,
// so it takes one read.
const parquetBuffer = 1 << 20

// A hubRow is a row of an image data set on Hugging Face.
type hubRow struct {
	Image hubImage `parquet:"image,optional"`
	Label int64    `parquet:"label,optional"`
}

type hubImage struct {
	Bytes []byte `parquet:"bytes,optional,plain"`
	Path  string `parquet:"path,optional,plain"`
}

// fromParquet reads the images from one column of a Parquet file. It does not read the other
// columns.
func fromParquet(t *thread, f reading, size int64, do func([]byte) error) error {
	t.enter(Unpack)
	file, err := openParquet(f, size)
	if err != nil {
		return err
	}
	column, err := imageColumn(file.Root())
	if err != nil {
		return err
	}
	row := int64(0)
	for _, group := range file.RowGroups() {
		err := eachValue(group.ColumnChunks()[column.Index()], func(value parquet.Value) error {
			row++
			err := fmt.Errorf("column %s is null: the image is not in this file", pathOf(column))
			if !value.IsNull() {
				err = do(value.ByteArray())
			}
			if err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			t.enter(Unpack)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if row != file.NumRows() {
		return fmt.Errorf("column %s has %d values, but the file says that it has %d rows", pathOf(column), row, file.NumRows())
	}
	return nil
}

// openParquet reads a file's footer.
func openParquet(f reading, size int64) (file *parquet.File, err error) {
	err = withoutPanic(func() error {
		file, err = parquet.OpenFile(f, size, parquet.SkipMagicBytes(true), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
			parquet.OptimisticRead(true), parquet.ReadBufferSize(parquetBuffer))
		return err
	})
	return file, err
}

// eachValue calls do for each value of a column in a row group, with one page in memory. A value is
// valid during the call.
func eachValue(chunk parquet.ColumnChunk, do func(parquet.Value) error) error {
	var pages parquet.Pages
	if err := withoutPanic(func() error { pages = chunk.Pages(); return nil }); err != nil {
		return err
	}
	defer pages.Close()
	var values [64]parquet.Value
	for {
		var page parquet.Page
		err := withoutPanic(func() (err error) { page, err = pages.ReadPage(); return err })
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for from, more := page.Values(), true; more; {
			n := 0
			err := withoutPanic(func() (err error) { n, err = from.ReadValues(values[:]); return err })
			if more = err == nil; !more && !errors.Is(err, io.EOF) {
				return err
			}
			for _, value := range values[:n] {
				if err := do(value); err != nil {
					return err
				}
			}
		}
		parquet.Release(page)
	}
}

// withoutPanic calls f and returns a panic as an error: the library panics on some damaged files, and
// on encrypted ones.
func withoutPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged or encrypted: %v", p)
		}
	}()
	return f()
}

// imageColumn returns the column with the images. It is the only column of bytes that are not text
// or, if there are several, the column with the usual name.
func imageColumn(root *parquet.Column) (*parquet.Column, error) {
	var all, names []string
	var found []*parquet.Column
	var walk func(*parquet.Column)
	walk = func(c *parquet.Column) {
		for _, member := range c.Columns() {
			walk(member)
		}
		if !c.Leaf() {
			return
		}
		t := c.Type()
		all = append(all, fmt.Sprintf("%.40s (%v)", pathOf(c), t.Kind()))
		if t.Kind() == parquet.ByteArray && t.LogicalType() == nil && t.ConvertedType() == nil && c.MaxRepetitionLevel() == 0 {
			found, names = append(found, c), append(names, pathOf(c))
		}
	}
	walk(root)
	if len(found) == 1 {
		return found[0], nil
	}
	for _, usual := range []string{"image.bytes", "image"} {
		if at := slices.Index(names, usual); at >= 0 {
			return found[at], nil
		}
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("several columns hold bytes: %s; name that of the images image, or image.bytes", some(names))
	}
	return nil, fmt.Errorf("no column holds images, which are bytes that are not marked as text, one value a row; it has %s", some(all))
}

func pathOf(c *parquet.Column) string { return strings.Join(c.Path(), ".") }

// some lists the first ten names, and says how many more there are.
func some(names []string) string {
	const few = 10
	if more := len(names) - few; more > 0 {
		names = append(names[:few:few], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// generateParquet writes n test images in Parquet files with the columns of Hugging Face's data
// sets.
func generateParquet(n int, seed uint64, create func(string) (io.WriteCloser, error)) error {
	const group = 64 << 20 // bytes of images in a row group, which is in memory until it is written
	return shards(n, seed, ".parquet", create, func(w io.Writer) (func(int, []byte) error, func() error) {
		file := parquet.NewGenericWriter[hubRow](w, parquet.Compression(&parquet.Snappy))
		size := 0
		add := func(i int, image []byte) error {
			row := hubRow{hubImage{image, fmt.Sprintf("%06d.jpg", i)}, int64(i / 1000)}
			if _, err := file.Write([]hubRow{row}); err != nil {
				return err
			}
			if size += len(image); size < group {
				return nil
			}
			size = 0
			return file.Flush()
		}
		return add, file.Close
	})
}
