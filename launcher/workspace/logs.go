package workspace

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
)

// LogOptions selects which log of a run to open.
type LogOptions struct {
	Rank   int    // rank whose log to open; -1 chooses the log that is most useful
	Follow bool   // wait for the log of a run that has not started
	Where  string // condition that a selected run must match; "" matches all
}

// A Log is a log of a run.
type Log struct {
	Path  string
	State launcher.State // of the run, when it was last read
	// Unreachable is the error if the scheduler did not answer. State is then read from
	// the run folder alone.
	Unreachable error

	options  LogOptions
	attempts []*launcher.Attempt
	run      rundir.Folder
	seen     time.Time     // when State was read
	pause    time.Duration // pause before State is read again
}

// logInterval is the polling interval while a log is followed.
const logInterval = 250 * time.Millisecond

// OpenLog finds the log of the run that a name selects; the name must select a single
// run. If the run has no log yet, OpenLog waits for it (with Follow) or returns an
// error.
func (w *Workspace) OpenLog(ctx context.Context, name string, o LogOptions) (*Log, error) {
	attempts, err := w.attemptsAt(ctx, name, o.Where)
	if err != nil {
		return nil, err
	}
	l := &Log{options: o, attempts: attempts, run: attempts[len(attempts)-1].Run, pause: time.Second}
	l.State, l.Unreachable = l.look(ctx)
	if l.State.Attempt == nil {
		return nil, l.Unreachable
	}
	l.seen = time.Now()
	if !l.State.Attached() { // ask the scheduler rarely, since the exit record that the script writes is found sooner
		l.pause = 30 * time.Second
	}
	if err := l.find(); err != nil {
		return nil, err
	}
	if l.Path == "" && o.Follow {
		w.Note("%s is %s; waiting for its log", l.State.Record.ID, l.Status())
		if err := l.await(ctx); err != nil {
			return nil, err
		}
	}
	if l.Path != "" {
		return l, nil
	}
	yet, hint := " yet", "-f waits for it."
	if l.State.Status.Terminal() {
		yet, hint = "", "It ended before it printed anything."
	}
	return nil, &Error{Err: fmt.Errorf("%s is %s and has no log%s", l.State.Record.ID, l.Status(), yet), Hint: hint}
}

// await waits until the run has a log or has ended.
func (l *Log) await(ctx context.Context) error {
	for l.Path == "" && !l.ended(ctx) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(logInterval):
		}
		if err := l.find(); err != nil {
			return err
		}
	}
	if l.Path == "" { // the run has ended: only the job's log may be there
		return l.find()
	}
	return nil
}

// find sets Path to the path of the log, or to "" if no log exists yet.
func (l *Log) find() error {
	if l.options.Rank >= 0 {
		path, err := l.State.LogOf(l.options.Rank)
		if err != nil {
			return &Error{Err: err}
		}
		l.Path = path
		return nil
	}
	l.Path = l.State.Log()
	if l.options.Follow && !l.State.Status.Terminal() && l.Path == l.State.Run.JobLog() {
		l.Path = "" // the ranks have not started; wait for their log
	}
	return nil
}

// look returns the run's present state; it queries the scheduler.
func (l *Log) look(ctx context.Context) (launcher.State, error) {
	list, err := launcher.Attempts(l.run.Study())
	if err != nil {
		return launcher.State{}, err
	}
	i := slices.IndexFunc(list, func(a *launcher.Attempt) bool { return a.Run == l.run })
	if i < 0 {
		return launcher.State{}, Errorf("%s was removed", l.run.ID())
	}
	states, err := launcher.Survey(ctx, list[i:i+1])
	if len(states) == 0 {
		return launcher.State{}, err
	}
	return states[0], err
}

// ended reports whether the run has ended. It reads the state again if the last reading
// is older than pause.
func (l *Log) ended(ctx context.Context) bool {
	traces, err := launcher.ReadTraces(l.run)
	exited := err == nil && traces.Exit != nil
	if age := time.Since(l.seen); age >= l.pause || exited && age >= 2*time.Second {
		if now, err := l.look(ctx); now.Attempt != nil && err == nil {
			l.State = now
		}
		l.seen = time.Now()
	}
	return l.State.Status.Terminal()
}

// Copy copies the log to out. With Follow, it also copies what is appended until the run
// ends.
func (l *Log) Copy(ctx context.Context, out io.Writer) error {
	return launcher.Follow(ctx, out, l.run, l.Path, logInterval, func() bool { return !l.options.Follow || l.ended(ctx) })
}

// Name returns the run's name. If the run has several attempts, it adds the number of
// the attempt whose log this is.
func (l *Log) Name() string {
	latest := l.attempts[len(l.attempts)-1]
	if len(l.attempts) == 1 {
		return latest.Record.ID
	}
	return fmt.Sprintf("%s, attempt %d of %[2]d", latest.Record.ID, latest.Number)
}

// Status returns the run's status and, if it ended badly, why.
func (l *Log) Status() string {
	if l.State.Detail == "" {
		return string(l.State.Status)
	}
	return string(l.State.Status) + ": " + l.State.Detail
}

// attemptsAt returns the attempts at the run that a name selects, in their order. If the
// name includes an attempt, it returns only that attempt. A study's name is valid if
// exactly one of its runs matches the condition where.
func (w *Workspace) attemptsAt(ctx context.Context, name, where string) ([]*launcher.Attempt, error) {
	study, run, _ := strings.Cut(name, "/")
	if filepath.Ext(name) == ".toml" {
		study, run = name, ""
	}
	folders, err := w.Folders(ctx, study)
	if err != nil {
		return nil, err
	}
	all, err := launcher.Attempts(folders[0])
	if err != nil {
		return nil, err
	}
	if where != "" {
		states, _, err := w.Survey(ctx, all)
		if err != nil {
			return nil, err
		}
		chosen, err := Runs{States: states}.Where(ctx, where)
		if err != nil {
			return nil, err
		}
		all = nil
		for _, state := range chosen.States {
			all = append(all, state.Attempt)
		}
	}
	meant := slices.DeleteFunc(slices.Clone(all), func(a *launcher.Attempt) bool { return !a.Named(run) })
	if len(meant) == 0 {
		meant = slices.DeleteFunc(slices.Clone(all), func(a *launcher.Attempt) bool { return !strings.HasPrefix(a.Run.Name(), run) })
	}
	var runs []string
	for _, a := range meant {
		point := strings.TrimSuffix(a.Run.Study().Run(a.Point.ID, a.Point.Repeat, 1).ID(), "-a1")
		if !slices.Contains(runs, point) {
			runs = append(runs, point)
		}
	}
	lists := fmt.Sprintf("`scalebench status %s` lists its runs.", filepath.Base(folders[0].Path()))
	switch {
	case len(runs) == 0 && where != "":
		return nil, &Error{Err: fmt.Errorf("no run of %q matches --where %q", name, where), Hint: lists}
	case len(runs) == 0:
		return nil, &Error{Err: fmt.Errorf("no run %q in %s", run, folders[0].Path()), Hint: lists}
	case len(runs) > 1:
		return nil, &Error{Err: fmt.Errorf("%q matches %d runs", name, len(runs)), Hint: "Name one of them: " + fewOf(runs)}
	}
	return meant, nil
}
