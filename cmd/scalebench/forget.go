package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

type forgetOptions struct {
	arg, where    string
	restore, list bool
}

func forgetCommand(s *session) *cli.Command {
	var o forgetOptions
	return &cli.Command{
		Name:      "forget",
		Usage:     "take runs out of every table, figure and advice; --restore brings them back",
		ArgsUsage: "STUDY|RUN",
		Description: "RUN is a run as `status` lists it; STUDY/POINT means all runs of a point; a unique\n" +
			"prefix is enough. Cancel a waiting or running run first. Nothing is deleted: run\n" +
			"folders move to the folder trash next to them, and the database no longer shows the\n" +
			"runs. Colleagues who collect from the same folder no longer see them either.\n" +
			"Imported runs, and runs whose folders no longer exist, are forgotten only in the\n" +
			"database.\n" +
			"\n" +
			"`run` and `submit` then measure these points again, and say so. To leave a point\n" +
			"out, remove it from the study file too.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "where", Destination: &o.where, Usage: "only collected runs that match the SQL `CONDITION`: \"workers > 8 AND throughput < 100\""},
			&cli.BoolFlag{Name: "restore", Destination: &o.restore, DisableDefaultText: true, Usage: "bring forgotten runs back"},
			&cli.BoolFlag{Name: "list", Destination: &o.list, DisableDefaultText: true, Usage: "list the study's forgotten runs"},
		},
		Action: func(c *cli.Context) error {
			o.arg = c.Args().First()
			return runForget(c.Context, s, o)
		},
	}
}

func runForget(ctx context.Context, s *session, o forgetOptions) error {
	switch {
	case o.restore && o.list:
		return usagef("--restore and --list cannot be combined")
	case o.where != "" && (o.restore || o.list):
		return usagef("--where cannot be combined with --restore or --list; name a RUN or a STUDY, as --list prints them")
	}
	f, err := s.forgetting(ctx, o.arg)
	if err != nil {
		return err
	}
	if o.list {
		return f.list()
	}
	s.hold()
	if exists(f.folder.Path()) {
		l, err := s.lease(ctx, f.folder)
		var held *sharedfs.LeaseHeldError
		if errors.As(err, &held) {
			return &usageError{err: fmt.Errorf("%s is starting runs of %s; nothing was changed", held.Holder, f.study), hint: "Try again when it is done."}
		}
		if err != nil {
			return err
		}
		defer l.Release()
	}
	if o.restore {
		return f.restore(ctx)
	}
	return f.forget(ctx, o.where)
}

// forgetting is what of a study is to be forgotten or restored.
type forgetting struct {
	*session
	study, run string                 // run is "" for all of the study's
	named      func(name string) bool // reports whether run means the run of that name
	folder     rundir.Study
	stored     []string // names of the study's runs in the database
	forgotten  []string // of those forgotten there
}

func (s *session) forgetting(ctx context.Context, arg string) (*forgetting, error) {
	f := &forgetting{session: s}
	name, run, err := workspace.SplitRun(arg)
	if err != nil {
		return nil, err
	}
	f.run = run
	if f.study, err = workspace.StudyName(name); err != nil {
		return nil, err
	}
	if f.folder, err = s.find(ctx, name); err != nil {
		return nil, err
	}
	file, err := s.database()
	if err != nil {
		return nil, err
	}
	if !exists(file) {
		return f, f.choose()
	}
	db, err := s.openStore()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Runs(ctx, store.Filter{Study: f.study})
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	for _, r := range rows {
		f.stored = append(f.stored, r.Run)
	}
	if f.forgotten, err = db.Forgotten(ctx, f.study); err != nil {
		return nil, workspace.StoreError(err)
	}
	return f, f.choose()
}

// choose finds out which runs are meant, among those in the folder, its trash and the
// database.
func (f *forgetting) choose() error {
	if f.run == "" {
		return nil
	}
	var names []string
	for _, id := range slices.Concat(f.stored, f.forgotten) {
		names = append(names, strings.TrimPrefix(id, f.study+"/"))
	}
	for _, list := range []func() ([]rundir.Attempt, error){f.folder.Attempts, f.folder.Forgotten} {
		attempts, err := list()
		if err != nil {
			continue // what uses them reports it
		}
		for _, a := range attempts {
			names = append(names, a.Run.Name())
		}
	}
	var err error
	f.named, err = workspace.Matching(f.run, names)
	return err
}

// means reports whether a run's name, "STUDY/POINT-r1-a1", is one that was asked
// for.
func (f *forgetting) means(id string) bool {
	return f.run == "" || f.named(strings.TrimPrefix(id, f.study+"/"))
}

// id is an attempt's name among all of a user's.
func (f *forgetting) id(a rundir.Attempt) string { return f.study + "/" + a.Run.Name() }

// chosen are those of the stored runs for which a condition holds; nil where
// there is none.
func (f *forgetting) chosen(ctx context.Context, where string) (map[string]bool, error) {
	if where == "" {
		return nil, nil
	}
	db, err := f.openStore()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Runs(ctx, store.Filter{Study: f.study, Where: where})
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	set := map[string]bool{}
	for _, r := range rows {
		set[r.Run] = true
	}
	return set, nil
}

func (f *forgetting) forget(ctx context.Context, where string) error {
	chosen, err := f.chosen(ctx, where)
	if err != nil {
		return err
	}
	all, err := launcher.Attempts(f.folder)
	if err != nil {
		return err
	}
	var attempts []*launcher.Attempt
	here, unseen := map[string]bool{}, 0
	for _, a := range all {
		id := a.Run.ID()
		here[id] = true
		if !f.means(id) {
			continue
		}
		if where != "" && !slices.Contains(f.stored, id) {
			unseen++
			continue
		}
		if chosen == nil || chosen[id] {
			attempts = append(attempts, a)
		}
	}
	var names []string // that only the database has
	for _, id := range f.stored {
		if !here[id] && f.means(id) && (chosen == nil || chosen[id]) {
			names = append(names, id)
		}
	}
	if unseen > 0 {
		f.warn("%s not collected yet, so --where does not see %s; `scalebench collect %s` first", are(unseen, "run"), them(unseen), f.study)
	}
	if len(attempts)+len(names) == 0 {
		switch gone, err := f.gone(); {
		case err != nil:
			return err
		case where != "":
			return f.nothing("no collected run matches --where; nothing was forgotten")
		case len(gone) > 0:
			// The database may not know, after a command that was ended.
			if err := f.tell(ctx, nil); err != nil {
				return err
			}
			return f.nothing("forgotten already")
		}
		if f.run == "" {
			return f.nothing("no runs")
		}
		return f.nothing("no such run")
	}
	states, _, unreachable := f.workspace().Survey(ctx, attempts)
	if err := ended(states, unreachable, f.study); err != nil {
		return err
	}
	for _, state := range states {
		if err = state.Run.Forget(); err != nil {
			break
		}
		names = append(names, state.Record.ID)
	}
	slices.Sort(names)
	if told := f.tell(ctx, names); told != nil || err != nil {
		return errors.Join(err, told)
	}
	if err := f.print(f.table(names)); err != nil {
		return err
	}
	f.note("forgot %s of %s; `scalebench forget --restore %s` brings %s back. `run` and `submit` measure %s again.",
		number.Count(len(names), "run"), f.study, f.study, them(len(names)), them(len(names)))
	return nil
}

// ended refuses runs that have not ended, or of which nobody knows.
func ended(states []launcher.State, unreachable error, study string) error {
	var alive []string
	for _, s := range states {
		switch {
		case s.Unreadable != nil:
			return &usageError{err: fmt.Errorf("%s cannot be read, so it may still be running; nothing was forgotten", s.Run.ID()),
				hint: "If it has ended, move its folder away by hand."}
		case !s.Status.Terminal():
			alive = append(alive, fmt.Sprintf("%s (%s)", s.Record.ID, s.Status))
		}
	}
	if len(alive) == 0 {
		return nil
	}
	if unreachable != nil {
		return unreachable
	}
	text := strings.Join(alive[:min(len(alive), 5)], ", ")
	if n := len(alive) - 5; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	what := study
	if len(alive) == 1 {
		what, _, _ = strings.Cut(alive[0], " ")
	}
	return &usageError{err: fmt.Errorf("%s not ended: %s; nothing was forgotten", have(len(alive), "run"), text),
		hint: fmt.Sprintf("Cancel first: `scalebench cancel %s`.", what)}
}

// tell has the database forget runs, and what is in the trash: a command that was
// ended between the two has told it nothing.
func (f *forgetting) tell(ctx context.Context, names []string) error {
	file, err := f.database()
	if err != nil || !exists(file) { // collect will look into the trash
		return err
	}
	trash, err := f.folder.Forgotten()
	if err != nil {
		return err
	}
	for _, a := range trash {
		names = append(names, f.id(a))
	}
	return f.inStore(ctx, func(db *store.Store) error { return db.Forget(ctx, names) })
}

// inStore changes the database, and its curves after it.
func (f *forgetting) inStore(ctx context.Context, change func(*store.Store) error) error {
	file, err := f.database()
	if err != nil {
		return err
	}
	db, err := workspace.OpenForWriting(file)
	if err != nil {
		return workspace.StoreError(err)
	}
	defer db.Close()
	if err := change(db); err != nil {
		return workspace.StoreError(err)
	}
	return workspace.StoreError(db.Arrange(ctx))
}

func (f *forgetting) restore(ctx context.Context) error {
	trash, err := f.folder.Forgotten()
	if err != nil {
		return err
	}
	var names []string
	for _, id := range f.forgotten { // also what is back already, and the database was not told of
		if f.means(id) {
			names = append(names, id)
		}
	}
	var stopped error
	for _, a := range trash {
		id := f.id(a)
		if !f.means(id) {
			continue
		}
		if stopped = a.Run.Restore(); stopped != nil {
			break
		}
		if !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	if len(names) == 0 && stopped == nil {
		if f.run == "" {
			return f.nothing("none of its runs is forgotten")
		}
		return f.nothing("not forgotten")
	}
	slices.Sort(names)
	if file, err := f.database(); err != nil {
		return err
	} else if exists(file) {
		if err := f.inStore(ctx, func(db *store.Store) error { return db.Restore(ctx, names) }); err != nil {
			return errors.Join(stopped, err)
		}
	}
	if stopped != nil {
		return stopped
	}
	if err := f.print(f.table(names)); err != nil {
		return err
	}
	f.note("restored %s of %s", number.Count(len(names), "run"), f.study)
	return nil
}

// nothing says why no run is meant.
func (f *forgetting) nothing(what string) error {
	asked := "study " + f.study
	if f.run != "" {
		asked = "run " + f.study + "/" + f.run
	}
	return &usageError{err: fmt.Errorf("%s: %s", asked, what),
		hint: "`scalebench status` lists runs, `scalebench forget --list " + f.study + "` the forgotten ones."}
}

// gone are those that were asked for and are forgotten, by the trash or the
// database.
func (f *forgetting) gone() ([]string, error) {
	trash, err := f.folder.Forgotten()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(f.forgotten)
	for _, a := range trash {
		if id := f.id(a); !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	names = slices.DeleteFunc(names, func(id string) bool { return !f.means(id) })
	slices.Sort(names)
	return names, nil
}

// list prints the study's forgotten runs.
func (f *forgetting) list() error {
	names, err := f.gone()
	if err != nil {
		return err
	}
	if err := f.print(f.table(names)); err != nil {
		return err
	}
	if len(names) == 0 {
		f.note("no run of %s is forgotten", f.study)
	}
	return nil
}

// table are runs and where their folders are now, if they have one.
func (f *forgetting) table(names []string) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "run"}, {Key: "folder"}}}
	for _, id := range names {
		_, name, _ := strings.Cut(id, "/")
		var folder any
		for _, in := range []rundir.Study{f.folder.Trash(), f.folder} {
			path := filepath.Join(in.Path(), name)
			if info, err := os.Lstat(path); err == nil && info.IsDir() {
				folder = path
				break
			}
		}
		t.Add(id, folder)
	}
	return t
}
