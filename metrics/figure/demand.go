package figure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling/capacity"
)

// demand draws the cost of a million requests over the demand: a line for each series, and marks
// where one series becomes as cheap as another.
func demand(d Data) (chart, error) {
	lines := d.Demand
	var without []string
	var drawn []capacity.Line
	for _, l := range lines {
		if l.Why != "" {
			without = append(without, shown(l.Series)+" ("+shown(l.Why)+")")
			continue
		}
		drawn = append(drawn, l)
	}
	if drawn == nil {
		why := "no run found a largest rate within a limit; set workload.limit in the study"
		if len(lines) > 0 {
			why = lines[0].Why
		}
		return chart{}, errors.New("nothing to draw: " + why)
	}
	least := drawn[0].Sure[0].Upto
	for _, l := range drawn {
		least = min(least, l.Sure[0].Upto)
	}
	load := capacity.Load{Samples: drawn[0].Samples}
	c := chart{x: logAxis("demand (requests/s)"), y: logAxis(fmt.Sprintf("cost of a million requests (%s)", shown(d.Currency))), scattered: true}
	for style, l := range drawn {
		name := shown(l.Series)
		c.add(Mark{Kind: Trace, Series: name, Points: stairs(l.Hoped, least/4, l.End()), style: style})
		line := stairs(l.Sure, least/4, l.End())
		c.add(Mark{Kind: Line, Series: name, Points: line, style: style})
		top := l.Sure[l.Measured-1]
		c.add(Mark{Kind: Median, Series: name, Points: []XY{{top.Upto, dear(top, top.Upto)}}, style: style})
		if len(drawn) > 1 {
			c.add(Mark{Kind: Label, Series: name, Points: line[len(line)-1:], Text: name, style: style})
		}
	}
	c.caption = []string{
		"Lines: as many replicas as carry the demand within " + limitsOf(drawn) + " by the lower ends of the measured rates, as in `advise --rate`; thin: by the upper ends.",
		"Markers: the largest measured number; beyond it, the rate is extrapolated as a power of the replicas, up to four times that number.",
	}
	for _, b := range capacity.BreakEvens(drawn) {
		c.caption = append(c.caption, shown(b.Sentence()))
		if b.Never || b.At == 0 {
			continue
		}
		c.marks = append([]Mark{{Kind: Target, Points: []XY{{b.At, b.Million}, {b.At, b.Million * 1.01}}, style: -1}}, c.marks...)
		if b.High > b.Low {
			c.add(Mark{Kind: Bar, Points: []XY{{b.Low, b.Million}, {b.High, b.Million}}, style: neutral})
		}
	}
	if len(c.marks) > 0 && slices.ContainsFunc(c.marks, func(m Mark) bool { return m.Kind == Target }) {
		c.caption = append(c.caption, "Dashed: break-even; bar: its range by the intervals of both.")
	}
	if load.Samples > 0 {
		c.caption = append(c.caption, load.Sentence()+" The time in which the samples of such a request arrive was not measured.")
	}
	if without != nil {
		c.caption = append(c.caption, "Not drawn: "+join(without)+".")
	}
	return c, c.fit()
}

func join(list []string) string {
	text := list[0]
	for _, s := range list[1:] {
		text += "; " + s
	}
	return text
}

// limitsOf describes the limits of lines without repetition.
func limitsOf(lines []capacity.Line) string {
	var list []string
	for _, l := range lines {
		if s := shown(l.Limit); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return join(list)
}

// dear returns the cost of a million requests at a demand.
func dear(r capacity.Rung, demand float64) float64 { return r.PerHour / 3600 / demand * 1e6 }

// stairs returns a line of the cost over the demand, which falls until another replica is needed.
func stairs(rungs []capacity.Rung, from, to float64) []XY {
	var line []XY
	for _, r := range rungs {
		if from >= to {
			break
		}
		end := min(r.Upto, to)
		if end <= from {
			continue
		}
		line = append(line, XY{from, dear(r, from)}, XY{end, dear(r, end)})
		from = end
	}
	return line
}
