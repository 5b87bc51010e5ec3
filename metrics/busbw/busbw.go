// Package busbw is what a benchmark of collectives measures, whoever ran
// it: times and bandwidths by operation, size and place, and the latency and
// bandwidth that are fitted to them.
//
// A measurement is stored as figures (metrics.Figure), as nccl-tests' logs are,
// so that our own benchmark and an imported one are read alike. Their names and
// coordinates are those of package measure.
//
// Times are in seconds, sizes in bytes, bandwidths in bytes/s.
package busbw

import (
	"cmp"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// Each figure is of an operation (at.op, a text, missing where a log does not
// say), at a size (at.bytes) and a place (at.in_place, 0 or 1).
const (
	opKey    = measure.Op
	bytesKey = measure.Bytes
	placeKey = measure.InPlace
)

// Measurement is one operation at one size, in place or not. What was not
// measured is nil.
type Measurement struct {
	Op      string  // "all_reduce"; "" where a log does not say
	Bytes   float64 // of the whole array
	InPlace bool
	// Iterations that the figures are made of; 0: not stated.
	Iterations int
	// Seconds is the median over the iterations, each as long as its slowest
	// rank took, or what the log states (nccl-tests: their mean).
	Seconds        *float64
	Min, Mean, P99 *float64 // seconds, over the iterations
	CV             *float64 // standard deviation over mean
	AlgBW, BusBW   *float64
}

// At is what a figure of the benchmark is of. An op of "" is not stated.
func At(op string, size float64, inPlace bool) map[string]any {
	at := Link{Op: op, InPlace: inPlace}.At()
	at[bytesKey] = size
	return at
}

// At is what the fit is of.
func (l Link) At() map[string]any {
	at := map[string]any{placeKey: number(l.InPlace)}
	if l.Op != "" {
		at[opKey] = l.Op
	}
	return at
}

// order is how operations are listed, what trainings do first.
var order = []string{"all_reduce", "reduce_scatter", "all_gather", "broadcast"}

// compareOps orders operations; those that nobody here knows come last, by name.
func compareOps(a, b string) int {
	rank := func(op string) int {
		if i := slices.Index(order, op); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func number(inPlace bool) float64 {
	if inPlace {
		return 1
	}
	return 0
}

// parts are the figures of a measurement.
func (m *Measurement) parts() []part {
	return []part{
		{measure.Time, "s", "median", &m.Seconds}, {measure.TimeMin, "s", "min", &m.Min}, {measure.TimeMean, "s", "mean", &m.Mean},
		{measure.TimeP99, "s", "99th percentile", &m.P99}, {measure.TimeCV, "", "", &m.CV}, {measure.AlgBW, "B/s", "", &m.AlgBW}, {measure.BusBW, "B/s", "", &m.BusBW},
	}
}

type part struct {
	name, unit, reduce string
	value              **float64
}

// Figures are the measurement as it is recorded.
func (m Measurement) Figures() []metrics.Figure {
	var list []metrics.Figure
	for _, p := range m.parts() {
		if *p.value != nil {
			list = append(list, metrics.Figure{Name: p.name, Value: **p.value, Unit: p.unit, At: At(m.Op, m.Bytes, m.InPlace), Reduce: p.reduce, Of: m.Iterations})
		}
	}
	return list
}

// Of takes the measurements out of a run's figures, by operation, place and
// size; rest are the other figures. A figure without a size is no part of one.
func Of(figures []metrics.Figure) (list []Measurement, rest []metrics.Figure) {
	at := map[place]int{}
	for _, f := range figures {
		if !take(&list, at, f) {
			rest = append(rest, f)
		}
	}
	slices.SortStableFunc(list, func(a, b Measurement) int {
		return cmp.Or(compareOps(a.Op, b.Op), cmp.Compare(number(a.InPlace), number(b.InPlace)), cmp.Compare(a.Bytes, b.Bytes))
	})
	return list, rest
}

// place is what a measurement is of.
type place struct {
	op      string
	bytes   float64
	inPlace bool
}

// take puts a figure where it belongs: at says which of the list that is.
func take(list *[]Measurement, at map[place]int, f metrics.Figure) bool {
	size, sized := f.At[bytesKey].(float64)
	where, placed := f.At[placeKey].(float64)
	op, _ := f.At[opKey].(string)
	if !sized || !placed {
		return false
	}
	key := place{op, size, where != 0}
	i, known := at[key]
	m := Measurement{Op: op, Bytes: size, InPlace: key.inPlace}
	if known {
		m = (*list)[i]
	}
	for _, p := range m.parts() {
		if p.name == f.Name {
			if *p.value != nil {
				return false // stated twice; the first stays, the second is shown as it is
			}
			v := f.Value
			*p.value = &v
			m.Iterations = max(m.Iterations, f.Of)
			if known {
				(*list)[i] = m
			} else {
				at[key] = len(*list)
				*list = append(*list, m)
			}
			return true
		}
	}
	return false
}
