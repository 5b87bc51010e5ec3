package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Terminal describes the screen on which a figure is drawn as text.
type Terminal struct {
	Width  int  // columns; at least leastColumns are used
	Colour bool // the terminal shows ANSI colours
	ASCII  bool // it shows only ASCII characters
}

const (
	leastColumns = 40
	mostColumns  = 120
	plotRows     = 18
	panelRows    = 9 // of one of many panels
)

// markers are the characters of medians, by shape, and fills of blocks.
var markers, asciiMarkers = []rune("●■▲◆▼★"), []rune("ox^#v*")
var fills, asciiFills = []rune("█▓▒░"), []rune("#=+:")

// Text draws the figure as lines of text: lines as dots of braille, or of ASCII, medians as markers, blocks filled. The
// legend is below each panel.
func (f *Drawing) Text(t Terminal) string {
	t.Width = min(max(t.Width, leastColumns), mostColumns)
	var b strings.Builder
	line := func(s string) { b.WriteString(strings.TrimRight(t.shown(s), " ") + "\n") }
	rows := plotRows
	if len(f.panels) > 1 {
		rows = panelRows
	}
	for _, s := range f.frame.title {
		line(s)
	}
	for i := range f.panels {
		c := &f.panels[i].chart
		if c.title != "" {
			line(c.title)
		}
		if c.y.title != "" {
			line(c.y.title)
		}
		g := newScreen(t, c, rows)
		for _, m := range c.marks {
			g.mark(m)
		}
		rest := c.marks
		if c.scattered {
			rest = slices.DeleteFunc(slices.Clone(c.marks), g.name)
		}
		g.write(line)
		g.legend(line, rest)
	}
	if len(f.frame.labels) > 0 {
		g := screen{Terminal: t, c: &f.panels[0].chart, filled: blocks(&f.panels[0].chart)}
		var marks []Mark
		for _, l := range f.frame.labels {
			marks = append(marks, l.mark)
		}
		g.legend(line, marks)
	}
	return b.String()
}

// shown replaces characters that an ASCII terminal lacks.
func (t Terminal) shown(s string) string {
	if !t.ASCII {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case r == '–' || r == '−':
			return '-'
		case r == '×':
			return 'x'
		case r == 'µ':
			return 'u'
		}
		return '?'
	}, s)
}

// A cell is a character of the plot: dots of braille, or a character over them.
type cell struct {
	dots  rune
	over  rune // 0: none
	style int
}

// A screen is the plot of a chart. Each cell has dotsX × dotsY dots.
type screen struct {
	Terminal
	c            *chart
	left         int // width of the labels of the y axis
	cells        [][]cell
	dotsX, dotsY int
	filled       []int // styles of the blocks, in order
}

func newScreen(t Terminal, c *chart, rows int) *screen {
	g := &screen{Terminal: t, c: c, dotsX: 2, dotsY: 4, filled: blocks(c)}
	if t.ASCII {
		g.dotsX, g.dotsY = 1, 1
	}
	for _, k := range c.y.ticks() {
		g.left = max(g.left, utf8.RuneCountInString(k.label))
	}
	g.left = min(g.left, t.Width/3)
	g.cells = make([][]cell, max(rows, 2*len(c.y.names)))
	for i := range g.cells {
		g.cells[i] = slices.Repeat([]cell{{style: -1}}, t.Width-g.left-2)
	}
	return g
}

// at returns the dot of a point; ok is false if it is outside.
func (g *screen) at(p XY) (x, y int, ok bool) {
	nx, ny := g.c.x.norm(p.X), min(g.c.y.norm(p.Y), 1)
	if math.IsInf(p.Y, 1) {
		ny = 1
	}
	if !(nx >= 0 && nx <= 1 && ny >= 0) { // also if one is no number
		return 0, 0, false
	}
	return int(math.Round(nx * float64(len(g.cells[0])*g.dotsX-1))), int(math.Round((1 - ny) * float64(len(g.cells)*g.dotsY-1))), true
}

// braille has the bit of each dot of a cell, row by row.
var braille = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func (g *screen) dot(x, y, style int) {
	k := &g.cells[y/g.dotsY][x/g.dotsX]
	if k.style < 0 || k.dots == 0 && k.over == 0 {
		k.style = style
	}
	k.dots |= braille[y%g.dotsY][x%g.dotsX]
}

func (g *screen) put(x, y int, r rune, style int) {
	k := &g.cells[y/g.dotsY][x/g.dotsX]
	k.over, k.style = r, style
}

// join draws the line between two points, of every n-th dot.
func (g *screen) join(a, b XY, style, n int) {
	x0, y0, ok0 := g.at(a)
	x1, y1, ok1 := g.at(b)
	if !ok0 || !ok1 {
		return
	}
	steps := max(abs(x1-x0), abs(y1-y0), 1)
	for i := 0; i <= steps; i += n {
		g.dot(x0+(x1-x0)*i/steps, y0+(y1-y0)*i/steps, style)
	}
}

func abs(n int) int { return max(n, -n) }

// mark draws a mark, except for labels.
func (g *screen) mark(m Mark) {
	every := 1
	switch m.Kind {
	case Ideal, Target:
		every = 4
		fallthrough
	case Line, Trace, Front, Bar, Band:
		for i := 1; i < len(m.Points); i++ {
			g.join(m.Points[i-1], m.Points[i], m.style, every)
		}
	case Block:
		g.block(m)
	case Dot, Median, End, Missed, Bend:
		for _, p := range m.Points {
			x, y, ok := g.at(p)
			switch {
			case !ok:
			case m.Kind == Dot:
				g.dot(x, y, m.style)
			case m.Kind == Missed:
				g.put(x, y, 'x', m.style)
			default:
				g.put(x, y, g.marker(m.style), m.style)
			}
		}
	}
}

// name writes a label next to its point, and reports whether there is room.
func (g *screen) name(m Mark) bool {
	if m.Kind != Label || m.style < 0 || len(m.Points) == 0 {
		return false
	}
	x, y, ok := g.at(m.Points[0])
	text, row := []rune(m.Text), g.cells[y/g.dotsY]
	x = x/g.dotsX + 2
	if !ok || x+len(text) > len(row) || slices.ContainsFunc(row[x:x+len(text)], func(k cell) bool { return k.over != 0 }) {
		return false
	}
	for i, r := range text {
		row[x+i].over, row[x+i].style = r, m.style
	}
	return true
}

// block fills the cells whose centres are in a rectangle.
func (g *screen) block(m Mark) {
	within := func(v, a, b float64) bool { return v >= min(a, b) && v <= max(a, b) }
	a, b := m.Points[0], m.Points[1]
	for y, row := range g.cells {
		for x := range row {
			nx, ny := (float64(x)+0.5)/float64(len(row)), 1-(float64(y)+0.5)/float64(len(g.cells))
			if within(nx, g.c.x.norm(a.X), g.c.x.norm(b.X)) && within(ny, g.c.y.norm(a.Y), g.c.y.norm(b.Y)) {
				row[x].over, row[x].style = g.fill(m.style), m.style
			}
		}
	}
}

func pick(list []rune, i int) rune { return list[max(i, 0)%len(list)] }

func (g *screen) marker(style int) rune {
	if g.ASCII {
		return pick(asciiMarkers, g.c.look(style).shape)
	}
	return pick(markers, g.c.look(style).shape)
}

// fill returns the character of a style's blocks.
func (g *screen) fill(style int) rune {
	i := slices.Index(g.filled, style)
	if g.ASCII {
		return pick(asciiFills, i)
	}
	return pick(fills, i)
}

// blocks lists the styles of the chart's blocks.
func blocks(c *chart) (styles []int) {
	for _, m := range c.marks {
		if m.Kind == Block && !slices.Contains(styles, m.style) {
			styles = append(styles, m.style)
		}
	}
	return styles
}

// painted returns text in the colour of a style.
func (g *screen) painted(s string, style int) string {
	if !g.Colour || style < 0 {
		return s
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", []int{34, 31, 32, 35, 33, 36, 39}[g.c.look(style).colour%7], s)
}

func (k cell) char(ascii bool) rune {
	switch {
	case k.over != 0:
		return k.over
	case k.dots == 0:
		return ' '
	case ascii:
		return '.'
	}
	return 0x2800 + k.dots
}

// write writes the plot with its axes.
func (g *screen) write(line func(string)) {
	labels := make([]string, len(g.cells))
	for _, k := range g.c.y.ticks() {
		if n := g.c.y.norm(k.value); n >= 0 && n <= 1 {
			labels[int(math.Round((1-n)*float64(len(g.cells)-1)))] = cut(k.label, g.left)
		}
	}
	edge, corner, rule := "│", "└", "─"
	if g.ASCII {
		edge, corner, rule = "|", "+", "-"
	}
	for i, row := range g.cells {
		var b strings.Builder
		for _, k := range row {
			b.WriteString(g.painted(string(k.char(g.ASCII)), k.style))
		}
		line(fmt.Sprintf("%*s %s%s", g.left, labels[i], edge, b.String()))
	}
	line(strings.Repeat(" ", g.left+1) + corner + strings.Repeat(rule, len(g.cells[0])))
	below := slices.Repeat([]rune{' '}, g.Width)
	free := 0
	for _, k := range g.c.x.ticks() {
		n := g.c.x.norm(k.value)
		if !(n >= 0 && n <= 1) {
			continue
		}
		text := []rune(cut(k.label, g.Width/max(2, len(g.c.x.names)+1)))
		at := max(0, min(g.left+2+int(n*float64(len(g.cells[0])-1))-len(text)/2, g.Width-len(text)))
		if at >= free && len(text) > 0 {
			copy(below[at:], text)
			free = at + len(text) + 1
		}
	}
	line(string(below))
	if title := []rune(g.c.x.title); len(title) > 0 {
		line(strings.Repeat(" ", max(0, (g.left+g.Width-len(title))/2)) + string(title))
	}
}

// cut shortens text to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}

// legend lists the labels with their markers; blocks have their fill.
func (g *screen) legend(line func(string), marks []Mark) {
	var seen []string
	for _, m := range marks {
		if m.Kind != Label || slices.Contains(seen, m.Text) {
			continue
		}
		seen = append(seen, m.Text)
		sign := ".."
		switch {
		case slices.Contains(g.filled, m.style):
			sign = string(g.fill(m.style))
		case m.style >= 0:
			sign = string(g.marker(m.style))
		}
		line("  " + g.painted(sign, m.style) + " " + m.Text)
	}
}

// UTF8 reports whether the environment's locale is UTF-8.
func UTF8(getenv func(string) string) bool {
	locale := strings.ToUpper(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}
