package figure

import (
	"fmt"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgpdf"
)

// pdfCanvas writes text that is not ASCII correctly. vgpdf embeds its fonts in the
// Windows-1252 encoding but passes strings unchanged, so a dash in UTF-8 would come out as
// three letters. Text within the encoding stays text; other text is drawn as glyph
// outlines.
type pdfCanvas struct{ *vgpdf.Canvas }

func (c pdfCanvas) FillString(face font.Face, at vg.Point, s string) {
	if encoded, err := charmap.Windows1252.NewEncoder().String(s); err == nil {
		c.Canvas.FillString(face, at, encoded)
		return
	}
	path, err := outlines(face, at, s)
	if err != nil {
		panic(fmt.Sprintf("figure: embedded font: %v", err)) // every rune has a glyph, at least the empty box
	}
	c.Fill(path)
}

// outlines returns s as one path, starting at a point on the baseline.
func outlines(face font.Face, at vg.Point, s string) (vg.Path, error) {
	var path vg.Path
	var b sfnt.Buffer
	em := fixed.I(int(face.Face.UnitsPerEm()))
	scale := face.Font.Size / vg.Length(em)
	for _, r := range s {
		glyph, err := face.Face.GlyphIndex(&b, r)
		if err != nil {
			return nil, err
		}
		segments, err := face.Face.LoadGlyph(&b, glyph, em, nil)
		if err != nil {
			return nil, err
		}
		point := func(p fixed.Point26_6) vg.Point { // font coordinates point down
			return vg.Point{X: at.X + vg.Length(p.X)*scale, Y: at.Y - vg.Length(p.Y)*scale}
		}
		for i, g := range segments {
			switch g.Op {
			case sfnt.SegmentOpMoveTo:
				if i > 0 {
					path.Close()
				}
				path.Move(point(g.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(point(g.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(point(g.Args[0]), point(g.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(point(g.Args[0]), point(g.Args[1]), point(g.Args[2]))
			}
		}
		if len(segments) > 0 {
			path.Close()
		}
		advance, err := face.Face.GlyphAdvance(&b, glyph, em, 0)
		if err != nil {
			return nil, err
		}
		at.X += vg.Length(advance) * scale
	}
	return path, nil
}
