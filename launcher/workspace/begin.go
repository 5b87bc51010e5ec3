package workspace

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// Options returns the options that a backend needs to start attempts at runs of this study.
func (k *Work) Options(ctx context.Context) (launcher.Options, error) {
	worker, err := launcher.Worker(k.Site.Worker)
	if err != nil {
		return launcher.Options{}, &Error{Err: err}
	}
	named := []string{worker, k.Site.Template}
	if !k.frozen {
		named = append(named, k.Study.File, k.Site.File)
	}
	if err := trust.Named(named...); err != nil {
		return launcher.Options{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(k.Site.Pythons)) {
		if _, err := framework.Find(name); err != nil {
			return launcher.Options{}, &Error{Err: fmt.Errorf("%s: pythons.%s: %w", k.Site.File, name, err)}
		}
	}
	var commit string
	k.w.Whole(func() { commit = launcher.Revision(ctx, filepath.Dir(k.Study.File)) })
	if ctx.Err() != nil { // git was interrupted
		return launcher.Options{}, context.Cause(ctx)
	}
	creator := launcher.Creator{Folder: k.Folder, Site: k.Site, Shared: k.Study.Share == study.ShareGroup, Key: k.Study.Key, Version: k.w.Version, Commit: commit,
		Worker: worker, Every: k.Study.Telemetry.Every}
	return launcher.Options{Creator: creator, Policy: k.Study.Policy, Blocks: k.Study.UntilDecided}, nil
}

// Scheduler returns the backend that submits runs of this study as jobs.
func (k *Work) Scheduler(ctx context.Context) (launcher.Backend, error) {
	options, err := k.Options(ctx)
	if err != nil {
		return nil, err
	}
	backend, err := launcher.Scheduler(options)
	if err != nil {
		return nil, &Error{Err: err}
	}
	return backend, nil
}

// Local returns the backend that runs processes on this machine, or job steps on the nodes of the
// allocation. These end when this command ends. It plans the study again for these nodes.
func (k *Work) Local(ctx context.Context, name string, nodes *launcher.Allocation, oversubscribe bool) (*local.Backend, error) {
	options, err := k.Options(ctx)
	if err != nil {
		return nil, err
	}
	options.Allocation, options.Oversubscribe = nodes, oversubscribe
	backend, err := local.New(options)
	if err != nil {
		return nil, &Error{Err: err}
	}
	if nodes == nil {
		k.Plan = local.OnOneNode(k.Plan)
		if k.filePlan != nil {
			k.filePlan = local.OnOneNode(k.filePlan)
		}
		k.dropUnfit(func(p study.Point) error { return backend.Fits(p) })
		if unused := local.Unused(k.Study); len(unused) > 0 {
			k.w.Note("not used on this machine, only under Slurm: %s", strings.Join(unused, ", "))
		}
	}
	for _, p := range k.Plan.Points {
		if err := backend.Fits(p.Point); err != nil {
			return nil, &Error{Err: fmt.Errorf("%s: %w", name, err)}
		}
	}
	return backend, nil
}

// Begin claims the run folder for the study, and records the study there for later commands.
func (k *Work) Begin(ctx context.Context) error {
	k.w.Hold()
	if err := k.w.Claim(ctx, k.Study, k.Plan, k.Folder); err != nil {
		return err
	}
	return k.freeze()
}

// freeze records the study in the run folder for later commands: the study file, plus runs that
// KEY=VALUE arguments add. If the file does not exist, or none of its runs was ever requested, it
// records the study with these arguments applied.
func (k *Work) freeze() error {
	plan, st := *k.Plan, k.Study
	plan.Overridden = k.overridden || len(k.Study.Overrides) > 0
	var of *study.Plan
	if k.file != nil && !k.overridden {
		if of = launcher.Extend(k.Folder, begun(k.file, k.filePlan), k.Plan, study.OnAxes(k.Study.Overrides)); of != nil {
			st = k.file
		}
	}
	if of == nil && k.whole != nil {
		whole := *begun(k.Study, k.whole)
		whole.Overridden = plan.Overridden
		of = launcher.Extend(k.Folder, &whole, k.Plan, true)
	}
	if of != nil {
		plan = *of
	}
	if others := launcher.Others(&plan, k.Plan); others > 0 {
		k.w.Note("%s not in %s; `scalebench scaling %s --unplanned` shows them", number.Are(others, "point"), Near(k.Study.File), k.Study.Name)
	}
	return launcher.Freeze(k.Folder, &plan, st, k.Site)
}

// begun returns the runs of a study's plan that are certain to be made: all, or, if the study is
// measured until its question is decided, those before the first look.
func begun(st *study.Study, plan *study.Plan) *study.Plan {
	if !st.UntilDecided {
		return plan
	}
	first := *plan
	first.Points = slices.DeleteFunc(slices.Clone(plan.Points), func(p study.Planned) bool { return p.Point.Repeat > st.First || p.Between })
	return &first
}

// Batch returns the study with a part of its plan, the runs that are made next.
func (k *Work) Batch(plan *study.Plan) *Work {
	part := *k
	part.Plan, part.whole = plan, k.Plan
	return &part
}

// CheckFiles returns an error if the chosen runs name files that do not exist on this host. Check
// does more: it also starts interpreters and asks the cluster.
func (k *Work) CheckFiles(choice launcher.Choice) error {
	attempts, err := launcher.Attempts(k.Folder)
	if err != nil {
		return err
	}
	whole := map[study.Run]bool{} // true: has a good result or is still in progress
	for _, a := range attempts {
		if a.Unreadable == nil && !choice.Outdated[a.Run] && (a.Verdict == nil || a.Verdict.Status.Good()) {
			whole[a.Point.Run()] = true
		}
	}
	plan := &study.Plan{Study: choice.Plan.Study}
	for _, p := range choice.Plan.Points {
		if run := p.Point.Run(); !whole[run] && !choice.Done(run) {
			p.Point.Repeat = 1 // each point is checked once
			plan.Points = append(plan.Points, p)
		}
	}
	if problems := cluster.CheckFiles(k.Study, k.Site, plan, k.Folder); len(problems) > 0 {
		return &Error{Err: problems}
	}
	return nil
}

// Check returns an error if points of the plan cannot succeed, and warns about what it cannot
// check.
func (k *Work) Check(ctx context.Context) error {
	problems, unchecked := cluster.CheckPlan(ctx, k.Study, k.Site, k.Plan, k.Folder, k.given)
	for _, left := range unchecked {
		k.w.Warn("%v", left)
	}
	more, err := cluster.CheckPartitions(ctx, launcher.Partitions, k.Site, k.Plan)
	if err != nil {
		k.w.Warn("the partitions were not checked: %v", err)
	}
	if ctx.Err() != nil { // results of an interrupted check are incomplete
		return context.Cause(ctx)
	}
	if problems = append(problems, more...); len(problems) > 0 {
		return &Error{Err: problems}
	}
	return nil
}

// CheckTemplate renders every script of the plan and discards it, if the site has its own
// template.
func (k *Work) CheckTemplate() error {
	if k.Site.Template == "" {
		return nil
	}
	creator := launcher.Creator{Folder: k.Folder, Site: k.Site, Shared: k.Study.Share == study.ShareGroup, Worker: "/scalebench-worker"} // submit looks for the real one
	backend, err := launcher.Scheduler(launcher.Options{Creator: creator, Policy: k.Study.Policy})
	if err == nil {
		err = launcher.Render(backend, k.Plan, func(string, []byte) error { return nil })
	}
	if err != nil {
		return &Error{Err: err}
	}
	return nil
}

// NoteNothingToRun tells the user why `run` has no run to start.
func (k *Work) NoteNothingToRun() {
	elsewhere := ""
	attempts, _ := launcher.Attempts(k.Folder) // collecting them reports the error
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool { return a.Verdict == nil && a.Unreadable == nil }) {
		elsewhere = " or are under way elsewhere"
	}
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool { return a.Unreadable != nil }) {
		elsewhere += " or cannot be read"
	}
	result := "a good result"
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool {
		return a.Verdict != nil && a.Verdict.Status == metrics.OutOfMemory && a.Point.ExhaustionIsResult()
	}) {
		result += ", or its point ran out of memory, which counts as one"
	}
	if len(attempts) == 0 {
		k.w.Note("the database has a good result of every run of %[1]s, and their folders are gone; nothing to run. After `scalebench forget %[1]s`, `run` and `submit` measure them again", k.Study.Name)
		return
	}
	k.w.Note("every run of %s has %s%s; nothing to run", k.Study.Name, result, strings.Replace(elsewhere, "are", "is", 1))
}

// NoteNothingToSubmit tells the user why `submit` has no run to submit.
func (k *Work) NoteNothingToSubmit(left launcher.Outcome) {
	elsewhere := ""
	if left.Unread > 0 {
		elsewhere = ", or cannot be read"
	}
	if left.Cancelled > 0 {
		elsewhere += ", or was cancelled"
	}
	k.w.Note("every run of %s has a good result or is under way%s; nothing to submit", k.Study.Name, elsewhere)
}
