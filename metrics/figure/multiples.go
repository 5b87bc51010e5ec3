package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// panelWidth is the minimum width of a panel in inches.
const panelWidth = 3.3

// fewPanels is the largest number of panels that are as high as a single plot.
const fewPanels = 4

// frame holds the parts around several panels: the title, shared labels, the caption.
type frame struct {
	title, caption []string
	labels         []placed
}

// drawBy draws a figure of curves as small multiples: a panel for each value of the
// parameter Options.By, with common axes for comparison. With a single value, or without
// the parameter, it draws one plot.
func drawBy(kind string, draw build, d Data, o Options) (*Drawing, error) {
	if o.By == "" {
		return drawOne(kind, draw, d, o)
	}
	groups := groupsBy(o.By, d.Curves)
	if len(groups) < 2 {
		return drawOne(kind, draw, d, o)
	}
	return drawGroups(kind, draw, groups, d, o)
}

// panelTitle returns the title of the panel for a value.
func panelTitle(key, value string) string {
	switch key {
	case "framework":
		return shown(value)
	case scaling.Workers:
		if n, err := strconv.Atoi(value); err == nil {
			return workers(n)
		}
	}
	return shown(last(key)) + " " + shown(value)
}

// shortenLabels removes from the labels what the panel's title says.
func (c *chart) shortenLabels() {
	marks := c.marks[:0:0]
	for _, m := range c.marks {
		if m.Kind == Label && m.style >= 0 {
			m.Text = strings.TrimLeft(strings.TrimPrefix(m.Text, c.title), " ,")
			if m.Text == "" {
				continue
			}
		}
		marks = append(marks, m)
	}
	c.marks = marks
}

// multiples lays out panels in rows, with common axes.
func (f *Drawing) multiples(charts []chart, o Options) error {
	if !charts[0].own {
		shareAxes(charts)
	}
	labels := shareLabels(charts)
	width := cmp.Or(o.Width, defaultWidth)
	columns := max(1, min(len(charts), int(width/panelWidth)))
	if !(width > 0 && width <= maxSize) || !(o.Height >= 0 && o.Height <= maxSize) {
		_, err := layoutOf(&charts[0], o) // returns the error for impossible sizes
		return err
	}
	rows := (len(charts) + columns - 1) / columns
	f.caption = sentences(charts)
	inner := vg.Length(width)*vg.Inch - 2*margin
	f.frame.title = wrap(shown(o.Title), textStyle(titleSize), inner)
	if !o.NoCaption {
		f.frame.caption = captionLines(f.caption, inner)
	}
	above, below := block(f.frame.title, titleSize), block(f.frame.caption, captionSize)
	if labels != nil {
		rows := layout{size: vg.Point{X: vg.Length(width) * vg.Inch}}
		for _, m := range labels {
			rows.addLabel(m, inner-keyIndent)
		}
		rows.flow()
		rows.placeFrom(below + rows.legend)
		f.frame.labels = rows.labels
		below += rows.legend
	}

	each := Options{Width: width / float64(columns)}
	if o.Height > 0 {
		each.Height = float64((vg.Length(o.Height)*vg.Inch - above - below) / vg.Inch / vg.Length(rows))
		if each.Height <= 0 {
			return fmt.Errorf("%.3g inches high leaves no room for %d panels; make it %d or more, or 0 for automatic", o.Height, len(charts), 3*rows)
		}
	}
	list, high, err := level(charts, each)
	if err != nil {
		return err
	}
	f.size = vg.Point{X: vg.Length(width) * vg.Inch, Y: above + below + high*vg.Length(rows) + margin/2}
	for i := range list {
		list[i].at = vg.Point{
			X: f.size.X / vg.Length(columns) * vg.Length(i%columns),
			Y: f.size.Y - margin/2 - above - high*vg.Length(i/columns+1),
		}
	}
	f.panels = list
	if o.Height == 0 && tooLarge(f.size) {
		return fmt.Errorf("%d panels are %.0f inches high; draw fewer series", len(charts), f.size.Y/vg.Inch)
	}
	return nil
}

// level lays out panels at the height of the highest, and returns that height.
func level(charts []chart, each Options) ([]panel, vg.Length, error) {
	list := make([]panel, len(charts))
	var legend vg.Length // height of the largest legend
	layAll := func() error {
		for i, c := range charts {
			c.caption, c.panel, c.low, c.legend = nil, true, c.low || len(charts) > fewPanels, legend
			l, err := layoutOf(&c, each)
			if err != nil {
				return fmt.Errorf("panel %q: %w", c.title, err)
			}
			list[i] = panel{chart: c, layout: l}
		}
		return nil
	}
	if err := layAll(); err != nil {
		return nil, 0, err
	}
	for _, p := range list {
		legend = max(legend, p.layout.legend)
	}
	if err := layAll(); err != nil {
		return nil, 0, err
	}
	if each.Height == 0 {
		for _, p := range list {
			each.Height = max(each.Height, float64(p.layout.size.Y/vg.Inch))
		}
		if err := layAll(); err != nil {
			return nil, 0, err
		}
	}
	return list, vg.Length(math.Ceil(each.Height*72)) * vg.Inch / 72, nil
}

// ownScale is the ratio of the panels' largest values from which each panel has its own linear scale: on a common
// one, the smallest values could not be read.
const ownScale = 10

// shareAxes gives all panels the same axes, except for categories and values of different sizes.
func shareAxes(charts []chart) {
	for _, of := range []func(*chart) *axis{func(c *chart) *axis { return &c.x }, func(c *chart) *axis { return &c.y }} {
		shared := *of(&charts[0])
		least := math.Inf(1)
		for i := range charts {
			shared.join(*of(&charts[i]))
			least = min(least, of(&charts[i]).max)
		}
		if !shared.log && shared.names == nil && least > 0 && shared.max > ownScale*least {
			for i := range charts {
				charts[i].caption = append(charts[i].caption, "The panels have different scales.")
			}
			continue
		}
		for i := range charts {
			a := of(&charts[i])
			if a.names == nil {
				*a = shared
				a.at = slices.Clone(shared.at)
			}
		}
	}
}

// shareLabels moves labels that all panels use below the whole figure. Equal labels get the same
// colour and marker in every panel. It returns nil if a panel has something without a label.
func shareLabels(charts []chart) []Mark {
	var s sharedLabels
	for i := range charts {
		if !s.collect(&charts[i]) {
			return nil
		}
	}
	if s.named > 0 && s.named == s.all {
		return nil // each panel keeps its own axis
	}
	for i := range charts {
		if s.named > 0 && s.unnamed(i, charts[i]) {
			return nil
		}
	}
	for i := range charts {
		s.take(i, &charts[i])
	}
	return s.list
}

// sharedLabels collects the labels of several panels.
type sharedLabels struct {
	list       []Mark
	looks      map[string]int // style by text
	taken      map[int]bool   // styles in use
	own        []map[int]string
	named, all int // labels of series: distinct ones, and the total over panels
}

// collect adds a panel's labels. It returns false if a look has two labels.
func (s *sharedLabels) collect(c *chart) bool {
	if s.looks == nil {
		s.looks, s.taken = map[string]int{}, map[int]bool{}
	}
	own := map[int]string{} // text by style
	s.own = append(s.own, own)
	for _, m := range c.marks {
		if m.Kind != Label {
			continue
		}
		if text, ok := own[m.style]; ok && text != m.Text {
			return false
		}
		own[m.style] = m.Text
		if m.style >= 0 {
			s.all++
		}
		s.add(m)
	}
	return true
}

// add assigns an unused look to a new label.
func (s *sharedLabels) add(m Mark) {
	if _, ok := s.looks[m.Text]; ok {
		return
	}
	for s.taken[m.style] && m.style >= 0 {
		m.style++
	}
	s.looks[m.Text], s.taken[m.style] = m.style, true
	s.list = append(s.list, m)
	if m.style >= 0 {
		s.named++
	}
}

// unnamed reports whether the panel has something without a label.
func (s *sharedLabels) unnamed(panel int, c chart) bool {
	return slices.ContainsFunc(c.marks, func(m Mark) bool {
		_, ok := s.own[panel][m.style]
		return m.style >= 0 && !ok
	})
}

// take removes the panel's labels, and gives its marks the looks (colour, marker and dashes) of the
// shared labels.
func (s *sharedLabels) take(panel int, c *chart) {
	marks := c.marks[:0:0]
	for _, m := range c.marks {
		if m.Kind == Label {
			continue
		}
		if s.named > 0 && m.style >= 0 {
			m.style = s.looks[s.own[panel][m.style]]
		}
		marks = append(marks, m)
	}
	c.marks = marks
}

// sentences merges the panels' captions: first what all have in common, then the rest with
// the panel's title.
func sentences(charts []chart) []string {
	var list []string
	for i, c := range charts {
		for _, s := range c.caption {
			everywhere := !slices.ContainsFunc(charts, func(other chart) bool { return !slices.Contains(other.caption, s) })
			switch {
			case !everywhere:
				list = append(list, c.title+": "+s)
			case i == 0:
				list = append(list, s)
			}
		}
	}
	return list
}

// join extends the axis to include the other's range. A log and a linear axis become a log
// axis, unless the data has values that a log axis cannot show.
func (a *axis) join(b axis) {
	low := min(a.low, b.low)
	switch {
	case a.log == b.log:
		a.min = min(a.min, b.min)
	case low > 0:
		a.log, a.zero, a.min = true, false, low*0.9
	default:
		a.log, a.min = false, low
	}
	a.low, a.max = low, max(a.max, b.max)
	if b.unit > a.unit {
		a.unit, a.title = b.unit, b.title
	}
	if b.at == nil {
		a.at = nil
	}
	if a.at != nil {
		for _, n := range b.at {
			a.at = insert(a.at, n)
		}
	}
}
