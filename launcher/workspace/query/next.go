package query

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// measuring builds the commands that measure more runs of a study. They use the same study file,
// site file, run folder and database as the present command.
type measuring struct {
	r     *Reader
	name  string   // the study's name
	study string   // study file or name
	site  string   // site file; "" means the one that the study names
	words []string // words of the command, up to where KEY=VALUE arguments follow
	last  int      // largest repeat number of the existing runs
	local bool     // the existing runs ran on this machine, without Slurm
	owner string   // another user, who alone can start runs of the study; "" if this user can
}

// measuring returns a measuring for the study arg. It returns nil if the runs were imported or the
// study's file is unknown, since no command can then measure more.
func (r *Reader) measuring(ctx context.Context, arg string, obs []scaling.Observation) (*measuring, error) {
	name, err := workspace.StudyName(arg)
	if err != nil {
		return nil, err
	}
	file := arg
	if file == name {
		db, err := r.Open()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		known, err := db.Study(ctx, name)
		if err != nil || known.Imported() || known.File == "" {
			return nil, nil
		}
		file = workspace.Near(known.File)
	}
	m := &measuring{r: r, name: name, study: file, local: true}
	for i := range obs {
		m.last = max(m.last, obs[i].Repeat)
		m.local = m.local && obs[i].Job == ""
	}
	if folder, err := r.Find(ctx, arg); err == nil {
		m.owner = workspace.Foreign(folder)
	}
	verb := "submit"
	if m.local {
		verb = "run"
	}
	used := r.CommandWords(ctx, arg, file)
	m.words = []string{"scalebench", verb, used}
	if used == name { // keys from the command line define it
		m.study = name
	}
	if _, site, given := strings.Cut(used, " --site "); given {
		m.site = site
	}
	if r.Runs != "" {
		m.words = append(m.words, "--runs", workspace.ShellQuote(r.Runs))
	}
	if r.DB != "" {
		m.words = append(m.words, "--db", workspace.ShellQuote(r.DB))
	}
	return m, nil
}

// command returns the shell command that measures more runs with the given KEY=VALUE arguments, in
// blocks of their own repeat numbers.
func (m *measuring) command(runs int, keys ...string) string {
	words := append(slices.Clone(m.words), fmt.Sprintf("study.first_repeat=%d", m.last+1), fmt.Sprintf("study.repeats=%d", m.last+runs))
	for _, key := range keys {
		if plain.MatchString(key) {
			words = append(words, key)
		} else {
			words = append(words, workspace.ShellQuote(key))
		}
	}
	return strings.Join(words, " ")
}

// plain matches a word or KEY=VALUE that needs no quotes in a shell.
var plain = regexp.MustCompile(`^[-A-Za-z0-9_.,/+]+(=[-A-Za-z0-9_.,/+]+)?$`)

// counts returns the KEY=VALUE argument that sets the worker counts of a study.
func counts(list ...int) string {
	slices.Sort(list)
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = fmt.Sprint(n)
	}
	return "sweep.workers=[" + strings.Join(words, ", ") + "]"
}

// fits reports two things: planned, whether the study can be planned with that number of workers on
// its site, and roomy, whether this machine has enough CPUs for them.
func (m *measuring) fits(ctx context.Context, workers int) (planned, roomy bool) {
	plan, err := m.plan(ctx, counts(workers))
	if err != nil {
		return false, false
	}
	return true, !m.local || !slices.ContainsFunc(plan.Points, func(p study.Planned) bool { return p.Point.Ranks()*p.Point.Resources.CPUsPerWorker > world.CPUs() })
}

// plan returns the study's plan with KEY=VALUE arguments.
func (m *measuring) plan(ctx context.Context, keys ...string) (*study.Plan, error) {
	w, err := m.r.Load(ctx, workspace.Request{Study: m.study, Site: m.site, Overrides: keys})
	if err != nil {
		return nil, err
	}
	return w.Plan, nil
}

// obstacle returns why the study, with KEY=VALUE arguments, cannot measure more runs of curve c; "" if it can.
func (m *measuring) obstacle(ctx context.Context, c scaling.Curve, keys []string) string {
	if m.owner != "" {
		return "only " + m.owner + ", who owns the study, can start its runs"
	}
	plan, err := m.plan(ctx, keys...)
	if err != nil {
		return m.study + " cannot plan it any more"
	}
	if plan.Study != m.name {
		return m.study + " is of another study by now: " + plan.Study
	}
	why := ""
	for _, p := range plan.Points { // a sweep may have other points, too
		if why = m.differs(p.Point.Parameters(), c); why == "" {
			break
		}
	}
	return why
}

// differs returns in which parameter a planned point is not one of a curve; "" if it is one.
func (m *measuring) differs(planned map[string]any, c scaling.Curve) string {
	for _, key := range slices.Sorted(maps.Keys(c.Parameters)) {
		was, is := scaling.ValueOf(c.Parameters[key]), scaling.ValueOf(planned[key])
		if _, set := planned[key]; set && was != is {
			return fmt.Sprintf("%s now has %s = %v; these runs have %v", m.study, key, is, was)
		}
	}
	return ""
}

// most returns the largest worker count that can be measured, up to twice the largest measured
// count; 0 if that is unknown.
func (m *measuring) most(ctx context.Context, largest int) int {
	if m == nil || largest == 0 {
		return 0
	}
	for _, n := range []int{2 * largest, largest + largest/2} {
		if planned, roomy := m.fits(ctx, n); n > largest && planned && roomy {
			return n
		}
	}
	return largest
}

// upTo returns the largest worker count, between known (which was measured) and wanted, with which
// the study can be planned.
func (m *measuring) upTo(ctx context.Context, known, wanted int) int {
	if planned, _ := m.fits(ctx, wanted); planned || wanted <= known {
		return wanted
	}
	return known + sort.Search(wanted-known, func(i int) bool {
		planned, _ := m.fits(ctx, known+i+1)
		return !planned
	})
}

// untilDecided adapts the suggested measurements for a study that is measured until its question is
// decided. It removes the suggestion if the question is decided; otherwise it suggests to continue,
// and the interim analyses then choose what to measure.
func (m *measuring) untilDecided(list []*advice.Advice) {
	for _, a := range list {
		switch {
		case a.Next == nil:
		case a.Workers != nil && !a.Provisional && measured(a, a.Next.Workers):
			a.Next = nil
		case m != nil && m.owner == "":
			a.Next.Command = strings.Join(append(slices.Clone(m.words), "--until-decided"), " ")
		}
	}
}

func measured(a *advice.Advice, workers int) bool {
	return slices.ContainsFunc(a.Candidates, func(c advice.Candidate) bool { return c.Workers == workers && c.Basis == advice.Measured })
}

// commands adds the shell command to each measurement that the advice suggests. It subtracts runs
// that are queued or running.
func (m *measuring) commands(ctx context.Context, list []*advice.Advice, a *Analysis) {
	if m == nil {
		return
	}
	curves, obs, waiting := a.Curves, a.Observations, m.r.waiting(ctx, a.open)
	for i := range waiting {
		m.last = max(m.last, waiting[i].Point.Repeat)
	}
	for _, a := range list {
		if a.Next == nil || a.Next.AfterRepair {
			continue
		}
		i := slices.IndexFunc(curves, func(c scaling.Curve) bool { return c.Series == a.Series })
		var keys []string
		if i >= 0 {
			keys = distinguishing(curves, i)
			a.Next.Subtract(queued(waiting, curves, i, obs))
		}
		if a.Next.Runs == 0 {
			continue
		}
		all := append([]int{a.Next.Workers}, a.Next.Neighbours...)
		keys = append([]string{counts(all...)}, keys...)
		if i < 0 {
			continue
		}
		if why := m.obstacle(ctx, curves[i], keys); why != "" {
			a.Next.Why += "; " + why
			continue
		}
		if _, roomy := m.fits(ctx, slices.Max(all)); !roomy { // the existing runs also shared CPUs
			keys = append(keys, "--oversubscribe")
		}
		a.Next.Command = m.command(a.Next.Runs, keys...)
		expect(a, all, obs, curves[i])
	}
}

// expect sets what the suggested runs of worker counts take, and the chance that they decide.
func expect(a *advice.Advice, counts []int, obs []scaling.Observation, c scaling.Curve) {
	of := scaling.ByRun(obs)
	has, total, least := map[int]int{}, 0.0, math.MaxInt
	for _, n := range counts {
		hours := 0.0
		for _, p := range c.Points {
			for _, run := range p.Runs {
				if o := of[run.ID]; o != nil && p.Workers == n {
					has[n]++
					hours += decide.NodeHours(o)
				}
			}
		}
		if has[n] == 0 || hours == 0 {
			return
		}
		total += hours / float64(has[n]) * float64(a.Next.Runs)
		least = min(least, has[n])
	}
	a.Next.NodeHours, a.Next.Chance = &total, sequential.Chance(a, has, least+a.Next.Runs)
}

// distinguishing returns KEY=VALUE arguments for the keys in which curve i differs from the other
// curves.
func distinguishing(curves []scaling.Curve, i int) (words []string) {
	for _, key := range different(curves, i) {
		words = append(words, key+"="+written(key, scaling.ValueOf(curves[i].Parameters[key])))
	}
	return words
}

// different returns the keys in which curve i differs from the other curves.
func different(curves []scaling.Curve, i int) (keys []string) {
	for key, v := range curves[i].Parameters {
		if strings.HasPrefix(key, "fingerprint.") {
			continue
		}
		own := scaling.ValueOf(v)
		if slices.ContainsFunc(curves, func(c scaling.Curve) bool { return scaling.ValueOf(c.Parameters[key]) != own }) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
