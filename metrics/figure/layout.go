package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Distances in points.
const (
	margin      vg.Length = 10
	gap         vg.Length = 5 // between neighbouring things
	tickLength  vg.Length = 4
	radius      vg.Length = 3.2 // of a median's marker
	labelIndent vg.Length = 22  // from the plot to a label's text: leader and marker
	minPlot     vg.Length = 130 // the least that is still a plot, either way
)

// Inches.
const (
	defaultWidth  = 7.5
	maxSize       = 100
	defaultHeight = 3.4 // of the plot alone
)

// layout says where everything stands, in points from the lower left.
type layout struct {
	size           vg.Point
	plot           vg.Rectangle // of the data
	title, caption []string
	xTicks, yTicks []tick
	labels         []placed
	shift          []vg.Length // to the side, by style, where series overlap
}

// placed is a label with its place.
type placed struct {
	mark  Mark
	lines []string
	box   vg.Rectangle // of the text
}

// lay lays the chart out. Without a height, it is as high as the labels and
// the caption need.
func lay(c *chart, o Options) (layout, error) {
	for _, in := range []float64{o.Width, o.Height} {
		if !(in >= 0 && in <= maxSize) {
			return layout{}, fmt.Errorf("a size of %g inches; give more than 0 and at most %d, or 0 to choose", in, maxSize)
		}
	}
	l := layout{xTicks: c.x.ticks(), yTicks: c.y.ticks()}
	l.size.X = vg.Length(cmp.Or(o.Width, defaultWidth)) * vg.Inch
	inner := l.size.X - 2*margin
	l.title = wrap(c.title, textStyle(titleSize, true), inner)
	l.caption = wrap(strings.Join(c.caption, " "), textStyle(captionSize, false), inner)

	ticks := textStyle(tickSize, false)
	var yLabels vg.Length
	for _, t := range l.yTicks {
		yLabels = max(yLabels, ticks.Width(t.label))
	}
	labels := textStyle(labelSize, false)
	column, needed := vg.Length(0), vg.Length(0)
	for _, m := range c.marks {
		if m.Kind != Label {
			continue
		}
		p := placed{mark: m, lines: wrap(m.Text, labels, 0.3*inner)}
		for _, s := range p.lines {
			p.box.Max.X = max(p.box.Max.X, labels.Width(s))
		}
		p.box.Max.Y = lineHeight(labelSize) * vg.Length(len(p.lines))
		needed += p.box.Max.Y
		column = max(column, labelIndent+p.box.Max.X)
		l.labels = append(l.labels, p)
	}
	if c.inside {
		column, needed = 2*gap, 0
	}

	l.plot.Min.X = margin + lineHeight(axisSize) + gap + yLabels + tickLength + gap
	l.plot.Max.X = l.size.X - margin - column
	l.plot.Min.Y = margin + block(l.caption, captionSize) + lineHeight(axisSize) + gap + lineHeight(tickSize) + tickLength + gap
	above := margin + block(l.title, titleSize)
	height := max(defaultHeight*vg.Inch, needed)
	if o.Height > 0 {
		height = vg.Length(o.Height)*vg.Inch - l.plot.Min.Y - above
	}
	l.plot.Max.Y = l.plot.Min.Y + height
	l.size.Y = l.plot.Max.Y + above

	if w := l.plot.Max.X - l.plot.Min.X; w < minPlot {
		return layout{}, fmt.Errorf("%.3g inches wide leaves no room for the plot beside its labels; make it %.2g or more", l.size.X.Points()/72, math.Ceil((l.size.X+minPlot-w).Points()/7.2)/10)
	}
	if least := max(minPlot, needed); height < least {
		return layout{}, fmt.Errorf("%.3g inches high leaves no room for the plot and its %d labels; make it %.3g or more, or 0 to choose", l.size.Y.Points()/72, len(l.labels), math.Ceil((l.size.Y+least-height).Points()/7.2)/10)
	}
	if l.size.Y > maxSize*vg.Inch {
		return layout{}, fmt.Errorf("%d labels need more than %d inches; draw fewer series", len(l.labels), maxSize)
	}

	l.thinTicks(c)
	l.shift = c.shifts(&l)
	if c.inside {
		l.placeInside(c)
	} else {
		l.placeBeside(c)
	}
	return l, nil
}

func lineHeight(size float64) vg.Length { return vg.Points(size * leading) }

// block is the height of lines and the gap beside them.
func block(lines []string, size float64) vg.Length {
	if len(lines) == 0 {
		return 0
	}
	return lineHeight(size)*vg.Length(len(lines)) + gap
}

// at is where a place in the data lies. Where there is no value, it is at the
// upper edge.
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

// place is where a mark's point is drawn: beside the others' where series
// overlap.
func (l *layout) place(c *chart, m Mark, p XY) vg.Point {
	at := l.at(c, p)
	if m.style >= 0 && m.style < len(l.shift) {
		at.X += l.shift[m.style]
	}
	return at
}

// thinTicks drops labels of workers that would run into each other. The ends
// stay; of the others the ones further left.
func (l *layout) thinTicks(c *chart) {
	style := textStyle(tickSize, false)
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

// shifts moves the series apart along N where marks of different series would
// cover each other: by the same small amount everywhere, in order of series.
func (c *chart) shifts(l *layout) []vg.Length {
	type mark struct {
		y     vg.Length
		style int
	}
	at := map[float64][]mark{}
	styles := 0
	for _, m := range c.marks {
		styles = max(styles, m.style+1)
		switch m.Kind {
		case Dot, Median, Bar, Missed:
			for _, p := range m.Points {
				at[p.X] = append(at[p.X], mark{l.at(c, p).Y, m.style})
			}
		}
	}
	shift := make([]vg.Length, styles)
	overlap := false
	for _, list := range at {
		slices.SortFunc(list, func(a, b mark) int { return cmp.Compare(a.y, b.y) })
		for i := 1; i < len(list); i++ {
			overlap = overlap || list[i].style != list[i-1].style && list[i].y-list[i-1].y < 2*radius
		}
	}
	if !overlap || styles < 2 {
		return shift
	}
	room := vg.Length(40)
	for i := 1; i < len(l.xTicks); i++ {
		room = min(room, l.at(c, XY{l.xTicks[i].value, 1}).X-l.at(c, XY{l.xTicks[i-1].value, 1}).X)
	}
	step := min(2*radius, room*0.6/vg.Length(styles-1))
	for i := range shift {
		shift[i] = step * (vg.Length(i) - vg.Length(styles-1)/2)
	}
	return shift
}
