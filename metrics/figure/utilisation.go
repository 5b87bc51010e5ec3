package figure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/summary"
)

// mostMoments limits the points of a line over time; more samples are averaged.
const mostMoments = 400

// utilisation draws a run's resource usage over time, a panel per quantity and a line per
// node or GPU. A counter's point is the mean since the previous one.
func utilisation(d Data, _ Options) ([]chart, error) {
	nodes, clock := d.Run.Nodes, d.Run.Clock
	whole := sampled(nodes)
	if !(whole.Seconds() > 0) {
		return nil, errors.New("nothing to draw: the run was not sampled, or once; [telemetry] every says how often runs are")
	}
	var charts []chart
	for _, panel := range panels {
		lines, most := linesOf(nodes, panel.of)
		if len(lines) == 0 {
			continue
		}
		c := chart{x: timeAxis("time", whole.Seconds()), y: panel.axis(most), own: true, low: true}
		c.x.zero, c.y.zero = true, true
		c.over(lines, whole.From)
		c.x.include(whole.Seconds())
		if err := c.fit(); err != nil {
			return nil, err
		}
		charts = append(charts, c)
	}
	if charts == nil {
		return nil, errors.New("nothing to draw: no node has two samples of anything that is drawn")
	}
	caption := []string{fmt.Sprintf("Run %s, %s.", shown(d.Run.ID), number.Count(len(nodes), "node"))}
	if clock.Seconds() > 0 {
		caption = append(caption, fmt.Sprintf("The training clock ran from %s to %s.", number.ShortSeconds(max(0, clock.From-whole.From)), number.ShortSeconds(clock.To-whole.From)))
	}
	if slices.ContainsFunc(nodes, func(n summary.SampledNode) bool {
		return len(n.Named(metrics.TelemetryEnergy))+len(n.Named(metrics.TelemetryPower)) > 0
	}) {
		caption = append(caption, "Power is of whole nodes.")
	}
	for i := range charts {
		charts[i].caption = caption
	}
	return charts, nil
}

// sampled returns the time from the first sample of any node to the last.
func sampled(nodes []summary.SampledNode) summary.Window {
	var whole summary.Window
	for i := range nodes {
		w, ok := nodes[i].Span()
		switch {
		case !ok:
		case whole == (summary.Window{}):
			whole = w
		default:
			whole = summary.Window{From: min(whole.From, w.From), To: max(whole.To, w.To)}
		}
	}
	return whole
}

// linesOf returns the lines of a panel and its largest value. A line needs two samples.
func linesOf(nodes []summary.SampledNode, of func(*summary.SampledNode) []traced) (lines []traced, most float64) {
	for i := range nodes {
		for _, l := range of(&nodes[i]) {
			if len(l.samples) < 2 {
				continue
			}
			l.name = strings.TrimSpace(nodes[i].Host + " " + l.name)
			if len(nodes) == 1 && l.name != nodes[i].Host {
				l.name = strings.TrimPrefix(l.name, nodes[i].Host+" ")
			}
			lines = append(lines, l)
			for _, s := range l.samples {
				most = max(most, s.Value)
			}
		}
	}
	return lines, most
}

// over draws lines over time. If there are too many to distinguish, all look the same and
// have no labels.
func (c *chart) over(lines []traced, from float64) {
	for i, l := range lines {
		m := Mark{Kind: Trace, Series: l.name, style: i}
		if len(lines) > manyLooks {
			m.style = 0
		}
		for _, s := range l.samples {
			m.Points = append(m.Points, XY{s.At - from, s.Value})
		}
		c.add(m)
		if len(lines) <= manyLooks {
			c.add(Mark{Kind: Label, Series: m.Series, Text: m.Series, Points: m.Points[len(m.Points)-1:], style: m.style})
		}
	}
}

// traced is one line of a panel. Its name is the device's, or "" for values of the whole node.
type traced struct {
	name    string
	samples []summary.NodeSample
}

// panels lists the quantities to draw, if they were sampled.
var panels = []struct {
	axis func(most float64) axis
	of   func(*summary.SampledNode) []traced
}{
	{func(float64) axis { a := newAxis("CPU time (% of the run's CPUs)"); a.unit = 0.01; return a }, ofNode(cpuShare)},
	{func(most float64) axis { return sizeAxis("memory without page cache", most) }, ofNode(func(n *summary.SampledNode) []summary.NodeSample {
		return theOnly(n.Named(metrics.TelemetryMemory)).Thin(mostMoments)
	})},
	{func(most float64) axis { return rateAxis("read from storage", most) }, ofNode(func(n *summary.SampledNode) []summary.NodeSample {
		return theOnly(n.Named(metrics.TelemetryRead)).Rates(mostMoments)
	})},
	{func(most float64) axis { return rateAxis("written to storage", most) }, ofNode(func(n *summary.SampledNode) []summary.NodeSample {
		return theOnly(n.Named(metrics.TelemetryWritten)).Rates(mostMoments)
	})},
	{func(float64) axis { return newAxis("power (W)") }, ofNode(func(n *summary.SampledNode) []summary.NodeSample { return n.Power(mostMoments) })},
	{func(float64) axis { return newAxis("power of each GPU (W)") }, ofGPUs(metrics.TelemetryPower)},
	{func(float64) axis { a := newAxis("GPU busy (% of the time)"); a.unit = 0.01; return a }, ofGPUs(metrics.TelemetryBusy)},
	{func(float64) axis { a := newAxis("GPU clock (GHz)"); a.unit = 1e9; return a }, ofGPUs(metrics.TelemetryDeviceClock)},
	{func(float64) axis { return newAxis("GPU temperature (°C)") }, ofGPUs(metrics.TelemetryTemperature)},
	{func(most float64) axis { return sizeAxis("GPU memory in use", most) }, ofGPUs(metrics.TelemetryDeviceMemory)},
}

func ofNode(of func(*summary.SampledNode) []summary.NodeSample) func(*summary.SampledNode) []traced {
	return func(n *summary.SampledNode) []traced { return []traced{{"", of(n)}} }
}

// ofGPUs returns a gauge of each of a node's GPUs.
func ofGPUs(name string) func(*summary.SampledNode) []traced {
	return func(n *summary.SampledNode) []traced {
		var list []traced
		for _, s := range n.Named(name) {
			if slices.Contains(n.GPUs(), s.Of) {
				list = append(list, traced{s.Of, s.Thin(mostMoments)})
			}
		}
		return list
	}
}

// theOnly returns the one series in a list. If none exists, or several from different
// sources, it returns an empty one.
func theOnly(list []*summary.Series) *summary.Series {
	if len(list) != 1 {
		return &summary.Series{}
	}
	return list[0]
}

func cpuShare(n *summary.SampledNode) []summary.NodeSample {
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

// rateAxis is sizeAxis for bytes per second.
func rateAxis(what string, largest float64) axis {
	if largest == 0 { // a unit would be meaningless
		a := newAxis(what + ": none")
		a.only = []tick{{0, "0"}}
		return a
	}
	a := sizeAxis(what, largest)
	a.title = a.title[:len(a.title)-1] + "/s)"
	return a
}
