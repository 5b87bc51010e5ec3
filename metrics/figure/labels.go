package figure

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/vg"
)

// placeBeside stacks the labels right of the plot, each as near to the height
// of its line's end as the others allow: labels that would overlap are merged
// into a stack whose labels are, on average, where they want to be.
func (l *layout) placeBeside(c *chart) {
	slices.SortStableFunc(l.labels, func(a, b placed) int {
		return cmp.Compare(l.at(c, a.mark.Points[0]).Y, l.at(c, b.mark.Points[0]).Y)
	})
	type stack struct {
		first, n       int
		bottom, height vg.Length
		want           vg.Length // sum over labels of the bottom that would suit each
	}
	settle := func(s *stack) {
		s.bottom = min(max(s.want/vg.Length(s.n), l.plot.Min.Y), l.plot.Max.Y-s.height)
	}
	var stacks []stack
	for i, p := range l.labels {
		h := p.box.Max.Y
		s := stack{first: i, n: 1, height: h, want: l.at(c, p.mark.Points[0]).Y - h/2}
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
			b := &l.labels[i].box
			*b = b.Add(vg.Point{X: l.plot.Max.X + labelIndent, Y: y})
			y = b.Max.Y
		}
	}
}

// placeInside puts each label beside its line's end, where it covers no other
// label and as little as possible of the lines.
func (l *layout) placeInside(c *chart) {
	const step = 4 // along a line, in points: less than a letter
	var covered []vg.Point
	for _, m := range c.marks {
		if m.Kind == Label {
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
	const away = radius + 3
	var taken []vg.Rectangle
	for i := range l.labels {
		p := &l.labels[i]
		end := l.at(c, p.mark.Points[0])
		w, h := p.box.Max.X, p.box.Max.Y
		best, least := p.box, -1
		// Nearest first: right, above, below, left, then ever further up and
		// down.
		for ring := range 12 {
			r := vg.Length(ring)
			for _, at := range []vg.Point{
				{X: end.X + away, Y: end.Y - h/2 + r*h}, {X: end.X + away, Y: end.Y - h/2 - r*h},
				{X: end.X - w/2, Y: end.Y + away + r*h}, {X: end.X - w/2, Y: end.Y - away - h - r*h},
				{X: end.X - away - w, Y: end.Y - h/2 + r*h}, {X: end.X - away - w, Y: end.Y - h/2 - r*h},
				{X: end.X - w, Y: end.Y + away + r*h}, {X: end.X - w, Y: end.Y - away - h - r*h},
			} {
				box := p.box.Add(at)
				if box.Min.X < l.plot.Min.X || box.Max.X > l.size.X-margin/2 || box.Min.Y < l.plot.Min.Y || box.Max.Y > l.plot.Max.Y {
					continue
				}
				cost := 3 * ring
				for _, t := range taken {
					if overlaps(box, t) {
						cost += 1000
					}
				}
				for _, pt := range covered {
					if pt.X > box.Min.X-1 && pt.X < box.Max.X+1 && pt.Y > box.Min.Y && pt.Y < box.Max.Y {
						cost += 2
					}
				}
				if least < 0 || cost < least {
					best, least = box, cost
				}
			}
		}
		p.box = best
		taken = append(taken, best)
	}
}

func overlaps(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
