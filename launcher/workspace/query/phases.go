package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

// Phased holds the resources that several studies need, one phase per study.
type Phased struct {
	Names    []string // names of the studies
	Phases   []report.Phase
	Currency string
	Warnings []string
	Answered bool // every study has an answer
}

// Phases returns which resources are enough for several studies, which are usually the phases of
// one project: preprocessing, training and inference.
func (r *Reader) Phases(ctx context.Context, o Wish, studies []string) (*Phased, error) {
	if err := o.checkSpec(); err != nil {
		return nil, err
	}
	names := make([]string, len(studies))
	for i, arg := range studies {
		name, err := workspace.StudyName(arg)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names[:i], name) {
			return nil, workspace.Errorf("study %q is there twice", name)
		}
		names[i] = name
	}
	p := &Phased{Names: names, Currency: o.Currency, Answered: true} // all prices must be in the currency of the first study
	for i, name := range names {
		one := o
		one.Study, one.Currency = studies[i], p.Currency
		n, err := r.Enough(ctx, one)
		if err == nil {
			err = n.price(ctx, r, one)
		}
		if err != nil {
			return nil, about(name, err)
		}
		p.Currency = cmp.Or(n.Currency, p.Currency)
		for i, a := range n.Answers {
			phase := report.Phase{Study: name, Kind: kindOf(a, n.obs), Answer: a}
			if n.Markets != nil {
				phase.Market = &n.Markets[i]
			}
			p.Phases = append(p.Phases, phase)
		}
		for _, w := range n.Warnings {
			p.Warnings = append(p.Warnings, name+": "+w)
		}
		p.Answered = p.Answered && n.Answered()
	}
	return p, nil
}

// price sets, for each answer, which machines in the site's price list have enough resources,
// and what they cost.
func (n *Needed) price(ctx context.Context, r *Reader, o Wish) error {
	if err := checkMarket(o.Market); err != nil {
		return err
	}
	tariff, err := r.Tariff(ctx, o.Study, o.Site, o.Currency, o.Market)
	if errors.Is(err, workspace.ErrNoPrices) {
		return nil
	}
	if err != nil {
		return err
	}
	offered, warnings := tariff.Machines()
	n.Warnings = append(n.Warnings, warnings...)
	if len(offered) == 0 {
		return nil
	}
	for i := range n.Answers {
		n.Markets = append(n.Markets, n.Answers[i].Machines(offered))
	}
	n.Currency = tariff.Currency
	return nil
}

// kindOf returns the name of a series' kind of workload.
func kindOf(a sensitivity.Answer, obs []scaling.Observation) string {
	kind, _ := a.Parameters["workload.kind"].(string)
	return measure.KindOf(cmp.Or(kind, obs[0].Kind)).Name
}

// about adds the name of the study to an error that does not contain it.
func about(name string, err error) error {
	var refused *workspace.Error
	if errors.As(err, &refused) && !strings.Contains(refused.Error(), name) {
		return &workspace.Error{Err: fmt.Errorf("%s: %w", name, refused.Err), Hint: refused.Hint}
	}
	return err
}

// Enough returns how much of each resource is enough for each series of a study.
func (r *Reader) Enough(ctx context.Context, o Wish) (*Needed, error) {
	o.Edited = true // also use combinations that the user measured with KEY=VALUE arguments
	in, err := r.resources(ctx, o.Question)
	if err != nil {
		return nil, err
	}
	obs, exhausted, warnings := in.obs, in.unfit, in.warnings
	for i := range obs {
		obs[i].Parameters = inBytes(obs[i].Parameters)
	}
	for i := range exhausted {
		exhausted[i].Parameters = inBytes(exhausted[i].Parameters)
	}
	of, err := kept(obs, o.Measure)
	if err != nil {
		return nil, unanswered(err)
	}
	keys, err := factors(obs, exhausted, o.Resources, of)
	if err != nil {
		return nil, err
	}
	list, err := sensitivity.Analyse(obs, sensitivity.Options{Measure: of, Factors: keys, Epsilon: o.Loss, Mix: o.Mix, Exhausted: exhausted, Warnings: warnings})
	if err != nil {
		return nil, err
	}
	if len(o.Series) > 0 {
		list = slices.DeleteFunc(list, func(a sensitivity.Answer) bool { return !slices.Contains(o.Series, a.Series) })
		if len(list) == 0 {
			return nil, workspace.Errorf("--series %q: unknown series", o.Series[0])
		}
	}
	for _, a := range list {
		for _, w := range report.SpecWarnings(a) {
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return &Needed{Answers: list, Warnings: warnings, obs: obs}, nil
}
