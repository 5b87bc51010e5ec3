package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// partsTable returns a table of the parts of the step time at each point: the median and the
// range over its runs. Medians of parts do not add up, because they may come from different runs.
func partsTable(curves []scaling.Curve) *table.Table {
	keys := scaling.Keys(curves)
	t := &table.Table{Columns: append(seriesColumns(keys), []table.Column{{Key: "workers", ID: true}, {Key: "runs"}, {Key: "compute", Right: true}, {Key: "communication", Right: true},
		{Key: "data_wait", Right: true}, {Key: "skew", Right: true}}...)}
	parts := []string{measure.Compute, measure.Communication, measure.DataWait, measure.Skew}
	for _, c := range curves {
		for _, p := range c.Points {
			cells, any1 := append(seriesCells(c, keys), p.Workers, len(p.Runs)), false
			for _, part := range parts {
				values := p.Of(part).Values
				cells = append(cells, rangeText(values, len(p.Runs)))
				any1 = any1 || values != nil
			}
			if any1 {
				t.Add(cells...)
			}
		}
	}
	t.Notes = []string{"Shares of the mean rank's step time; skew: the share that the average rank waits for the slowest. Median (least to most) over the runs of a point."}
	return t
}

// rangeText returns a median and a range, "12.3 % (11.9 % to 12.8 %)". If not all runs have a
// value, the number that have one is added. It returns nil without values.
func rangeText(values []float64, runs int) any {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	n := len(values)
	s := number.Percent((values[(n-1)/2] + values[n/2]) / 2)
	if n > 1 {
		s += fmt.Sprintf(" (%s to %s)", number.Percent(values[0]), number.Percent(values[n-1]))
	}
	if n < runs {
		s += fmt.Sprintf(", of %d", n)
	}
	return s
}

// communicationNote returns the line of one curve; "" if nothing was measured or predicted.
func communicationNote(c scaling.Curve) string {
	var shares, sources, why []string
	for _, p := range c.Points {
		measured := p.Of(measure.Communication).Median
		if p.Workers < 2 || measured == nil && (p.Predicted == nil || p.Predicted.Share == nil) {
			continue
		}
		text := "not measured"
		if measured != nil {
			text = shareText(measured)
		}
		text += " with " + strconv.Itoa(p.Workers)
		if q := p.Predicted; q != nil && q.Share != nil {
			text += fmt.Sprintf(" (%s predicted)", shareText(q.Share))
			sources = add(sources, q.From)
		} else if q != nil {
			why = add(why, q.Why)
		}
		shares = append(shares, text)
	}
	if len(shares) == 0 {
		return ""
	}
	line := fmt.Sprintf("Communication, share of step time by workers: %s.", strings.Join(shares, ", "))
	if len(sources) > 0 {
		line += " Predicted from: " + strings.Join(sources, "; ") + "."
	}
	if len(why) > 0 {
		line += " Not predicted: " + strings.Join(why, "; ") + "."
	}
	return line
}

// communicationNotes returns a line per curve with the measured and the predicted share of the
// step time that the gradient all-reduce takes.
func communicationNotes(curves []scaling.Curve) []string {
	var list []scaling.Remark
	for _, c := range curves {
		r := scaling.Remark{Text: communicationNote(c)}
		if r.Text == "" {
			continue
		}
		if len(curves) > 1 {
			r.Series = c.Series
		}
		list = append(list, r)
	}
	if len(list) > fewSeries {
		return scaling.Lines(list, len(curves))
	}
	var lines []string
	for _, r := range list {
		lines = append(lines, r.String())
	}
	return lines
}

// shareText returns a share with its interval, or with a dash without one.
func shareText(e *scaling.Estimate) string {
	return number.Percent(e.Value) + " " + intervalText(e.Interval, number.Percent)
}
