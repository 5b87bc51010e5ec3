package figure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/timeline"
)

// mostMoments is how many points a line over time has at most; more samples are
// taken together.
const mostMoments = 400

// DrawUtilisation draws what one run used over time, a panel for each quantity and a
// line for each node. Of a counter each point is the mean since the one before.
func DrawUtilisation(run string, nodes []timeline.Node, clock timeline.Window, o Options) (*Drawing, error) {
	var whole timeline.Window
	for i := range nodes {
		if w, ok := nodes[i].Span(); ok {
			if whole == (timeline.Window{}) {
				whole = w
			}
			whole = timeline.Window{From: min(whole.From, w.From), To: max(whole.To, w.To)}
		}
	}
	if !(whole.Seconds() > 0) {
		return nil, errors.New("utilisation figure: nothing to draw: the run was not sampled, or once; [telemetry] every says how often runs are")
	}
	var charts []chart
	for _, panel := range []struct {
		axis func(most float64) axis
		of   func(*timeline.Node) []timeline.Sample
	}{
		{func(float64) axis { a := newAxis("CPU time (% of the run's CPUs)"); a.unit = 0.01; return a }, cpuShare},
		{func(most float64) axis { return sizeAxis("memory without page cache", most) }, func(n *timeline.Node) []timeline.Sample {
			return theOnly(n.Named(metrics.TelemetryMemory)).Thin(mostMoments)
		}},
		{func(most float64) axis { return rateAxis("read from storage", most) }, func(n *timeline.Node) []timeline.Sample {
			return theOnly(n.Named(metrics.TelemetryRead)).Rates(mostMoments)
		}},
		{func(most float64) axis { return rateAxis("written to storage", most) }, func(n *timeline.Node) []timeline.Sample {
			return theOnly(n.Named(metrics.TelemetryWritten)).Rates(mostMoments)
		}},
		{func(float64) axis { return newAxis("power (W)") }, func(n *timeline.Node) []timeline.Sample { return n.Power(mostMoments) }},
	} {
		lines := make([][]timeline.Sample, len(nodes))
		most, any := 0.0, false
		for i := range nodes {
			lines[i] = panel.of(&nodes[i])
			for _, s := range lines[i] {
				most, any = max(most, s.Value), true
			}
		}
		if !any {
			continue
		}
		c := chart{x: timeAxis("time", whole.Seconds()), y: panel.axis(most), own: true, low: true}
		c.x.zero, c.y.zero = true, true
		for i, line := range lines {
			m := Mark{Kind: Trace, Series: nodes[i].Host, style: i}
			if len(nodes) > manyLooks {
				m.style = 0
			}
			for _, s := range line {
				m.Points = append(m.Points, XY{s.At - whole.From, s.Value})
			}
			if len(m.Points) < 2 {
				continue
			}
			c.add(m)
			if len(nodes) <= manyLooks {
				c.add(Mark{Kind: Label, Series: m.Series, Text: m.Series, Points: m.Points[len(m.Points)-1:], style: m.style})
			}
		}
		if len(c.marks) == 0 {
			continue
		}
		c.x.include(whole.Seconds())
		if err := c.fit(); err != nil {
			return nil, fmt.Errorf("utilisation figure: %w", err)
		}
		charts = append(charts, c)
	}
	if charts == nil {
		return nil, errors.New("utilisation figure: nothing to draw: no node has two samples of anything that is drawn")
	}
	caption := []string{fmt.Sprintf("Run %s, %s.", shown(run), number.Count(len(nodes), "node"))}
	if clock.Seconds() > 0 {
		caption = append(caption, fmt.Sprintf("The training clock ran from %s to %s.", number.ShortSeconds(max(0, clock.From-whole.From)), number.ShortSeconds(clock.To-whole.From)))
	}
	if slices.ContainsFunc(nodes, func(n timeline.Node) bool {
		return len(n.Named(metrics.TelemetryEnergy))+len(n.Named(metrics.TelemetryPower)) > 0
	}) {
		caption = append(caption, "Power is of whole nodes.")
	}
	for i := range charts {
		charts[i].caption = caption
	}
	return compose("utilisation", charts, o)
}

// theOnly is the one series of a list; of none, or of two that disagree on where
// something was read, an empty one.
func theOnly(list []*timeline.Series) *timeline.Series {
	if len(list) != 1 {
		return &timeline.Series{}
	}
	return list[0]
}

func cpuShare(n *timeline.Node) []timeline.Sample {
	cpus := theOnly(n.Named(metrics.TelemetryCPUs))
	line := theOnly(n.Named(metrics.TelemetryCPU)).Rates(mostMoments)
	if len(cpus.Samples) == 0 || !(cpus.Max() > 0) {
		return nil
	}
	for i := range line {
		line[i].Value /= cpus.Max()
	}
	return line
}

// rateAxis is sizeAxis of bytes a second.
func rateAxis(what string, largest float64) axis {
	a := sizeAxis(what, largest)
	a.title = a.title[:len(a.title)-1] + "/s)"
	return a
}
