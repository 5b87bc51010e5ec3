package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
	"github.com/scalebench/scalebench/metrics/store"
)

// Curves reads a study's good runs from the database and computes their curves. It also reads the
// study's plan, from the run folder or as last collected: thus it can report a base (the point that
// speedups refer to) that was planned but never ran.
func (r *Reader) Curves(ctx context.Context, o Question) (*Analysis, error) {
	name, db, err := r.openStudy(o.Study)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	told, err := o.designed(ctx, db, name)
	if err != nil {
		return nil, err
	}
	question, err := o.inquiry()
	if err != nil {
		return nil, err
	}
	in, err := r.measured(ctx, db, name, &o, &question)
	if err != nil {
		return nil, err
	}
	if o.Prices != nil && (o.Measure == measure.CostPerMillion || o.Measure == measure.CostPerMillionSamples) {
		var unpriced []string
		if in.obs, unpriced, err = r.perMillion(ctx, in.obs, o, name); err != nil {
			return nil, err
		}
		in.warnings = append(in.warnings, unpriced...)
	}
	if o.Prepare != nil {
		o.Prepare(in.obs, in.planned)
	}
	answer, err := scaling.Ask(in.obs, in.planned, question)
	if err != nil {
		return nil, unanswered(err)
	}
	answer.Warnings = append(in.warnings, answer.Warnings...)
	if len(in.unfit) > 0 {
		answer.Warnings = append(answer.Warnings, doNotFit(in.unfit))
	}
	if kind := answer.Kind.Exchanges; kind != "" {
		benchmarks, _, err := db.Select(ctx, store.Filter{Kind: kind})
		if err != nil {
			return nil, workspace.StoreError(err)
		}
		scaling.PredictExchange(answer.Curves, answer.Observations, benchmarks)
	}
	answer.Warnings = append(answer.Warnings, told...)
	a := &Analysis{Answer: answer, Study: name, design: o.Design, open: in.unread.open}
	if answer.NoBase != nil {
		a.BaseError = &workspace.Error{Err: answer.NoBase, Hint: a.basing(r.Rerun(ctx, db, o.Study, name))}
	}
	return a, nil
}

// An input has the runs and planned points of the study that a question concerns.
type input struct {
	obs      []scaling.Observation
	planned  []scaling.Planned
	unfit    []scaling.Planned // points at which all runs failed because memory ran out
	warnings []string
	unread   unread
	design   *sequential.Design // as in Question
}

// measured reads the runs and planned points that a question is about. If Where names a load that
// is varied within each run, such as threads = 4, measured selects that load instead of runs: it
// moves the condition from Where to At.
func (r *Reader) measured(ctx context.Context, db *store.Store, name string, o *Question, question *scaling.Question) (in input, err error) {
	filter := store.Filter{Study: name, Where: o.Where, Planned: !o.Edited && o.Points == nil}
	in.obs, in.warnings, err = db.Select(ctx, filter)
	if at, of := loadOf(o.Where); of && len(in.obs) == 0 { // the condition selects a part of each run, not some of the runs
		filter.Where, o.Where, question.At = "", "", append(question.At, at)
		in.obs, in.warnings, err = db.Select(ctx, filter)
	}
	if err != nil {
		return in, r.Missing(ctx, name, err)
	}
	if o.Points != nil {
		in.obs = slices.DeleteFunc(in.obs, func(x scaling.Observation) bool { return !o.Points[x.Point] })
	}
	if in.planned, err = r.planned(ctx, db, o.Study, name, o.Where); err != nil {
		return in, err
	}
	if in.unfit, err = unfitPoints(ctx, db, store.Filter{Study: name, Where: o.Where}, in.obs); err != nil {
		return in, err
	}
	in.planned = slices.DeleteFunc(in.planned, func(p scaling.Planned) bool { // these points cannot be measured
		return slices.ContainsFunc(in.unfit, func(u scaling.Planned) bool { return u.Point == p.Point })
	})
	if in.unread, err = r.unread(ctx, db, o.Study, name, in.obs); err != nil {
		return in, err
	}
	if in.unread.warning != "" {
		in.warnings = append(in.warnings, in.unread.warning)
	}
	switch {
	case len(in.obs) > 0 || len(in.planned) > 0 && o.Where == "":
		return in, nil
	case o.Where != "":
		err = &workspace.Error{Err: fmt.Errorf("no good run of study %q matches --where", name), Hint: "`scalebench runs --study " + name + "` lists its runs."}
	default:
		err = &workspace.Error{Err: in.unread.noGoodRun(name), Hint: r.Rerun(ctx, db, o.Study, name) + "."}
	}
	r.WarnStudy(name, in.warnings...)
	return in, err
}

// loadOf parses a condition on a load that is varied within each run, such as threads = 4. Users
// often write it after --where, although --at is meant. ok is false for any other condition.
func loadOf(where string) (at scaling.Condition, ok bool) {
	key, value, _ := strings.Cut(where, "=")
	key, value = strings.TrimSpace(key), strings.Trim(value, "= ")
	if _, err := strconv.ParseFloat(value, 64); err != nil || !measure.DescribesLoad(key) {
		return at, false
	}
	return scaling.Condition{Key: key, Value: value}, true
}

// unanswered converts an error of package scaling to one that names the command-line option at
// fault.
func unanswered(err error) error {
	var part *scaling.QuestionError
	var unknown *scaling.UnknownMeasure
	switch {
	case errors.As(err, &part) && (part.Part == "baseline" || part.Part == "at"):
		return &workspace.Error{Err: fmt.Errorf("--%s: %w", part.Part, part.Err)}
	case errors.As(err, &part):
		return &workspace.Error{Err: fmt.Errorf("--%s %w", part.Part, part.Err)}
	case errors.As(err, &unknown):
		return &workspace.Error{Err: err, Hint: measureHint(unknown.Name, unknown.Measured, unknown.Known)}
	}
	return err
}

// perMillion adds the cost of a million answers and of a million samples to the runs of a service,
// by the prices in the site file. It adds nothing if the runs report the requested measure
// themselves. The texts that it returns are warnings.
func (r *Reader) perMillion(ctx context.Context, obs []scaling.Observation, o Question, name string) ([]scaling.Observation, []string, error) {
	if _, err := scaling.FindMeasure(obs, o.Measure); err == nil {
		return obs, nil, nil
	}
	tariff, err := r.Prices(ctx, o.Study, *o.Prices)
	if err != nil {
		return nil, nil, err
	}
	obs, unpriced := tariff.PerMillion(obs)
	if _, err := scaling.FindMeasure(obs, o.Measure); err != nil {
		why := "it is measured at the largest rate within a limit, which no run has found; set workload.limit, or price each rate: `scalebench cost " + name + " -m requests_per_second`"
		if unpriced != nil {
			why = strings.Join(unpriced, "; ")
		}
		return nil, nil, &workspace.Error{Err: fmt.Errorf("%s of study %q: %s", o.Measure, name, why)}
	}
	return obs, unpriced, nil
}

// planned returns the study's planned points that match the condition where. It reads the plan in
// the run folder, else the database. If the condition is about something that plans do not contain,
// such as a measured value, it returns nil.
func (r *Reader) planned(ctx context.Context, db *store.Store, arg, name, where string) ([]scaling.Planned, error) {
	folder, err := r.Find(ctx, arg)
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
		r.Warn("%v; using the plan in the database", err)
	}
	if where != "" {
		return nil, nil // conditions cannot be applied to the planned points in the database
	}
	list, err := db.Planned(ctx, name)
	return list, workspace.StoreError(err)
}

// basing returns a hint for series without a base (the point that speedups refer to): how to get
// one. what is the hint for other errors.
func (a *Analysis) basing(what string) string {
	if slices.ContainsFunc(a.NoBase.Missing, func(m scaling.MissingBase) bool { return m.Resumed }) {
		what = "Runs that were not interrupted have one: raise study.repeats, and run the study again"
	} else if slices.ContainsFunc(a.NoBase.Missing, func(m scaling.MissingBase) bool { return m.Imported }) {
		what = "Imported logs have curves only of what they state: `scalebench extract LOG --from FORMAT --dry-run` shows that, and why a rate is missing; -m NAME selects another measure"
	} else if slices.ContainsFunc(a.NoBase.Missing, func(m scaling.MissingBase) bool { return m.Unsteady }) {
		what = "Runs whose step times never settled are not repeated: make them longer (epochs, max_steps, or duration of a service), raise study.repeats, or keep jobs from disturbing each other (exclusive, policy.chain)"
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

// Trainings returns an error if the runs are not trainings but another kind of workload.
func (a *Analysis) Trainings() error {
	if a.Kind.Trains {
		return nil
	}
	return noTraining(a.Study, a.Kind)
}

// noTraining returns the error for a question about trainings if the study's runs are of another
// kind. Its hint names the commands that work for that kind.
func noTraining(study string, kind measure.Kind) error {
	hint := fmt.Sprintf("`scalebench scaling %s` prints what was measured", study)
	for _, m := range measure.ForKind(kind.Name) {
		if m.Better != measure.Neither {
			hint += fmt.Sprintf(", `scalebench plot %s %s -o FILE` draws it", m.Name, study)
			break
		}
	}
	if kind.Rate != "" {
		hint += fmt.Sprintf("; `scalebench advise %s --rate R` says how many replicas carry R requests/s", study)
	}
	return &workspace.Error{Err: fmt.Errorf("study %q is of kind %q: it trains nothing, so it has no training throughput, speedup or time to accuracy", study, kind.Name), Hint: hint + "."}
}

// trainings is like Curves, but returns an error if the runs are not trainings.
func (r *Reader) trainings(ctx context.Context, o Question) (*Analysis, error) {
	a, err := r.Curves(ctx, o)
	if err == nil {
		err = a.Trainings()
	}
	return a, err
}
