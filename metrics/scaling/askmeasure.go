package scaling

import (
	"fmt"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// UnknownMeasure is the error for an unknown name of a measure.
type UnknownMeasure struct {
	Name     string
	Known    []string
	Measured []string // those that the runs have values of, their own figures first
}

func (e *UnknownMeasure) Error() string {
	return fmt.Sprintf("unknown measure %q", e.Name)
}

// FindMeasure returns the measure of that name: one that the runs report, a declared one, or the
// time to a target. A rate has the unit that it has in these runs. The error is an
// *UnknownMeasure.
func FindMeasure(obs []Observation, name string) (measure.Measure, error) {
	own := reported(obs)
	if i := slices.IndexFunc(own, func(m measure.Measure) bool { return m.Name == name }); i >= 0 {
		return own[i], nil
	}
	m, err := measure.Find(name)
	if err != nil {
		return m, &UnknownMeasure{name, knownNames(obs), measuredNames(obs)}
	}
	return m.Counting(sampleOfAll(obs)), nil
}

// knownNames returns the names of all measures: the declared ones, then those that the runs
// report.
func knownNames(obs []Observation) []string {
	names := measure.Names()
	for _, m := range reported(obs) {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// measuredNames returns the names of the measures that the runs have values of, the reported ones first.
func measuredNames(obs []Observation) []string {
	has := map[string]bool{}
	for _, o := range obs {
		for name := range o.Values {
			has[name] = true
		}
		for _, p := range o.Places {
			for name := range p.Values {
				has[name] = true
			}
		}
	}
	var own []string
	for _, m := range reported(obs) {
		if has[m.Name] {
			delete(has, m.Name)
			own = append(own, m.Name)
		}
	}
	return append(own, slices.Sorted(maps.Keys(has))...)
}

// ownFigure returns the only figure of the user's own that the runs report with a better direction. It returns nil
// if there are several, or if the runs have a throughput or a time to a target, by which they are compared.
func ownFigure(obs []Observation) (only *measure.Measure) {
	for i := range obs {
		for name := range obs[i].Values {
			if _, goal := measure.TargetOf(name); goal || name == measure.Throughput || name == measure.ToTarget {
				return nil
			}
		}
		for _, m := range obs[i].Reported {
			if _, err := measure.Find(m.Name); err == nil || m.Better == measure.Neither || m.At != "" {
				continue
			}
			if only != nil && only.Name != m.Name {
				return nil
			}
			only = &m
		}
	}
	return only
}

// Compared returns the name of the measure by which advice compares trainings without a throughput and a target: their
// only figure with a better direction, else as Instead. It returns "" if there is none, or if one is not needed.
func (a *Answer) Compared() string {
	if own := ownFigure(a.Observations); a.Kind.Trains && own != nil {
		return own.Name
	}
	return a.Instead()
}

// Instead returns the name of the measure that compares trainings without a rate and a target: their own figure or, if all
// were imported, the times of whole trainings that they state. It returns "" if there is none, or if one is not needed.
func (a *Answer) Instead() string {
	if !a.Kind.Trains {
		return ""
	}
	imported := true
	for i := range a.Observations {
		o := &a.Observations[i]
		if o.Known(measure.Throughput) != nil || o.Known(measure.TokensPerSecond) != nil || len(o.Targets()) > 0 {
			return ""
		}
		imported = imported && o.Imported()
	}
	if own := ownFigure(a.Observations); own != nil {
		return own.Name
	}
	if imported && slices.ContainsFunc(a.Observations, func(o Observation) bool { return o.Known(measure.TrainSeconds) != nil }) {
		return measure.TrainSeconds
	}
	return ""
}
