package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
)

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
	q := workspace.PriceQuestion{Mix: o.Mix, Series: o.Series, Target: target, Baseline: a.Baseline}
	if a.design != nil {
		q.Confidence = a.design.Confidence
	}
	bill, err := tariff.Compare(a.Curves, a.Observations, q)
	if err != nil {
		return nil, &workspace.Error{Err: err}
	}
	return bill, nil
}
