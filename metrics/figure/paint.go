package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func (f *Drawing) paint(dc draw.Canvas) {
	for i := range f.panels {
		dc.Push()
		dc.Translate(f.panels[i].at)
		f.panels[i].paint(dc)
		dc.Pop()
	}
	p := painter{Canvas: dc}
	for _, lb := range f.frame.labels {
		p.label(lb)
	}
	p.lines(f.frame.title, titleSize, textStyle(titleSize), margin, f.size.Y-margin/2)
	p.lines(f.frame.caption, captionSize, textStyle(captionSize), margin, margin+block(f.frame.caption, captionSize)-2*gap)
}

func (f *panel) paint(dc draw.Canvas) {
	p := painter{Canvas: dc, c: &f.chart, l: &f.layout}
	for _, m := range f.chart.marks {
		if m.Kind == Ideal {
			p.ideals++
		}
	}
	p.axes()
	for _, m := range f.chart.marks {
		p.mark(m)
	}
	for _, t := range f.layout.tags {
		style := textStyle(captionSize)
		style.Color = p.color(t.mark.style)
		p.lines(t.lines, captionSize, style, t.box.Min.X, t.box.Max.Y)
	}
	for _, lb := range f.layout.labels {
		p.label(lb)
	}
	p.text()
}

type painter struct {
	draw.Canvas
	c      *chart
	l      *layout
	ideals int // number of ideal lines
}

var dashes = []vg.Length{5, 3}

func (p *painter) stroke(col color.Color, width float64, dashes []vg.Length, points ...vg.Point) {
	p.StrokeLines(draw.LineStyle{Color: col, Width: vg.Points(width), Dashes: dashes}, points)
}

func (p *painter) fill(col color.Color, path vg.Path) {
	p.SetColor(col)
	p.Fill(path)
}

// color returns the colour of a style.
func (p *painter) color(style int) color.NRGBA { return colorOf(p.c.look(style).colour) }

// shape fills a style's marker, with a white edge if it covers others.
func (p *painter) shape(style int, at vg.Point, r vg.Length, edge bool) {
	if edge {
		p.fill(color.White, shapeOf(p.c.look(style).shape, at, r+0.9))
	}
	p.fill(p.color(style), shapeOf(p.c.look(style).shape, at, r))
}

func (p *painter) cross(col color.Color, at vg.Point, r vg.Length) {
	p.stroke(col, 1.5, nil, vg.Point{X: at.X - r, Y: at.Y - r}, vg.Point{X: at.X + r, Y: at.Y + r})
	p.stroke(col, 1.5, nil, vg.Point{X: at.X - r, Y: at.Y + r}, vg.Point{X: at.X + r, Y: at.Y - r})
}

func (p *painter) mark(m Mark) {
	col := p.color(m.style)
	points := make([]vg.Point, len(m.Points))
	for i, d := range m.Points {
		if p.c.y.log && d.Y <= 0 {
			return // a log axis cannot show a time of 0
		}
		points[i] = p.l.place(p.c, m, d)
	}
	switch m.Kind {
	case Ideal:
		// Many of them, one per series, are drawn more faintly.
		col, width := grey, 1.0
		if p.ideals > 3 {
			col, width = faded(grey, 0.5), 0.6
		}
		p.stroke(col, width, dashes, points...)
	case Target:
		// Draw targets across the whole plot, not just up to the last run.
		if m.Points[0].Y != m.Points[1].Y {
			points[0].Y, points[1].Y = p.l.plot.Min.Y, p.l.plot.Max.Y
		} else {
			points[0].X, points[1].X = p.l.plot.Min.X, p.l.plot.Max.X
		}
		p.stroke(grey, 1, dashes, points...)
	case Line:
		p.stroke(col, 1.6, dashesOf(p.c.look(m.style).colour), points...)
	case Trace:
		p.stroke(faded(col, 0.7), 0.9, dashesOf(p.c.look(m.style).colour), points...)
	case Dot:
		// Add a rim, so that overlapping dots can be counted.
		p.fill(faded(col, 0.45), shapeOf(0, points[0], 1.9))
		p.SetLineStyle(draw.LineStyle{Color: col, Width: vg.Points(0.4)})
		p.Stroke(shapeOf(0, points[0], 1.9))
	case Bar:
		low, high := points[0], points[1]
		p.stroke(col, 1.2, nil, low, high)
		across := vg.Point{X: radius}
		if m.Points[0].X != m.Points[1].X {
			across = vg.Point{Y: radius}
		}
		for _, end := range points {
			p.stroke(col, 1.2, nil, end.Sub(across), end.Add(across))
		}
	case Block:
		box := vg.Rectangle{Min: points[0], Max: points[1]}
		p.fill(faded(col, m.strength()), box.Path())
		if box.Max.X-box.Min.X < 6 {
			break // an edge would hide it
		}
		p.stroke(color.White, 0.6, nil, box.Min, vg.Point{X: box.Max.X, Y: box.Min.Y}, box.Max, vg.Point{X: box.Min.X, Y: box.Max.Y}, box.Min)
	case Band:
		var path vg.Path
		path.Move(points[0])
		for _, at := range points[1:] {
			path.Line(at)
		}
		path.Close()
		p.fill(faded(col, 0.2), path)
	case Front:
		p.stroke(grey, 1.2, nil, points...)
	case Bend:
		for i, at := range points {
			width := 0.7
			if i == len(points)-1 {
				width = 1.6
			}
			p.SetLineStyle(draw.LineStyle{Color: col, Width: vg.Points(width)})
			p.Stroke(shapeOf(0, at, 2.1*radius))
		}
	case Median:
		p.shape(m.style, points[0], radius, true)
	case End:
		p.shape(m.style, points[0], 2.4, false)
	case Missed:
		p.cross(col, points[0], radius)
	}
}

// label writes a label. If it is right of the plot, a leader connects it to its line's end,
// and it repeats the line's marker.
func (p *painter) label(lb placed) {
	style := textStyle(labelSize)
	if lb.mark.style < 0 {
		style.Color = grey
	}
	switch {
	case lb.inside:
		p.fill(color.White, lb.box.Path())
	case lb.mark.strong > 0: // labels of blocks
		at := vg.Point{X: lb.box.Min.X - gap - radius, Y: (lb.box.Min.Y + lb.box.Max.Y) / 2}
		key := vg.Rectangle{Min: at.Sub(vg.Point{X: radius, Y: radius}), Max: at.Add(vg.Point{X: radius, Y: radius})}
		p.fill(faded(p.color(lb.mark.style), lb.mark.strength()), key.Path())
	default:
		y := (lb.box.Min.Y + lb.box.Max.Y) / 2
		at := vg.Point{X: lb.box.Min.X - gap - radius, Y: y}
		if lb.led {
			from := p.l.place(p.c, lb.mark, lb.mark.Points[0])
			start, elbow := from.X+radius+2, p.l.plot.Max.X
			p.stroke(faded(p.color(lb.mark.style), 0.6), 0.6, []vg.Length{1, 2},
				vg.Point{X: min(start, elbow), Y: from.Y}, vg.Point{X: elbow, Y: from.Y}, vg.Point{X: at.X - radius - 1, Y: y})
		}
		if lb.mark.style >= 0 {
			p.shape(lb.mark.style, at, radius-0.4, false)
		} else {
			p.stroke(grey, 1, []vg.Length{3, 2}, vg.Point{X: at.X - 4, Y: y}, vg.Point{X: at.X + 4, Y: y})
		}
	}
	p.lines(lb.lines, labelSize, style, lb.box.Min.X, lb.box.Max.Y)
}

// lines writes text downwards from top.
func (p *painter) lines(lines []string, size float64, style draw.TextStyle, x, top vg.Length) {
	for i, s := range lines {
		p.write(style, vg.Point{X: x, Y: top - lineHeight(size)*(vg.Length(i)+0.5)}, s)
	}
}

// write centres a line of text vertically by its digits and capitals, ignoring the space
// that the font reserves for descenders.
func (p *painter) write(style draw.TextStyle, at vg.Point, s string) {
	at.Y += style.Font.Size * 0.13
	p.FillText(style, at, s)
}

func (p *painter) axes() {
	l := p.l
	box := l.plot
	for _, t := range l.yTicks {
		if p.c.y.names != nil {
			style := textStyle(tickSize)
			style.XAlign = draw.XRight
			y := l.at(p.c, XY{p.c.x.min, t.value}).Y
			p.stroke(faint, 0.6, nil, vg.Point{X: box.Min.X, Y: y}, vg.Point{X: box.Max.X, Y: y})
			p.write(style, vg.Point{X: box.Min.X - tickLength - 3, Y: y}, t.label)
			continue
		}
		if y := l.at(p.c, XY{p.c.x.min, t.value}).Y; !math.IsNaN(float64(y)) {
			p.stroke(faint, 0.6, nil, vg.Point{X: box.Min.X, Y: y}, vg.Point{X: box.Max.X, Y: y})
			p.stroke(ink, 0.7, nil, vg.Point{X: box.Min.X - tickLength, Y: y}, vg.Point{X: box.Min.X, Y: y})
			style := textStyle(tickSize)
			style.XAlign = draw.XRight
			p.write(style, vg.Point{X: box.Min.X - tickLength - 3, Y: y}, t.label)
		}
	}
	for _, t := range l.xTicks {
		x := l.at(p.c, XY{t.value, p.c.y.min}).X
		if p.c.x.names == nil {
			p.stroke(faint, 0.6, nil, vg.Point{X: x, Y: box.Min.Y}, vg.Point{X: x, Y: box.Max.Y})
			p.stroke(ink, 0.7, nil, vg.Point{X: x, Y: box.Min.Y - tickLength}, vg.Point{X: x, Y: box.Min.Y})
		}
		style := textStyle(tickSize)
		if l.tilted {
			style.XAlign, style.Rotation = draw.XRight, slant
			p.FillText(style, vg.Point{X: x + 3, Y: box.Min.Y - tickLength - 3}, t.label)
			continue
		}
		style.XAlign = draw.XCenter
		p.write(style, vg.Point{X: x, Y: box.Min.Y - tickLength - lineHeight(tickSize)/2 - 1}, t.label)
	}
	p.stroke(ink, 0.8, nil, vg.Point{X: box.Min.X, Y: box.Max.Y}, box.Min, vg.Point{X: box.Max.X, Y: box.Min.Y})
}

// text writes the title, the axes' titles and the caption.
func (p *painter) text() {
	l := p.l
	p.lines(l.title, titleSize, textStyle(titleSize), margin, l.size.Y-margin/2)
	axis := textStyle(axisSize)
	axis.XAlign = draw.XCenter
	middle := l.plot.Min.Add(l.plot.Max).Scale(0.5)
	below := margin + block(l.caption, captionSize) + l.legend + lineHeight(axisSize)/2
	p.write(axis, vg.Point{X: middle.X, Y: below}, p.c.x.title)
	axis.Rotation = math.Pi / 2
	p.FillText(axis, vg.Point{X: margin + lineHeight(axisSize)/2, Y: middle.Y}, p.c.y.title)
	p.lines(l.caption, captionSize, textStyle(captionSize), margin, margin+block(l.caption, captionSize)-2*gap)
}
