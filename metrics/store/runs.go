package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A Filter selects runs. A field with the zero value does not restrict them.
type Filter struct {
	Study     string
	Framework string
	Kind      string // kind of workload
	Workers   int
	Since     time.Time // the run was recorded at this time or later
	Until     time.Time // the run was recorded before this time
	Commit    string    // commit of the study's folder, or its first digits
	Files     string    // first digits of the SHA-256 of one of the user's files
	Statuses  []metrics.Status
	// Where is a user's SQL condition on the columns of the view runs, on measures, and on
	// parameters by their TOML path: "workload.batch > 64 AND throughput > 1e3".
	Where string
	Limit int // largest number of runs; the newest are selected
	// Planned makes Select leave out runs of points that were no longer in their study's plan at
	// the last collect.
	Planned bool
}

// versions reports whether the filter selects by time, commit or file, and so may select an older
// version of what was measured.
func (f Filter) versions() bool {
	return f.Commit != "" || f.Files != "" || !f.Since.IsZero() || !f.Until.IsZero()
}

// RunRow is a run in a list of runs.
type RunRow struct {
	Run       string
	Study     string
	Series    string // name of its series within the study
	Point     string
	Repeat    int
	Attempt   int
	Framework string
	Workers   int
	Nodes     int
	Status    metrics.Status
	Detail    string
	Job       string // scheduler's job ID; "" outside a scheduler
	JobState  string // scheduler's state; "" outside a scheduler
	Created   time.Time
	Dir       string

	// These are from the run's result; nil without a result.
	Steps         *int
	Epochs        *int
	Values        []*float64 // values of the requested measures, in that order
	ThroughputWhy string     // why the throughput is missing
	// At is the place within the run of values that have coordinates; nil if no value has. A run
	// then has one row per place.
	At       map[string]any
	Warnings []string
	Tags     string // sorted and separated by spaces; "" for none
	Note     string // a user's note on the run

	Parameters map[string]any // by TOML path; nil until Describe is called
}

// Runs returns the runs that match the filter, the newest first, with the values of
// the measures that of lists. If measures have coordinates, it returns a row for each place within a run.
func (s *Store) Runs(ctx context.Context, f Filter, of ...measure.Measure) (list []RunRow, err error) {
	err = s.EachRun(ctx, f, of, func(r RunRow) error {
		list = append(list, r)
		return nil
	})
	return list, err
}

// EachRun calls each for every run that Runs would return. Rows share equal lists.
func (s *Store) EachRun(ctx context.Context, f Filter, of []measure.Measure, each func(RunRow) error) error {
	columns, arguments := "", []any(nil)
	for _, m := range of {
		column, args := valueOf(m)
		columns, arguments = columns+", "+column, append(arguments, args...)
	}
	places, more, err := placesOf(of)
	if err != nil {
		return err
	}
	at := "NULL"
	if places != "" {
		at, arguments = "place_at", append(arguments, more...)
	}
	return s.filtered(ctx, f, func(ctx context.Context, tx *sql.Tx, where string, args []any) error {
		query := `SELECT run, study, coalesce(series, ''), point, repeat, attempt, framework, workers, nodes, status, detail,
			coalesce(job, ''), coalesce(job_state, ''), created, dir, steps, epochs, coalesce(throughput_why, ''),
			coalesce(warnings, '[]'), coalesce(tags, ''), coalesce(note, ''), ` + at + columns + " FROM runs" + places + " WHERE " + where + " ORDER BY created DESC, id DESC"
		if places != "" {
			query += ", place_id"
		}
		if f.Limit > 0 {
			query += fmt.Sprintf(" LIMIT %d", f.Limit)
		}
		return scanRuns(found(tx.QueryContext(ctx, query, append(arguments, args...)...)), len(of), each)
	})
}

// Describe loads the parameters of the runs in a list. Runs share equal maps.
func (s *Store) Describe(ctx context.Context, list []RunRow) error {
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Run
	}
	rows := found(s.read.QueryContext(ctx, "SELECT r.name, p.key, p.value, p.type FROM run r JOIN run_parameter p ON p.run = r.id WHERE r.name IN (SELECT value FROM json_each(?)) ORDER BY r.id, p.key", jsonList(names)))
	of, a := map[string]map[string]any{}, newAlike()
	if err := eachRun(rows, func(run string, list []storedParameter) (err error) {
		if of[run], err = a.of(list); err != nil {
			return fmt.Errorf("%s: %w", run, err)
		}
		return nil
	}); err != nil {
		return explain(err)
	}
	for i, r := range list {
		if list[i].Parameters = of[r.Run]; list[i].Parameters == nil {
			list[i].Parameters = map[string]any{}
		}
	}
	return nil
}

// filtered calls query with the filter as an SQL condition on the view runs. If the filter has a
// user's condition, the time is limited, and errors in the condition are returned as a
// *WhereError.
func (s *Store) filtered(ctx context.Context, f Filter, query func(ctx context.Context, tx *sql.Tx, where string, args []any) error) error {
	outer := ctx
	if f.Where != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.limit)
		defer cancel()
	}
	var names string
	err := inTx(ctx, s.read, func(tx *sql.Tx) error {
		where, args := f.conditions()
		if f.Where == "" {
			return query(ctx, tx, where, args)
		}
		clause, known, err := whereClause(ctx, tx, f.Where)
		names = known
		if err != nil {
			return &WhereError{f.Where, names, err}
		}
		err = query(ctx, tx, where+" AND ("+clause+"\n)", args)
		var e sqlite3.Error
		switch {
		case errors.As(err, &e) && e.Code == sqlite3.ErrAuth:
			return &WhereError{f.Where, names, fmt.Errorf("it may only look at runs (%v)", err)}
		case errors.As(err, &e) && (e.Code == sqlite3.ErrTooBig || e.Code == sqlite3.ErrNomem):
			return &WhereError{f.Where, names, errors.New("it makes a text that is too long, or takes too much memory; compare single values, or add --study or --since")}
		case errors.As(err, &e) && e.Code == sqlite3.ErrError:
			return &WhereError{f.Where, names, err}
		}
		return err
	})
	// The time limit may be exceeded in any step of the query.
	if err != nil && outer.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &WhereError{f.Where, names, fmt.Errorf("it took longer than %s; make it simpler, or add --study or --since", s.limit)}
	}
	return err
}

// conditions returns the filter as an SQL condition, without the user's condition and the limit.
// It returns "true" if the filter does not restrict.
func (f *Filter) conditions() (where string, args []any) {
	where = "true"
	add := func(condition string, values ...any) {
		where, args = where+" AND "+condition, append(args, values...)
	}
	if f.Study != "" {
		add("study = ?", f.Study)
	}
	if f.Framework != "" {
		add("framework = ?", f.Framework)
	}
	if f.Kind != "" {
		add("kind = ?", f.Kind)
	}
	if f.Workers != 0 {
		add("workers = ?", f.Workers)
	}
	if !f.Since.IsZero() {
		add("created >= ?", metrics.Unix(f.Since))
	}
	if !f.Until.IsZero() {
		add("created < ?", metrics.Unix(f.Until))
	}
	if f.Commit != "" {
		add("substr(git_commit, 1, ?) = ?", len(f.Commit), f.Commit)
	}
	if f.Files != "" {
		add("run IN (SELECT run FROM fingerprints WHERE field LIKE 'file.%' AND substr(value, 1, ?) = ?)", len(f.Files), f.Files)
	}
	if n := len(f.Statuses); n > 0 {
		var values []any
		for _, s := range f.Statuses {
			values = append(values, string(s))
		}
		add("status IN (?"+strings.Repeat(", ?", n-1)+")", values...)
	}
	return where, args
}

// scanRuns calls each for the rows of a query for runs. values is the number of additional columns
// at the end.
func scanRuns(rows queried, values int, each func(RunRow) error) error {
	a := newAlike()
	return rows.each(func(rows *sql.Rows) error {
		r := RunRow{Values: make([]*float64, values)}
		var created float64
		var warnings string
		into := []any{&r.Run, &r.Study, &r.Series, &r.Point, &r.Repeat, &r.Attempt, &r.Framework, &r.Workers, &r.Nodes,
			&r.Status, &r.Detail, &r.Job, &r.JobState, &created, &r.Dir, &r.Steps, &r.Epochs, &r.ThroughputWhy, &warnings, &r.Tags, &r.Note, asJSON{&r.At}}
		for i := range r.Values {
			into = append(into, &r.Values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		a.share(&r.Study, &r.Series, &r.Point, &r.Framework, (*string)(&r.Status), &r.Detail, &r.JobState, &r.ThroughputWhy, &r.Tags, &r.Note)
		r.Created = metrics.Time(created).UTC()
		var err error
		if r.Warnings, err = a.warning(warnings); err != nil {
			return err
		}
		return each(r)
	})
}

// Extent returns the number of a study's runs, and the times at which the first and the last were
// recorded.
func (s *Store) Extent(ctx context.Context, study string) (runs int, first, last time.Time, err error) {
	var from, to float64
	err = s.read.QueryRowContext(ctx, "SELECT count(*), coalesce(min(created), 0), coalesce(max(created), 0) FROM run WHERE study = ?", study).Scan(&runs, &from, &to)
	return runs, metrics.Time(from).UTC(), metrics.Time(to).UTC(), explain(err)
}

// Studies returns the names of the studies that have runs, the one with the newest run first.
func (s *Store) Studies(ctx context.Context) ([]string, error) {
	names, err := column1[string](s.read.QueryContext(ctx, "SELECT study FROM run GROUP BY study ORDER BY max(created) DESC, study"))
	return names, explain(err)
}
