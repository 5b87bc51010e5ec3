package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/exchange"
	"github.com/scalebench/scalebench/metrics/store"
)

// curveOptions say which runs of a study become which curves.
type curveOptions struct {
	study  string
	base   string // a place on the axis; "": the smallest of each series
	mix    bool
	axis   string // a parameter; "": workers
	where  string // SQL condition
	series cli.StringSlice

	baseline cli.StringSlice // KEY=VALUE
}

func (o *curveOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "base", Destination: &o.base, DefaultText: "the smallest of each series",
			Usage: "divide by the point with `N` workers, or with this value of the axis"},
		mixFlag(&o.mix),
		&cli.StringFlag{Name: "where", Destination: &o.where,
			Usage: "only runs for which SQL `CONDITION` holds: \"workload.batch > 64\""},
		&cli.StringSliceFlag{Name: "series", Destination: &o.series, Usage: "only the series `NAME`, as scaling prints it; may be given again"},
	}
}

// axisFlag is for commands that can draw or print along any parameter.
func (o *curveOptions) axisFlag() cli.Flag {
	return &cli.StringFlag{Name: "axis", Aliases: []string{"x"}, Destination: &o.axis, DefaultText: "workers", Usage: "along the parameter `KEY`, such as workload.batch"}
}

func baselineFlag(list *cli.StringSlice) cli.Flag {
	return &cli.StringSliceFlag{Name: "baseline", Destination: list,
		Usage: "divide by the configuration with `KEY=VALUE`, like workers=1 or platform=cpu8, that is otherwise the same; may be given again to say more of it"}
}

// conditions are what --baseline says.
func conditions(list cli.StringSlice) ([]scaling.Condition, error) {
	var conditions []scaling.Condition
	for _, text := range list.Value() {
		c, err := scaling.ParseCondition(text)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("--baseline: %w", err)}
		}
		conditions = append(conditions, c)
	}
	return conditions, nil
}

func mixFlag(mix *bool) cli.Flag {
	return &cli.BoolFlag{Name: "mix", Destination: mix, DisableDefaultText: true,
		Usage: "let one curve hold runs that ran on different things: nodes, drivers, versions"}
}

// baseAt is the place that --base names; nil for none.
func (o *curveOptions) baseAt(axis string) (*scaling.Value, error) {
	if o.base == "" {
		return nil, nil
	}
	if x, err := strconv.ParseFloat(o.base, 64); err == nil {
		if axis == scaling.Workers && !(x >= 1 && x == float64(int(x))) {
			return nil, usagef("--base %s is not a worker count; give 1 or more", o.base)
		}
		return &scaling.Value{Number: x}, nil
	}
	if axis == scaling.Workers {
		return nil, usagef("--base %q is not a worker count; give 1 or more", o.base)
	}
	return &scaling.Value{Word: o.base}, nil
}

// axisKey is the parameter that name means: its TOML path, or its last part
// where only one has it.
func axisKey(flag, name string, obs []scaling.Observation, planned []scaling.Planned) (string, error) {
	if name == "" || name == scaling.Workers {
		return scaling.Workers, nil
	}
	values := map[string]map[string]bool{}
	note := func(parameters map[string]any) {
		for k, v := range parameters {
			if values[k] == nil {
				values[k] = map[string]bool{}
			}
			values[k][scaling.ValueOf(v).String()] = true
		}
	}
	for _, o := range obs {
		note(o.Parameters)
	}
	for _, p := range planned {
		note(p.Parameters)
	}
	var fit, swept []string
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
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", usagef("%s %q could be %s; give the whole key", flag, name, strings.Join(fit, " or "))
	}
	return "", usagef("%s %q: the runs have no such parameter; these differ between them: %s", flag, name, strings.Join(swept, ", "))
}

// chosen are the series with the given names.
func chosen(curves []scaling.Curve, names []string) ([]scaling.Curve, error) {
	var list []scaling.Curve
	var known []string
	for _, c := range curves {
		known = append(known, strconv.Quote(c.Series))
		if slices.Contains(names, c.Series) {
			list = append(list, c)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(c scaling.Curve) bool { return c.Series == name }) {
			return nil, usagef("--series %q: there is no such series; there are %s", name, strings.Join(known, ", "))
		}
	}
	return list, nil
}

// analysis is a study's runs as curves.
type analysis struct {
	observations []scaling.Observation
	curves       []scaling.Curve
	warnings     []string // on the study as a whole
	axis         string   // the parameter along which the curves run
	noBase       error    // some series have no base, and what to run; nil
	nothing      error    // none of the runs is a training, for what only trainings have; nil
	baseline     []scaling.Condition
}

// analyse reads the study's good runs from the database. What is planned is
// taken from the run folder, or as it was when the runs were collected: so that a
// base that never ran is missed.
func (s *session) analyse(ctx context.Context, o curveOptions) (*analysis, error) {
	study := o.study
	name, err := studyName(study)
	if err != nil {
		return nil, err
	}
	db, err := s.openStore()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	a := &analysis{}
	if a.observations, a.warnings, err = db.Select(ctx, store.Filter{Study: name, Where: o.where}); err != nil {
		return nil, storeError(err)
	}
	a.nothing = noTraining(name, a.observations)
	var planned []scaling.Planned
	if o.where == "" { // a condition chooses among runs, and says nothing of points without one
		folder, err := s.find(ctx, study)
		if err != nil {
			return nil, err
		}
		plan, err := launcher.ReadPlan(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.warn("%v; taking what the database has of the plan", err)
		}
		if err == nil {
			planned = plannedPoints(plan)
		} else if planned, err = db.Planned(ctx, name); err != nil {
			return nil, storeError(err)
		}
	}
	file := study // run and submit take the study's file
	if file == name {
		file += ".toml"
	}
	what := fmt.Sprintf("Run it with `%s run %s` or `%s submit %s`, then `%s collect %s`", appName, file, appName, file, appName, name)
	if len(a.observations) == 0 && o.where != "" {
		a.warn(s)
		return nil, &usageError{err: fmt.Errorf("study %q has no good run for which --where holds", name), hint: "`" + appName + " runs --study " + name + "` lists its runs."}
	}
	if len(a.observations) == 0 && len(planned) == 0 {
		a.warn(s)
		return nil, &usageError{err: fmt.Errorf("study %q has no good run yet", name), hint: what + "."}
	}
	if a.axis, err = axisKey("--axis", o.axis, a.observations, planned); err != nil {
		return nil, err
	}
	base, err := o.baseAt(a.axis)
	if err != nil {
		return nil, err
	}
	if a.baseline, err = conditions(o.baseline); err != nil {
		return nil, err
	}
	a.curves, err = scaling.Analyse(a.observations, scaling.Options{Axis: a.axis, Base: base, Baseline: a.baseline, Planned: planned, Mix: o.mix})
	if a.baseline != nil && err != nil {
		return nil, &usageError{err: fmt.Errorf("--baseline: %w", err)}
	}
	if names := o.series.Value(); len(names) > 0 {
		var e error
		if a.curves, e = chosen(a.curves, names); e != nil {
			return nil, e
		}
	}
	if benchmarks, _, e := db.Collectives(ctx, store.Filter{Kind: "collective"}); e != nil {
		return nil, storeError(e)
	} else {
		exchange.Predict(a.curves, a.observations, benchmarks)
	}
	var noBase *scaling.NoBaseError
	if errors.As(err, &noBase) {
		if slices.ContainsFunc(noBase.Missing, func(m scaling.MissingBase) bool { return m.Unsteady }) {
			what = "Runs whose step times never settled are not run again by themselves: make them longer (epochs, max_steps), raise study.repeats, or keep jobs from disturbing each other (exclusive, policy.chain)"
		}
		what += "; or divide by another point with --base N."
		if slices.ContainsFunc(a.curves, scaling.Curve.Divided) {
			what = "Runs that ran on different nodes, drivers or versions are series of their own; --mix joins them.\n" + what
		}
		a.noBase = &usageError{err: err, hint: what}
		err = nil
	}
	return a, err
}

// trainings is analyse for what only trainings have.
func (s *session) trainings(ctx context.Context, o curveOptions) (*analysis, error) {
	a, err := s.analyse(ctx, o)
	if err == nil {
		err = a.nothing
	}
	return a, err
}

// plannedPoints are the points of a plan.
func plannedPoints(plan *study.Plan) []scaling.Planned {
	seen := map[string]bool{} // its repeats are one point
	var list []scaling.Planned
	for _, p := range plan.Points {
		if !seen[p.Point.ID] {
			seen[p.Point.ID] = true
			list = append(list, scaling.Planned{Point: p.Point.ID, Framework: p.Point.Framework, Workers: p.Point.Workers, Parameters: p.Point.Parameters()})
		}
	}
	return list
}
