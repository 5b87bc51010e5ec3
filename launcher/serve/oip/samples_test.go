package oip

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func at(name string) string { return filepath.Join("testdata", name+".npy") }

// Files written by numpy (testdata/make.py) read back as the same numbers.
func TestNumpy(t *testing.T) {
	pairs := []float32{1, -2.5, 0.25, 1e-3, 3, 4, 5, 6, 7, 1e30}
	for _, name := range []string{"pairs", "version2", "version3"} {
		a, err := open(at(name), true)
		if err != nil {
			t.Fatal(err)
		}
		var got []float32
		for b := range slices.Chunk(a.Bytes, 4) {
			got = append(got, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		if diff := cmp.Diff(pairs, got); diff != "" || a.Datatype != "FP32" || !slices.Equal(a.Shape, []int{5, 2}) {
			t.Errorf("%s: %s %v %s", name, a.Datatype, a.Shape, diff)
		}
		if part := a.Slice(1, 2); !bytes.Equal(part, a.Bytes[8:24]) {
			t.Errorf("%s: two samples from the second on are %v of %v", name, part, a.Bytes)
		}
	}
	for name, want := range map[string]struct {
		datatype string
		third    []byte // expected sample 3; numbers are limited to 0 … 7
	}{
		"float16": {"FP16", []byte{0, 0x42}}, "float32": {"FP32", []byte{0, 0, 0x40, 0x40}}, "float64": {"FP64", []byte{0, 0, 0, 0, 0, 0, 8, 0x40}},
		"int8": {"INT8", []byte{3}}, "uint8": {"UINT8", []byte{3}}, "int64": {"INT64", []byte{3, 0, 0, 0, 0, 0, 0, 0}}, "uint16": {"UINT16", []byte{3, 0}}, "bool": {"BOOL", []byte{1}},
	} {
		a, err := open(at(name), true)
		if err != nil {
			t.Fatal(err)
		}
		if a.Datatype != want.datatype || !slices.Equal(a.Shape, []int{5, 1}) || !bytes.Equal(a.Slice(2, 1), want.third) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestRefused(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short.npy")
	text, err := os.ReadFile(at("pairs"))
	if err == nil {
		err = os.WriteFile(short, text[:len(text)-1], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		at("fortran"): "numpy.ascontiguousarray", at("bigendian"): "big-endian", at("one"): "it holds one number", at("none"): "empty",
		at("text"): `numpy's "U2"`, at("complex"): `numpy's "c8"; valid: bool, int8`, at("records"): "not plain numbers", at("objects"): "not plain numbers",
		"testdata/make.py": "not a .npy file", at("nothing"): "no such file", "testdata": "not a regular file",
		short: "it has 167 bytes; an array of FP32 [5 2] takes 168",
	} {
		if _, err := open(path, false); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want %s", path, err, want)
		}
	}
}

// An error about the files names the key, the file and the sizes.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		inputs, outputs map[string]string
		batch           []int
		want            string
	}{
		{map[string]string{"x": at("pairs")}, map[string]string{"y": at("labels")}, []int{1, 5}, ""},
		{map[string]string{"x": at("pairs")}, nil, []int{1, 6}, "workload.inputs: testdata/pairs.npy holds 5 samples, too few for a request of workload.batch = 6"},
		{map[string]string{"x": at("four")}, map[string]string{"y": at("labels")}, []int{1}, "workload.outputs: y: testdata/labels.npy holds 5 samples, testdata/four.npy 4"},
		{map[string]string{"a": at("four"), "b": at("pairs")}, nil, []int{1}, "workload.inputs: b: testdata/pairs.npy holds 5 samples, testdata/four.npy 4"},
		{map[string]string{"x": at("text")}, nil, []int{1}, "workload.inputs: x: testdata/text.npy: it"},
	} {
		err := CheckSamples(c.inputs, c.outputs, c.batch)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%v %v %v: %v; want %s", c.inputs, c.outputs, c.batch, err, c.want)
		}
	}
}

// Any file is read or refused, and the bytes read have the length that the header gives.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.npy")
	if len(files) == 0 {
		f.Fatal("no seeds")
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bytes.NewReader(text)
		a, err := parse(r, int64(len(text)), true)
		if err != nil {
			return
		}
		if rest, _ := io.ReadAll(r); len(rest) > 0 || len(a.Bytes) != a.size() || a.Samples() < 1 {
			t.Errorf("%d bytes are left of %+v", len(rest), a)
		}
	})
}
