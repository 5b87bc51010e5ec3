package main

import (
	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
)

// workspace returns where the session's studies are, by its options.
func (s *session) workspace() *workspace.Workspace {
	return &workspace.Workspace{Runs: s.runs, DB: s.db, Version: version.String(), Note: s.note, Warn: s.warn, WarnOf: s.warnOf, Detail: s.detail, Hold: s.hold, Whole: s.whole, Elsewhere: s.tellHome}
}

// reader returns what answers questions about the session's studies.
func (s *session) reader() *query.Reader {
	spareMemory()
	return &query.Reader{Workspace: s.workspace(), Doubt: s.doubtAll}
}

// tellHome says once where a study's runs are, if that is not the default place.
func (s *session) tellHome(study, home string) {
	if s.told[home] {
		return
	}
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[home] = true
	s.note("the runs of study %s are in %s", study, home)
}
