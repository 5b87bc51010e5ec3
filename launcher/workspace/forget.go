package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Selection is the set of runs of one study that a command's argument selects. The runs may be in
// the study's folder, in its trash, or in the database.
type Selection struct {
	Study  string
	Folder rundir.Study

	w         *Workspace
	run       string                 // "" means all runs of the study
	matches   func(name string) bool // reports whether run selects the run with that name
	stored    []string               // names of the study's runs in the database
	forgotten []string               // names of runs that the database already marks as forgotten
}

// Select returns the runs that an argument selects: all runs of a study, the runs of one point, or
// one run.
func (w *Workspace) Select(ctx context.Context, arg string) (*Selection, error) {
	name, run, err := splitRun(arg)
	if err != nil {
		return nil, err
	}
	s := &Selection{w: w, run: run}
	if s.Study, err = StudyName(name); err != nil {
		return nil, err
	}
	if s.Folder, err = w.Find(ctx, name); err != nil {
		return nil, err
	}
	file, err := w.Database()
	if err != nil {
		return nil, err
	}
	if !Exists(file) {
		return s, s.match()
	}
	db, err := w.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Runs(ctx, store.Filter{Study: s.Study})
	if err != nil {
		return nil, StoreError(err)
	}
	for _, r := range rows {
		s.stored = append(s.stored, r.Run)
	}
	if s.forgotten, err = db.Forgotten(ctx, s.Study); err != nil {
		return nil, StoreError(err)
	}
	return s, s.match()
}

// match sets s.matches, the function that decides which run names the argument selects.
func (s *Selection) match() (err error) {
	if s.run == "" {
		return nil
	}
	var names []string
	for _, id := range slices.Concat(s.stored, s.forgotten) {
		names = append(names, strings.TrimPrefix(id, s.Study+"/"))
	}
	for _, list := range []func() ([]rundir.Attempt, error){s.Folder.Attempts, s.Folder.Forgotten} {
		attempts, err := list()
		if err != nil {
			continue // the calls that need them report it
		}
		for _, a := range attempts {
			names = append(names, a.Run.Name())
		}
	}
	s.matches, err = matchingNames(s.run, names)
	return err
}

// has reports whether the run with this ID, such as "STUDY/POINT-r1-a1", is selected.
func (s *Selection) has(id string) bool {
	return s.run == "" || s.matches(strings.TrimPrefix(id, s.Study+"/"))
}

// id returns an attempt's run ID, which is unique among all of a user's runs: STUDY/POINT-r1-a1.
func (s *Selection) id(a rundir.Attempt) string { return s.Study + "/" + a.Run.Name() }

// lease takes the study's lease, which keeps other commands from starting runs. release returns it.
// Without a folder of the study, both do nothing.
func (s *Selection) lease(ctx context.Context) (release func(), err error) {
	s.w.Hold()
	if !Exists(s.Folder.Path()) {
		return func() {}, nil
	}
	if err := mustBeOurs(s.Folder, "forget"); err != nil {
		return nil, err
	}
	l, err := s.w.Lease(ctx, s.Folder)
	if err != nil {
		return nil, err
	}
	return func() { l.Release() }, nil
}

// Lease takes a study's lease. If another command has it, Lease tells the user and waits.
func (w *Workspace) Lease(ctx context.Context, folder rundir.Study) (*sharedfs.Lease, error) {
	l, err := sharedfs.TakeLease(ctx, folder.Lease(), 0)
	if held, ok := errors.AsType[*sharedfs.LeaseHeldError](err); ok {
		w.Note("%s is starting runs of %s; waiting for it", held.Holder, filepath.Base(folder.Path()))
		return sharedfs.TakeLease(ctx, folder.Lease(), sharedfs.LeasePatience)
	}
	return l, err
}

// Forget moves the selected runs that match a condition to the trash and removes them from the database. It
// returns their names, or none with an error.
func (s *Selection) Forget(ctx context.Context, where string) ([]string, error) {
	release, err := s.lease(ctx)
	if err != nil {
		return nil, s.busy(err)
	}
	defer release()
	attempts, names, err := s.candidates(ctx, where)
	if err != nil {
		return nil, err
	}
	if len(attempts)+len(names) == 0 {
		return nil, s.nothingToForget(ctx, where)
	}
	states, _, unreachable := s.w.Survey(ctx, attempts)
	if err := ended(states, unreachable, s.Study); err != nil {
		return nil, err
	}
	for _, state := range states {
		if err = state.Run.Forget(); err != nil {
			break
		}
		names = append(names, state.Record.ID)
	}
	slices.Sort(names)
	if told := s.record(ctx, names); told != nil || err != nil {
		return nil, errors.Join(err, told)
	}
	return names, nil
}

// busy returns an error with a hint if err says that another command has the study's lease; it
// returns other errors unchanged.
func (s *Selection) busy(err error) error {
	if held := (*sharedfs.LeaseHeldError)(nil); errors.As(err, &held) {
		return &Error{Err: fmt.Errorf("%s is starting runs of %s; nothing was changed", held.Holder, s.Study), Hint: "Try again when it is done."}
	}
	return err
}

// candidates returns the selected attempts that match the condition where. names are the selected
// runs that are only in the database.
func (s *Selection) candidates(ctx context.Context, where string) (attempts []*launcher.Attempt, names []string, err error) {
	chosen, err := s.matching(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	all, err := launcher.Attempts(s.Folder)
	if err != nil {
		return nil, nil, err
	}
	here, unseen := map[string]bool{}, 0
	for _, a := range all {
		id := a.Run.ID()
		here[id] = true
		switch {
		case !s.has(id):
		case where != "" && !slices.Contains(s.stored, id):
			unseen++
		case chosen == nil || chosen[id]:
			attempts = append(attempts, a)
		}
	}
	for _, id := range s.stored {
		if !here[id] && s.has(id) && (chosen == nil || chosen[id]) {
			names = append(names, id)
		}
	}
	if unseen > 0 {
		s.w.Warn("%s not collected yet, so --where does not see %s; `scalebench collect %s` first", number.Are(unseen, "run"), number.Them(unseen), s.Study)
	}
	return attempts, names, nil
}

// matching returns the set of stored runs that match the condition where; nil if where is "".
func (s *Selection) matching(ctx context.Context, where string) (map[string]bool, error) {
	if where == "" {
		return nil, nil
	}
	db, err := s.w.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Runs(ctx, store.Filter{Study: s.Study, Where: where})
	if err != nil {
		return nil, StoreError(err)
	}
	set := map[string]bool{}
	for _, r := range rows {
		set[r.Run] = true
	}
	return set, nil
}

// nothingToForget returns the error that says why no run was forgotten.
func (s *Selection) nothingToForget(ctx context.Context, where string) error {
	switch gone, err := s.Forgotten(); {
	case err != nil:
		return err
	case where != "":
		return s.nothing("no collected run matches --where; nothing was forgotten")
	case len(gone) > 0:
		// If an earlier command was interrupted, the database may not have recorded them as
		// forgotten.
		if err := s.record(ctx, nil); err != nil {
			return err
		}
		return s.nothing("forgotten already")
	case s.run == "":
		return s.nothing("no runs")
	}
	return s.nothing("no such run")
}

// ended returns an error if one of the runs has not ended, or if that is unknown.
func ended(states []launcher.State, unreachable error, study string) error {
	var alive []string
	for _, s := range states {
		switch {
		case s.Unreadable != nil:
			return &Error{Err: fmt.Errorf("%s cannot be read, so it may still be running; nothing was forgotten", s.Run.ID()),
				Hint: "If it has ended, move its folder away by hand."}
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
	what := study
	if len(alive) == 1 {
		what, _, _ = strings.Cut(alive[0], " ")
	}
	return &Error{Err: fmt.Errorf("%s not ended: %s; nothing was forgotten", number.Have(len(alive), "run"), fewOf(alive)),
		Hint: fmt.Sprintf("Cancel first: `scalebench cancel %s`.", what)}
}

// record removes the named runs from the database. It also removes all runs that are in the trash:
// a command that was interrupted may not have done that.
func (s *Selection) record(ctx context.Context, names []string) error {
	file, err := s.w.Database()
	if err != nil || !Exists(file) { // without a database there is nothing to remove; collect skips runs in the trash
		return err
	}
	trash, err := s.Folder.Forgotten()
	if err != nil {
		return err
	}
	for _, a := range trash {
		names = append(names, s.id(a))
	}
	return s.w.change(ctx, func(db *store.Store) error { return db.Forget(ctx, names) })
}

// change calls the function with the open database, then assigns the runs of changed studies to
// curves again.
func (w *Workspace) change(ctx context.Context, change func(*store.Store) error) error {
	file, err := w.Database()
	if err != nil {
		return err
	}
	db, err := openForWriting(file)
	if err != nil {
		return StoreError(err)
	}
	defer db.Close()
	if err := change(db); err != nil {
		return StoreError(err)
	}
	return StoreError(db.Arrange(ctx))
}

// Restore moves the selected runs out of the trash and restores them in the database. It returns their names,
// or none with an error.
func (s *Selection) Restore(ctx context.Context) ([]string, error) {
	release, err := s.lease(ctx)
	if err != nil {
		return nil, s.busy(err)
	}
	defer release()
	trash, err := s.Folder.Forgotten()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range s.forgotten { // also runs whose folders are back but which the database still marks as forgotten
		if s.has(id) {
			names = append(names, id)
		}
	}
	var stopped error
	for _, a := range trash {
		id := s.id(a)
		if !s.has(id) {
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
		if s.run == "" {
			return nil, s.nothing("none of its runs is forgotten")
		}
		return nil, s.nothing("not forgotten")
	}
	slices.Sort(names)
	if file, err := s.w.Database(); err != nil {
		return nil, err
	} else if Exists(file) {
		err := s.w.change(ctx, func(db *store.Store) error { return db.Restore(ctx, names) })
		stopped = errors.Join(stopped, err)
	}
	if stopped != nil {
		return nil, stopped
	}
	return names, nil
}

// nothing returns an error that names the selection, followed by the text what.
func (s *Selection) nothing(what string) error {
	asked := "study " + s.Study
	if s.run != "" {
		asked = "run " + s.Study + "/" + s.run
	}
	return &Error{Err: fmt.Errorf("%s: %s", asked, what),
		Hint: "`scalebench status` lists runs, `scalebench forget --list " + s.Study + "` the forgotten ones."}
}

// Forgotten returns the names of the selected runs that are in the trash or that the database marks
// as forgotten.
func (s *Selection) Forgotten() ([]string, error) {
	trash, err := s.Folder.Forgotten()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(s.forgotten)
	for _, a := range trash {
		if id := s.id(a); !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	names = slices.DeleteFunc(names, func(id string) bool { return !s.has(id) })
	slices.Sort(names)
	return names, nil
}

// Path returns the current folder of a run, or "" if it does not exist.
func (s *Selection) Path(id string) string {
	_, name, _ := strings.Cut(id, "/")
	for _, in := range []rundir.Study{s.Folder.Trash(), s.Folder} {
		path := filepath.Join(in.Path(), name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			return path
		}
	}
	return ""
}

// followTrash makes the database agree with a study's trash. It marks runs in the trash as
// forgotten, and restores runs that were taken out of the trash.
func followTrash(ctx context.Context, db *store.Store, forgotten []rundir.Attempt, study string, states []launcher.State) error {
	var gone, back []string
	for _, a := range forgotten {
		gone = append(gone, study+"/"+a.Run.Name())
	}
	known, err := db.Forgotten(ctx, study)
	if err != nil {
		return err
	}
	for _, s := range states {
		if slices.Contains(known, s.Record.ID) {
			back = append(back, s.Record.ID)
		}
	}
	if err := db.Forget(ctx, gone); err != nil {
		return err
	}
	return db.Restore(ctx, back)
}
