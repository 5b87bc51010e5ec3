package preprocess

import (
	"bytes"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/preprocess/parquet"
)

// table returns a Parquet file with one row.
func table(t *testing.T, columns []parquet.Column, row ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, columns...)
	if err == nil {
		err = w.Row(row...)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Checks which column is used for the images, and the error without one.
func TestImageColumn(t *testing.T) {
	image := content(t, "wide.jpg")
	one := func(name string) parquet.Column { return parquet.Column{Name: name, Type: parquet.ByteArray} }
	text := parquet.Column{Name: "name", Type: parquet.ByteArray, Annotated: true}
	for _, c := range []struct {
		columns []parquet.Column
		row     [][]byte
		want    string // the error; "": none
	}{
		{[]parquet.Column{text, one("picture")}, [][]byte{nil, image}, ""},
		{[]parquet.Column{one("mask.bytes"), one("image.bytes"), one("depth")}, [][]byte{nil, image, nil}, ""},
		{[]parquet.Column{one("left"), one("right")}, [][]byte{image, image}, "several columns hold bytes: left, right; name that"},
		{[]parquet.Column{text, {Name: "label", Type: parquet.Int64}}, [][]byte{nil, nil}, "no column holds images, which are bytes that are not marked as text, one value a row; it has name (BYTE_ARRAY), label (INT64)"},
		{hubColumns, [][]byte{nil, []byte("0.jpg"), nil}, "row 1: column image.bytes is null: the image is not in this file"},
		{hubColumns, [][]byte{[]byte("no image"), nil, nil}, "row 1: sample 1: invalid JPEG format"},
	} {
		_, r, err := prepared(t, "parquet", "a.parquet", table(t, c.columns, c.row...))
		switch {
		case c.want == "" && (err != nil || r.Samples != 1):
			t.Errorf("%v: %d samples, %v", c.columns, r.Samples, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), "a.parquet: ") || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
