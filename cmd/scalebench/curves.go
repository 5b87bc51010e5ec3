package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/exchange"
	"github.com/scalebench/scalebench/metrics/scaling/inquiry"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
	"github.com/scalebench/scalebench/metrics/store"
)

// curveOptions say which runs of a study become which curves.
type curveOptions struct {
	picture bool   // as in inquiry.Question
	along   string // likewise
	study   string
	measure string // "": what the kind of workload is about
	shown   func(measure.Measure) bool
	base    string // a place on the axis; "": the smallest of each series
	mix     bool
	axis    string             // a parameter or coordinate; "": the measure's own
	where   string             // SQL condition
	points  map[string]bool    // by identity: only their runs; nil: all
	edited  bool               // also points that the study file does not have
	design  *sequential.Design // the study is looked at while it grows; nil: it is not
	series  cli.StringSlice

	// prices is the site file for a measure that is made of prices; nil: the command
	// has no such thing. "" is the file that the study names.
	prices *string

	baseline cli.StringSlice // KEY=VALUE
	at       cli.StringSlice // KEY=VALUE

	// prepare changes what was read before it is asked; nil: nothing.
	prepare func([]scaling.Observation, []scaling.Planned)
}

func (o *curveOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "base", Destination: &o.base, DefaultText: "the smallest of each series",
			Usage: "divide by the point with `N` workers, or with this value of the axis"},
		mixFlag(&o.mix),
		whereFlag(&o.where),
		&cli.BoolFlag{Name: "unplanned", Destination: &o.edited, DisableDefaultText: true, Usage: "include points that are not in the study file"},
		&cli.StringSliceFlag{Name: "series", Destination: &o.series, Usage: "only the series `NAME`, as in JSON and warnings, such as \"native batch=64\"; may be repeated"},
	}
}

// axisFlag is for commands that can draw or print along any parameter.
func (o *curveOptions) axisFlag() cli.Flag {
	return &cli.StringFlag{Name: "axis", Aliases: []string{"x"}, Destination: &o.axis, DefaultText: "workers, or the measure's own axis within a run", Usage: "draw or list along the parameter `KEY`, such as workload.batch"}
}

func atFlag(list *cli.StringSlice) cli.Flag {
	return &cli.StringSliceFlag{Name: "at", Destination: list, Usage: "only a run's values at `KEY=VALUE`, such as op=all_reduce or bytes=1048576; may be repeated"}
}

func baselineFlag(list *cli.StringSlice) cli.Flag {
	return &cli.StringSliceFlag{Name: "baseline", Destination: list,
		Usage: "divide by the otherwise equal configuration with `KEY=VALUE`, such as workers=1 or platform=cpu8; repeat to narrow it down"}
}

// conditions are what a flag like --baseline says.
func conditions(flag string, list cli.StringSlice) ([]scaling.Condition, error) {
	var conditions []scaling.Condition
	for _, text := range list.Value() {
		c, err := scaling.ParseCondition(text)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", flag, err)}
		}
		conditions = append(conditions, c)
	}
	return conditions, nil
}

func mixFlag(mix *bool) cli.Flag {
	return &cli.BoolFlag{Name: "mix", Destination: mix, DisableDefaultText: true,
		Usage: "join runs on different hardware, drivers or versions into one curve"}
}

// question is what the options ask of the runs.
func (o *curveOptions) question() (q inquiry.Question, err error) {
	q = inquiry.Question{Measure: o.measure, Axis: o.axis, Picture: o.picture, Along: o.along, Base: o.base, Mix: o.mix, Shown: o.shown}
	if o.design != nil {
		q.Confidence, q.FewRuns = o.design.Confidence, true
	}
	if names := o.series.Value(); len(names) > 0 {
		q.Series = names
	}
	if q.Baseline, err = conditions("--baseline", o.baseline); err != nil {
		return q, err
	}
	q.At, err = conditions("--at", o.at)
	return q, err
}

// loadOf is the load within runs that a condition names, such as threads = 4: people
// write it for --at.
func loadOf(where string) (at scaling.Condition, ok bool) {
	key, value, _ := strings.Cut(where, "=")
	key, value = strings.TrimSpace(key), strings.Trim(value, "= ")
	if _, err := strconv.ParseFloat(value, 64); err != nil || !measure.OfLoad(key) {
		return at, false
	}
	return scaling.Condition{Key: key, Value: value}, true
}

// unanswered is an error of package inquiry in the words of the options.
func unanswered(err error) error {
	var part *inquiry.Error
	var unknown *inquiry.UnknownMeasure
	switch {
	case errors.As(err, &part) && (part.Part == "baseline" || part.Part == "at"):
		return &usageError{err: fmt.Errorf("--%s: %w", part.Part, part.Err)}
	case errors.As(err, &part):
		return &usageError{err: fmt.Errorf("--%s %w", part.Part, part.Err)}
	case errors.As(err, &unknown):
		return &usageError{err: err, hint: study.SpellingHint(unknown.Name, unknown.Known)}
	}
	return err
}

// analysis is the answer to a question, with what this command line says of it.
type analysis struct {
	*inquiry.Answer
	study  string             // its name
	design *sequential.Design // as in curveOptions
	noBase error              // some series have no base, and what to run; nil
	// answered reports whether the answer that was printed has the decisive warnings.
	answered bool
}

// analyse reads the study's good runs from the database and asks them. What is
// planned is taken from the run folder, or as it was when the runs were collected:
// so that a base that never ran is missed.
func (s *session) analyse(ctx context.Context, o curveOptions) (*analysis, error) {
	name, err := workspace.StudyName(o.study)
	if err != nil {
		return nil, err
	}
	db, err := s.openStore()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	told, err := o.designed(ctx, db, name)
	if err != nil {
		return nil, err
	}
	question, err := o.question()
	if err != nil {
		return nil, err
	}
	spareMemory()
	filter := store.Filter{Study: name, Where: o.where, Planned: !o.edited && o.points == nil}
	obs, warnings, err := db.Select(ctx, filter)
	if at, of := loadOf(o.where); of && len(obs) == 0 { // it chooses within runs, not among them
		filter.Where, o.where, question.At = "", "", append(question.At, at)
		obs, warnings, err = db.Select(ctx, filter)
	}
	if err != nil {
		return nil, s.workspace().Missing(ctx, name, err)
	}
	if o.points != nil {
		obs = slices.DeleteFunc(obs, func(x scaling.Observation) bool { return !o.points[x.Point] })
	}
	planned, err := s.planned(ctx, db, o.study, name, o.where)
	if err != nil {
		return nil, err
	}
	unfit, err := unfitPoints(ctx, db, store.Filter{Study: name, Where: o.where}, obs)
	if err != nil {
		return nil, err
	}
	planned = slices.DeleteFunc(planned, func(p scaling.Planned) bool { // nothing is to be measured there
		return slices.ContainsFunc(unfit, func(u scaling.Planned) bool { return u.Point == p.Point })
	})
	if len(obs) == 0 && (len(planned) == 0 || o.where != "") {
		s.doubtAll(name, warnings...)
		if o.where != "" {
			return nil, &usageError{err: fmt.Errorf("no good run of study %q matches --where", name), hint: "`" + appName + " runs --study " + name + "` lists its runs."}
		}
		return nil, &usageError{err: fmt.Errorf("study %q has no good run yet", name), hint: s.workspace().Rerun(ctx, db, o.study, name) + "."}
	}
	if o.prices != nil && (o.measure == measure.CostPerMillion || o.measure == measure.CostPerMillionSamples) {
		var unpriced []string
		if obs, unpriced, err = s.perMillion(ctx, obs, o, name); err != nil {
			return nil, err
		}
		warnings = append(warnings, unpriced...)
	}
	if o.prepare != nil {
		o.prepare(obs, planned)
	}
	answer, err := inquiry.Ask(obs, planned, question)
	if err != nil {
		return nil, unanswered(err)
	}
	answer.Warnings = append(warnings, answer.Warnings...)
	if len(unfit) > 0 {
		answer.Warnings = append(answer.Warnings, doNotFit(unfit))
	}
	if kind := answer.Kind.Exchanges; kind != "" {
		benchmarks, _, err := db.Select(ctx, store.Filter{Kind: kind})
		if err != nil {
			return nil, workspace.StoreError(err)
		}
		exchange.Predict(answer.Curves, answer.Observations, benchmarks)
	}
	answer.Warnings = append(answer.Warnings, told...)
	a := &analysis{Answer: answer, study: name, design: o.design}
	if answer.NoBase != nil {
		a.noBase = &usageError{err: answer.NoBase, hint: a.basing(s.workspace().Rerun(ctx, db, o.study, name))}
	}
	return a, nil
}

// perMillion gives runs of a service what a million answers and samples cost, by the
// site file's prices, unless they report a figure of the name that was asked for.
func (s *session) perMillion(ctx context.Context, obs []scaling.Observation, o curveOptions, name string) ([]scaling.Observation, []string, error) {
	if _, err := inquiry.Find(obs, o.measure); err == nil {
		return obs, nil, nil
	}
	tariff, err := s.pricesFor(ctx, o.study, *o.prices)
	if err != nil {
		return nil, nil, err
	}
	obs, unpriced := tariff.PerMillion(obs)
	if _, err := inquiry.Find(obs, o.measure); err != nil {
		why := "no run has found a largest rate within a limit, which it is of; set workload.limit"
		if unpriced != nil {
			why = strings.Join(unpriced, "; ")
		}
		return nil, nil, &usageError{err: fmt.Errorf("%s of study %q: %s", o.measure, name, why)}
	}
	return obs, unpriced, nil
}

// planned is what the study's plan has, where it is, else what the database has
// of it: of that what the condition holds for. Where it asks for more than a plan
// can tell, such as a figure, nothing is.
func (s *session) planned(ctx context.Context, db *store.Store, arg, name, where string) ([]scaling.Planned, error) {
	folder, err := s.find(ctx, arg)
	if err != nil {
		return nil, err
	}
	plan, err := launcher.ReadPlan(folder)
	if err == nil {
		all := workspace.Runs{Planned: launcher.NotBegun(plan, folder, nil)}
		chosen, err := all.Where(ctx, where)
		if beyond := (*store.WhereError)(nil); errors.As(err, &beyond) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return db.Hidden(launcher.Planned(chosen.Planned)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.warn("%v; using the plan in the database", err)
	}
	if where != "" {
		return nil, nil // the database has points of a plan, which no condition is judged by
	}
	list, err := db.Planned(ctx, name)
	return list, workspace.StoreError(err)
}

// basing is what to do where series have no base.
func (a *analysis) basing(what string) string {
	if slices.ContainsFunc(a.NoBase.Missing, func(m scaling.MissingBase) bool { return m.Resumed }) {
		what = "Runs that were not interrupted have one: raise study.repeats, and run the study again"
	} else if slices.ContainsFunc(a.NoBase.Missing, func(m scaling.MissingBase) bool { return m.Imported }) {
		what = "What an imported log or table does not state has no curve: `scalebench extract LOG --from FORMAT --dry-run` shows what it states and why a rate is missing; -m NAME asks for another figure"
	} else if slices.ContainsFunc(a.NoBase.Missing, func(m scaling.MissingBase) bool { return m.Unsteady }) {
		what = "Runs whose step times never settled are not repeated: make them longer (epochs, max_steps), raise study.repeats, or keep jobs from disturbing each other (exclusive, policy.chain)"
	}
	if slices.ContainsFunc(a.NoBase.Missing, func(m scaling.MissingBase) bool { return len(m.Available) > 0 }) {
		what += "; or divide by another point with --base N"
	}
	what += "."
	if slices.ContainsFunc(a.Curves, scaling.Curve.Divided) {
		what = "Runs on different nodes, drivers or versions are separate series; --mix joins them.\n" + what
	}
	return what
}

// nothing is an error where none of the runs is a training, for what only trainings
// have; nil where one may be.
func (a *analysis) nothing() error {
	if a.Kind.Trains {
		return nil
	}
	return noTraining(a.study, a.Kind)
}

// noTraining says what can be asked of runs that are no trainings.
func noTraining(study string, kind measure.Kind) error {
	hint := fmt.Sprintf("`%s scaling %s` prints what was measured", appName, study)
	for _, m := range measure.Of(kind.Name) {
		if m.Better != measure.Neither {
			hint += fmt.Sprintf(", `%s plot %s %s -o FILE` draws it", appName, m.Name, study)
			break
		}
	}
	if kind.Rate != "" {
		hint += fmt.Sprintf("; `%s advise %s --rate R` says how many replicas carry R requests/s", appName, study)
	}
	return &usageError{err: fmt.Errorf("study %q is of kind %q: it trains nothing, so it has no training throughput, speedup or time to accuracy", study, kind.Name), hint: hint + "."}
}

// trainings is analyse for what only trainings have.
func (s *session) trainings(ctx context.Context, o curveOptions) (*analysis, error) {
	a, err := s.analyse(ctx, o)
	if err == nil {
		err = a.nothing()
	}
	return a, err
}

// warn prints the warnings on the study, its series and points, and more.
func (a *analysis) warn(s *session, more ...scaling.Remark) {
	var remarks []scaling.Remark
	for _, w := range a.Warnings {
		remarks = append(remarks, scaling.Remark{Text: w})
	}
	remarks = slices.Concat(remarks, scaling.Remarks(a.Curves), more)
	if a.answered && !s.verbose {
		remarks = slices.DeleteFunc(remarks, func(r scaling.Remark) bool { return r.Severity() == scaling.Decisive })
	}
	s.doubt(a.study, s.linesOf(remarks, len(a.Curves))...)
}
