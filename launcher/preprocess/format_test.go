package preprocess

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// prepared returns the values that one thread's pass makes of a file.
func prepared(t *testing.T, name, file string, content []byte) ([]float32, Result, error) {
	t.Helper()
	dir, target := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := Find(t.Context(), name, Folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Format, o.Threads, o.Target = name, 1, Folder(target)
	if !Decodes(name) {
		o.Decoder = nil
	}
	r, err := Pass(t.Context(), files, o)
	if err != nil {
		return nil, r, err
	}
	var values []float32
	written, _ := filepath.Glob(filepath.Join(target, "*"))
	for _, path := range written {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(b) > 0; b = b[4:] {
			values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	}
	return values, r, nil
}

// The same images give the same values from every format: packed by the command tar with other files in
// between, by a Python package for TFRecord (testdata/records.py), and by pyarrow with its default encoding and
// with zstd (testdata/tables.py).
func TestShards(t *testing.T) {
	var want []float32
	for _, name := range []string{"wide", "tall"} {
		values, _, err := prepared(t, "jpeg", name+".jpg", content(t, name+".jpg"))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, values...)
	}
	archive, err := exec.Command("tar", "-C", "testdata", "-cf", "-", "wide.jpg", "pillow.py", "tall.jpg").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"tar", archive}, {"tfrecord", content(t, "images.tfrecord")}, {"parquet", content(t, "images.parquet")}, {"parquet", content(t, "plain.parquet")},
	} {
		name, file := c.name, c.file
		got, r, err := prepared(t, name, "shard."+name, file)
		if err != nil {
			t.Error(err)
		}
		if r.Samples != 2 || !slices.Equal(got, want) {
			t.Errorf("%s: %d samples that differ from those of files of their own", name, r.Samples)
		}
		if !(r.Stages[Unpack].Wall > 0) || r.Read == 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if _, _, err := prepared(t, name, "half."+name, file[:len(file)/2-100]); err == nil {
			t.Errorf("%s: half a file is no error", name)
		}
	}
	damaged := bytes.Clone(content(t, "images.tfrecord"))
	damaged[100]++
	for text, file := range map[string][]byte{"record 1: its checksum is wrong": damaged, "the checksum of its length is wrong": []byte("this is no TFRecord file")} {
		if _, _, err := prepared(t, "tfrecord", "bad.tfrecord", file); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if _, err := feature(example(nil)[:5], encodedImage); err == nil {
		t.Error("a damaged example is no error")
	}
	if _, err := feature(nil, encodedImage); err == nil || !strings.Contains(err.Error(), "no feature") {
		t.Error(err)
	}
}

// RFC 3720, B.4: the CRC-32C of 32 bytes of zeros is 8a9136aa. Rotated right by 15
// bits that is 6d551522 (by hand), and with a282ead8 added 0fd7fffa.
func TestMasked(t *testing.T) {
	if got := masked(make([]byte, 32)); got != 0x0fd7fffa {
		t.Errorf("%08x", got)
	}
}

// The second pixel is (255, 0, 51) of the planes; see TestNormalise for its values.
func TestCIFAR(t *testing.T) {
	record := make([]byte, cifarRecord)
	record[1+1], record[1+1024+1], record[1+2048+1] = 255, 0, 51
	got, r, err := prepared(t, "cifar10", "data_batch_1.bin", slices.Concat(record, record))
	if err != nil || r.Samples != 2 || len(got) != 2*3*1024 {
		t.Fatalf("%+v, %d values, %v", r, len(got), err)
	}
	for i, want := range []float64{2.24890830, -2.03571429, -0.91555556} {
		if v := got[i*1024+1]; math.Abs(float64(v)-want) > 1e-6 {
			t.Errorf("channel %d: %v, want %v", i, v, want)
		}
	}
	for text, bad := range map[string][]byte{"not a multiple of": record[:100], "label 10": append([]byte{10}, record[1:]...)} {
		if _, _, err := prepared(t, "cifar10", "bad.bin", bad); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// By hand: 1, 3 and a missing one, 0, have the mean 4/3 and the variance 14/9; colours
// are numbered as they come; a column of equal values becomes 0.
func TestCSV(t *testing.T) {
	got, r, err := prepared(t, "csv", "a.csv", []byte("a,colour,b\n1,red,7\n3,\"gr,een\",7\n,red,7\n"))
	if err != nil || r.Samples != 3 {
		t.Fatal(r.Samples, err)
	}
	d := math.Sqrt(14.0 / 9)
	want := []float64{(1 - 4.0/3) / d, 0, 0, (3 - 4.0/3) / d, 1, 0, (-4.0 / 3) / d, 0, 0}
	var values []float64
	for _, v := range got {
		values = append(values, float64(v))
	}
	if diff := cmp.Diff(want, values, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })); diff != "" {
		t.Error(diff)
	}
	for text, bad := range map[string]string{"wrong number of fields": "a,b\n1\n", `column 1: "x" is no number`: "a\n1\nx\n"} {
		if _, _, err := prepared(t, "csv", "bad.csv", []byte(bad)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if _, r, err := prepared(t, "csv", "empty.csv", nil); err != nil || r.Samples != 0 {
		t.Error(r.Samples, err)
	}
}

// The generated files of each format have the requested number of samples.
func TestGenerated(t *testing.T) {
	for name := range formats {
		n := 40
		if name == "csv" {
			n = 3000 // several blocks in each file
		}
		dir := t.TempDir()
		if err := Generate(name, dir, n, 1); err != nil {
			t.Fatal(err)
		}
		files, err := Find(t.Context(), name, Folder(dir))
		if err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Format = name
		if !Decodes(name) {
			o.Decoder = nil
		}
		if r, err := Pass(t.Context(), files, o); err != nil || r.Samples != int64(n) || len(files) < 2 {
			t.Errorf("%s: %d samples in %d files, %v; want %d", name, r.Samples, len(files), err, n)
		}
	}
}

// Any content gives samples or an error, and no panic.
func FuzzFiles(f *testing.F) {
	for name := range formats {
		f.Add(name, []byte("a,b\n1,2\n"))
	}
	records, err := os.ReadFile("testdata/images.tfrecord")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("tfrecord", records)
	for _, name := range []string{"images.parquet", "plain.parquet"} {
		f.Add("parquet", content(f, name))
	}
	f.Add("cifar10", make([]byte, cifarRecord))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if _, ok := formats[name]; !ok {
			t.Skip()
		}
		o := options()
		o.Format, o.Threads, o.Store = name, 1, Memory{"file": content}
		r, err := Pass(context.Background(), []File{{Path: "file", Size: int64(len(content))}}, o)
		if err == nil && r.Read != int64(len(content)) && name != "tar" && !formats[name].ranges {
			t.Errorf("%d of %d bytes were read, and no error", r.Read, len(content))
		}
	})
}
