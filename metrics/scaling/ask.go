package scaling

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/maruel/natural"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// This file answers a question about the runs of a study: which measure, along which axis, of which
// series, relative to what. It finds the measure, axis and series that the question names, builds
// the curves, and reports each warning about them once.

// A Question selects a measure and an axis. The zero value asks for the main measures of the
// study's kind of workload over its usual axis.
type Question struct {
	Measure string // name of a measure; "": the main measures of the kind of workload
	Axis    string // a parameter or coordinate by its path, or by the last part of it; "": the measure's own
	// Picture is set if the answer is plotted. If Axis is "" and all runs have the same number of
	// workers, the load coordinate with the most values becomes the axis. Axis may then also name
	// another measure, which becomes the x axis, and Along the parameter that connects points.
	Picture  bool
	Along    string
	Base     string      // position of the base on the axis; "": the smallest of each series
	Baseline []Condition // conditions that define a baseline, to use instead of a base
	At       []Condition // conditions on positions within the runs, such as loads; other positions are left out
	Series   []string    // names of the series to return; empty: all
	Mix      bool        // see Options
	// Shown, Confidence and FewRuns have the meaning that they have in Options.
	Shown      func(measure.Measure) bool
	Confidence float64
	FewRuns    bool
}

// An Answer holds the curves, with the axis and the measures that the question selected.
type Answer struct {
	Observations []Observation
	Curves       []Curve
	Axis         string
	// Kind is the kind of workload whose runs are used. If no measure was requested and any run is
	// a training, it is "train".
	Kind measure.Kind
	// Measures has the requested measure or, if none was requested, the main measures of the kind
	// of workload.
	Measures []measure.Measure
	// Against is the measure on the x axis, if Question.Axis names one; nil if it is a parameter.
	Against *measure.Measure
	// NoBase lists the series without a base, which therefore have no ratios; nil if there are
	// none.
	NoBase   *NoBaseError
	Baseline []Condition
	Warnings []string // about the whole study, and about runs that were left out
}

// Ask answers a question from the successful runs of a study and the points of its plan. The
// error is a *QuestionError or an *UnknownMeasure if the question has no answer; any other error
// is about the runs.
func Ask(obs []Observation, planned []Planned, q Question) (*Answer, error) {
	a := &Answer{Observations: obs, Kind: KindAsked(obs), Baseline: q.Baseline}
	var of measure.Measure
	var err error
	if q.Measure != "" {
		if of, err = FindMeasure(obs, q.Measure); err != nil {
			return nil, err
		}
		a.Measures = []measure.Measure{of}
	} else {
		a.keep(&planned)
		a.Measures = main(a.Observations, a.Kind.Name)
		if !a.Kind.Trains && len(a.Measures) > 0 {
			of = a.Measures[0]
		}
	}
	if q.At != nil {
		if a.Observations, err = FilterPositions(a.Observations, q.At); err != nil {
			return nil, &QuestionError{"at", err}
		}
	}
	if err := a.along(q, of, planned); err != nil {
		return nil, err
	}
	base, err := baseAt(q.Base, a.Axis)
	if err != nil {
		return nil, &QuestionError{"base", err}
	}
	a.Curves, err = Analyse(a.Observations, Options{Measure: of, Axis: a.Axis, Base: base, Baseline: q.Baseline, Planned: planned, Mix: q.Mix, Shown: q.Shown, Confidence: q.Confidence, FewRuns: q.FewRuns})
	if q.Baseline != nil && err != nil {
		return nil, &QuestionError{"baseline", err}
	}
	if err != nil && !errors.As(err, &a.NoBase) {
		return nil, err
	}
	if len(q.Series) > 0 {
		if a.Curves, err = chosen(a.Curves, q.Series); err != nil {
			return nil, &QuestionError{"series", err}
		}
	}
	return a, nil
}

// along sets the axis, and for a picture over another measure that measure.
func (a *Answer) along(q Question, of measure.Measure, planned []Planned) (err error) {
	along := cmp.Or(q.Axis, of.Axis)
	if along == "" && q.Picture {
		along = widestLoad(a.Observations, of)
	}
	if a.Axis, err = KeyNamed(along, a.Observations, planned, of); err != nil && q.Picture {
		if a.Against, err = against(a.Observations, q.Axis, of, err); err == nil {
			a.Axis, err = KeyNamed(cmp.Or(q.Along, of.Axis, joined(a.Observations, of)), a.Observations, planned, of)
			if err != nil {
				return &QuestionError{"along", err}
			}
		}
	}
	if err != nil {
		return &QuestionError{"axis", err}
	}
	if q.Along != "" && a.Against == nil {
		return &QuestionError{"along", fmt.Errorf("%s: points are joined along the axis; --along is for an axis that is a measure, such as -x %s", q.Along, measure.RequestsPerSecond)}
	}
	return nil
}

// against returns the measure with this name, for the x axis. If there is no such measure, it
// returns the error no, which says why the name is not a parameter either.
func against(obs []Observation, name string, of measure.Measure, no error) (*measure.Measure, error) {
	x, err := FindMeasure(obs, name)
	if err != nil {
		return nil, no
	}
	if x.At != of.At {
		words := func(m measure.Measure) string {
			if m.At == "" {
				return "once in a run"
			}
			return "at each " + strings.Join(m.At.Keys(), ", ")
		}
		return nil, fmt.Errorf("%s is measured %s, and %s %s: they have no points in common", x.Name, words(x), of.Name, words(of))
	}
	return &x, nil
}

// joined returns the coordinate along which the points of a measure are connected: requests in
// flight or requests/s, whichever has more values, or else the batch. It is "" for the workers.
func joined(obs []Observation, of measure.Measure) string {
	values := valuesAt(obs, of)
	threads, rate := len(values[measure.Threads]), len(values[measure.Rate])
	switch {
	case rate > 1 && rate >= threads:
		return measure.Rate
	case threads > 1:
		return measure.Threads
	case len(values[measure.Batch]) > 1:
		return measure.Batch
	}
	return ""
}

// widestLoad returns the load coordinate that has the most values for a measure, if all runs have
// the same number of workers (a plot over workers would then have one position). It returns "" if
// the workers vary, or if no coordinate varies.
func widestLoad(obs []Observation, of measure.Measure) string {
	if of.At == "" || slices.ContainsFunc(obs, func(o Observation) bool { return o.Workers != obs[0].Workers }) {
		return ""
	}
	values := valuesAt(obs, of)
	most, found := 2, ""
	for _, key := range of.At.Keys() {
		if n := len(values[key]); n >= most && measure.DescribesLoad(key) {
			most, found = n, key
		}
	}
	return found
}

// valuesAt returns, for each coordinate, the values at which a measure was measured.
func valuesAt(obs []Observation, of measure.Measure) map[string]map[any]bool {
	values := map[string]map[any]bool{}
	for i := range obs {
		for _, p := range of.FilterPlaces(obs[i].Places) {
			if _, has := p.Values[of.Name]; !has {
				continue
			}
			for key, value := range p.At {
				if values[key] == nil {
					values[key] = map[any]bool{}
				}
				values[key][value] = true
			}
		}
	}
	return values
}

// A QuestionError reports which part of a Question is not valid, and why.
type QuestionError struct {
	Part string // "axis", "along", "base", "baseline", "series", "at"
	Err  error
}

func (e *QuestionError) Error() string { return e.Part + ": " + e.Err.Error() }
func (e *QuestionError) Unwrap() error { return e.Err }

// KindAsked returns the kind of workload of the runs: a training if any run trains or states no
// kind, or else the alphabetically first kind.
func KindAsked(obs []Observation) measure.Kind {
	name := ""
	for _, o := range obs {
		if _, rate := o.Value(measure.Throughput); rate || o.Kind != "" && measure.KindOf(o.Kind).Trains {
			return measure.KindOf("")
		}
		if name == "" || o.Kind != "" && o.Kind < name {
			name = o.Kind
		}
	}
	return measure.KindOf(name)
}

// keep drops the runs and planned points of other kinds of workload than a.Kind, and adds a warning
// with their number.
func (a *Answer) keep(planned *[]Planned) {
	others := map[string]int{}
	other := func(o Observation) bool {
		_, rate := o.Value(measure.Throughput)
		kind := measure.KindOf(o.Kind).Name
		if kind == a.Kind.Name || rate && a.Kind.Trains {
			return false
		}
		others[kind]++
		return true
	}
	if slices.ContainsFunc(a.Observations, other) { // avoids copying a million runs
		clear(others)
		a.Observations = slices.DeleteFunc(slices.Clone(a.Observations), other)
	}
	*planned = slices.DeleteFunc(slices.Clone(*planned), func(p Planned) bool {
		kind, said := p.Parameters["workload.kind"].(string)
		return said && !a.Kind.Like(measure.KindOf(kind))
	})
	for _, kind := range slices.Sorted(maps.Keys(others)) {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%s of kind %q left out; name a measure with -m to include them", number.Count(others[kind], "run"), kind))
	}
}

// main returns the main measures of a kind of workload: the first declared measure that some run
// has, and the measures with the same coordinates. For a kind without declared measures, it
// returns what its runs report.
func main(obs []Observation, kind string) []measure.Measure {
	list := measure.ForKind(kind)
	if len(list) > 0 {
		measured := slices.IndexFunc(list, func(m measure.Measure) bool {
			return slices.ContainsFunc(obs, func(o Observation) bool {
				if m.At != "" {
					return len(m.FilterPlaces(o.Places)) > 0
				}
				_, has := o.Value(m.Name)
				return has
			})
		})
		first := list[max(0, measured)]
		return slices.DeleteFunc(list, func(m measure.Measure) bool { return m.At != first.At })
	}
	return reported(obs)
}

// reported returns the measures that the runs' programs report, sorted by name.
func reported(obs []Observation) []measure.Measure {
	of := map[string]measure.Measure{}
	for _, o := range obs {
		for _, m := range o.Reported {
			of[m.Name] = m
		}
	}
	return slices.SortedFunc(maps.Values(of), func(a, b measure.Measure) int { return cmp.Compare(a.Name, b.Name) })
}

// Reported returns the measures that runs report in addition to their kind's, sorted by
// name.
func (a *Answer) Reported() []measure.Measure { return reported(a.Observations) }

// KeyNamed returns the parameter or coordinate that a name means: its TOML path, the last
// part of a path if only one path ends with it, or a coordinate of the measure. The name ""
// means the number of workers.
func KeyNamed(name string, obs []Observation, planned []Planned, of measure.Measure) (string, error) {
	if name == "" || name == Workers || of.At.Has(name) {
		return cmp.Or(name, Workers), nil
	}
	values := map[string]map[string]bool{}
	note := func(parameters map[string]any) {
		for k, v := range parameters {
			if values[k] == nil {
				values[k] = map[string]bool{}
			}
			values[k][ValueOf(v).String()] = true
		}
	}
	for _, o := range obs {
		note(o.Parameters)
	}
	for _, p := range planned {
		note(p.Parameters)
	}
	var fit []string
	swept := of.At.Keys()
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if k == name {
			return name, nil
		}
		if strings.HasSuffix(k, "."+name) {
			fit = append(fit, k)
		}
		if len(values[k]) > 1 {
			swept = append(swept, k)
		}
	}
	switch {
	case len(fit) == 0 && name == "replicas": // in a study of a service, workers are called replicas
		return Workers, nil
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", fmt.Errorf("%q could be %s; give the whole key", name, strings.Join(fit, " or "))
	}
	return "", fmt.Errorf("%q: the runs have no such parameter; these differ between them: %s", name, strings.Join(swept, ", "))
}

// baseAt returns the position on the axis that a user named as the base; nil for "".
func baseAt(name, axis string) (*Value, error) {
	if name == "" {
		return nil, nil
	}
	x, err := strconv.ParseFloat(name, 64)
	switch {
	case err != nil && axis == Workers:
		return nil, fmt.Errorf("%q is not a worker count; give 1 or more", name)
	case err != nil:
		return &Value{Word: name}, nil
	case axis == Workers && !(x >= 1 && x == float64(int(x))):
		return nil, fmt.Errorf("%s is not a worker count; give 1 or more", name)
	}
	return &Value{Number: x}, nil
}

// chosen returns the series with the given names, or an error that lists the valid names.
func chosen(curves []Curve, names []string) ([]Curve, error) {
	var list []Curve
	var known []string
	for _, c := range curves {
		known = append(known, strconv.Quote(c.Series))
		if slices.Contains(names, c.Series) {
			list = append(list, c)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(c Curve) bool { return c.Series == name }) {
			slices.SortFunc(known, natural.Compare)
			return nil, fmt.Errorf("%q: unknown series; valid: %s", name, strings.Join(known, ", "))
		}
	}
	return list, nil
}
