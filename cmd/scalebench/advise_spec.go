package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// adviseSpec prints the sufficient amount of each resource.
func adviseSpec(ctx context.Context, s *session, o adviseOptions) error {
	n, err := s.reader().Needs(ctx, o.asked())
	if err != nil {
		return err
	}
	if s.forPeople() {
		err = s.printSpec(n)
	} else {
		err = s.print(report.SpecData(n.Answers, n.Markets, n.Currency, n.Command, n.Warnings))
	}
	if err != nil {
		return err
	}
	s.warnStudySorted(o.Study, n.Warnings...)
	if !n.Answered() {
		return errUndecided
	}
	return nil
}

// printSpec prints the answers for people, each with commands that would improve it.
func (s *session) printSpec(n *query.Needed) (err error) {
	for i, a := range n.Answers {
		how := func(at map[string]scaling.Value) string { return n.Command(a, at) }
		if i > 0 {
			fmt.Fprintln(s.stdout)
		}
		sentence := report.SpecSentence(a)
		if n.Markets != nil {
			sentence += " " + report.MachinesSentence(a, n.Markets[i], n.Currency)
		}
		if len(a.Factors) == 0 { // a table would have no rows
			_, err = fmt.Fprintln(s.stdout, s.sentences(sentence))
		} else {
			err = s.printSentences(sentence, report.Spec(a, how))
		}
		if err != nil {
			return err
		}
		if n.Markets != nil {
			fmt.Fprintln(s.stdout)
			if err := s.print(report.Machines(a, n.Markets[i], n.Currency, how)); err != nil {
				return err
			}
		}
	}
	return nil
}

// advisePhases prints the needs of each of several studies.
func advisePhases(ctx context.Context, s *session, o adviseOptions, studies []string) error {
	p, err := s.reader().Phases(ctx, o.asked(), studies)
	if err != nil {
		return err
	}
	if s.forPeople() {
		if sentence := report.PhasesSentence(p.Phases, p.Currency); sentence != "" {
			fmt.Fprintf(s.stdout, "%s\n\n", s.sentences(sentence)) // print reports if it failed
		}
		if err := s.print(report.Phases(p.Phases, p.Currency)); err != nil {
			return err
		}
		s.note("`%s advise STUDY --spec` says of one study which amounts were tried, and what to measure next.", appName)
	} else if err := s.print(report.PhasesData(p.Phases, p.Currency, p.Warnings)); err != nil {
		return err
	}
	s.warnStudySorted(strings.Join(p.Names, " "), p.Warnings...)
	if !p.Answered {
		return errUndecided
	}
	return nil
}
