package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/table"
)

// advisePhases says what each of several studies needs: training, inference and
// preprocessing of one piece of work, as a rule.
func advisePhases(ctx context.Context, s *session, o adviseOptions, studies []string) error {
	if err := o.checkSpec(); err != nil {
		return err
	}
	names := make([]string, len(studies))
	for i, arg := range studies {
		name, err := workspace.StudyName(arg)
		if err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return usagef("study %q is there twice", name)
		}
		names[i] = name
	}
	var phases []tables.Phase
	var warnings []string
	currency := o.currency // of the first price, and of all others then
	for i, name := range names {
		one, arg := o, studies[i]
		one.study, one.currency = arg, currency
		list, obs, more, err := s.needs(ctx, one.curveOptions, o.loss, o.resources.Value())
		if err != nil {
			return about(name, err)
		}
		markets, found, unpriced, err := one.machines(ctx, s, list)
		if err != nil {
			return about(name, err)
		}
		if found != "" {
			currency = found
		}
		for i, a := range list {
			p := tables.Phase{Study: name, Kind: kindOf(a, obs), Answer: a}
			if markets != nil {
				p.Market = &markets[i]
			}
			phases = append(phases, p)
		}
		for _, w := range append(more, unpriced...) {
			warnings = append(warnings, name+": "+w)
		}
	}
	if s.format == table.FormatJSON || s.format == table.FormatCSV {
		if err := s.print(tables.PhasesData(phases, currency, warnings)); err != nil {
			return err
		}
	} else {
		if sentence := tables.PhasesSentence(phases, currency); sentence != "" {
			if _, err := fmt.Fprintf(s.stdout, "%s\n\n", s.sentences(sentence)); err != nil {
				return err
			}
		}
		if err := s.print(tables.Phases(phases, currency)); err != nil {
			return err
		}
		s.note("`%s advise STUDY --spec` says of one study which amounts were tried, and what to measure next.", appName)
	}
	s.doubtAll(strings.Join(names, " "), warnings...)
	for _, name := range names {
		if !slices.ContainsFunc(phases, func(p tables.Phase) bool { return p.Study == name && p.Answer.Spec != nil }) {
			return errUndecided
		}
	}
	return nil
}

// kindOf is the kind of workload of a series.
func kindOf(a sensitivity.Answer, obs []scaling.Observation) string {
	kind, _ := a.Parameters["workload.kind"].(string)
	return measure.KindOf(cmp.Or(kind, obs[0].Kind)).Name
}

// about names the study that an error is of, where it does not do so itself.
func about(name string, err error) error {
	var usage *usageError
	if errors.As(err, &usage) && !strings.Contains(usage.Error(), name) {
		return &usageError{err: fmt.Errorf("%s: %w", name, usage.err), hint: usage.hint, usage: usage.usage}
	}
	var refused *workspace.Error
	if errors.As(err, &refused) && !strings.Contains(refused.Error(), name) {
		return &workspace.Error{Err: fmt.Errorf("%s: %w", name, refused.Err), Hint: refused.Hint}
	}
	return err
}
