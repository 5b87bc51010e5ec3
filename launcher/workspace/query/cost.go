package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Costs is a request for the cost of selected runs.
type Costs struct {
	Selection
	Mix                    bool
	Site, Currency, Market string
	Baseline               []string // KEY=VALUE
	Per                    string   // run or epoch
	Clock                  string   // train or job
	Measure                string   // measure to compare with the cost; "" for the time
	Target                 *measure.Target
}

// A Bill has the costs of selected runs.
type Bill struct {
	cost.Comparison
	Study    string // study of the first run
	Warnings []string
}

// Cost returns the costs of the selected runs, by the prices in the site file.
func (r *Reader) Cost(ctx context.Context, o Costs) (*Bill, error) {
	compare, err := o.compare()
	if err != nil {
		return nil, err
	}
	tariff, err := r.Tariff(ctx, o.Study, o.Site, o.Currency, o.Market)
	if err != nil {
		return nil, err
	}
	compare.Energy = tariff.Energy
	observations, warnings, err := r.observations(ctx, o.Selection)
	if err != nil {
		return nil, err
	}
	var told []string
	if compare.Confidence, told, err = r.intervalLevel(ctx, observations); err != nil {
		return nil, err
	}
	warnings = append(warnings, told...)
	clock := workspace.Clock(o.Clock)
	if clock == workspace.TrainClock {
		if compare, clock, err = o.work(compare, observations); err != nil {
			return nil, err
		}
	}
	if clock == workspace.TrainClock && !compare.Work.Epoch && compare.Work.Target == nil && onlyRunTimes(observations) {
		clock = workspace.RunClock
		warnings = append(warnings, "the runs record no training time: time and cost are those of the whole program, from its start to its end")
	}
	if o.Measure != "" && !compare.Work.Million {
		if compare.Measure, err = scaling.FindMeasure(observations, o.Measure); err != nil {
			return nil, unanswered(err)
		}
		if at := compare.Measure.At; at != "" {
			return nil, &workspace.Error{Err: fmt.Errorf("--measure %s: each run has many values of it (%s) but one cost; choose a measure with one value per run", o.Measure, strings.Join(at.Keys(), ", ")),
				Hint: "`scalebench scaling STUDY -m " + o.Measure + "` prints them."}
		}
	}
	priced, more, err := tariff.Configurations(observations, clock, compare.Measure, o.Mix)
	if err != nil {
		return nil, err
	}
	rows, err := cost.Compare(priced, compare)
	if err != nil {
		return nil, &workspace.Error{Err: err}
	}
	warnings = append(warnings, more...)
	for i, r := range rows {
		for _, w := range r.Warnings {
			if i == 0 || !slices.Contains(rows[0].Warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return &Bill{Comparison: cost.Comparison{Rows: rows, Options: compare, Currency: tariff.Currency}, Study: observations[0].Study, Warnings: warnings}, nil
}

// onlyRunTimes reports whether the runs record how long their programs ran, and none records how
// long it trained.
func onlyRunTimes(runs []scaling.Observation) bool {
	clock := cmp.Or(scaling.KindAsked(runs).Clock, measure.TrainSeconds)
	return slices.ContainsFunc(runs, func(r scaling.Observation) bool { return r.Known(measure.RunSeconds) != nil }) &&
		!slices.ContainsFunc(runs, func(r scaling.Observation) bool { return r.Known(clock) != nil || r.Why[clock] != "" })
}

// work returns which time the runs are charged for (the training or the whole job), and
// the options for package cost. Both depend on the kind of workload.
func (o *Costs) work(compare cost.Options, runs []scaling.Observation) (cost.Options, workspace.Clock, error) {
	kind := scaling.KindAsked(runs)
	switch {
	case kind.Clock != "":
		return compare, workspace.TrainClock, nil
	case kind.Rate != "":
		compare, err := o.million(compare, runs)
		return compare, workspace.MillionClock, err
	}
	err := noTraining(runs[0].Study, kind)
	var refused *workspace.Error
	errors.As(err, &refused)
	return compare, "", &workspace.Error{Err: err, Hint: "--clock job says what its jobs cost.\n" + refused.Hint}
}

// million returns the options that price a service per million answers. The price is
// for the highest rate that keeps latencies within their limit, if runs searched for
// it. Otherwise it is for each measured rate.
func (o *Costs) million(compare cost.Options, runs []scaling.Observation) (cost.Options, error) {
	if o.Per != "run" || o.Target != nil {
		return compare, workspace.Errorf("--per and --target are for trainings; a service is priced per million answers")
	}
	has := func(name string) bool {
		return slices.ContainsFunc(runs, func(r scaling.Observation) bool {
			return slices.ContainsFunc(r.Places, func(p measure.Place) bool { _, ok := p.Values[name]; return ok })
		})
	}
	rates := []string{measure.RateWithinLimit, measure.RequestsPerSecond}
	name := o.Measure
	for _, rate := range rates {
		if name == "" && has(rate) {
			name = rate
		}
	}
	switch {
	case name != "" && !slices.Contains(rates, name):
		return compare, workspace.Errorf("--measure %s is not a rate of answers; a service is priced per million of them: %s", name, strings.Join(rates, ", "))
	case name == "" || !has(name):
		return compare, &workspace.Error{Err: fmt.Errorf("no run of study %q has %s; cost needs it to price a million answers", runs[0].Study, cmp.Or(name, "a rate of answers")),
			Hint: fmt.Sprintf("`scalebench scaling %s` says why runs found none; a limit such as workload.limit = { p95 = \"50ms\" } makes them search the largest rate within it.", runs[0].Study)}
	}
	compare.Work.Million = true
	var err error
	compare.Measure, err = measure.Find(name)
	return compare, err
}

// compare checks the request and converts it to options for package cost.
func (o *Costs) compare() (cost.Options, error) {
	var t cost.Options
	switch {
	case o.Per != "run" && o.Per != "epoch":
		return t, workspace.Errorf("--per %q is not known; valid: run, epoch", o.Per)
	case o.Clock != string(workspace.TrainClock) && o.Clock != string(workspace.JobClock):
		return t, workspace.Errorf("--clock %q is not known; valid: train, job", o.Clock)
	case o.Target != nil && o.Per == "epoch":
		return t, workspace.Errorf("--target and --per epoch cannot be combined")
	case o.Target != nil && o.Clock == "job":
		return t, workspace.Errorf("--target uses the training clock and cannot be combined with --clock job")
	}
	if err := checkMarket(o.Market); err != nil {
		return t, err
	}
	t.Work.Epoch, t.Work.Target = o.Per == "epoch", o.Target
	var err error
	t.Baseline, err = conditionsOf("--baseline", o.Baseline)
	return t, err
}

// Tariff returns the prices in siteFile or, if that is "", in the site file of the study.
func (r *Reader) Tariff(ctx context.Context, studyArg, siteFile, currency, market string) (*workspace.Tariff, error) {
	site, err := r.SiteOf(ctx, studyArg, siteFile)
	if err != nil {
		return nil, err
	}
	tariff, err := workspace.NewTariff(site, currency, market)
	switch {
	case errors.Is(err, workspace.ErrNoPrices):
		where := "the site file and name it with --site FILE, or with study.site in the study's file"
		if site.File != "" {
			where = workspace.Near(site.File) + ", the study's site file"
		}
		return nil, &workspace.Error{Err: err, Hint: "Write [[prices]] into " + where + "."}
	case err != nil:
		return nil, &workspace.Error{Err: err}
	}
	return tariff, nil
}

// Prices is like Tariff for on-demand prices, but states a missing price list in one
// sentence, for reports and figures.
func (r *Reader) Prices(ctx context.Context, studyArg, siteFile string) (*workspace.Tariff, error) {
	tariff, err := r.Tariff(ctx, studyArg, siteFile, "", cost.OnDemand)
	if use := (*workspace.Error)(nil); errors.Is(err, workspace.ErrNoPrices) && errors.As(err, &use) {
		err = &workspace.Error{Err: fmt.Errorf("%w; w%s", workspace.ErrNoPrices, strings.Trim(use.Hint, "W."))}
	}
	return tariff, err
}

// Priced compares the points of an analysis by time and cost: until the target is reached,
// or of the whole run if target is nil.
func (r *Reader) Priced(ctx context.Context, a *Analysis, o Question, siteFile string, target *measure.Target) (*cost.Comparison, error) {
	tariff, err := r.Prices(ctx, o.Study, siteFile)
	if err != nil {
		return nil, err
	}
	options := cost.Options{Work: cost.Work{Target: target}, Baseline: a.Baseline}
	if a.design != nil {
		options.Confidence = a.design.Confidence
	}
	bill, err := tariff.Compare(a.Curves, a.Observations, o.Mix, o.Series, options)
	if err != nil {
		return nil, &workspace.Error{Err: err}
	}
	return bill, nil
}
