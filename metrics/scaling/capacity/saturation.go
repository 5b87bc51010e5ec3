package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// This file finds where a service's throughput saturates along the requests in flight or
// the batch.

// enough is the share of the maximum that a saturation point must reach.
const enough = 0.95

// saturationRange is the factor beyond a saturation point up to which the load must have
// been measured: 5 % more at 21 requests in flight than at 20 does not show saturation at
// 20.
const saturationRange = 2

// A Saturation is the point at which a throughput curve saturates.
//
// Each point is compared with the point of highest throughput, within runs. Computing a saturation
// point for each run instead would follow its noise, because the maximum of several noisy values is
// biased upwards.
type Saturation struct {
	Series string
	Axis   string
	// At is the smallest point that surely gives 95 % of the maximum, by the lower bound of
	// its ratio's interval. No point below AtLeast can, by the upper bounds. If both are 0,
	// Why gives the reason.
	At, AtLeast float64
	Level       float64 // lowest level of the intervals
	// Medians is the smallest point that gives 95 % by the medians alone; 0 with fewer than
	// two points.
	Medians float64
	Best    float64           // the point with the maximum
	Most    *scaling.Estimate // the maximum
	Runs    int               // smallest number of runs at a point
	Why     string            // why there is no saturation point
	// Power is the point at which throughput divided by mean latency is highest (Kleinrock, ICC
	// 1979), according to the medians. PowerRuns has that point for each run. Both are nil without
	// latencies.
	Power     *float64
	PowerRuns *scaling.Estimate
	// Bound is N* = X_max·R_1 (Denning & Buzen, Computing Surveys 10, 1978): with fewer
	// requests in flight no request has to wait, with more some do. It is nil without a
	// latency at 1 in flight.
	Bound *scaling.Estimate
	unit  string
}

// findSaturation returns the saturation point of a measure along a curve; nil if the
// measure is not a throughput or the axis is not the load of a closed loop.
func findSaturation(c scaling.Curve, m measure.Measure) *Saturation {
	switch {
	case c.Axis == measure.Threads && (m.Name == measure.RequestsPerSecond || m.Name == measure.SamplesPerSecond || m.Name == measure.OutputThroughput):
	case c.Axis == measure.Batch && (m.Name == measure.SamplesPerSecond || m.Name == measure.OutputThroughput):
		if _, open := c.Parameters[measure.Rate]; open {
			return nil // with an open loop, the throughput follows the request rate
		}
	default:
		return nil
	}
	k := &Saturation{Series: c.Series, Axis: c.Axis, unit: m.Unit}
	var points []*scaling.Point
	var most *scaling.Summary
	for i := range c.Points {
		p := &c.Points[i]
		s := p.Of(m.Name)
		if s.Median == nil || !(s.Median.Value > 0) || !p.At.Numeric() || !(p.At.Number > 0) {
			continue
		}
		points = append(points, p)
		if most == nil || s.Median.Value > most.Median.Value {
			most, k.Best, k.Most = s, p.At.Number, s.Median
		}
		if k.Runs == 0 || s.Runs < k.Runs {
			k.Runs = s.Runs
		}
	}
	if most == nil {
		return nil
	}
	k.power(points, m)
	if c.Axis == measure.Threads {
		k.bound(points, m)
	}
	if len(points) < 2 {
		k.Why = fmt.Sprintf("only %s was measured", k.place(points[0].At.Number))
		return k
	}
	k.find(points, most)
	return k
}

// FindSaturationWithUnit returns the saturation point to show in a figure of a measure: its
// own; for a latency, that of the answers per second measured with it, or of the samples
// per second along the batch. unit is the unit of that throughput.
func FindSaturationWithUnit(c scaling.Curve, m measure.Measure) (k *Saturation, unit string) {
	_, percentile := measure.Percentile(strings.TrimPrefix(m.Name, "latency_"))
	switch {
	case !percentile && m.Name != measure.LatencyMean:
	case c.Axis == measure.Batch:
		m = measure.Measure{Name: measure.SamplesPerSecond, Unit: "samples/s"}
	default:
		m = measure.Measure{Name: measure.RequestsPerSecond, Unit: "requests/s"}
	}
	return findSaturation(c, m), m.Unit
}

// find sets At, AtLeast and Medians, or Why.
func (k *Saturation) find(points []*scaling.Point, most *scaling.Summary) {
	largest := points[len(points)-1].At.Number
	at, atLeast, level := 0.0, 0.0, 1.0
	falls := false // whether the largest point surely gives less than the maximum
	for _, p := range points {
		share := &scaling.Estimate{Value: 1, Interval: &scaling.Interval{Low: 1, High: 1, Level: 1}} // of the maximum itself
		if s := p.Of(most.Name); s != most {
			share = s.Over(most)
		}
		if k.Medians == 0 && share.Value >= enough {
			k.Medians = p.At.Number
		}
		if share.Interval == nil {
			k.Why = cmp.Or(k.Why, share.Why)
			continue
		}
		level = min(level, share.Interval.Level)
		if atLeast == 0 && share.Interval.High >= enough {
			atLeast = p.At.Number
		}
		if at == 0 && share.Interval.Low >= enough {
			at = p.At.Number
		}
		falls = p.At.Number == largest && share.Interval.High < 1
	}
	rising := func(from float64) string {
		return fmt.Sprintf("it may still be rising at %s, the most that were measured: measure %s", k.place(largest), number.Short(saturationRange*from, 6))
	}
	switch {
	case k.Why != "" && (k.Medians == largest || largest < saturationRange*k.Medians): // more runs alone would not help
		k.Why += "; and " + rising(k.Medians)
	case k.Why != "":
	case at == largest || largest < saturationRange*at && !falls:
		k.Why = rising(at)
	default:
		k.At, k.AtLeast, k.Level = at, min(at, atLeast), level
	}
}

// ofRuns applies of to the values of each run that was measured at all points.
func ofRuns(points []*scaling.Point, of func([]map[string]float64) (float64, bool)) []float64 {
	values := map[string][]map[string]float64{}
	for _, p := range points {
		for _, r := range p.Runs {
			values[r.ID] = append(values[r.ID], r.Values)
		}
	}
	var list []float64
	for _, v := range values {
		if len(v) != len(points) {
			return nil
		}
		if x, ok := of(v); ok {
			list = append(list, x)
		}
	}
	if len(list) < len(values) {
		return nil
	}
	return list
}

func (k *Saturation) power(points []*scaling.Point, m measure.Measure) {
	best := 0.0
	for _, p := range points {
		latency := p.Of(measure.LatencyMean).Median
		if latency == nil || !(latency.Value > 0) {
			k.Power = nil
			return
		}
		if x := p.Of(m.Name).Median.Value / latency.Value; x > best {
			best, k.Power = x, &p.At.Number
		}
	}
	runs := ofRuns(points, func(values []map[string]float64) (at float64, ok bool) {
		best := 0.0
		for i, v := range values {
			x := v[m.Name] / v[measure.LatencyMean]
			if !(x > 0) || math.IsInf(x, 1) {
				return 0, false
			}
			if x > best {
				best, at = x, points[i].At.Number
			}
		}
		return at, true
	})
	if e, err := scaling.Median(runs, 0); err == nil {
		k.PowerRuns = &e
	}
}

func (k *Saturation) bound(points []*scaling.Point, m measure.Measure) {
	first := points[0]
	alone := first.Of(measure.LatencyMean).Median
	requests := k.Most
	if m.Name != measure.RequestsPerSecond { // N counts requests
		requests = nil
		for _, p := range points {
			if e := p.Of(measure.RequestsPerSecond).Median; e != nil && (requests == nil || e.Value > requests.Value) {
				requests = e
			}
		}
	}
	if first.At.Number != 1 || alone == nil || requests == nil {
		return
	}
	k.Bound = &scaling.Estimate{Value: requests.Value * alone.Value, Runs: k.Runs, Why: "no run was measured at all places"}
	runs := ofRuns(points, func(values []map[string]float64) (float64, bool) {
		most := 0.0
		for _, v := range values {
			most = max(most, v[measure.RequestsPerSecond])
		}
		x := most * values[0][measure.LatencyMean]
		return x, x > 0 && !math.IsInf(x, 1)
	})
	if e, err := scaling.Median(runs, 0); err == nil {
		k.Bound = &e
	}
}

// place formats a position: "8 in flight", "batch 8".
func (k *Saturation) place(at float64) string {
	text := number.Short(at, 6)
	if k.Axis == measure.Threads {
		return text + " in flight"
	}
	return k.Axis + " " + text
}

// Range formats the saturation point briefly: "8", "8 (4 may be enough)"; "" without one.
func (k *Saturation) Range() string {
	switch {
	case k.At == 0:
		return ""
	case k.AtLeast < k.At:
		return fmt.Sprintf("%s (%s may be enough)", number.Short(k.At, 6), number.Short(k.AtLeast, 6))
	}
	return number.Short(k.At, 6)
}

// Sentence describes it for people.
func (k *Saturation) Sentence() string {
	most := fmt.Sprintf("95 %% of the most, %s %s at %s", number.Significant(k.Most.Value), k.unit, k.place(k.Best))
	var text string
	switch {
	case k.At == 0 && k.Medians > 0:
		text = fmt.Sprintf("No knee: %s. By the medians alone, %s reaches %s.", k.Why, k.place(k.Medians), most)
	case k.At == 0:
		text = fmt.Sprintf("No knee: %s.", k.Why)
	default:
		text = fmt.Sprintf("Knee: %s, the smallest number shown to give %s", k.place(k.At), most)
		if k.Axis == measure.Batch {
			text = fmt.Sprintf("Knee: %s, the smallest shown to give %s", k.place(k.At), most)
		}
		if k.AtLeast < k.At {
			text += fmt.Sprintf("; %s may be enough", number.Short(k.AtLeast, 6))
		}
		text += "."
	}
	var more []string
	if k.Power != nil {
		word := fmt.Sprintf("throughput over mean latency is largest at %s", number.Short(*k.Power, 6))
		if e := k.PowerRuns; e != nil && e.Interval != nil {
			word += fmt.Sprintf(" [%s, %s]", number.Short(e.Interval.Low, 6), number.Short(e.Interval.High, 6))
		}
		more = append(more, word)
	}
	if k.Bound != nil {
		word := "N* = X_max·R_1 is " + number.Significant(k.Bound.Value)
		if in := k.Bound.Interval; in != nil {
			word += fmt.Sprintf(" [%s, %s]", number.Significant(in.Low), number.Significant(in.High))
		}
		more = append(more, word)
	}
	if more != nil {
		joined := strings.Join(more, "; ")
		text += " " + strings.ToUpper(joined[:1]) + joined[1:] + "."
	}
	return text
}

// FindSaturations returns the saturation points of curves that have or could have one; nil
// if no curve is a throughput along such an axis.
func FindSaturations(curves []scaling.Curve, m measure.Measure) []*Saturation {
	var list []*Saturation
	for _, c := range curves {
		if k := findSaturation(c, m); k != nil {
			list = append(list, k)
		}
	}
	return slices.Clip(list)
}
