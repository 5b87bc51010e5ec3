package query

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
	"github.com/scalebench/scalebench/metrics/store"
)

// Deciding prepares `--until-decided`: a study that gets more runs until the question o has an
// answer, up to the repeats that the study allows. The caller sets the functions that run and
// collect.
func (r *Reader) Deciding(ctx context.Context, w *workspace.Work, o Wish) (*decide.Study, error) {
	design, err := sequential.NewDesign(w.Study.Repeats)
	if err != nil {
		return nil, &workspace.Error{Err: fmt.Errorf("study.repeats: %w", err)}
	}
	o.Study = w.Study.Name
	v, err := r.adviser(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := o.single(); err != nil {
		return nil, err
	}
	if o.Contrast != "" {
		if v.contrast, err = contrastOf(w, o.Contrast); err != nil {
			return nil, err
		}
		design = design.ForTests()
	}
	return &decide.Study{Compares: o.Contrast != "", Folder: w.Folder, Plan: w.Plan, Design: design, NodeHours: w.Study.MaxNodeHours, By: w.Study.StopBy, Tell: r.Note, Now: time.Now,
		Done: func(ctx context.Context) (map[study.Run]bool, error) {
			results, err := r.Workspace.Results(ctx, w.Study.Name, w.Folder)
			return results.Done, err
		},
		Spent: func(ctx context.Context) (float64, error) {
			spent, err := r.Spent(ctx, w)
			return spent.NodeHours, err
		},
		Results: func(ctx context.Context, d sequential.Design) (*decide.Results, error) {
			return v.results(ctx, o, d)
		},
	}, nil
}

// FailedRuns returns the runs of the plan that failed and that the policy does not repeat.
func (r *Reader) FailedRuns(ctx context.Context, w *workspace.Work, choice launcher.Choice) (map[study.Run]bool, error) {
	attempts, err := launcher.Attempts(w.Folder)
	if err != nil {
		return nil, err
	}
	states, _, err := r.Survey(ctx, attempts)
	if err != nil {
		return nil, err
	}
	failed := map[study.Run]bool{}
	for _, b := range choice.EndedBadly(states) {
		failed[b.Planned.Point.Run()] = true
	}
	for _, t := range choice.Todo(states) {
		delete(failed, t.Point.Run())
	}
	return failed, nil
}

// Looks returns the record of the looks at a study, which a file or a name selects.
func (r *Reader) Looks(ctx context.Context, study string) (*decide.Record, error) {
	folder, err := r.Find(ctx, study)
	if err != nil {
		return nil, err
	}
	return decide.Read(folder)
}

// Look checks what the present results of a study decide, without making a run or storing anything.
// The study is the one that the wish names, with the record of its looks. most is the maximum number
// of repeats; 0 means that of the record.
func (r *Reader) Look(ctx context.Context, o Wish, record *decide.Record, most int) (*decide.Outcome, error) {
	most = cmp.Or(most, record.Most, sequential.Most)
	w, err := r.Load(ctx, workspace.Request{Study: o.Study, Site: o.Site, Overrides: []string{"study.repeats=" + study.UntilDecided, fmt.Sprintf("study.max_repeats=%d", most)}})
	if err != nil {
		return nil, err
	}
	d, err := r.Deciding(ctx, w, o)
	if err != nil {
		return nil, err
	}
	return d.Look(ctx)
}

// results returns the curves for a question, and for each the user's requirements. The intervals
// have the confidence level that the design d of the interim analyses requires.
func (v *adviser) results(ctx context.Context, o Wish, d sequential.Design) (*decide.Results, error) {
	o.Design = &d
	switch {
	case v.contrast != nil:
		return v.contrasts(ctx, o.Question, d)
	case o.Spec:
		return v.r.enoughYet(ctx, o)
	case o.Rate != 0:
		return v.r.replicasYet(ctx, o)
	}
	a, err := v.ask(ctx, o.Question)
	if err != nil {
		return nil, err
	}
	return &decide.Results{Curves: a.Curves, Observations: a.Observations, Wish: func(c scaling.Curve) advice.Options {
		wish := v.wish
		if v.tariff != nil {
			wish.Cost = v.tariff.Like(c, a.Observations)
		}
		return wish
	}}, nil
}

// designed sets the design of the question if the study was analysed while it was still growing:
// its intervals must then be wider. It returns a warning that says so.
func (o *Question) designed(ctx context.Context, db *store.Store, name string) ([]string, error) {
	if o.Design != nil {
		return nil, nil
	}
	l, err := lookedStudy(ctx, db, name)
	if err != nil || l == nil {
		return nil, err
	}
	o.Design = &l.design
	return []string{l.intervals()}, nil
}
