package figure

import (
	"cmp"
	"fmt"
	"strings"

	"gonum.org/v1/plot/vg"
)

// A MarkKind says what a mark shows.
type MarkKind string

const (
	Ideal  MarkKind = "ideal"  // dashed line: linear scaling from the base
	Target MarkKind = "target" // dashed line: a target
	Line   MarkKind = "line"   // along the axis, through the medians
	Trace  MarkKind = "trace"  // accuracy of one run over time
	Dot    MarkKind = "dot"    // one run
	Bar    MarkKind = "bar"    // interval: low end, high end
	Median MarkKind = "median" // median of the runs of a point
	End    MarkKind = "end"    // last evaluation of a run that reached its targets
	Missed MarkKind = "missed" // a run that missed its target; Y is +Inf without a value
	Block  MarkKind = "block"  // filled rectangle: two opposite corners
	Front  MarkKind = "front"  // Pareto front: neither time nor cost can be reduced without increasing the other
	Band   MarkKind = "band"   // filled interval along N: upper ends, then lower ends backwards
	Bend   MarkKind = "bend"   // ring: saturation point; if a smaller one is possible, it comes first
	Label  MarkKind = "label"  // text at a line's end
	Tag    MarkKind = "tag"    // position of a median on the curve's axis, next to the median
)

// XY is a point in data coordinates. X is workers, seconds since training began, samples, a
// rank or the index of a category. Y is samples/s, a ratio, an accuracy, seconds or money.
type XY struct{ X, Y float64 }

// A Mark is a drawn element.
type Mark struct {
	Kind   MarkKind
	Series string // "" if it belongs to none
	Points []XY
	Text   string // of a label

	style  int     // index of colour and shape; -1: grey
	alone  bool    // a dot for its point's only run
	spare  bool    // a tag that is left out where it would cover something
	strong float64 // of a block and its label: fraction of the colour that remains; 0: all
}

func (m Mark) strength() float64 { return cmp.Or(m.strong, 1) }

// String formats the mark on one line, for golden files.
func (m Mark) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s", m.Kind)
	if m.Series != "" {
		fmt.Fprintf(&b, " %q", m.Series)
	}
	for _, p := range m.Points {
		fmt.Fprintf(&b, " (%.6g, %.6g)", p.X, p.Y)
	}
	if m.Text != "" {
		fmt.Fprintf(&b, " text %q", m.Text)
	}
	return b.String()
}

// chart is the content of a plot, before it has a size.
type chart struct {
	title   string
	x, y    axis
	marks   []Mark
	caption []string // sentences
	runs    int      // runs of the largest series of which only some were added; 0: all were
	crossed []look   // by style, if lines differ in two keys; nil: each style has its own
	// scattered lines end anywhere in the plot, not at its right edge. Their labels are at
	// the ends if there is room, else right of the plot.
	scattered bool
	// A panel among others has its labels below the plot. All reserve the room that the
	// largest needs, so that the plots line up.
	panel  bool
	legend vg.Length
	own    bool // the panel's axes are not shared with others
	low    bool // a low plot: one of many panels, or of a few simple ones
}

func (c *chart) add(m Mark) { c.marks = append(c.marks, m) }

// styles returns the number of different styles of the marks.
func (c *chart) styles() int {
	n := 0
	for _, m := range c.marks {
		n = max(n, m.style+1)
	}
	return n
}

// fit sets the ranges of the axes to include everything drawn.
func (c *chart) fit() error {
	for _, m := range c.marks {
		for _, p := range m.Points {
			c.x.include(p.X)
			c.y.include(p.Y)
		}
	}
	for _, a := range []*axis{&c.x, &c.y} {
		if err := a.pad(); err != nil {
			return err
		}
	}
	return nil
}
