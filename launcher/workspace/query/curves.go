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
	"github.com/scalebench/scalebench/metrics/store"
)

// Curves reads a study's good runs from the database and computes their curves. It takes planned runs from the
// run folder or the last collect, so that a base that never ran is reported.
func (r *Reader) Curves(ctx context.Context, o Question) (*Analysis, error) {
	name, err := workspace.StudyName(o.Study)
	if err != nil {
		return nil, err
	}
	db, err := r.Open()
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
	a := &Analysis{Answer: answer, Study: name, design: o.Design}
	if answer.NoBase != nil {
		a.BaseError = &workspace.Error{Err: answer.NoBase, Hint: a.basing(r.Rerun(ctx, db, o.Study, name))}
	}
	return a, nil
}

// An input holds the data of a question.
type input struct {
	obs      []scaling.Observation
	planned  []scaling.Planned
	unfit    []scaling.Planned // points of which no run ended well, because memory ran out
	warnings []string
}

// measured reads the runs and plans that a question concerns. A condition on a load within
// runs moves from the runs to their places.
func (r *Reader) measured(ctx context.Context, db *store.Store, name string, o *Question, question *scaling.Question) (in input, err error) {
	filter := store.Filter{Study: name, Where: o.Where, Planned: !o.Edited && o.Points == nil}
	in.obs, in.warnings, err = db.Select(ctx, filter)
	if at, of := loadOf(o.Where); of && len(in.obs) == 0 { // it chooses within runs, not among them
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
	in.planned = slices.DeleteFunc(in.planned, func(p scaling.Planned) bool { // such points cannot be measured
		return slices.ContainsFunc(in.unfit, func(u scaling.Planned) bool { return u.Point == p.Point })
	})
	unread, err := r.unread(ctx, db, o.Study, name, in.obs)
	if err != nil {
		return in, err
	}
	if unread != "" {
		in.warnings = append(in.warnings, unread)
	}
	switch {
	case len(in.obs) > 0 || len(in.planned) > 0 && o.Where == "":
		return in, nil
	case o.Where != "":
		err = &workspace.Error{Err: fmt.Errorf("no good run of study %q matches --where", name), Hint: "`scalebench runs --study " + name + "` lists its runs."}
	default:
		err = fmt.Errorf("study %q has no good run yet", name)
		if unread != "" {
			err = fmt.Errorf("study %q has no good run that can be read: %s", name, unread)
		}
		err = &workspace.Error{Err: err, Hint: r.Rerun(ctx, db, o.Study, name) + "."}
	}
	r.Doubt(name, in.warnings...)
	return in, err
}

// loadOf returns the load within runs that a condition names, such as threads = 4: users
// write it for --at.
func loadOf(where string) (at scaling.Condition, ok bool) {
	key, value, _ := strings.Cut(where, "=")
	key, value = strings.TrimSpace(key), strings.Trim(value, "= ")
	if _, err := strconv.ParseFloat(value, 64); err != nil || !measure.OfLoad(key) {
		return at, false
	}
	return scaling.Condition{Key: key, Value: value}, true
}

// unanswered returns an error of package inquiry in the words of the options.
func unanswered(err error) error {
	var part *scaling.QuestionError
	var unknown *scaling.UnknownMeasure
	switch {
	case errors.As(err, &part) && (part.Part == "baseline" || part.Part == "at"):
		return &workspace.Error{Err: fmt.Errorf("--%s: %w", part.Part, part.Err)}
	case errors.As(err, &part):
		return &workspace.Error{Err: fmt.Errorf("--%s %w", part.Part, part.Err)}
	case errors.As(err, &unknown):
		return &workspace.Error{Err: err, Hint: measureHint(unknown.Name, unknown.Known)}
	}
	return err
}

// perMillion adds the cost of a million answers and samples to runs of a service, by the site file's prices,
// unless they report a figure with that name.
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
		why := "no run has found a largest rate within a limit, which it is of; set workload.limit"
		if unpriced != nil {
			why = strings.Join(unpriced, "; ")
		}
		return nil, nil, &workspace.Error{Err: fmt.Errorf("%s of study %q: %s", o.Measure, name, why)}
	}
	return obs, unpriced, nil
}

// planned returns the study's planned points that match a condition: from its plan if it exists, else from the
// database. If the condition refers to something that plans lack, such as a figure, it returns none.
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
		return nil, nil // conditions do not apply to the points in the database
	}
	list, err := db.Planned(ctx, name)
	return list, workspace.StoreError(err)
}

// basing returns advice for series without a base.
func (a *Analysis) basing(what string) string {
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

// Trainings returns an error if none of the runs is a training.
func (a *Analysis) Trainings() error {
	if a.Kind.Trains {
		return nil
	}
	return noTraining(a.Study, a.Kind)
}

// noTraining returns the error of a request about trainings. Its hint names what can be asked about other kinds
// of runs.
func noTraining(study string, kind measure.Kind) error {
	hint := fmt.Sprintf("`scalebench scaling %s` prints what was measured", study)
	for _, m := range measure.Of(kind.Name) {
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

// trainings returns the curves of trainings, and refuses other kinds of runs.
func (r *Reader) trainings(ctx context.Context, o Question) (*Analysis, error) {
	a, err := r.Curves(ctx, o)
	if err == nil {
		err = a.Trainings()
	}
	return a, err
}
