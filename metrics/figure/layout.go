package figure

import (
	"cmp"
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"

	"github.com/scalebench/scalebench/metrics/number"
)

// Distances in points.
const (
	margin      vg.Length = 10
	gap         vg.Length = 5 // between neighbours
	tickLength  vg.Length = 4
	radius      vg.Length = 3.2 // radius of a median's marker
	labelIndent vg.Length = 22  // from the plot to a label's text, for leader and marker
	minPlot     vg.Length = 130 // smallest plot in either direction
	keyIndent   vg.Length = 14  // from the start of a label below the plot to its text, for the marker
	rowHeight   vg.Length = 16  // of a category on a y axis
	longestName vg.Length = 110 // of a category on an x axis, where names are tilted
)

// Inches.
const (
	defaultWidth  = 7.5
	maxSize       = 100
	defaultHeight = 3.4 // height of the plot alone, in inches
	lowHeight     = 2.3 // height of each of many panels
	mostArea      = 200 // in square inches, for a figure without a set height: two pages
)

// layout holds the position of everything, in points from the lower left.
type layout struct {
	size           vg.Point
	plot           vg.Rectangle // the data area
	title, caption []string
	xTicks, yTicks []tick
	labels         []placed
	tags           []placed
	aside          []vg.Length // by style: offset of runs from their medians
	legend         vg.Length   // height of the labels if they are below the plot
	tilted         bool        // names on the x axis
}

// placed is a label with its position.
type placed struct {
	mark  Mark
	lines []string
	box   vg.Rectangle // bounding box of the text
	// inside labels are next to their line's end in the plot. The others are in the column
	// on the right; led ones have a leader from their line's end.
	inside, led bool
}

// layoutOf lays out a chart. Without a set height, it is as high as the labels and the
// caption require.
func layoutOf(c *chart, o Options) (layout, error) {
	for _, in := range []float64{o.Width, o.Height} {
		if !(in >= 0 && in <= maxSize) {
			return layout{}, fmt.Errorf("a size of %g inches; give more than 0 and at most %d, or 0 for an automatic one", in, maxSize)
		}
	}
	if c.scattered && !c.panel {
		l, err := arrange(c, o, inside)
		if err == nil && l.placeInside(c) {
			l.placeBeside(c)
			return l, nil
		}
	}
	l, err := arrange(c, o, beside)
	if err == nil && !c.panel {
		l.placeBeside(c)
		return l, nil
	}
	// A narrow figure has no room right of the plot.
	under, second := arrange(c, o, below)
	if second == nil {
		under.placeBelow()
		return under, nil
	}
	return l, cmp.Or(err, second)
}

// Positions of labels.
type side int

const (
	beside side = iota // in a column on the right
	inside             // labels of lines in the plot, the others in the column
	below              // in rows between the axis and the caption
)

// widthOfTicks returns the width of the labels on the y axis; names are shortened to at
// most most.
func (l *layout) widthOfTicks(c *chart, most vg.Length) vg.Length {
	ticks := textStyle(tickSize)
	var width vg.Length
	for _, t := range l.yTicks {
		width = max(width, ticks.Width(t.label))
	}
	if c.y.names == nil || width <= most {
		return width
	}
	for i := range l.yTicks {
		if t := &l.yTicks[i]; ticks.Width(t.label) > most {
			t.label = shorten(t.label, ticks, most)
		}
	}
	return most
}

// arrange reserves room for everything and leaves the labels' own positions open.
func arrange(c *chart, o Options, where side) (layout, error) {
	l := layout{xTicks: c.x.ticks(), yTicks: c.y.ticks()}
	l.size.X = vg.Length(cmp.Or(o.Width, defaultWidth)) * vg.Inch
	inner := l.size.X - 2*margin
	l.title = wrap(c.title, textStyle(titleSize), inner)
	if !o.NoCaption {
		l.caption = captionLines(c.caption, inner)
	}

	yLabels := l.widthOfTicks(c, 0.33*inner)
	column, needed := 2*gap, vg.Length(0)
	widest := 0.3 * inner
	if where == below {
		widest = inner - keyIndent
	}
	for _, m := range c.marks {
		if m.Kind != Label {
			continue
		}
		p := l.addLabel(m, widest)
		p.inside = where == inside && m.style >= 0
		switch {
		case p.inside:
		case where == below: // flow positions them
		default:
			needed += p.box.Max.Y
			column = max(column, labelIndent+p.box.Max.X)
			p.led = !c.scattered || m.style < 0
		}
	}
	if where == below {
		l.flow()
		l.legend = max(l.legend, c.legend)
	}

	l.plot.Min.X = margin + yLabels + tickLength + gap
	if c.y.title != "" {
		l.plot.Min.X += lineHeight(axisSize) + gap
	}
	l.plot.Max.X = l.size.X - margin - column
	l.plot.Min.Y = margin + block(l.caption, captionSize) + l.legend + lineHeight(axisSize) + lineHeight(tickSize) + tickLength + gap
	l.plot.Min.Y += l.tilt(c)
	above := margin + block(l.title, titleSize)
	usual := defaultHeight * vg.Inch
	if c.low {
		usual = lowHeight * vg.Inch
	}
	height := max(usual, needed)
	if n := len(c.y.names); n > 0 {
		height = max(minPlot, needed, vg.Length(n)*rowHeight)
	}
	if o.Height > 0 {
		height = vg.Length(o.Height)*vg.Inch - l.plot.Min.Y - above
	}
	l.plot.Max.Y = l.plot.Min.Y + height
	l.size.Y = l.plot.Max.Y + above

	if w := l.plot.Max.X - l.plot.Min.X; w < minPlot {
		return layout{}, fmt.Errorf("%.3g inches wide leaves no room for the plot next to its labels; make it %.3g or more", o.Width, math.Ceil((l.size.X+minPlot-w).Points()/7.2)/10+1)
	}
	if least := max(minPlot, needed); height < least {
		return layout{}, fmt.Errorf("%.3g inches high leaves no room for the plot, its caption and %s; make it %.3g or more, or 0 for automatic", o.Height, number.Count(len(l.labels), "label"), math.Ceil((l.size.Y+least-height).Points()/7.2)/10)
	}
	if o.Height == 0 && tooLarge(l.size) {
		return layout{}, fmt.Errorf("%s need a height of %.0f inches; draw fewer series", number.Count(max(len(l.labels), len(c.y.names)), "label"), l.size.Y/vg.Inch)
	}
	if !l.tilted {
		l.thinTicks(c)
	}
	l.spread(c)
	l.placeTags(c)
	return l, nil
}

// tilt rotates names on the x axis if they would overlap, and returns the extra height.
func (l *layout) tilt(c *chart) vg.Length {
	style := textStyle(tickSize)
	slot := (l.plot.Max.X - l.plot.Min.X) / vg.Length(c.x.max-c.x.min)
	widest := vg.Length(0)
	for _, t := range l.xTicks {
		widest = max(widest, style.Width(t.label))
	}
	if c.x.names == nil || widest+4 <= slot || slot < lineHeight(tickSize) {
		return 0
	}
	l.tilted = true
	sin, cos := math.Sincos(slant)
	widest = 0
	for i := range l.xTicks {
		t := &l.xTicks[i]
		room := min(longestName, (l.at(c, XY{t.value, c.y.max}).X-margin/2)/vg.Length(cos))
		if style.Width(t.label) > room {
			t.label = shorten(t.label, style, room)
		}
		widest = max(widest, style.Width(t.label))
	}
	return widest * vg.Length(sin)
}

// slant is the angle of tilted names.
const slant = 40 * math.Pi / 180

// tooLarge reports whether a figure is too large to read.
func tooLarge(size vg.Point) bool { return size.X*size.Y > mostArea*vg.Inch*vg.Inch }

func lineHeight(size float64) vg.Length { return vg.Points(size * leading) }

// block returns the height of lines of text and the gap next to them.
func block(lines []string, size float64) vg.Length {
	if len(lines) == 0 {
		return 0
	}
	return lineHeight(size)*vg.Length(len(lines)) + 2*gap
}

// at returns the position of a data point. An infinite value is at the upper edge.
func (l *layout) at(c *chart, p XY) vg.Point {
	x, y := c.x.norm(p.X), min(c.y.norm(p.Y), 1)
	if math.IsInf(p.Y, 1) {
		y = 1 - float64(2*radius/(l.plot.Max.Y-l.plot.Min.Y))
	}
	return vg.Point{
		X: l.plot.Min.X + vg.Length(x)*(l.plot.Max.X-l.plot.Min.X),
		Y: l.plot.Min.Y + vg.Length(y)*(l.plot.Max.Y-l.plot.Min.Y),
	}
}

// place returns the position of a mark's point. Lines and medians are at their data. Runs
// are drawn next to their point's median, in a separate strip per series, so that they do
// not hide each other. A bar goes through its median if there is only one series, and
// otherwise between the median and the runs.
func (l *layout) place(c *chart, m Mark, p XY) vg.Point {
	at := l.at(c, p)
	if m.alone || m.style < 0 || m.style >= len(l.aside) {
		return at
	}
	switch m.Kind {
	case Dot, Missed:
		at.X += l.aside[m.style]
	case Bar:
		if len(l.aside) > 1 && c.x.names == nil { // columns have separate positions already
			at.X += l.aside[m.style] * 0.62
		}
	}
	return at
}

// thinTicks drops overlapping labels of workers. The outermost stay; of the others, the
// left ones win.
func (l *layout) thinTicks(c *chart) {
	style := textStyle(tickSize)
	half := func(t tick) vg.Length { return style.Width(t.label)/2 + 2 }
	x := func(t tick) vg.Length { return l.at(c, XY{t.value, 1}).X }
	last := len(l.xTicks) - 1
	free := vg.Length(math.Inf(-1))
	for i := range l.xTicks {
		t := &l.xTicks[i]
		if i > 0 && i < last && (x(*t)-half(*t) < free || x(*t)+half(*t) > x(l.xTicks[last])-half(l.xTicks[last])) {
			t.label = ""
			continue
		}
		free = x(*t) + half(*t)
	}
	if last > 0 && x(l.xTicks[last])-half(l.xTicks[last]) < x(l.xTicks[0])+half(l.xTicks[0]) {
		l.xTicks[0].label = ""
	}
}

// spread sets the offset between the medians and the runs of each series: alternately left
// and right, as far as the neighbouring worker counts allow.
func (l *layout) spread(c *chart) {
	if c.scattered {
		return // there are no medians
	}
	styles := c.styles()
	x := func(i int) vg.Length { return l.at(c, XY{l.xTicks[i].value, 1}).X }
	room := 2 * (x(0) - l.plot.Min.X)
	for i := 1; i < len(l.xTicks); i++ {
		room = min(room, x(i)-x(i-1))
	}
	first, step := 2*radius+2.6, vg.Length(5.5)
	if styles == 1 {
		first = radius + 2.5
	}
	farthest := first + step*vg.Length((styles-1)/2)
	scale := min(1, 0.42*room/farthest)
	l.aside = make([]vg.Length, styles)
	for i := range l.aside {
		l.aside[i] = scale * (first + step*vg.Length(i/2))
		switch {
		case c.x.names != nil:
			l.aside[i] = -first
		case i%2 == 0:
			l.aside[i] = -l.aside[i]
		}
	}
}
