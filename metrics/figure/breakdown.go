package figure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// parts lists the parts of a step and their colours, from bottom to top of a column.
var parts = []struct {
	name    string
	measure string
	style   int
	strong  float64
}{
	{"compute", measure.Compute, 0, 0.85},
	{"communication", measure.Communication, 1, 0.85},
	{"data wait", measure.DataWait, 4, 0.85},
}

// breakdown shows the shares of the mean rank's step time at each worker count, one panel
// per series. Parts are stacked if they add up to at most the whole; parts that overlap in
// time are drawn side by side, each from 0.
func breakdown(d Data, _ Options) ([]chart, error) {
	byRun := scaling.ByRun(d.Observations)
	var charts []chart
	var empty []string
	for _, cv := range d.Curves {
		c, ok := stack(cv, byRun)
		if !ok {
			empty = append(empty, shown(cv.Series))
			continue
		}
		charts = append(charts, c)
	}
	if charts == nil {
		return nil, errors.New("nothing to draw: no run with a steady state measured data wait, compute or communication")
	}
	if empty != nil {
		c := &charts[0]
		c.caption = append(c.caption, "Nothing was measured for "+strings.Join(empty, ", ")+".")
	}
	return charts, nil
}

// overlapping reports whether the parts of a run's step add up to more than the step.
func overlapping(o *scaling.Observation) bool {
	sum := 0.0
	for _, part := range parts {
		if share := o.Known(part.measure); share != nil && *share >= 0 {
			sum += *share
		}
	}
	return sum > 1.005
}

// columns builds a chart of stacked columns.
type columns struct {
	chart
	overlap bool             // parts are side by side
	names   []string         // of the columns
	missing map[string][]int // worker counts without each part
	nothing []int            // worker counts without any part
	labels  []Mark
}

func stack(cv scaling.Curve, byRun map[string]*scaling.Observation) (chart, bool) {
	c := columns{chart: chart{title: shown(cv.Series), y: newAxis("share of the step time (%)")}, missing: map[string][]int{}}
	c.y.unit, c.y.zero = 0.01, true
	c.overlap = slices.ContainsFunc(cv.Points, func(p scaling.Point) bool {
		run := p.MedianRun()
		return run != nil && overlapping(byRun[run.ID])
	})
	for i := range cv.Points {
		if run := cv.Points[i].MedianRun(); run != nil {
			c.column(cv.Points[i].Workers, byRun[run.ID])
		}
	}
	if len(c.marks) == 0 {
		return c.chart, false
	}
	c.x = namesAxis("workers", c.names)
	c.marks = append(c.marks, c.labels...)
	c.caption = []string{"Columns: where the mean rank's steady step time goes, in the run with the median throughput of each point."}
	for _, part := range parts {
		if at := c.missing[part.name]; len(at) > 0 {
			text := fmt.Sprintf("%s was not measured at %s; it is part of other there.", upper(part.name), counts("worker", at))
			if c.overlap {
				text = fmt.Sprintf("%s was not measured at %s.", upper(part.name), counts("worker", at))
			}
			c.caption = append(c.caption, text)
		}
	}
	if c.nothing != nil {
		c.caption = append(c.caption, fmt.Sprintf("No part was measured at %s.", counts("worker", c.nothing)))
	}
	if c.overlap {
		c.caption = append(c.caption, "Side by side: parts that overlap in time and would add up to more than 100 %.")
	}
	err := c.fit()
	c.y.max = 1.02
	return c.chart, err == nil
}

// column draws the parts of a run's step and the remainder.
func (c *columns) column(workers int, o *scaling.Observation) {
	x, foot := float64(len(c.names)), 0.0
	c.names = append(c.names, number.Short(float64(workers), 15))
	var marks []Mark
	block := func(name string, left, right, share float64, style int, strong float64) {
		marks = append(marks,
			Mark{Kind: Block, Series: name, Points: []XY{{left, foot}, {right, foot + share}}, style: style, strong: strong},
			Mark{Kind: Label, Series: name, Text: name, Points: []XY{{x + 0.36, foot + share/2}}, style: style, strong: strong})
		if !c.overlap {
			foot += share
		}
	}
	var missing []string
	for i, part := range parts {
		left, right := x-0.36, x+0.36
		if c.overlap {
			width := 0.72 / float64(len(parts))
			left += float64(i) * width
			right = left + width
		}
		if share := o.Known(part.measure); share != nil && *share >= 0 {
			block(part.name, left, right, *share, part.style, part.strong)
		} else {
			missing = append(missing, part.name)
		}
	}
	if marks == nil {
		c.nothing = append(c.nothing, workers)
		return
	}
	for _, name := range missing {
		c.missing[name] = append(c.missing[name], workers)
	}
	if foot < 1 && !c.overlap {
		block("other", x-0.36, x+0.36, 1-foot, -1, 0.4)
	}
	for _, m := range marks {
		if m.Kind == Label {
			c.label(m)
		} else {
			c.add(m)
		}
	}
}

// label keeps the labels of the last column, and those of parts that only earlier columns have.
func (c *columns) label(m Mark) {
	c.labels = append(slices.DeleteFunc(c.labels, func(l Mark) bool { return l.Text == m.Text }), m)
}
