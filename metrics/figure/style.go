package figure

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Okabe & Ito's colours without yellow, which is hard to see on white.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xD5, 0x5E, 0x00, 0xFF}, // vermillion
	{0x00, 0x9E, 0x73, 0xFF}, // bluish green
	{0xCC, 0x79, 0xA7, 0xFF}, // reddish purple
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x56, 0xB4, 0xE9, 0xFF}, // sky blue
	black,
}

var black = color.NRGBA{0x00, 0x00, 0x00, 0xFF}

var (
	ink   = color.NRGBA{0x22, 0x22, 0x22, 0xFF} // text and axes
	grey  = color.NRGBA{0x80, 0x80, 0x80, 0xFF} // ideal and target lines
	faint = color.NRGBA{0xE8, 0xE8, 0xE8, 0xFF} // grid
)

// shapes are regular polygons: corners, and the angle of the first in degrees. Readers can
// distinguish this many at a glance. The numbers of shapes and colours have no common
// factor, which gives 42 styles. Lines without markers use a different dash pattern in each
// round of colours (dashesOf), and the colours themselves become darker and lighter.
var shapes = []struct {
	corners int // 0: a circle
	turn    float64
}{{0, 0}, {4, 45}, {3, 90}, {4, 0}, {3, -90}, {5, 90}}

// neutral is the style of marks that belong to no series but must be visible on top of
// them.
const neutral = -2

// colorOf returns a style's colour: grey for -1, ink for neutral.
func colorOf(style int) color.NRGBA {
	if style == neutral {
		return ink
	}
	if style < 0 {
		return grey
	}
	c, round := palette[style%len(palette)], style/len(palette)
	switch {
	case round == 0:
		return c
	case c == black: // which has no darker shade
		return color.NRGBA{0x50, 0x50, 0x50, 0xFF}
	case round%2 == 1:
		return color.NRGBA{shade(c.R), shade(c.G), shade(c.B), 0xFF}
	}
	return faded(c, 0.6)
}

// shade darkens a colour component.
func shade(v uint8) uint8 { return uint8(0.55 * float64(v)) }

// dashesOf returns a style's dash pattern: solid in the first round of colours, then a
// different pattern per round, for readers who cannot distinguish the shades.
func dashesOf(style int) []vg.Length {
	return [][]vg.Length{nil, {6, 2}, {1.5, 1.5}, {7, 2, 1.5, 2}, {3, 3}, {10, 3}}[max(style, 0)/len(palette)%6]
}

// faded mixes a colour with white; share of it remains. The result is opaque, because vgpdf
// and vgsvg darken transparent colours.
func faded(c color.NRGBA, share float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(255 - share*(255-float64(v)))) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 0xFF}
}

// shapeOf returns the outline of a style's marker; all have about the same area.
func shapeOf(style int, at vg.Point, radius vg.Length) vg.Path {
	s := shapes[max(style, 0)%len(shapes)]
	var p vg.Path
	if s.corners == 0 {
		p.Move(vg.Point{X: at.X + radius, Y: at.Y})
		p.Arc(at, radius, 0, 2*math.Pi)
		p.Close()
		return p
	}
	n := float64(s.corners)
	radius *= vg.Length(math.Sqrt(2 * math.Pi / (n * math.Sin(2*math.Pi/n))))
	for i := range s.corners {
		sin, cos := math.Sincos(s.turn*math.Pi/180 + 2*math.Pi*float64(i)/n)
		corner := vg.Point{X: at.X + radius*vg.Length(cos), Y: at.Y + radius*vg.Length(sin)}
		if i == 0 {
			p.Move(corner)
		} else {
			p.Line(corner)
		}
	}
	p.Close()
	return p
}

// face is the only font, since vgpdf cannot write bold text.
var face = font.Font{Typeface: "Liberation", Variant: "Sans"}

// fonts holds the face, embedded in the program and parsed on first use.
var fonts = sync.OnceValue(func() text.Plain {
	f, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic(fmt.Sprintf("figure: embedded font: %v", err)) // a programming error: the font is embedded
	}
	return text.Plain{Fonts: font.NewCache(font.Collection{{Font: face, Face: f}})}
})

// Sizes of text in points.
const (
	titleSize   = 14
	axisSize    = 10.5
	tickSize    = 9.5
	labelSize   = 9.5
	captionSize = 8.5
	leading     = 1.25 // line spacing, relative to the size
)

func textStyle(size float64) text.Style {
	return text.Style{Color: ink, Font: font.From(face, vg.Points(size)), XAlign: draw.XLeft, YAlign: draw.YCenter, Handler: fonts()}
}

// wrap breaks s into lines no wider than width, but never between a number and its percent
// sign. A word too wide for a line is shortened with an ellipsis.
func wrap(s string, style text.Style, width vg.Length) []string {
	var lines []string
	line := ""
	words := strings.Fields(s)
	for i, word := range words {
		if isPercent(word) && i > 0 {
			continue // the number before took it along
		}
		if i+1 < len(words) && isPercent(words[i+1]) {
			word += " " + words[i+1]
		}
		if style.Width(word) > width {
			word = shorten(word, style, width)
		}
		switch joined := strings.TrimSpace(line + " " + word); {
		case style.Width(joined) <= width:
			line = joined
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// isPercent reports whether a word is a percent sign with optional punctuation.
func isPercent(word string) bool { return strings.TrimRight(word, ".,;:)") == "%" }

// shorten cuts out the middle of a word: paths and names often differ at both ends.
func shorten(word string, style text.Style, width vg.Length) string {
	r := []rune(word)
	for keep := min(len(r)-1, 200); keep > 1; keep-- {
		head := (keep + 1) / 2
		s := string(r[:head]) + "…" + string(r[len(r)-(keep-head):])
		if style.Width(s) <= width {
			return s
		}
	}
	return "…"
}
