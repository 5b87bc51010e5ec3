// Package busbw holds the results of collective benchmarks, our own and imported ones:
// times and bandwidths by operation, message size and placement, and the latency and
// bandwidth fitted to them.
//
// Each measurement is stored as figures (metrics.Figure), the form in which
// nccl-tests' logs are imported too. Package measure declares their names and
// coordinates.
//
// Times are in seconds, sizes in bytes, bandwidths in bytes/s.
package busbw

import (
	"cmp"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// The coordinates of a figure: the operation (a text, missing if the log does not name
// it), the size in bytes, and in_place (0 or 1).
const (
	opKey    = measure.Op
	bytesKey = measure.Bytes
	placeKey = measure.InPlace
)

// A Measurement is one operation at one size, in place or out of place. Values that
// were not measured are nil.
type Measurement struct {
	Op      string  // "all_reduce"; "" if the log does not name it
	Bytes   float64 // of the whole array
	InPlace bool
	// Iterations is the number of iterations measured; 0 if unknown.
	Iterations int
	// Seconds is the median over the iterations of the slowest rank's time. For
	// nccl-tests it is the mean, as the log states.
	Seconds        *float64
	Min, Mean, P99 *float64 // seconds, over the iterations
	CV             *float64 // standard deviation over mean
	AlgBW, BusBW   *float64
}

// At returns the coordinates of a figure. An empty op is left out.
func At(op string, size float64, inPlace bool) map[string]any {
	at := Link{Op: op, InPlace: inPlace}.At()
	at[bytesKey] = size
	return at
}

// At returns the coordinates of the fit.
func (l Link) At() map[string]any {
	at := map[string]any{placeKey: number(l.InPlace)}
	if l.Op != "" {
		at[opKey] = l.Op
	}
	return at
}

// order lists the operations most used in training first.
var order = []string{"all_reduce", "reduce_scatter", "all_gather", "broadcast"}

// compareOps orders operations as in order; unknown ones come last, by name.
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

// parts returns the figures that make up a measurement.
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

// Figures returns the measurement as figures, leaving out missing values.
func (m Measurement) Figures() []metrics.Figure {
	var list []metrics.Figure
	for _, p := range m.parts() {
		if *p.value != nil {
			list = append(list, metrics.Figure{Name: p.name, Value: **p.value, Unit: p.unit, At: At(m.Op, m.Bytes, m.InPlace), Reduce: p.reduce, Of: m.Iterations})
		}
	}
	return list
}

// Group groups a run's figures into measurements, sorted by operation, placement and
// size. rest holds the figures that belong to no measurement, such as those without a
// size.
func Group(figures []metrics.Figure) (list []Measurement, rest []metrics.Figure) {
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

// A place identifies a measurement.
type place struct {
	op      string
	bytes   float64
	inPlace bool
}

// take adds a figure to its measurement in list and reports whether it did; at maps
// places to indexes in list.
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
				return false // a duplicate: keep the first, and return the second in rest
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
