package scaling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A Remark is a warning about the runs of a series, in the form that is shown.
type Remark struct {
	Series string // "": no particular series
	Where  string // positions and runs to which it applies: "2 and 4 workers: 5 of 6 runs: "; "" for the whole series
	Brief  string // a short form of Where; "" if it is the same
	Text   string
	// Chance is true if noise alone causes such a remark so often that it is only shown with -v and
	// in JSON output.
	Chance bool
}

// String formats the remark as a line of text.
func (r Remark) String() string {
	if r.Series == "" {
		return r.Where + r.Text
	}
	return r.Series + ": " + r.Where + r.Text
}

// kind returns the text of the remark with its numbers replaced. Remarks with the same result are
// of one kind. The number in a target is part of the kind.
func (r Remark) kind() string {
	text := strings.TrimSuffix(r.Text, othersDiffer)
	if name, rest, is := strings.Cut(text, ": "); is && strings.HasPrefix(text, "target ") {
		return name + number.Masked(rest)
	}
	return number.Masked(text)
}

// Lines returns one line per kind of remark: the text of the first one, how many series it
// applies to, and how many of them have other numbers.
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

// Remarks returns the warnings of the curves and their points. It leaves out missing intervals,
// which the table and the caption show, and merges equal warnings about several positions.
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
		for _, r := range slices.Concat(pointWarnings(c), runWarnings(c)) {
			r.Series = series
			list = append(list, r)
		}
	}
	return list
}

// pointWarnings returns the warnings of a curve's points, with the positions that share each.
func pointWarnings(c Curve) (list []Remark) {
	var texts []string // distinct texts, in order of their first position
	places := map[string][]Value{}
	for _, p := range c.Points {
		for _, w := range p.Warnings {
			if explainsInterval(p, w) {
				continue
			}
			if places[w] == nil {
				texts = append(texts, w)
			}
			places[w] = append(places[w], p.At)
		}
	}
	for _, w := range texts {
		r := Remark{Where: c.Places(places[w]...) + ": ", Brief: c.placesInBrief(places[w]...) + ": ", Text: w}
		if axis(c.Axis).within() && len(places[w]) == len(c.Points) {
			r.Where, r.Brief = "", "" // a remark on whole runs applies to every position within them
		}
		list = append(list, r)
	}
	return list
}

// othersDiffer ends a warning about several runs whose numbers differ.
const othersDiffer = " (one run's figures; the others differ)"

// runWarnings returns the warnings about single runs of a curve, one remark per kind.
func runWarnings(c Curve) []Remark {
	type kind struct {
		places []Value
		all    []string // IDs of the runs at these positions, if a run has several positions
		runs   int      // their number otherwise
		doubt  RunWarning
		differ bool
	}
	var kinds []string
	of := map[string]*kind{}
	several := axis(c.Axis).within()
	for _, p := range c.Points {
		for _, d := range p.RunWarnings {
			name := number.Masked(d.Text)
			k := of[name]
			if k == nil {
				kinds = append(kinds, name)
				k = &kind{doubt: RunWarning{Text: d.Text}}
				of[name] = k
			}
			if n := len(k.places); n == 0 || k.places[n-1] != p.At {
				k.places = append(k.places, p.At)
				k.runs += len(p.Runs)
				for i := 0; several && i < len(p.Runs); i++ {
					k.all = append(k.all, p.Runs[i].ID)
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
			k.doubt.Text += othersDiffer
		}
		// A run may have several positions, and several warnings of one kind.
		k.doubt.Runs = distinctIDs(k.doubt.Runs)
		if several {
			k.runs = len(distinctIDs(k.all))
		}
		where, brief := c.Places(k.places...)+": ", c.placesInBrief(k.places...)+": "
		if several {
			where, brief = "", "" // it applies to whole runs, not to positions within them
		}
		whose := k.doubt.whose(k.runs)
		list = append(list, Remark{Where: where + whose, Brief: brief + whose, Text: k.doubt.Text, Chance: chance && unsteady.MatchString(k.doubt.Text)})
	}
	return list
}

// distinctIDs returns the IDs sorted and without duplicates.
func distinctIDs(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// within reports whether the axis is a coordinate, so that a single run has several positions on
// it.
func (a axis) within() bool {
	return slices.ContainsFunc(measure.Placed(), func(m measure.Measure) bool { return m.At.Has(string(a)) })
}

// explainsInterval reports whether a warning only says why an interval of the point is missing.
func explainsInterval(p Point, warning string) bool {
	return slices.ContainsFunc(p.Measures, func(x *Summary) bool {
		return slices.ContainsFunc([]*Estimate{x.Median, x.Gain(), x.Efficiency()}, func(e *Estimate) bool {
			return e != nil && e.Why != "" && (x.Name == measure.Throughput || strings.HasPrefix(warning, "speedup: ")) && strings.HasSuffix(warning, e.Why)
		})
	})
}
