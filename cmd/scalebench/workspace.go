package main

import (
	"errors"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
)

// workspace returns the location of the session's studies, by its options.
func (s *session) workspace() *workspace.Workspace {
	return &workspace.Workspace{Runs: s.runs, DB: s.db, Version: version.String(), Note: s.note, Warn: s.warn, WarnOf: s.warnAll, Detail: s.detail, Hold: s.deferInterrupts, Whole: s.whole, Elsewhere: s.noteHome}
}

// reader returns a Reader that answers questions about the session's studies.
func (s *session) reader() *query.Reader {
	spareMemory()
	return &query.Reader{Workspace: s.workspace(), WarnStudy: s.warnStudySorted, Partial: s.setPartial}
}

// setPartial records that an answer does without some of a study's runs, which cannot be
// read; nil says that all can be.
func (s *session) setPartial(study string, err error) {
	if s.partial == nil {
		s.partial = map[string]error{}
	}
	s.partial[study] = err
}

// partialAnswer returns an error about the studies whose runs an answer does without.
func (s *session) partialAnswer() error {
	var list []error
	for _, study := range slices.Sorted(maps.Keys(s.partial)) {
		list = append(list, s.partial[study])
	}
	return errors.Join(list...)
}

// noteHome reports once where a study's runs are, if that is not the default.
func (s *session) noteHome(study, home string) {
	if s.told[home] {
		return
	}
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[home] = true
	s.note("the runs of study %s are in %s", study, home)
}
