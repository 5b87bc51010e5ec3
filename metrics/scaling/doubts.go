package scaling

import (
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Doubts are the warnings of the curves and their points. That an interval cannot
// be had stands in the table and in the figure's caption, and is not said again;
// what is true of several worker counts is said once.
func Doubts(curves []Curve) []string {
	var list []string
	for _, c := range curves {
		about := ""
		if len(curves) > 1 {
			about = c.Series + ": "
		}
		for _, w := range c.Warnings {
			list = append(list, about+w)
		}
		var texts []string // each once, in the order of its first worker count
		of := map[string][]Value{}
		for _, p := range c.Points {
			for _, w := range p.Warnings {
				if saysWhy(p, w) {
					continue
				}
				if of[w] == nil {
					texts = append(texts, w)
				}
				of[w] = append(of[w], p.At)
			}
		}
		for _, w := range texts {
			list = append(list, about+Places(c.Axis, of[w]...)+": "+w)
		}
	}
	return list
}

// saysWhy reports whether a warning only says why an estimate of the point has
// no interval.
func saysWhy(p Point, warning string) bool {
	x := p.Of(measure.Throughput)
	for _, e := range []*Estimate{x.Median, x.Gain(), x.Efficiency()} {
		if e != nil && e.Why != "" && strings.HasSuffix(warning, e.Why) {
			return true
		}
	}
	return false
}
