package summary

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// computed lists the measures that this package computes from steps, evaluations and
// clocks. Other declared measures come from the program.
var computed = append([]string{measure.Throughput, measure.EndToEnd, measure.TrainSeconds}, measure.Recorded()...)

// stated sets declared measures to reported values with the same name and unit. Measures in
// computed are only set from a log, and only if no step was recorded; a warning then says that
// another program's value does not follow our rules.
func (r *Outcome) stated(in Input) {
	for m := range measure.Each(in.Kind) {
		switch {
		case m.At != "":
		case m.Name == measure.ToTarget:
			r.toTarget(m, in)
		default:
			r.statedMeasure(m, in)
		}
	}
}

// statedMeasure sets one measure from the reported values that have its name and unit.
func (r *Outcome) statedMeasure(m measure.Measure, in Input) {
	ours := slices.Contains(computed, m.Name)
	if ours && (len(in.Steps) > 0 || !slices.Contains([]string{metrics.FigureThroughput, metrics.FigureEndToEnd, metrics.FigureTrainSeconds}, m.Name)) {
		return
	}
	var found []metrics.Figure
	for _, f := range in.Figures {
		if f.Name == m.Name && f.Unit == m.Unit && len(f.At) == 0 && (f.Value > 0 || !ours) {
			found = append(found, f)
		}
	}
	if m.Name == measure.RunSeconds && r.supervised(m, found) {
		return
	}
	r.one(m, found)
	switch {
	case len(found) == 1 && ours && (measure.KindOf(in.Kind).Trains || found[0].File != ""): // our own benchmark has measured it
		r.warn("%s", describe(found[0]))
	case len(found) > 1:
		r.warn("%s", r.Why[m.Name])
	}
}

// supervised sets a duration that the supervisors of the ranks measured. It is the longest one,
// because the run ends when all ranks have ended. The function reports whether a supervisor
// measured it.
func (r *Outcome) supervised(m measure.Measure, found []metrics.Figure) bool {
	measured := slices.DeleteFunc(slices.Clone(found), func(f metrics.Figure) bool { return f.File != "" })
	for _, f := range measured {
		r.Values[m.Name] = max(f.Value, r.Values[m.Name])
	}
	if len(measured) > 0 && len(found) > len(measured) {
		r.warn("a log also states run_seconds; the supervisor's measurement is used")
	}
	return len(measured) > 0
}

// toTarget sets the time at which the program reached its own target, or records that the run
// missed it. A run that missed it ranks after all runs that reached it.
func (r *Outcome) toTarget(m measure.Measure, in Input) {
	var found []metrics.Figure
	for _, f := range in.Figures {
		if (f.Name == metrics.FigureToTarget || f.Name == metrics.FigureMissedTarget) && f.Unit == m.Unit && len(f.At) == 0 && f.Value > 0 {
			found = append(found, f)
		}
	}
	r.one(m, found)
	switch {
	case len(found) > 1:
		r.warn("%s", r.Why[m.Name])
	case len(found) == 1 && found[0].Name == metrics.FigureMissedTarget:
		r.Values[m.Name] = math.Inf(1)
	}
}

// reported adds a measure for each reported value that is not a declared measure, with the same
// name and unit.
func (r *Outcome) reported(in Input) {
	of := map[string][]metrics.Figure{}
	for _, f := range in.Figures {
		if declared, err := measure.Find(f.Name); err == nil && declared.At == "" || len(f.At) > 0 || f.Name == metrics.FigureMissedTarget || f.Name == metrics.FigureResumed {
			continue
		}
		if of[f.Name] == nil {
			better, _ := measure.ParseDirection(f.Better) // validated when it was read
			r.Reported = append(r.Reported, measure.Reported(f.Name, f.Unit, better))
		}
		of[f.Name] = append(of[f.Name], f)
	}
	for _, m := range r.Reported {
		r.one(m, of[m.Name])
	}
}

// Add adds a reported value (figure) that may affect the result. One with coordinates is added only
// if a measure has these coordinates. It is stored in a compact form, because a benchmark of a
// million message sizes reports six million values.
func (in *Input) Add(f metrics.Figure) {
	switch m := placedMeasure(&f); {
	case len(f.At) == 0:
		in.Figures = append(in.Figures, f)
	case m != nil:
		in.place(m, &f)
	}
}

// place stores a reported value by its coordinates. If there are two with the same coordinates, the
// first is kept.
func (in *Input) place(m *measure.Measure, f *metrics.Figure) {
	if in.placed == nil {
		in.placed, in.again = &measure.Places{}, map[string]int{}
	}
	if !in.placed.Add(f.At, m.Name, f.Value) {
		in.again[m.Name]++
	}
}

// placed sets the values of measures with coordinates.
func (r *Outcome) placed(in Input) {
	for _, f := range in.Figures {
		if m := placedMeasure(&f); m != nil {
			in.place(m, &f)
		}
	}
	if in.placed == nil {
		return
	}
	for _, m := range placedMeasures() {
		if n := in.again[m.Name]; n > 0 {
			r.warn("%s is stated more than once at the same %s, %d times in all; the first is used", m.Name, strings.Join(m.At.Keys(), ", "), n)
		}
	}
	r.collectives(in.placed)
	r.Places = in.placed
}

var placedMeasures = sync.OnceValue(measure.Placed)

// Placed reports whether the reported value belongs to a measure with coordinates.
func Placed(f metrics.Figure) bool { return placedMeasure(&f) != nil }

// placedMeasure returns the measure with coordinates of which the figure is a value; nil if there
// is none.
func placedMeasure(f *metrics.Figure) *measure.Measure {
	if len(f.At) == 0 {
		return nil
	}
	list := placedMeasures()
	for i := range list {
		if m := &list[i]; f.Name == m.Name && f.Unit == m.Unit && m.AcceptsPlace(f.At) {
			return m
		}
	}
	return nil
}

// one sets a measure from the reported values with its name. If there are several, it is unknown
// which one is valid for the run, so the measure is not set.
func (r *Outcome) one(m measure.Measure, found []metrics.Figure) {
	switch {
	case len(found) > 1:
		delete(r.Values, m.Name)
		r.Why[m.Name] = fmt.Sprintf("%s: the logs state %d values, the first at %s and %s; nothing says which is the run's", m.Name, len(found), place(found[0]), place(found[1]))
	case len(found) == 1:
		delete(r.Why, m.Name)
		r.Values[m.Name] = found[0].Value
	}
}

// describe returns a description of a value from a log, without its position and ±, so that it is
// equal for all runs of a kind.
func describe(f metrics.Figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is stated by a log, not measured here", f.Name)
	if f.Note != "" {
		b.WriteString(": " + f.Note)
	}
	if f.PlusMinus != nil {
		fmt.Fprintf(&b, "; its ± is %s", f.PlusMinusIs)
	}
	return b.String()
}

func place(f metrics.Figure) string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}
