package scaling

import (
	"regexp"
	"slices"
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
		for _, w := range runDoubts(c) {
			list = append(list, about+w)
		}
	}
	return list
}

// numerals are what tells doubts of a kind apart.
var numerals = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)

// runDoubts are the doubts of a curve's runs, one line a kind: thirty runs that
// say the same say it once, those with other numbers in it too.
func runDoubts(c Curve) []string {
	type kind struct {
		places []Value
		all    int // runs at them
		doubt  Doubt
		differ bool
	}
	var kinds []string
	of := map[string]*kind{}
	for _, p := range c.Points {
		for _, d := range p.Doubts {
			name := numerals.ReplaceAllString(d.Text, "0")
			k := of[name]
			if k == nil {
				kinds = append(kinds, name)
				k = &kind{doubt: Doubt{Text: d.Text}}
				of[name] = k
			}
			if n := len(k.places); n == 0 || k.places[n-1] != p.At {
				k.places, k.all = append(k.places, p.At), k.all+len(p.Runs)
			}
			for _, run := range d.Runs { // which may have several of a kind
				if !slices.Contains(k.doubt.Runs, run) {
					k.doubt.Runs = append(k.doubt.Runs, run)
				}
			}
			k.differ = k.differ || d.Text != k.doubt.Text
		}
	}
	var list []string
	for _, name := range kinds {
		k := of[name]
		if k.differ {
			k.doubt.Text += " (the others differ in their numbers)"
		}
		list = append(list, Places(c.Axis, k.places...)+": "+k.doubt.Of(k.all))
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
