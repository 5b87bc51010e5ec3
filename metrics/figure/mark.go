package figure

import (
	"cmp"
	"fmt"
	"strings"

	"gonum.org/v1/plot/vg"
)

// A MarkKind tells what a mark shows.
type MarkKind string

const (
	Ideal  MarkKind = "ideal"  // dashed line: linear scaling from the base
	Target MarkKind = "target" // dashed line: an accuracy to reach
	Line   MarkKind = "line"   // along N, through the medians
	Trace  MarkKind = "trace"  // one run's accuracy over time
	Dot    MarkKind = "dot"    // one run
	Bar    MarkKind = "bar"    // interval: the low end, the high end
	Median MarkKind = "median" // of the runs of a point
	End    MarkKind = "end"    // the last evaluation of a run that reached its targets
	Missed MarkKind = "missed" // a run that did not; Y is +Inf where there is no value
	Block  MarkKind = "block"  // filled rectangle: two opposite corners
	Front  MarkKind = "front"  // line along which neither time nor cost can be had for less
	Band   MarkKind = "band"   // filled: an interval along N, its upper ends and then its lower ones, back
	Bend   MarkKind = "bend"   // ring: the knee of a throughput; where a smaller one may be it, that first
	Label  MarkKind = "label"  // text beside a line's end
)

// XY is a place in data coordinates: workers, seconds since training began,
// samples, a rank or the number of a category, against samples/s, a ratio, an
// accuracy, seconds or money.
type XY struct{ X, Y float64 }

// Mark is one thing that is drawn.
type Mark struct {
	Kind   MarkKind
	Series string // "" for what belongs to none
	Points []XY
	Text   string // of a label

	style  int     // index of colour and shape; -1: grey
	alone  bool    // a dot that is its point's only run
	strong float64 // of a block, and of its label: how much of the colour is left, a share; 0: all
}

func (m Mark) strength() float64 { return cmp.Or(m.strong, 1) }

// String writes the mark on one line, for golden files.
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

// chart is a figure before it has a size.
type chart struct {
	title   string
	x, y    axis
	marks   []Mark
	caption []string // sentences
	// scattered lines end all over the plot, not at its right edge. Their
	// labels stand at their ends if there is room, else beside the plot.
	scattered bool
	// A panel among others has its labels below the plot, where there is as
	// much room for them as its neighbours need, so that the plots line up.
	panel  bool
	legend vg.Length
	own    bool // its axes are not shared with the other panels
	low    bool // one of many panels, or of few that say little each
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

// fit sets the axes' ranges around everything that is drawn.
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
