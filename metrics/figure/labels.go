package figure

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// placeBeside stacks the labels right of the plot, each as near to its line's end as
// possible. Labels that would overlap are merged into a stack whose mean distance from the
// line ends is zero. Labels without a leader line are at the bottom, the first on top.
func (l *layout) placeBeside(c *chart) {
	var column []*placed
	for i := range l.labels {
		if p := &l.labels[i]; !p.inside {
			column = append(column, p)
		}
	}
	want := func(p *placed) vg.Length {
		if !p.led {
			return l.plot.Min.Y
		}
		return l.at(c, p.mark.Points[0]).Y
	}
	slices.Reverse(column)
	slices.SortStableFunc(column, func(a, b *placed) int { return cmp.Compare(want(a), want(b)) })
	type stack struct {
		first, n       int
		bottom, height vg.Length
		want           vg.Length // sum of the preferred bottoms of the labels
	}
	settle := func(s *stack) {
		s.bottom = min(max(s.want/vg.Length(s.n), l.plot.Min.Y), l.plot.Max.Y-s.height)
	}
	var stacks []stack
	for i, p := range column {
		h := p.box.Max.Y
		s := stack{first: i, n: 1, height: h, want: want(p) - h/2}
		settle(&s)
		for len(stacks) > 0 {
			below := stacks[len(stacks)-1]
			if below.bottom+below.height <= s.bottom {
				break
			}
			s = stack{first: below.first, n: below.n + s.n, height: below.height + s.height,
				want: below.want + s.want - below.height*vg.Length(s.n)}
			settle(&s)
			stacks = stacks[:len(stacks)-1]
		}
		stacks = append(stacks, s)
	}
	for _, s := range stacks {
		y := s.bottom
		for i := s.first; i < s.first+s.n; i++ {
			b := &column[i].box
			*b = b.Add(vg.Point{X: l.plot.Max.X + labelIndent, Y: y})
			y = b.Max.Y
		}
	}
}

// flow sets the labels in rows from the top left, like words. Their positions are relative
// to the top of the rows.
func (l *layout) flow() {
	right := l.size.X - margin
	x, y, row := margin, vg.Length(0), vg.Length(0)
	for i := range l.labels {
		p := &l.labels[i]
		w, h := p.box.Max.X, p.box.Max.Y
		if x+keyIndent+w > right && x > margin {
			x, y, row = margin, y+row, 0
		}
		row = max(row, h)
		p.box = p.box.Add(vg.Point{X: x + keyIndent, Y: -y - h})
		x += keyIndent + w + 2*gap
	}
	if len(l.labels) > 0 {
		l.legend = y + row + gap
	}
}

// addLabel adds a label wrapped to at most the given width.
func (l *layout) addLabel(m Mark, widest vg.Length) *placed {
	style := textStyle(labelSize)
	p := placed{mark: m, lines: wrap(m.Text, style, widest)}
	for _, s := range p.lines {
		p.box.Max.X = max(p.box.Max.X, style.Width(s))
	}
	p.box.Max.Y = lineHeight(labelSize) * vg.Length(len(p.lines))
	l.labels = append(l.labels, p)
	return &l.labels[len(l.labels)-1]
}

// placeBelow puts the rows of labels between the axis and the caption.
func (l *layout) placeBelow() { l.placeFrom(margin + block(l.caption, captionSize) + l.legend - gap) }

// placeFrom puts the rows of labels below a height.
func (l *layout) placeFrom(top vg.Length) {
	for i := range l.labels {
		p := &l.labels[i]
		p.box = p.box.Add(vg.Point{Y: top})
	}
}

// placeInside puts the labels of lines next to the lines' ends in the plot. It reports
// whether every label found a position where it covers no other label and little of
// the lines.
func (l *layout) placeInside(c *chart) bool {
	const tolerable = 5 // covered steps, counted twice
	covered := l.covered(c)
	const away = radius + 3
	var taken []vg.Rectangle
	for _, t := range l.tags {
		taken = append(taken, t.box)
	}
	for i := range l.labels {
		p := &l.labels[i]
		if !p.inside {
			continue
		}
		end := l.at(c, p.mark.Points[0])
		w, h := p.box.Max.X, p.box.Max.Y
		best, least := p.box, tolerable+1
		for rank, at := range []vg.Point{ // best first
			{X: end.X + away, Y: end.Y - h/2},
			{X: end.X + away, Y: end.Y},
			{X: end.X + away, Y: end.Y - h},
			{X: end.X - w/2, Y: end.Y + away},
			{X: end.X - w/2, Y: end.Y - away - h},
			{X: end.X - w, Y: end.Y + away},
			{X: end.X - w, Y: end.Y - away - h},
		} {
			box := p.box.Add(at)
			if !l.free(box, taken) {
				continue
			}
			if cost := rank/3 + 2*within(box, covered); cost < least {
				best, least = box, cost
			}
		}
		if least > tolerable {
			return false
		}
		p.box = best
		taken = append(taken, best)
	}
	return true
}

// placeTags puts each tag next to its point, where it covers the least. A spare tag that would cover
// a mark is left out.
func (l *layout) placeTags(c *chart) {
	const crowded = 1000 // worse than any number of covered points
	covered := l.covered(c)
	style := textStyle(captionSize)
	var taken []vg.Rectangle
	for _, must := range []bool{true, false} {
		for _, m := range c.marks {
			if m.Kind != Tag || m.spare == must {
				continue
			}
			at, w, h := l.at(c, m.Points[0]), style.Width(m.Text), lineHeight(captionSize)
			var best vg.Rectangle
			least := math.MaxInt
			for _, corner := range []vg.Point{ // best first
				{X: radius + 1, Y: -h / 2}, {X: 1, Y: radius}, {X: 1, Y: -radius - h},
				{X: -w / 2, Y: radius + 1}, {X: -w / 2, Y: -radius - 1 - h}, {X: -1 - w, Y: radius}, {X: -radius - 1 - w, Y: -h / 2},
			} {
				box := vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Add(at).Add(corner)
				covers := within(box, covered)
				if !l.free(box, taken) {
					covers = crowded
				}
				if covers < least {
					best, least = box, covers
				}
			}
			if m.spare && least > 0 {
				continue
			}
			l.tags, taken = append(l.tags, placed{mark: m, lines: []string{m.Text}, box: best}), append(taken, best)
		}
	}
}

// covered returns points on all lines and marks.
func (l *layout) covered(c *chart) []vg.Point {
	const step = 4 // along a line, in points; less than a letter
	var covered []vg.Point
	for _, m := range c.marks {
		if m.Kind == Label || m.Kind == Tag {
			continue
		}
		for i, p := range m.Points {
			to := l.at(c, p)
			covered = append(covered, to)
			if i == 0 {
				continue
			}
			from := l.at(c, m.Points[i-1])
			dx, dy := to.X-from.X, to.Y-from.Y
			n := int(max(dx, -dx, dy, -dy) / step)
			for k := 1; k < n; k++ {
				f := vg.Length(k) / vg.Length(n)
				covered = append(covered, vg.Point{X: from.X + f*dx, Y: from.Y + f*dy})
			}
		}
	}
	return covered
}

// free reports whether a box is inside the plot and overlaps none of taken.
func (l *layout) free(box vg.Rectangle, taken []vg.Rectangle) bool {
	return box.Min.X >= l.plot.Min.X && box.Max.X <= l.plot.Max.X && box.Min.Y >= l.plot.Min.Y && box.Max.Y <= l.plot.Max.Y &&
		!slices.ContainsFunc(taken, func(t vg.Rectangle) bool { return overlaps(box, t) })
}

// within counts the points in a box.
func within(box vg.Rectangle, points []vg.Point) int {
	n := 0
	for _, pt := range points {
		if pt.X > box.Min.X-1 && pt.X < box.Max.X+1 && pt.Y > box.Min.Y+1 && pt.Y < box.Max.Y-1 {
			n++
		}
	}
	return n
}

func overlaps(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
