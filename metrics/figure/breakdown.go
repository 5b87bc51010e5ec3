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

// parts of a step, from the foot of a column to its top, and their colours.
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

// breakdown shows, for each worker count, the shares of the mean rank's step time: a
// panel for each series. They are stacked where they add up to no more than all of
// it; parts that overlap in time are drawn side by side, each from 0.
func breakdown(d Data, _ Options) ([]chart, error) {
	byRun := make(map[string]scaling.Observation, len(d.Observations))
	for _, o := range d.Observations {
		byRun[o.Run] = o
	}
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

// overlapping reports whether the parts of a run's step add up to more than it.
func overlapping(o scaling.Observation) bool {
	sum := 0.0
	for _, part := range parts {
		if share := o.Known(part.measure); share != nil && *share >= 0 {
			sum += *share
		}
	}
	return sum > 1.005
}

func stack(cv scaling.Curve, byRun map[string]scaling.Observation) (chart, bool) {
	c := chart{title: shown(cv.Series), y: newAxis("share of the step time (%)")}
	c.y.unit, c.y.zero = 0.01, true
	var names []string
	missing := map[string][]int{} // worker counts by the part that was not measured
	var nothing []int
	overlap := slices.ContainsFunc(cv.Points, func(p scaling.Point) bool {
		run := p.MedianRun()
		return run != nil && overlapping(byRun[run.ID])
	})
	var labels []Mark
	for i := range cv.Points {
		p := &cv.Points[i]
		run := p.MedianRun()
		if run == nil {
			continue
		}
		o := byRun[run.ID]
		x, foot := float64(len(names)), 0.0
		names = append(names, number.Short(float64(p.Workers), 15))
		var column []Mark
		left, right := x-0.36, x+0.36
		block := func(name string, share float64, style int, strong float64) {
			column = append(column,
				Mark{Kind: Block, Series: name, Points: []XY{{left, foot}, {right, foot + share}}, style: style, strong: strong},
				Mark{Kind: Label, Series: name, Text: name, Points: []XY{{x + 0.36, foot + share/2}}, style: style, strong: strong})
			if !overlap {
				foot += share
			}
		}
		for i, part := range parts {
			if overlap {
				width := 0.72 / float64(len(parts))
				left = x - 0.36 + float64(i)*width
				right = left + width
			}
			share := o.Known(part.measure)
			if share == nil || !(*share >= 0) {
				missing[part.name] = append(missing[part.name], p.Workers)
				continue
			}
			block(part.name, *share, part.style, part.strong)
		}
		if column == nil {
			nothing = append(nothing, p.Workers)
			for _, part := range parts {
				missing[part.name] = missing[part.name][:len(missing[part.name])-1]
			}
			continue
		}
		if foot < 1 && !overlap {
			block("other", 1-foot, -1, 0.4)
		}
		// The labels are the last column's, and those of parts that only an
		// earlier one has.
		for _, m := range column {
			if m.Kind != Label {
				c.add(m)
				continue
			}
			for k := range labels {
				if labels[k].Text == m.Text {
					labels = append(labels[:k], labels[k+1:]...)
					break
				}
			}
			labels = append(labels, m)
		}
	}
	if len(c.marks) == 0 {
		return c, false
	}
	c.x = namesAxis("workers", names)
	c.marks = append(c.marks, labels...)
	c.caption = []string{"Columns: where the mean rank's steady step time goes, in the run with the median throughput of each point."}
	for _, part := range parts {
		if at := missing[part.name]; len(at) > 0 {
			text := fmt.Sprintf("%s was not measured at %s; it is part of other there.", upper(part.name), counts("worker", at))
			if overlap {
				text = fmt.Sprintf("%s was not measured at %s.", upper(part.name), counts("worker", at))
			}
			c.caption = append(c.caption, text)
		}
	}
	if nothing != nil {
		c.caption = append(c.caption, fmt.Sprintf("No part was measured at %s.", counts("worker", nothing)))
	}
	if overlap {
		c.caption = append(c.caption, "Side by side: parts that overlap in time and would add up to more than 100 %.")
	}
	err := c.fit()
	c.y.max = 1.02
	return c, err == nil
}
