package preprocess

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// table returns a Parquet file with one row.
func table[Row any](t *testing.T, row Row) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[Row](&out)
	if _, err := w.Write([]Row{row}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Checks which column is used for the images, and the error without one.
func TestImageColumn(t *testing.T) {
	image := content(t, "wide.jpg")
	type named struct {
		Name    string `parquet:"name,optional"`
		Picture []byte `parquet:"picture,optional"`
	}
	type several struct {
		Mask  struct{ Bytes []byte } `parquet:"mask"`
		Image hubImage               `parquet:"image,optional"`
		Depth []byte                 `parquet:"depth"`
	}
	type pair struct {
		Left  []byte `parquet:"left"`
		Right []byte `parquet:"right"`
	}
	type labels struct {
		Name  string   `parquet:"name"`
		Label int64    `parquet:"label"`
		List  [][]byte `parquet:"list"`
	}
	for name, c := range map[string]struct {
		file []byte
		want string // the error; "": none
	}{
		"only one":     {table(t, named{Picture: image}), ""},
		"usual name":   {table(t, several{Image: hubImage{Bytes: image}}), ""},
		"two":          {table(t, pair{image, image}), "several columns hold bytes: left, right; name that"},
		"none":         {table(t, labels{}), "no column holds images, which are bytes that are not marked as text, one value a row; it has name (BYTE_ARRAY), label (INT64), list (BYTE_ARRAY)"},
		"null":         {table(t, hubRow{Image: hubImage{Path: "0.jpg"}}), "row 1: column image.bytes is null: the image is not in this file"},
		"not an image": {table(t, hubRow{Image: hubImage{Bytes: []byte("no image")}}), "row 1: sample 1: invalid JPEG format"},
		"cut off":      {table(t, named{Picture: image})[:900], "a.parquet: "},
		"other file":   {bytes.Repeat([]byte("text"), 100), "a.parquet: "},
		"empty":        {nil, "a.parquet: "},
		"long footer":  {binary.LittleEndian.AppendUint32([]byte("PAR1...."), 1<<31)[:12:12], "a.parquet: "},
	} {
		_, r, err := prepared(t, "parquet", "a.parquet", c.file)
		switch {
		case c.want == "" && (err != nil || r.Samples != 1):
			t.Errorf("%s: %d samples, %v", name, r.Samples, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), "a.parquet: ") || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// images returns the values of a file's column of images; a null is "null".
func images(content []byte) (all []string, err error) {
	f := reading{t: &thread{stopwatch: startWatch(Unpack)}, at: bytes.NewReader(content)}
	file, err := openParquet(f, int64(len(content)))
	if err != nil {
		return nil, err
	}
	column, err := imageColumn(file.Root())
	if err != nil {
		return nil, err
	}
	for _, group := range file.RowGroups() {
		if err := eachValue(group.ColumnChunks()[column.Index()], func(v parquet.Value) error {
			text := "null"
			if !v.IsNull() {
				text = string(v.ByteArray())
			}
			all = append(all, text)
			return nil
		}); err != nil {
			return all, err
		}
	}
	return all, nil
}

// written are the files of testdata/tables/tables.py.
func written(t testing.TB) (files [][]byte) {
	paths, err := filepath.Glob("testdata/tables/*.parquet")
	if err != nil || len(paths) != 6 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, text)
	}
	return files
}

// Files of pyarrow, in all codecs and versions, contain the values that the script in their folder
// wrote, which are computed again here.
func TestPyarrow(t *testing.T) {
	var want []string
	for i := range 40 {
		value := strings.Repeat(string([]byte{byte(i)}), i%5)
		if i%7 == 3 {
			value = "null"
		}
		want = append(want, value)
	}
	for i, content := range written(t) {
		if got, err := images(content); err != nil || !slices.Equal(got, want) {
			t.Errorf("file %d: %q, %v", i, got, err)
		}
	}
}

// damage changes a file as disks and networks do, and in its sizes.
func damage(r *rand.Rand, content []byte) []byte {
	out := bytes.Clone(content)
	at := r.IntN(len(out))
	if footer := int(binary.LittleEndian.Uint32(out[len(out)-8:])); r.IntN(2) == 0 {
		at = len(out) - 8 - r.IntN(footer)
	}
	switch r.IntN(4) {
	case 0:
		return out[:at]
	case 1:
		out[at] ^= 1 << r.IntN(8)
	case 2:
		copy(out[at:], binary.AppendUvarint(nil, r.Uint64N(1<<20)))
	case 3:
		out = slices.Delete(out, at, min(at+1+r.IntN(100), len(out)))
	}
	return out
}

// A damaged file gives values or an error, and no panic.
func TestDamagedParquet(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 0))
	files := written(t)
	refused := 0
	const variants = 2000
	for i := range variants {
		if _, err := images(damage(r, files[i%len(files)])); err != nil {
			refused++
			if text := fmt.Sprint(err); len(text) < 10 || len(text) > 1000 {
				t.Errorf("an error of %d bytes: %.1000s", len(text), text)
			}
		}
	}
	if refused < variants/3 {
		t.Errorf("%d of %d variants were refused", refused, variants)
	}
	t.Logf("%d of %d variants were refused", refused, variants)
}
