package scaling

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// manySeries are more than one sentence names.
const manySeries = 3

// Doubts are the warnings of the curves and their points. That an interval cannot
// be had stands in the table and in the figure's caption, and is not said again;
// what is true of several places on the axis is said once, and so is what is true
// of many series.
func Doubts(curves []Curve) []string {
	type doubt struct{ where, text string }
	own := make([][]doubt, len(curves))
	of := map[doubt][]int{} // curves
	note := func(curve int, where, text string) {
		d := doubt{where, text}
		own[curve] = append(own[curve], d)
		of[d] = append(of[d], curve)
	}
	for i, c := range curves {
		for _, w := range c.Warnings {
			note(i, "", w)
		}
		var texts []string // each once, in the order of its first place
		places := map[string][]Value{}
		for _, p := range c.Points {
			for _, w := range p.Warnings {
				if saysWhy(p, w) {
					continue
				}
				if places[w] == nil {
					texts = append(texts, w)
				}
				places[w] = append(places[w], p.At)
			}
		}
		for _, w := range texts {
			where := Places(c.Axis, places[w]...) + ": "
			if axis(c.Axis).within() && len(places[w]) == len(c.Points) {
				where = "" // what is true of the runs is true at every place within them
			}
			note(i, where, w)
		}
		for _, w := range runDoubts(c) {
			note(i, "", w)
		}
	}
	var list []string
	for i, c := range curves {
		for _, d := range own[i] {
			n := len(of[d])
			switch about := d.where + d.text; {
			case len(curves) == 1:
				list = append(list, about)
			case n <= manySeries:
				list = append(list, c.Series+": "+about)
			case of[d][0] != i: // said where the first of them is
			case n == len(curves):
				list = append(list, fmt.Sprintf("all %d series: %s", n, about))
			default:
				list = append(list, fmt.Sprintf("%s and %d other series: %s", c.Series, n-1, about))
			}
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
		all    map[string]bool // runs at them
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
				k = &kind{doubt: Doubt{Text: d.Text}, all: map[string]bool{}}
				of[name] = k
			}
			if n := len(k.places); n == 0 || k.places[n-1] != p.At {
				k.places = append(k.places, p.At)
			}
			for _, run := range p.Runs {
				k.all[run.ID] = true
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
		where := Places(c.Axis, k.places...) + ": "
		if axis(c.Axis).within() {
			where = "" // of the whole runs, not of places within them
		}
		list = append(list, where+k.doubt.Of(len(k.all)))
	}
	return list
}

// within reports whether the axis is a coordinate, along which a run is at many
// places.
func (a axis) within() bool {
	return slices.ContainsFunc(measure.Placed(), func(m measure.Measure) bool { return m.At.Has(string(a)) })
}

// saysWhy reports whether a warning only says why an estimate of the point has
// no interval.
func saysWhy(p Point, warning string) bool {
	return slices.ContainsFunc(p.Measures, func(x *Summary) bool {
		return slices.ContainsFunc([]*Estimate{x.Median, x.Gain(), x.Efficiency()}, func(e *Estimate) bool {
			return e != nil && e.Why != "" && (x.Name == measure.Throughput || strings.HasPrefix(warning, "speedup: ")) && strings.HasSuffix(warning, e.Why)
		})
	})
}
