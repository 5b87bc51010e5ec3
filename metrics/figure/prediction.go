package figure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// Predictions reach up to predictTimes the largest measured count, with intervals of
// predictConfidence.
const (
	predictTimes      = 4
	predictConfidence = 0.95
)

// prediction draws the rate per worker at each measured count, and the predicted rate for
// more workers: a line and a band per series.
func prediction(d Data) (chart, error) {
	list := d.Predictions
	if len(list) == 0 {
		return chart{}, errNothing
	}
	c := chart{x: workersAxis(), y: newAxis("rate of a worker (" + shown(list[0].Unit) + ")"), scattered: len(list) > 1}
	var without []string
	var bands, rest []Mark
	for style, s := range list {
		name := shown(s.Name)
		if s.Unit != list[0].Unit {
			without = append(without, name+" (its rate is in "+shown(s.Unit)+")")
			continue
		}
		last := XY{}
		for _, n := range s.Counts {
			at := float64(n.Workers)
			for _, x := range n.Steps {
				rest = append(rest, Mark{Kind: Dot, Series: name, Points: []XY{{at, n.Batch / x / at}}, style: style, alone: len(n.Steps) == 1})
			}
			last = XY{at, n.Batch / scaling.Middle(n.Steps) / at}
			rest = append(rest, Mark{Kind: Median, Series: name, Points: []XY{last}, style: style})
		}
		upto := 0
		for _, n := range s.Counts {
			upto = max(upto, predictTimes*n.Workers)
		}
		workers, rates, err := predict.Band(s, predictConfidence, upto)
		var refusal *predict.Refusal
		switch {
		case errors.As(err, &refusal):
			without = append(without, name+" ("+refusal.Why+")")
		case err != nil:
			return chart{}, err
		case len(workers) < 2:
			without = append(without, name+" (the measurements allow too much)")
		default:
			var line, low, high []XY
			for i, n := range workers {
				at := float64(n)
				line = append(line, XY{at, rates[i].Value / at})
				low = append(low, XY{at, rates[i].Low / at})
				high = append(high, XY{at, rates[i].High / at})
			}
			slices.Reverse(low)
			bands = append(bands, Mark{Kind: Band, Series: name, Points: append(high, low...), style: style})
			rest = append([]Mark{{Kind: Line, Series: name, Points: line, style: style}}, rest...)
			last = line[len(line)-1]
		}
		if len(list) > 1 && last.X > 0 {
			rest = append(rest, Mark{Kind: Label, Series: name, Points: []XY{last}, Text: name, style: style})
		}
	}
	if len(rest) == 0 {
		return chart{}, errNothing
	}
	c.marks = append(bands, rest...)
	c.y.zero = true
	level := number.ExactPercent(predictConfidence)
	c.caption = []string{
		fmt.Sprintf("Rate per worker: a flat line is perfect scaling. Dots: runs; markers: medians. Line and band: the prediction and its %s interval, up to %d times the largest count, if possible.", level, predictTimes),
	}
	if len(without) > 0 {
		c.caption = append(c.caption, "Not predicted: "+join(without)+".")
	}
	return c, c.fit()
}
