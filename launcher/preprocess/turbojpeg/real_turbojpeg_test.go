//go:build turbojpeg

package turbojpeg

import (
	"bytes"
	"os"
	"testing"
)

// library is the system's, which make test installs.
func library(t testing.TB) *Library {
	t.Helper()
	l, err := Open(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Pixels are Pillow's, bit for bit, since both use the same transform and upsampling;
// see ../testdata/pillow.py.
func TestDecodeEqualsPillow(t *testing.T) {
	d, err := library(t).Decoder()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{"wide", "tall", "small", "gray"} {
		file, want := content(t, name+".jpg"), content(t, name+".rgb")
		width, height, err := d.Size(file)
		if err != nil || 3*width*height != len(want) {
			t.Fatalf("%s: %d × %d, %v", name, width, height, err)
		}
		got := make([]byte, len(want))
		if err := d.Decode(file, got, width, height); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from Pillow's", name)
		}
		if err := d.Decode(file[:len(file)/2], got, width, height); err == nil {
			t.Errorf("half of %s: no error", name)
		}
		if err := d.Decode(file, got[1:], width, height); err == nil {
			t.Errorf("%s into too little memory: no error", name)
		}
	}
	for _, file := range [][]byte{nil, []byte("no picture")} {
		if _, _, err := d.Size(file); err == nil {
			t.Errorf("%q has a size", file)
		}
	}
}

func content(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
