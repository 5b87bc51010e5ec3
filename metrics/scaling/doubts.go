package scaling

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Remark is one doubt about the runs of one series.
type Remark struct {
	Series string // "": about none in particular
	Where  string // the places and runs: "2 and 4 workers: 5 of 6 runs: "; "" for the whole series
	Brief  string // Where for a line that has to be short; "" if it is the same
	Text   string
	// Chance reports whether sound runs give as much by chance too often to interrupt a
	// person: JSON and -v have it.
	Chance bool
}

// String returns the remark as a line.
func (r Remark) String() string {
	if r.Series == "" {
		return r.Where + r.Text
	}
	return r.Series + ": " + r.Where + r.Text
}

// kind returns the text that remarks share if they differ only in series, place, and
// numbers. The number in a target counts as a name.
func (r Remark) kind() string {
	if name, rest, is := strings.Cut(r.Text, ": "); is && strings.HasPrefix(r.Text, "target ") {
		return name + numerals.ReplaceAllString(rest, "0")
	}
	return numerals.ReplaceAllString(r.Text, "0")
}

// Lines are a line for each kind of remark, of a study with so many series: that
// of the first, how many series it is true of, and how many say it otherwise.
func Lines(remarks []Remark, series int) []string {
	var kinds []string
	of := map[string][]Remark{}
	for _, r := range remarks {
		kind := r.kind()
		if of[kind] == nil {
			kinds = append(kinds, kind)
		}
		of[kind] = append(of[kind], r)
	}
	var list []string
	for _, kind := range kinds {
		group := of[kind]
		first := group[0]
		names := map[string]bool{}
		alike := 0
		for _, r := range group {
			names[r.Series] = true
			if r.Where == first.Where && r.Text == first.Text {
				alike++
			}
		}
		line := cmp.Or(first.Brief, first.Where) + first.Text
		switch n := len(names); {
		case first.Series == "" || series == 1:
		case n == 1:
			line = first.Series + ": " + line
		case n == series && n == 2:
			line = "both series: " + line
		case n == series:
			line = fmt.Sprintf("all %d series: %s", n, line)
		default:
			line = fmt.Sprintf("%s and %d other series: %s", first.Series, n-1, line)
		}
		if others := len(group) - alike; others > 0 {
			if more := fmt.Sprintf("and %d like it)", others); strings.HasSuffix(line, ")") {
				line = strings.TrimSuffix(line, ")") + "; " + more
			} else {
				line += " (" + more
			}
		}
		list = append(list, line)
	}
	return list
}

// Doubts are the remarks on the curves, a line a kind.
func Doubts(curves []Curve) []string { return Lines(Remarks(curves), len(curves)) }

// Remarks are the warnings of the curves and their points. That an interval cannot
// be had stands in the table and in the figure's caption, and is not said again;
// what is true of several places on the axis is said once.
func Remarks(curves []Curve) []Remark {
	var list []Remark
	for _, c := range curves {
		series := c.Series
		if len(curves) == 1 {
			series = ""
		}
		for _, w := range c.Warnings {
			i := slices.Index(c.DriftWarnings, w)
			list = append(list, Remark{Series: series, Text: w, Chance: i >= 0 && !c.drifts[i].Clear})
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
			r := Remark{Series: series, Where: c.Places(places[w]...) + ": ", Brief: c.placesInBrief(places[w]...) + ": ", Text: w}
			if axis(c.Axis).within() && len(places[w]) == len(c.Points) {
				r.Where, r.Brief = "", "" // what is true of the runs is true at every place within them
			}
			list = append(list, r)
		}
		for _, r := range runDoubts(c) {
			r.Series = series
			list = append(list, r)
		}
	}
	return list
}

// numerals are what tells doubts of a kind apart.
var numerals = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)

// runDoubts are the doubts of a curve's runs, one line a kind: thirty runs that
// say the same say it once, those with other numbers in it too.
func runDoubts(c Curve) []Remark {
	type kind struct {
		places []Value
		all    []string // runs at them
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
				k.places = append(k.places, p.At)
				for _, run := range p.Runs {
					k.all = append(k.all, run.ID)
				}
			}
			k.doubt.Runs = append(k.doubt.Runs, d.Runs...)
			k.differ = k.differ || d.Text != k.doubt.Text
		}
	}
	var list []Remark
	chance := unsteadyByChance(c)
	for _, name := range kinds {
		k := of[name]
		if k.differ {
			k.doubt.Text += " (one run's figures; the others differ)"
		}
		// A run may be at several places, and have several doubts of a kind.
		k.all, k.doubt.Runs = distinctIDs(k.all), distinctIDs(k.doubt.Runs)
		where, brief := c.Places(k.places...)+": ", c.placesInBrief(k.places...)+": "
		if axis(c.Axis).within() {
			where, brief = "", "" // of the whole runs, not of places within them
		}
		whose := k.doubt.whose(len(k.all))
		list = append(list, Remark{Where: where + whose, Brief: brief + whose, Text: k.doubt.Text, Chance: chance && unsteady.MatchString(k.doubt.Text)})
	}
	return list
}

// distinctIDs sorts ids and leaves each once.
func distinctIDs(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
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
