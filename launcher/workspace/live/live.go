// Package live shows studies on a web page while they run: the states of their runs, the answer so
// far with its figures and tables, what is undecided, and the ends of logs. It computes no number:
// each comes from the function that the command of the same name prints.
//
// The server is read-only and answers GET and HEAD requests that have its token in their path
// (server.go). A board keeps the pages of one study up to date while someone looks at it
// (board.go). A page needs no script; with one, it changes by itself (templates/live.js). WriteOnce
// writes the same pages as files, for centres that allow no server (once.go).
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

// Options configure the pages.
type Options struct {
	Workspace *workspace.Workspace // only its folders, database and version are used
	Studies   []string             // files or names of the studies to show; empty for all
	Site      string               // site file with prices; "" for the study's
	Interval  time.Duration        // time between two queries of the scheduler
	// Ask returns the question that a study's record of looks has, as options of `decide` by name.
	Ask func(map[string]string) (query.Wish, error)
}

// A Site holds the pages of several studies.
type Site struct {
	options Options
	base    string // part of every version, so that a restarted server repeats none

	signal signal // bumped at a change of any board

	mu      sync.Mutex
	boards  map[string]*board
	entries []entry // the studies as they were last listed
	listed  time.Time
	problem error // why they cannot be listed
}

// An entry is a study in the list.
type entry struct {
	name   string
	arg    string       // how queries name it: a file or a name
	folder rundir.Study // "" if all its runs were imported
}

// New returns the pages that the options select.
func New(o Options) *Site {
	return &Site{options: o, base: fmt.Sprintf("%x", time.Now().UnixNano()), boards: map[string]*board{}, signal: signal{changed: make(chan struct{})}}
}

// mostFollowed is the number of studies of the list whose states are kept up to date.
const mostFollowed = 20

// relist is the time after which the studies are listed again.
const relist = 10 * time.Second

// list returns the studies.
func (s *Site) list(ctx context.Context) ([]entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.listed) > relist {
		s.entries, s.problem = s.find(ctx)
		s.listed = time.Now()
	}
	return s.entries, s.problem
}

// find lists the studies in the runs folder and in the database, newest first.
func (s *Site) find(ctx context.Context) ([]entry, error) {
	w := s.quiet(nil)
	var list []entry
	seen := map[string]bool{}
	add := func(e entry) {
		if !seen[e.name] && filepath.IsLocal(e.name) && filepath.Base(e.name) == e.name { // it becomes part of a path
			seen[e.name] = true
			list = append(list, e)
		}
	}
	if len(s.options.Studies) > 0 {
		for _, arg := range s.options.Studies {
			name, err := workspace.StudyName(arg)
			if err != nil {
				return nil, err
			}
			folder, err := w.Find(ctx, arg)
			if err != nil {
				return nil, err
			}
			add(entry{name, arg, begun(folder)})
		}
		return list, nil
	}
	folders, err := w.Folders(ctx, "")
	if err != nil && !isUse(err) {
		return nil, err
	}
	age := map[rundir.Study]time.Time{}
	for _, f := range folders {
		if info, err := os.Stat(f.Path()); err == nil {
			age[f] = info.ModTime()
		}
	}
	slices.SortFunc(folders, func(a, b rundir.Study) int { return cmp.Or(age[b].Compare(age[a]), cmp.Compare(a, b)) })
	for _, f := range folders {
		add(entry{filepath.Base(f.Path()), filepath.Base(f.Path()), f})
	}
	db, missing := w.Open()
	if missing != nil {
		if len(list) == 0 {
			return nil, cmp.Or(err, missing)
		}
		return list, nil
	}
	defer db.Close()
	names, err := db.Studies(ctx)
	if err != nil {
		return list, err
	}
	for _, name := range names {
		folder := rundir.Study("")
		if known := w.Recorded(ctx, name); known.Home != "" {
			folder = begun(rundir.Study(known.Home))
		}
		add(entry{name, name, folder})
	}
	return list, nil
}

// begun returns the folder if it exists, else "".
func begun(folder rundir.Study) rundir.Study {
	if !workspace.Exists(folder.Path()) {
		return ""
	}
	return folder
}

// isUse reports whether an error is a request that cannot be carried out, such as to list the
// studies of an empty folder.
func isUse(err error) bool {
	var use *workspace.Error
	return errors.As(err, &use)
}

// quiet returns the workspace without messages. warn, if not nil, gets its warnings.
func (s *Site) quiet(warn func(string)) *workspace.Workspace {
	w := *s.options.Workspace
	nothing := func(string, ...any) {}
	w.Note, w.Warn, w.Detail = nothing, nothing, nothing
	w.WarnOf = func([]workspace.Warning) {}
	w.Whole, w.Hold = func(f func()) { f() }, func() {}
	w.Elsewhere = func(string, string) {}
	if warn != nil {
		w.Warn = func(format string, a ...any) { warn(fmt.Sprintf(format, a...)) }
		w.WarnOf = func(list []workspace.Warning) {
			for i, one := range list {
				if i == 3 {
					warn(number.Count(len(list)-i, "more "+one.Kind))
					break
				}
				warn(one.Text)
			}
		}
	}
	return &w
}

// reader returns a Reader that reports warnings through warn.
func (s *Site) reader(warn func(string)) *query.Reader {
	return &query.Reader{Workspace: s.quiet(warn), WarnStudy: func(_ string, list ...string) {
		for _, text := range list {
			warn(text)
		}
	}, Partial: func(_ string, err error) {
		if err != nil {
			warn(err.Error())
		}
	}}
}

// wish returns the question of a page: that of `advise` and `decide` without options.
func (s *Site) wish(e entry) query.Wish {
	return query.Wish{Question: query.Question{Study: e.arg}, Site: s.options.Site, Market: cost.OnDemand, Loss: sensitivity.Usual}
}

// explained returns an error's text with its hint.
func explained(err error) string {
	text := clean.Line(err.Error())
	var use *workspace.Error
	if errors.As(err, &use) && use.Hint != "" {
		text += ". " + clean.Line(use.Hint)
	}
	return text
}

// A signal counts changes and wakes those who wait for the next one.
type signal struct {
	mu      sync.Mutex
	number  int
	changed chan struct{} // closed at the next change
}

func (s *signal) bump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	close(s.changed)
	s.changed = make(chan struct{})
}

// now returns the number of changes so far, and a channel that is closed at the next one.
func (s *signal) now() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number, s.changed
}

// Check returns an error if the studies to show cannot be found.
func (s *Site) Check(ctx context.Context) error {
	_, err := s.find(ctx)
	return err
}
