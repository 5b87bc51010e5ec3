package figure

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update and read it before it is committed", err)
	}
	return want
}

// The marks as text, so that reviews show changes to the figures.
func TestMarksGolden(t *testing.T) {
	for _, study := range []string{"small", "two"} {
		for _, kind := range curveKinds() {
			if study == "two" && (kind == "accuracy" || kind == "samples") {
				continue // 64 lines of 13 points: compare the picture
			}
			f := studies[study].draw(t, kind, Options{})
			var b bytes.Buffer
			for _, m := range f.Marks() {
				fmt.Fprintln(&b, m)
			}
			fmt.Fprintln(&b, f.Caption())
			want := golden(t, study+"-"+kind+".txt", b.Bytes())
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", study, kind, diff)
			}
		}
	}
}

// One picture, with a tolerance: other versions of the font rasteriser may shade an edge
// differently, but must not move a label.
func TestPNGGolden(t *testing.T) {
	var b bytes.Buffer
	if err := studies["two"].draw(t, "efficiency", Options{Title: "Efficiency", Width: 5.5, Height: 3.6}).Write(&b, "png"); err != nil {
		t.Fatal(err)
	}
	want := decode(t, golden(t, "efficiency.png", b.Bytes()))
	got := decode(t, b.Bytes())
	if want.Bounds() != got.Bounds() {
		t.Fatalf("size %v, want %v", got.Bounds(), want.Bounds())
	}
	far, all := 0, 0
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			wr, wg, wb, _ := want.At(x, y).RGBA()
			gr, gg, gb, _ := got.At(x, y).RGBA()
			if d := max(diff(wr, gr), diff(wg, gg), diff(wb, gb)); d > 0x3000 {
				far++
			}
			all++
		}
	}
	if far*1000 > all {
		t.Errorf("%d of %d pixels differ", far, all)
	}
}

func diff(a, b uint32) uint32 { return max(a, b) - min(a, b) }

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}
