package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read is all values of a file's columns, null as "null" and bytes as text; columns with
// lists are left out.
func read(content []byte) (map[string][]string, error) {
	f, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for i, c := range f.Columns {
		if c.Repeated {
			continue
		}
		values, err := f.Values(i)
		if err != nil {
			return nil, err
		}
		for {
			b, ok, err := values.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			found[c.Name] = append(found[c.Name], shown(c, b, ok))
		}
		if int64(len(found[c.Name])) != f.Rows {
			return nil, fmt.Errorf("%s has %d of %d values, and no error", c.Name, len(found[c.Name]), f.Rows)
		}
	}
	return found, nil
}

func shown(c Column, b []byte, ok bool) string {
	switch {
	case !ok:
		return "null"
	case c.Type == Boolean:
		return fmt.Sprint(b[0] == 1)
	case c.Type == Int32:
		return fmt.Sprint(int32(binary.LittleEndian.Uint32(b)))
	case c.Type == Int64 && c.Unsigned:
		return fmt.Sprint(binary.LittleEndian.Uint64(b))
	case c.Type == Int64:
		return fmt.Sprint(int64(binary.LittleEndian.Uint64(b)))
	case c.Type == Float:
		return fmt.Sprint(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case c.Type == Double:
		return fmt.Sprint(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return string(b)
}

// made are the files of testdata/tables.py.
func made(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Files of pyarrow contain the values that the script in the same folder wrote, which are computed
// again here.
func TestPyarrow(t *testing.T) {
	want := map[string][]string{}
	for i := range 40 {
		for name, value := range map[string]any{
			"image.bytes": strings.Repeat(string([]byte{byte(i)}), i%5), "image.path": fmt.Sprintf("%d.jpg", i),
			"small": i - 20, "single": float32(i) / 4, "double": float64(i) / 8, "truth": i%3 == 0,
			"word": strings.Repeat("abc"[i%3:][:1], 3), "price": strings.Repeat("\x00", 12) + string([]byte{byte(i)}),
			"day": i, "count": math.MaxUint64 - uint64(i),
		} {
			if i%7 == 3 {
				value = "null"
			}
			want[name] = append(want[name], fmt.Sprint(value))
		}
		want["label"] = append(want["label"], fmt.Sprint(i))
	}
	for name, content := range made(t) {
		got, err := read(content)
		if strings.HasPrefix(name, "brotli") {
			if err == nil || !strings.Contains(err.Error(), "packed by BROTLI, which is not read") {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What is written comes back: nulls alone and in runs, many pages, several groups.
func TestWriter(t *testing.T) {
	columns := []Column{{Name: "image.bytes", Type: ByteArray}, {Name: "image.path", Type: ByteArray, Annotated: true}, {Name: "label", Type: Int64}, {Name: "x", Type: Float}}
	for _, n := range []int{0, 1, 30, 1300} {
		random := rand.New(rand.NewPCG(1, 2))
		var out bytes.Buffer
		w, err := NewWriter(&out, columns...)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{}
		for i := range n {
			image := make([]byte, random.IntN(200_000))
			for k := range image[:len(image)/2] {
				image[k] = byte(random.Uint32())
			}
			row := [][]byte{image, fmt.Appendf(nil, "%d.jpg", i), binary.LittleEndian.AppendUint64(nil, uint64(i)), binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(i)))}
			for c := range row {
				if random.IntN(3) == 0 || i > 10 && i < 20 {
					row[c] = nil
				}
				want[columns[c].Name] = append(want[columns[c].Name], shown(columns[c], row[c], row[c] != nil))
			}
			if err := w.Row(row...); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := read(out.Bytes())
		if err != nil {
			t.Errorf("%d rows: %v", n, err)
		}
		for name := range want {
			if !slices.Equal(got[name], want[name]) {
				t.Errorf("%d rows: %s came back different", n, name)
			}
		}
		if f, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len())); err != nil || n == 1300 && len(f.groups) < 2 {
			t.Errorf("%d rows are one group (%v)", n, err)
		}
	}
}

// damage changes a file in the ways that files are damaged, and in those that cost most.
func damage(r *rand.Rand, content []byte) []byte {
	out := bytes.Clone(content)
	for range 1 + r.IntN(3) {
		if len(out) < 20 {
			return out
		}
		at := r.IntN(len(out))
		if footer := int(binary.LittleEndian.Uint32(out[len(out)-8:])); r.IntN(2) == 0 && footer > 0 && footer < len(out)-8 {
			at = len(out) - 8 - r.IntN(footer)
		}
		switch r.IntN(7) {
		case 0:
			out = out[:at]
		case 1, 2:
			out[at] ^= 1 << r.IntN(8)
		case 3:
			out[at] = byte(r.Uint32())
		case 4: // a size, as metadata has it
			out = slices.Replace(out, at, min(at+1+r.IntN(4), len(out)), binary.AppendUvarint(nil, r.Uint64()>>r.IntN(60))...)
		case 5: // and as pages have it
			copy(out[at:], binary.LittleEndian.AppendUint32(nil, r.Uint32()))
		case 6:
			out = slices.Delete(out, at, min(at+1+r.IntN(100), len(out)))
		}
	}
	return out
}

// memory is the maximum memory for reading a damaged file of a few kilobytes.
const memory = 16 << 20

// try reads a file, and holds what must be true of any.
func try(t *testing.T, content []byte) (failed bool) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := read(content)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > memory {
		t.Errorf("a file of %d bytes took %d bytes of memory (%v)", len(content), used, err)
	}
	if err != nil && (len(err.Error()) < 10 || len(err.Error()) > 400+maxPath) {
		t.Errorf("an error of %d bytes: %.1000v", len(err.Error()), err)
	}
	return err != nil
}

// Whatever is damaged, there are all values or an error, no panic, and little memory.
func TestDamaged(t *testing.T) {
	const variants = 10_000
	files := made(t)
	names := slices.Sorted(maps.Keys(files))
	r := rand.New(rand.NewPCG(14, 0))
	refused := 0
	for i := range variants {
		if try(t, damage(r, files[names[i%len(names)]])) {
			refused++
		}
		if t.Failed() {
			t.Fatalf("variant %d, of %s", i, names[i%len(names)])
		}
	}
	if refused < variants/2 {
		t.Errorf("%d of %d variants were refused", refused, variants)
	}
	t.Logf("%d of %d variants were refused", refused, variants)
}

func FuzzRead(f *testing.F) {
	for _, content := range made(f) {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) { try(t, content) })
}
