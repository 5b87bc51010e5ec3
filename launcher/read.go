package launcher

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// maxPlan is the maximum size of a plan in bytes: some KB per run.
const maxPlan = 1 << 30

// readJSON reads a file of a run folder; ok is false if it does not exist.
func readJSON(run rundir.Folder, path string, into any) (ok bool, err error) {
	text, err := run.ReadFile(path)
	return decode(path, text, err, into)
}

// readOptional reads a JSON file of a run; nil if there is none.
func readOptional[T any](run rundir.Folder, path string) (*T, error) {
	var value *T
	if ok, err := readJSON(run, path, &value); err != nil || !ok {
		return nil, err
	}
	return value, nil
}

// decode parses the content of a JSON file that was already read; the results are the same as
// readJSON's.
func decode(path string, text []byte, err error, into any) (ok bool, _ error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("%s cannot be read: %w", path, plainly(err))
	}
	if !utf8.Valid(text) { // package json would replace invalid bytes
		return false, fmt.Errorf("%s cannot be read: it is not UTF-8", path)
	}
	return true, nil
}

// plainly names the key with the wrong type and the expected type. Package json would name Go types.
func plainly(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	want := "an object {…}"
	switch wrong.Type.Kind() {
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Int, reflect.Int64:
		want = "an integer"
	case reflect.Float64:
		want = "a number"
	}
	is := strings.TrimPrefix(wrong.Value, "number ")
	switch is { // other values are numbers out of range, which the message quotes
	case "array":
		is = "a list"
	case "object":
		is = "an object {…}"
	case "number", "string":
		is = "a " + is
	case "bool":
		is = "true or false"
	}
	plain := fmt.Sprintf("%s is %s; it must be %s", cmp.Or(wrong.Field, "its content"), is, want)
	return errors.New(strings.Replace(err.Error(), wrong.Error(), plain, 1))
}

// Attempts reads all attempts in a study's folder. One that cannot be read is in the list as Unreadable: it may
// have a good result and must not be started again. The error is that the folder cannot be read.
func Attempts(folder rundir.Study) ([]*Attempt, error) { return Refresh(folder, nil) }

// Refresh is Attempts with the result of an earlier read: attempts that had ended are not read again.
func Refresh(folder rundir.Study, before []*Attempt) ([]*Attempt, error) {
	return refresh(folder, before, func(rundir.Attempt, *sealer) bool { return false })
}

// Underway is Refresh for studies with very many runs: it returns the attempts that have not ended. ended gets the
// states of the others, of which little is read, unless known reports them.
func Underway(folder rundir.Study, before []*Attempt, known func(rundir.Folder) bool, ended func(State)) ([]*Attempt, error) {
	points := map[string]study.Point{}
	return refresh(folder, before, func(e rundir.Attempt, seals *sealer) bool {
		if known(e.Run) {
			return true
		}
		state, ok := endState(e, points, seals)
		if ok {
			ended(state)
		}
		return ok
	})
}

// mostPoints is the number of points that endState remembers, so that it need not read those of their repeats.
const mostPoints = 1000

// endState returns the state of an attempt that has ended, with its end and without its other records. ok is false if
// it has not ended, or if something is wrong, which load then reports.
func endState(e rundir.Attempt, points map[string]study.Point, seals *sealer) (s State, ok bool) {
	a := &Attempt{Run: e.Run, Number: e.Number}
	a.Record.ID = e.Run.ID()
	if ok, err := readJSON(e.Run, e.Run.State(), &a.Verdict); err != nil || !ok || a.Verdict == nil || a.checkEnd() != nil {
		return s, false
	}
	var known bool
	if a.Point, known = points[e.Point]; !known {
		whole, err := load(e, seals)
		if err != nil {
			return s, false
		}
		if a.Point = whole.Point; len(points) < mostPoints {
			points[e.Point] = a.Point
		}
	}
	a.Point.Repeat = e.Repeat
	s = State{Attempt: a, Status: a.Verdict.Status, Detail: a.Verdict.Detail, Job: a.Verdict.Job}
	restarts, err := e.Run.Restarts()
	if err == nil && len(restarts) > 0 {
		s.Traces.Exit, err = readExit(e.Run, restarts[len(restarts)-1])
	}
	return s, err == nil
}

// refresh reads the attempts of a study that skip does not take.
func refresh(folder rundir.Study, before []*Attempt, skip func(rundir.Attempt, *sealer) bool) ([]*Attempt, error) {
	entries, err := folder.Attempts()
	if err != nil {
		return nil, err
	}
	was := map[rundir.Folder]*Attempt{}
	for _, a := range before {
		was[a.Run] = a
		// Listing a folder while others write to it can miss an entry; an attempt under way would seem to be
		// gone.
		missing := !slices.ContainsFunc(entries, func(e rundir.Attempt) bool { return e.Run == a.Run })
		if _, err := os.Stat(a.Run.Path()); missing && err == nil {
			entries = append(entries, rundir.Attempt{Run: a.Run, Point: a.Point.ID, Repeat: a.Point.Repeat, Number: a.Number})
		}
	}
	var list []*Attempt
	seals := &sealer{folder: folder}
	for _, e := range entries {
		if skip(e, seals) {
			continue
		}
		a := was[e.Run]
		if a == nil || a.Verdict == nil {
			a = reread(e, a, seals)
		}
		list = append(list, a)
	}
	return list, nil
}

// OneAttempt reads the attempt with a name, "POINT-r1-a1".
func OneAttempt(folder rundir.Study, name string) (*Attempt, error) {
	e, ok := rundir.ParseName(name)
	if !ok {
		return nil, fmt.Errorf("%s is not the name of an attempt", name)
	}
	e.Run = folder.Run(e.Point, e.Repeat, e.Number)
	return load(e, &sealer{folder: folder})
}

// reread reads an attempt, of which an earlier read is a; nil if there was none.
func reread(e rundir.Attempt, a *Attempt, seals *sealer) *Attempt {
	read, err := load(e, seals)
	if err != nil {
		if read = (&Attempt{Run: e.Run, Number: e.Number}); a != nil {
			*read = *a // the state that was read last
		}
		read.Unreadable = err
		read.Point.ID, read.Point.Repeat, read.Record.ID = e.Point, e.Repeat, e.Run.ID()
	}
	return read
}

func load(e rundir.Attempt, seals *sealer) (*Attempt, error) {
	a := &Attempt{Run: e.Run, Number: e.Number}
	for _, f := range []struct {
		path string
		into any
	}{{e.Run.Point(), &a.Point}, {e.Run.Attempt(), &a.Record}} {
		ok, err := readJSON(e.Run, f.path, f.into)
		if err == nil && !ok {
			err = fmt.Errorf("%s is missing; the attempt's folder is incomplete", f.path)
		}
		if err != nil {
			return nil, err
		}
	}
	a.Unkeyed = seals.seal(&a.Point) // regardless of who wrote it
	if err := a.check(e); err != nil {
		return nil, err
	}
	var err error
	if a.Submission, err = readOptional[Submission](e.Run, e.Run.Job()); err != nil {
		return nil, err
	}
	if m := a.Record.Pack; m != nil && a.Submission == nil {
		var answer Submission
		pack := e.Run.Pack(m.Name)
		ok, err := readJSON(rundir.Folder(pack), pack.Job(), &answer)
		if err != nil {
			return nil, err
		}
		if ok {
			a.Submission = m.Submission(answer)
		}
	}
	if a.Submission == nil {
		if a.Limited, err = readOptional[Limited](e.Run, e.Run.Refused()); err != nil {
			return nil, err
		}
	}
	if a.Cancelled, err = readOptional[Cancellation](e.Run, e.Run.Cancel()); err != nil {
		return nil, err
	}
	if a.Verdict, err = readOptional[Verdict](e.Run, e.Run.State()); err != nil {
		return nil, err
	}
	return a, a.checkEnd()
}

// in says where an error was found; nil stays nil.
func in(where string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// check returns an error if scalebench cannot have written a record. All commands rely on it: a folder with
// another run's record would replace that run.
func (a *Attempt) check(e rundir.Attempt) error {
	p, r := &a.Point, &a.Record
	switch {
	case p.ID != e.Point || p.Repeat != e.Repeat:
		return fmt.Errorf("%s is of repeat %d of point %q; the folder's name says repeat %d of %q", e.Run.Point(), p.Repeat, p.ID, e.Repeat, e.Point)
	case filepath.Base(r.ID) != e.Run.Name():
		return fmt.Errorf("%s is the record of %q; the folder's name says %q", e.Run.Attempt(), r.ID, e.Run.Name())
	}
	if err := cmp.Or(in(e.Run.Attempt(), checkBackend(r.Backend)), in(e.Run.Point(), p.Check()),
		in(e.Run.Attempt()+": created_unix", metrics.CheckUnix(r.CreatedUnix)), in(e.Run.Attempt(), r.checkNames())); err != nil {
		return err
	}
	if r.PID < 0 || r.PID > metrics.MaxRanks {
		return fmt.Errorf("%s: pid %d is not a process", e.Run.Attempt(), r.PID)
	}
	if m := r.Pack; m != nil && (m.Name != filepath.Base(m.Name) || strings.HasPrefix(m.Name, ".") || m.Index < 0 || m.Index >= maxMembers) {
		return fmt.Errorf("%s: index %d of pack %q; want the name of a folder next to this one, and an index below %d", e.Run.Attempt(), m.Index, m.Name, maxMembers)
	}
	return nil
}

// checkNames returns an error for a record with invalid names, with which the scheduler's commands
// would fail or return other jobs.
func (r *Record) checkNames() error {
	names := r.names()
	if names == nil {
		return nil
	}
	var err error
	if !r.attached() || r.JobName != "" {
		err = in("job_name", names.CheckJobName(r.JobName))
	}
	if err == nil && r.Allocation != "" {
		err = in("allocation", names.CheckJobID(r.Allocation))
	}
	return cmp.Or(err, r.checkNodes("exclude", r.Exclude))
}

func (r *Record) checkNodes(key string, nodes []string) error {
	names := r.names()
	if names == nil {
		return nil
	}
	for _, node := range nodes {
		if err := names.CheckNode(node); err != nil {
			return in(key, err)
		}
	}
	return nil
}

// checkJob checks a job's id and cluster, either of which may be "".
func (r *Record) checkJob(id, cluster string) error {
	names := r.names()
	if names == nil {
		return nil
	}
	var err error
	if id != "" {
		err = in("the job's id", names.CheckJobID(id))
	}
	if err == nil && cluster != "" {
		err = in("the job's cluster", names.CheckCluster(cluster))
	}
	return err
}

// maxMembers is the maximum number of attempts in a pack; no plan has more runs.
const maxMembers = 100_000

// check for records that were added later.
func (a *Attempt) checkEnd() error {
	if s := a.Submission; s != nil {
		err := a.Record.checkJob(s.JobID, s.Cluster)
		if err == nil && s.After != "" {
			err = a.Record.checkJob(s.After, "")
		}
		if err == nil && s.JobID == "" {
			err = errors.New("job_id is missing")
		}
		if err = cmp.Or(in(a.Run.Job(), err), in(a.Run.Job()+": submitted_unix", metrics.CheckUnix(s.SubmittedUnix))); err != nil {
			return err
		}
	}
	if c := a.Cancelled; c != nil {
		if err := in(a.Run.Cancel()+": unix", metrics.CheckUnix(c.Unix)); err != nil {
			return err
		}
	}
	v := a.Verdict
	if v == nil {
		return nil
	}
	if !v.Status.Terminal() {
		return fmt.Errorf("%s: status %q is not one that a run ends with", a.Run.State(), v.Status)
	}
	err := a.Record.checkNodes("failed_nodes", v.FailedNodes)
	if j := v.Job; j != nil && err == nil {
		err = cmp.Or(a.Record.checkJob(j.ID, j.Cluster),
			in("a time of the job", cmp.Or(metrics.CheckUnix(j.SubmitUnix), metrics.CheckUnix(j.StartUnix), metrics.CheckUnix(j.EndUnix))))
	}
	return in(a.Run.State(), err)
}
