package preprocess

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/preprocess/parquet"
)

// hubColumns are the columns of image data sets on Hugging Face.
var hubColumns = []parquet.Column{
	{Name: "image.bytes", Type: parquet.ByteArray},
	{Name: "image.path", Type: parquet.ByteArray, Annotated: true},
	{Name: "label", Type: parquet.Int64},
}

// fromParquet reads the images from one column of a Parquet file. It does not read the other
// columns.
func fromParquet(t *thread, f reading, size int64, do func([]byte) error) error {
	t.enter(Unpack)
	file, err := parquet.Open(f, size)
	if err != nil {
		return err
	}
	column, err := imageColumn(file.Columns)
	if err != nil {
		return err
	}
	images, err := file.Values(column)
	if err != nil {
		return err
	}
	for row := 1; ; row++ {
		t.enter(Unpack)
		image, ok, err := images.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !ok:
			err = fmt.Errorf("column %s is null: the image is not in this file", file.Columns[column].Name)
		default:
			err = do(image)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
	}
}

// imageColumn returns the index of the column with the images. It is the only column of bytes that
// are not text or, if there are several, the column with the usual name.
func imageColumn(columns []parquet.Column) (int, error) {
	var all, found []string
	var at int
	for i, c := range columns {
		all = append(all, fmt.Sprintf("%.40s (%v)", c.Name, c.Type))
		if c.Type == parquet.ByteArray && !c.Annotated && !c.Repeated {
			found, at = append(found, c.Name), i
		}
	}
	if len(found) == 1 {
		return at, nil
	}
	for _, usual := range []string{"image.bytes", "image"} {
		if slices.Contains(found, usual) {
			return slices.IndexFunc(columns, func(c parquet.Column) bool { return c.Name == usual }), nil
		}
	}
	if len(found) > 1 {
		return 0, fmt.Errorf("several columns hold bytes: %s; name that of the images image, or image.bytes", some(found))
	}
	return 0, fmt.Errorf("no column holds images, which are bytes that are not marked as text, one value a row; it has %s", some(all))
}

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
	return shards(n, seed, ".parquet", create, func(w io.Writer) (func(int, []byte) error, func() error) {
		file, err := parquet.NewWriter(w, hubColumns...)
		add := func(i int, image []byte) error {
			if err != nil {
				return err
			}
			return file.Row(image, fmt.Appendf(nil, "%06d.jpg", i), binary.LittleEndian.AppendUint64(nil, uint64(i/1000)))
		}
		return add, file.Close
	})
}
