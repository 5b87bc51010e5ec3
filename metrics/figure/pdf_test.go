package figure

import (
	"bytes"
	"compress/zlib"
	"io"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"
)

// content returns the drawing of a one-page PDF: its only compressed stream that moves
// coordinates.
func content(t *testing.T, pdf []byte) string {
	t.Helper()
	for _, part := range bytes.Split(pdf, []byte("stream\n"))[1:] {
		r, err := zlib.NewReader(bytes.NewReader(part))
		if err != nil {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(" cm\n")) {
			return string(data)
		}
	}
	t.Fatal("no content stream")
	return ""
}

// A dash is one letter in the font's encoding, not three bytes of UTF-8. Characters outside
// the encoding are drawn.
func TestPDFText(t *testing.T) {
	for s, want := range map[string]string{"a – b": "a \x96 b", "λ": ""} {
		c := vgpdf.New(400, 300)
		canvas := draw.New(pdfCanvas{c})
		canvas.FillText(textStyle(10), vg.Point{X: 10, Y: 20}, s)
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		got := content(t, b.Bytes())
		if want != "" && !strings.Contains(got, "("+want+")") {
			t.Errorf("%q is not in the page as %q:\n%q", s, want, got)
		}
		if want == "" && strings.Contains(got, "Tj") {
			t.Errorf("%q is in the page as text:\n%q", s, got)
		}
	}
}

// An H starts at the given point on the baseline and is about 0.7 em high; a second letter
// starts one advance later.
func TestOutlines(t *testing.T) {
	face := fonts().Cache().Lookup(face, 100)
	extent := func(s string) (left, right, bottom, top float64) {
		path, err := outlines(face, vg.Point{X: 10, Y: 20}, s)
		if err != nil {
			t.Fatal(err)
		}
		left, bottom, right, top = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
		for _, p := range path {
			if p.Type == vg.MoveComp || p.Type == vg.LineComp {
				left, right = min(left, p.Pos.X.Points()), max(right, p.Pos.X.Points())
				bottom, top = min(bottom, p.Pos.Y.Points()), max(top, p.Pos.Y.Points())
			}
		}
		return left, right, bottom, top
	}
	left, right, bottom, top := extent("H")
	if math.Abs(bottom-20) > 0.5 || top < 85 || top > 95 || left < 10 || left > 20 || right > 10+face.Width("H").Points() {
		t.Errorf("H spans %g to %g, %g to %g", left, right, bottom, top)
	}
	if _, second, _, _ := extent("HH"); math.Abs(second-right-face.Width("H").Points()) > 0.5 {
		t.Errorf("the second H ends at %g, the first at %g", second, right)
	}
}
