package figure

import (
	"image/color"
	"io"

	"github.com/mattn/go-sixel"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Sixel writes the figure for a terminal that draws Sixel graphics, about so many pixels wide.
func (f *Drawing) Sixel(w io.Writer, pixels int) error {
	dpi := float64(pixels) / float64(f.size.X/vg.Inch)
	c := vgimg.NewWith(vgimg.UseWH(f.size.X, f.size.Y), vgimg.UseDPI(int(dpi)), vgimg.UseBackgroundColor(color.White))
	f.paint(draw.New(c))
	return sixel.NewEncoder(w).Encode(c.Image())
}
