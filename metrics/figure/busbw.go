package figure

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling/exchange"
)

// DrawBusBW draws the bus bandwidth of collectives against the size of the
// message: a panel for each operation, a line for each number of workers. In
// place where that was measured, as trainings do it, else out of place.
func DrawBusBW(curves []exchange.Curve, o Options) (*Figure, error) {
	var ops []string
	for _, c := range curves {
		if !slices.Contains(ops, c.Op) {
			ops = append(ops, c.Op)
		}
	}
	var charts []chart
	for _, op := range ops {
		c, ok := busbw(op, curves)
		if !ok {
			continue
		}
		if err := c.fit(); err != nil {
			return nil, fmt.Errorf("busbw figure: %w", err)
		}
		// Sizes span so many octaves that the usual room around them is a tick's.
		c.x.min, c.x.max = sizes(c.marks)
		if len(ops) == 1 {
			c.caption = append([]string{opText(op) + "."}, c.caption...)
		}
		charts = append(charts, c)
	}
	if charts == nil {
		return nil, fmt.Errorf("busbw figure: %w", errors.New("nothing to draw: no run has a bus bandwidth; benchmarks of collectives have (kind = \"collective\", or imported nccl-tests logs)"))
	}
	return compose("busbw", charts, o)
}

// sizes is the range of the sizes, with a little room.
func sizes(marks []Mark) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, m := range marks {
		for _, p := range m.Points {
			low, high = min(low, p.X), max(high, p.X)
		}
	}
	return low / 1.5, high * 1.5
}

func opText(op string) string {
	if op == "" {
		return "operation not stated"
	}
	return shown(op)
}

// busbw is the panel of one operation; ok is false where nothing of it can be
// drawn.
func busbw(op string, curves []exchange.Curve) (c chart, ok bool) {
	c = chart{title: opText(op), x: logAxis("size of the whole array"), y: logAxis("bus bandwidth (GB/s)")}
	c.x.binary, c.x.bytes = true, true
	c.y.unit = 1e9
	places := map[bool]bool{}
	fewest, most := math.MaxInt, 0
	var list []estimate
	for _, cv := range curves {
		if cv.Op != op || !cv.InPlace && slices.ContainsFunc(curves, func(other exchange.Curve) bool {
			return other.InPlace && other.Op == op && other.Series == cv.Series && other.Workers == cv.Workers && other.Nodes == cv.Nodes
		}) {
			continue
		}
		style := c.styles()
		name := workers(cv.Workers)
		if cv.Nodes > 1 {
			name += fmt.Sprintf(" on %d nodes", cv.Nodes)
		}
		if cv.Series != "" {
			name = shown(cv.Series) + ", " + name
		}
		var line []XY
		var medians []Mark
		for _, s := range cv.Sizes {
			if s.BusBW == nil || !(s.BusBW.Value > 0) || math.IsInf(s.BusBW.Value, 1) || !(s.Bytes > 0) {
				continue
			}
			if len(s.Each) > 1 {
				for _, v := range s.Each {
					c.add(Mark{Kind: Dot, Series: name, Points: []XY{{s.Bytes, v}}, style: style})
				}
			}
			if in := s.BusBW.Interval; drawable(in) {
				c.add(Mark{Kind: Bar, Series: name, Points: []XY{{s.Bytes, in.Low}, {s.Bytes, in.High}}, style: style, alone: true})
			}
			at := XY{s.Bytes, s.BusBW.Value}
			line = append(line, at)
			medians = append(medians, Mark{Kind: Median, Series: name, Points: []XY{at}, style: style})
			fewest, most = min(fewest, s.BusBW.Runs), max(most, s.BusBW.Runs)
			list = append(list, estimate{cv.Workers, s.BusBW.Interval, s.BusBW.Why, false})
		}
		if line == nil {
			continue
		}
		places[cv.InPlace] = true
		c.addLine(style, name, line)
		c.marks = append(c.marks, medians...)
		c.add(Mark{Kind: Label, Series: name, Points: line[len(line)-1:], Text: name, style: style})
	}
	if list == nil {
		return c, false
	}
	where := "In place."
	switch {
	case places[false] && places[true]:
		where = "In place, or out of place where that alone was measured."
	case places[false]:
		where = "Out of place."
	}
	runs := fmt.Sprint(most)
	if fewest < most {
		runs = fmt.Sprintf("%d to %d", fewest, most)
	}
	c.caption = append([]string{where, "Markers: medians over runs. Runs per point: " + runs + "."}, bars(list, "exact binomial interval of the median")...)
	return c, true
}
