package main

import (
	"context"
	"os"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
)

// workspace returns where the session's studies are, by its options.
func (s *session) workspace() *workspace.Workspace {
	return &workspace.Workspace{Runs: s.runs, DB: s.db, Note: s.note, Warn: s.warn, WarnOf: s.warnOf, Detail: s.detail, Hold: s.hold, Elsewhere: s.tellHome}
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

// claim makes a folder the home of a study's runs.
func (s *session) claim(ctx context.Context, w *work) error {
	s.hold()
	return s.workspace().Claim(ctx, w.study, w.plan, w.folder)
}

// planned identifies a repeat of a point.
func planned(point string, repeat int) workspace.Repeat {
	return workspace.Repeat{Point: point, Repeat: repeat}
}

func (s *session) database() (string, error) { return s.workspace().Database() }

func (s *session) runsHere() (string, error) { return s.workspace().RunsHere() }

func (s *session) find(ctx context.Context, arg string) (rundir.Study, error) {
	return s.workspace().Find(ctx, arg)
}

func (s *session) folderOf(ctx context.Context, st *study.Study, site *study.Site) (rundir.Study, error) {
	return s.workspace().FolderOf(ctx, st, site)
}

func (s *session) folderNamed(ctx context.Context, name string) (rundir.Study, error) {
	return s.workspace().FolderNamed(ctx, name)
}

func (s *session) siteOf(ctx context.Context, arg, named string) (*study.Site, error) {
	return s.workspace().SiteOf(ctx, arg, named)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}
