package netspec

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small returns a model of a few numbers. These tests do not check whether they match its name.
func small() *Trained {
	return &Trained{Model: "cnn", Classes: 10, Height: 32, Width: 16, Channels: 3, Tensors: []Tensor{
		{Name: "layer2.weight", Shape: []int{2, 3}, Data: []float32{1, 2, 3, 4, -5, 1e-40}},
		{Name: "layer10.bias", Shape: []int{3}, Data: []float32{0.1, 0.2, 0.3}}, // before layer2 in a sorted list
	}}
}

func written(t testing.TB, m *Trained) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// What is written is read again, tensors in their order.
func TestRoundTrip(t *testing.T) {
	file := written(t, small())
	got, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(small(), got); diff != "" {
		t.Errorf("-written +read\n%s", diff)
	}
	if n := binary.LittleEndian.Uint64(file); n%8 != 0 || !strings.Contains(string(file), `"layer10.bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}`) {
		t.Errorf("a header of %d bytes: %q", n, file)
	}
}

// A file that is cut off anywhere, longer, or has another bit anywhere, is refused, or
// says the same as before: blanks of the header can be other blanks.
func TestDamage(t *testing.T) {
	file := written(t, small())
	for n := range file {
		if m, err := Parse(file[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are %+v", n, len(file), m)
		}
	}
	if m, err := Parse(append(bytes.Clone(file), 0)); err == nil {
		t.Errorf("with a byte behind it is %+v", m)
	}
	refused := 0
	for i := range file {
		for bit := range 8 {
			damaged := bytes.Clone(file)
			damaged[i] ^= 1 << bit
			m, err := Parse(damaged)
			if err != nil {
				refused++
			} else if diff := cmp.Diff(small(), m); diff != "" {
				t.Errorf("bit %d of byte %d: %s", bit, i, diff)
			}
		}
	}
	if refused < 7*len(file) {
		t.Errorf("%d of %d changes were refused", refused, 8*len(file))
	}
}

// The error says what is wrong with a file.
func TestParseRefuses(t *testing.T) {
	file := string(written(t, small()))
	change := func(old, other string) string {
		if len(old) != len(other) || strings.Count(file, old) != 1 {
			t.Fatalf("%q is there %d times", old, strings.Count(file, old))
		}
		return strings.Replace(file, old, other, 1)
	}
	for name, tt := range map[string]struct{ file, want string }{
		"empty":       {"", "not a model that scalebench saved: there is no header"},
		"text":        {"epoch,loss,accuracy\n1,2,3\n", "not a model that scalebench saved, or only part of one: its header needs"},
		"another's":   {change(`"format":"scalebench"`, `"format":"scalebanch"`), "not a model that scalebench saved: its header does not say so"},
		"version":     {change(`"version":"1"`, `"version":"2"`), `version "2" of the format; this build reads version 1`},
		"model":       {change(`"model":"cnn"`, `"model":"mlp"`), "damaged: the SHA-256 of its content is"},
		"size":        {change(`"height":"32"`, `"height":"x2"`), `damaged: height is "x2"`},
		"another sum": {change(`"sha256":"`+small().digest()[:2], `"sha256":"zz`), ", not zz"},
		"type":        {change(`"dtype":"F32","shape":[3]`, `"dtype":"F16","shape":[3]`), `tensor "layer10.bias" is F16 [3] at [24 36]; want F32 at [24 36]`},
		"shape":       {change(`"shape":[3]`, `"shape":[4]`), `tensor "layer10.bias" is F32 [4] at [24 36]; want F32 at [24 40]`},
		"no shape":    {change(`"shape":[3]`, `"shape":[0]`), `tensor "layer10.bias" has the shape [0]`},
		"a hole":      {change(`[24,36]`, `[25,37]`), `want F32 at [24 36]`},
		"cut off":     {file[:len(file)-1], `damaged: it ends within tensor "layer10.bias"`},
		"longer":      {file + "x", "its tensors are 36 bytes, and 37 follow the header"},
	} {
		if _, err := Parse([]byte(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(written(f, small()))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := Parse(file)
		if err != nil {
			return
		}
		again, err := Parse(written(t, m))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written(t, again), written(t, m)) {
			t.Error("written again, it is another model")
		}
	})
}
