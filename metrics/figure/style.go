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

// Okabe & Ito's colours without the yellow, which is lost on white.
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

// shapes are regular polygons: corners, and the angle of the first in degrees.
// There are as many as are told apart at a glance, and a number that shares no
// factor with the colours': 42 styles before one comes again. Of lines without
// markers the dashes differ from round to round of the colours (dashesOf), which
// come back darker and lighter.
var shapes = []struct {
	corners int // 0: a circle
	turn    float64
}{{0, 0}, {4, 45}, {3, 90}, {4, 0}, {3, -90}, {5, 90}}

// neutral is the style of what belongs to no series but must be seen on them.
const neutral = -2

// colorOf is a style's colour; grey for the style −1, ink for neutral.
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

// shade is a part of a colour, darker.
func shade(v uint8) uint8 { return uint8(0.55 * float64(v)) }

// dashesOf are a style's line: whole for the first round of colours, and another
// pattern for each further one, for whom shades of a colour are one.
func dashesOf(style int) []vg.Length {
	return [][]vg.Length{nil, {6, 2}, {1.5, 1.5}, {7, 2, 1.5, 2}, {3, 3}, {10, 3}}[max(style, 0)/len(palette)%6]
}

// faded mixes a colour with white, so much of it remaining. It stays opaque:
// vgpdf and vgsvg darken what is half transparent.
func faded(c color.NRGBA, share float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(math.Round(255 - share*(255-float64(v)))) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 0xFF}
}

// shapeOf is the outline of a style's marker, of about equal area in each.
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

// face is the only font: vgpdf cannot write a bold one.
var face = font.Font{Typeface: "Liberation", Variant: "Sans"}

// fonts holds the face, embedded in the program and parsed on first use.
var fonts = sync.OnceValue(func() text.Plain {
	f, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic(fmt.Sprintf("figure: embedded font: %v", err)) // it was tested with this very font
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
	leading     = 1.25 // line to line, in sizes
)

func textStyle(size float64) text.Style {
	return text.Style{Color: ink, Font: font.From(face, vg.Points(size)), XAlign: draw.XLeft, YAlign: draw.YCenter, Handler: fonts()}
}

// wrap breaks s into lines no wider than width, but not between a number and its
// percent sign. A word too wide for a line is cut with an ellipsis.
func wrap(s string, style text.Style, width vg.Length) []string {
	var lines []string
	line := ""
	words := strings.Fields(s)
	for i, word := range words {
		if isPercent(word) && i > 0 {
			continue // it came with the number before it
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

// isPercent reports whether a word is a percent sign, and what may follow it.
func isPercent(word string) bool { return strings.TrimRight(word, ".,;:)") == "%" }

// shorten takes out the middle of a word: paths and names differ at both ends.
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
