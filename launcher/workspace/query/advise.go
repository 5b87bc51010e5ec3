package query

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// A Wish holds what the user requires of a recommendation: a deadline, a budget, a request rate and
// so on.
type Wish struct {
	Question
	Site, Currency, Market string
	Options                advice.Options

	Rate  float64        // requests/s that a service must handle
	Limit *measure.Limit // limit on a service's latencies; nil means the limit that the study sets

	Contrast string // key whose values are compared with each other, instead of worker counts, such as "framework"

	Spec      bool     // the question is how much of each resource is enough
	Loss      float64  // share of the measure that may be lost by using fewer resources
	Resources []string // keys of resources to consider; empty means those in which runs differ
}

// Advised holds the advice about each series of a study.
type Advised struct {
	*Analysis
	Advice []*advice.Advice
	Wish   advice.Options // the user's requirements; the study provides those that the user did not give
}

// Advise recommends a number of workers for each series of a study.
func (r *Reader) Advise(ctx context.Context, o Wish) (*Advised, error) {
	v, err := r.adviser(ctx, o)
	if err != nil {
		return nil, err
	}
	a, err := v.ask(ctx, o.Question)
	if err != nil {
		return nil, err
	}
	list, err := v.advise(ctx, a, o.Study)
	return &Advised{Analysis: a, Advice: list, Wish: v.wish}, err
}

// An adviser holds the user's requirements and the prices with which costs are computed.
type adviser struct {
	r      *Reader
	wish   advice.Options
	tariff *workspace.Tariff // nil without prices

	contrast *contrast // nil: worker counts are compared
}

// adviser returns an adviser for the wish o. It returns an error if the requirements are
// contradictory or out of range, before any run is read.
func (r *Reader) adviser(ctx context.Context, o Wish) (*adviser, error) {
	if err := checkMarket(o.Market); err != nil {
		return nil, err
	}
	v := &adviser{r: r, wish: o.Options}
	var err error
	if v.tariff, err = r.Tariff(ctx, o.Study, o.Site, o.Currency, o.Market); err != nil && !errors.Is(err, workspace.ErrNoPrices) {
		return nil, err
	}
	if v.tariff != nil {
		v.wish.Currency = v.tariff.Currency
		v.wish.Cost = func(int, int, float64) (float64, error) { return 0, nil } // marks that prices exist; each series gets its own function
	}
	if err := v.wish.Check(); err != nil {
		return nil, &workspace.Error{Err: err, Hint: "`scalebench advise --help` shows what is valid."}
	}
	return v, nil
}

func checkMarket(market string) error {
	if !slices.Contains(cost.Markets, market) {
		return workspace.Errorf("--market %q is not known; valid: %s", market, strings.Join(cost.Markets, ", "))
	}
	return nil
}

// currency returns the currency of the prices; "" without prices.
func (v *adviser) currency() string {
	if v.tariff == nil {
		return ""
	}
	return v.tariff.Currency
}

// ask returns the curves that the advice is based on. They show the requested measure, else the
// default measure for the study's kind of workload. If the runs of a training have no throughput and reach no target,
// their only figure, or the time of imported trainings, takes its place.
func (v *adviser) ask(ctx context.Context, o Question) (*Analysis, error) {
	if o.Measure == "" {
		a, err := v.r.Curves(ctx, o)
		if err != nil {
			return nil, err
		}
		only := a.Compared()
		switch w := v.wish; {
		case !a.Kind.Trains:
			if o.Measure = a.Kind.Advises; o.Measure == "" {
				return nil, a.Trainings()
			}
		case only == "" || w.Target != nil || w.Samples > 0 || w.Deadline > 0 || w.Budget > 0:
			return a, nil
		default:
			o.Measure, v.wish.OnlyFigure = only, true
		}
	}
	var err error
	if v.wish.Figure, err = v.r.figure(ctx, o); err != nil {
		return nil, err
	}
	if err := v.wish.Check(); err != nil {
		return nil, &workspace.Error{Err: err}
	}
	o.asThroughput(*v.wish.Figure)
	v.tariff, v.wish.Cost = nil, nil
	return v.r.Curves(ctx, o)
}

// advise returns one piece of advice for each series. arg is the study's file or name; it is needed
// for the commands that measure more.
func (v *adviser) advise(ctx context.Context, a *Analysis, arg string) ([]*advice.Advice, error) {
	list := []*advice.Advice{}
	more, err := v.r.measuring(ctx, arg, a.Observations)
	if err != nil {
		return nil, err
	}
	for _, c := range a.Curves {
		wish := v.wish
		largest := 0
		for _, p := range c.Points {
			largest = max(largest, p.Workers)
		}
		wish.Most = more.most(ctx, largest)
		wish.Warnings = a.Warnings
		if v.tariff != nil {
			wish.Cost = v.tariff.Like(c, a.Observations)
		}
		if d := a.design; d != nil {
			wish.Confidence, wish.Sure, wish.Most = d.Confidence, d.Confidence, largest
		}
		one, err := advice.Advise(c, a.Observations, wish)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	if a.design != nil {
		more.untilDecided(list)
		return list, nil
	}
	more.commands(ctx, list, a)
	return list, nil
}

// Whole returns the advice for each series, to which it adds all warnings about the study, the
// series and its points.
func (a *Advised) Whole() []*advice.Advice {
	all := make([]*advice.Advice, len(a.Advice))
	for i, one := range a.Advice {
		with := *one
		with.Warnings = a.lines(one.Series, advice.Warnings([]*advice.Advice{one})...)
		all[i] = &with
	}
	return all
}

// decisive returns the warnings about the study and about a series that can change an answer.
func (a *Analysis) decisive(series string) []string {
	var own []scaling.Curve
	for _, c := range a.Curves {
		if c.Series == series {
			own = append(own, c)
		}
	}
	return scaling.DecisiveIn(own, a.Warnings...)
}

// lines returns all warnings about a series, including those about the whole study and about single
// points. The result is never nil. For a series without a curve, it returns the warnings about all
// series.
func (a *Analysis) lines(series string, more ...scaling.Remark) []string {
	var remarks []scaling.Remark
	for _, w := range a.Warnings {
		remarks = append(remarks, scaling.Remark{Text: w})
	}
	known := slices.ContainsFunc(a.Curves, func(c scaling.Curve) bool { return c.Series == series })
	for _, c := range a.Curves {
		if c.Series == series || !known {
			remarks = append(remarks, scaling.Remarks([]scaling.Curve{c})...)
		}
	}
	if lines := scaling.Lines(append(remarks, more...), 1); lines != nil {
		return lines
	}
	return []string{}
}
