package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Observations returns the runs of a study that its scaling curves are built from: the latest
// successful attempt at each repeat of each point. The warnings say how many runs were left out.
func (s *Store) Observations(ctx context.Context, study string) ([]scaling.Observation, []string, error) {
	return s.Select(ctx, Filter{Study: study})
}

// Select is like Observations for all runs that match the filter. It ignores the filter's Limit
// and Statuses.
func (s *Store) Select(ctx context.Context, f Filter) ([]scaling.Observation, []string, error) {
	o, err := s.observe(ctx, f)
	return o.list, o.warnings, err
}

// observe collects the observations, and then calls the functions in more with them.
func (s *Store) observe(ctx context.Context, f Filter, more ...func(*observer) error) (o observer, err error) {
	f.Limit, f.Statuses = 0, nil
	err = s.filtered(ctx, f, func(ctx context.Context, tx *sql.Tx, where string, args []any) error {
		o = newObserver(ctx, tx, f)
		o.where, o.args = where, args
		for _, step := range []func() error{o.choose, o.runs, o.hosts, o.parameters, o.values, o.evaluations, o.leftOut} {
			if err := step(); err != nil {
				return err
			}
		}
		for _, step := range more {
			if err := step(&o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		o.list, o.warnings = nil, nil
		if f.Study != "" {
			err = fmt.Errorf("study %q: %w", f.Study, err)
		}
	}
	return o, err
}

// observer collects observations by several queries in one transaction.
type observer struct {
	tx       *sql.Tx
	ctx      context.Context
	filter   Filter
	where    string // SQL condition on the view runs, with its arguments
	args     []any
	ids      asJSON // IDs of the runs that are used
	list     []scaling.Observation
	at       map[int64]int // index in list, by run
	alike    *alike
	spans    map[spanKey]*span // spans of places
	warnings []string

	edited, editedPoints int // number of successful runs that filter.Planned leaves out, and number of their points
}

func newObserver(ctx context.Context, tx *sql.Tx, f Filter) observer {
	return observer{tx: tx, ctx: ctx, filter: f, at: map[int64]int{}, alike: newAlike()}
}

// unplanned is an SQL condition on the view runs: the study has a plan, but the run's point is
// not in it. It is false for imported runs, which no plan has.
const unplanned = `(EXISTS (SELECT 1 FROM planned p WHERE p.study = runs.study)
	AND NOT EXISTS (SELECT 1 FROM planned p WHERE p.study = runs.study AND p.point = runs.point)
	AND NOT EXISTS (SELECT 1 FROM import i WHERE i.run = runs.id))`

// choose selects the runs that become observations.
func (o *observer) choose() error {
	if o.filter.Planned {
		if err := o.tx.QueryRowContext(o.ctx, "SELECT count(*), count(DISTINCT point) FROM runs WHERE "+o.where+" AND status = 'done' AND "+unplanned, o.args...).
			Scan(&o.edited, &o.editedPoints); err != nil {
			return err
		}
		o.where += " AND NOT " + unplanned
	}
	query := `SELECT id FROM runs WHERE ` + o.where + ` AND status = 'done' AND NOT EXISTS (SELECT 1 FROM run l
		WHERE l.study = runs.study AND l.point = runs.point AND l.repeat = runs.repeat AND l.status = 'done' AND l.attempt > runs.attempt)`
	if o.filter.versions() { // a later attempt may have another version
		query = `SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY study, point, repeat ORDER BY attempt DESC) AS latest
			FROM runs WHERE ` + o.where + ` AND status = 'done') WHERE latest = 1`
	}
	ids, err := column1[int64](o.tx.QueryContext(o.ctx, query, o.args...))
	if err != nil {
		return err
	}
	o.list = make([]scaling.Observation, 0, len(ids))
	o.ids = jsonList(ids)
	return nil
}

// good is an SQL condition that selects the runs that are used. Its parameter is a JSON array of
// their IDs.
const good = `r.id IN (SELECT value FROM json_each(?))`

// each calls scan for every row of a query about the runs that are used.
func (o *observer) each(query string, scan func(*sql.Rows) error) error {
	return found(o.tx.QueryContext(o.ctx, query, o.ids)).each(scan)
}

func (o *observer) runs() error {
	return o.each(`SELECT r.id, r.name, r.study, r.point, r.repeat, r.kind, r.framework, r.workers, r.nodes, coalesce(j.id, ''),
			r.created, coalesce(j.cluster, ''), coalesce(j.partition, ''), j.ended - j.started,
			x.epochs, coalesce(x.git_commit, ''), coalesce(x.fingerprint, 'null'), x.run IS NULL, x.slowest, coalesce(x.warnings, '[]'),
			(SELECT nullif(t.gradient_bytes, 0) FROM event_file f JOIN train t ON t.file = f.id
				WHERE f.run = r.id AND f.writer = 'rank' AND f.rank = 0 AND f.restart = x.restart),
			CASE WHEN i.run IS NULL THEN coalesce((SELECT min(f.started) FROM event_file f WHERE f.run = r.id AND f.writer = 'rank' AND f.restart = x.restart), j.started, 0) ELSE i.began END
		FROM run r LEFT JOIN job j ON j.run = r.id LEFT JOIN result x ON x.run = r.id LEFT JOIN import i ON i.run = r.id
		WHERE `+good+` ORDER BY r.workers, r.point, r.repeat`,
		func(rows *sql.Rows) error {
			var id int64
			v := scaling.Observation{Values: map[string]float64{}}
			var print, warnings string
			var nothing bool
			if err := rows.Scan(&id, &v.Run, &v.Study, &v.Point, &v.Repeat, &v.Kind, &v.Framework, &v.Workers, &v.Nodes, &v.Job,
				&v.CreatedUnix, &v.Cluster, &v.Partition, &v.JobSeconds, &v.Epochs, &v.GitCommit, &print, &nothing, asJSON{&v.Slowest}, &warnings, &v.GradientBytes, &v.BeganUnix); err != nil {
				return err
			}
			if nothing {
				v.Why = map[string]string{measure.Throughput: "no event of the run was read"}
			}
			o.alike.share(&v.Study, &v.Point, &v.Kind, &v.Framework, &v.Job, &v.Cluster, &v.Partition, &v.GitCommit)
			var err error
			if v.Fingerprint, err = o.alike.print(print); err != nil {
				return err
			}
			if v.Warnings, err = o.alike.warning(warnings); err != nil {
				return err
			}
			o.at[id] = len(o.list)
			o.list = append(o.list, v)
			return nil
		})
}

// hosts reads the hosts that the ranks and their supervisors name. The job's allocation may
// include more.
func (o *observer) hosts() error {
	return o.each(`SELECT DISTINCT r.id, `+placeRank+` AS of_rank, `+placeHost+` AS ran_on FROM run r JOIN result x ON x.run = r.id
		JOIN event_file f ON f.run = r.id AND f.writer = 'rank' AND f.restart = x.restart`+placeJoin+`
		WHERE ran_on <> '' AND `+good+` ORDER BY r.id, ran_on, of_rank`,
		func(rows *sql.Rows) error {
			var id int64
			var rank int
			var host string
			if err := rows.Scan(&id, &rank, &host); err != nil {
				return err
			}
			v := &o.list[o.at[id]]
			o.alike.share(&host)
			if !slices.Contains(v.Hosts, host) {
				v.Hosts = append(v.Hosts, host)
			}
			if v.Slowest == nil || rank >= len(v.Slowest) {
				return nil // the host of a rank is needed only together with Slowest
			}
			if v.RankHosts == nil {
				v.RankHosts = make([]string, len(v.Slowest))
			}
			v.RankHosts[rank] = host
			return nil
		})
}

func (o *observer) parameters() error {
	rows := found(o.tx.QueryContext(o.ctx, `SELECT r.id, p.key, p.value, p.type FROM run r JOIN run_parameter p ON p.run = r.id WHERE `+good+` ORDER BY r.id, p.key`, o.ids))
	err := eachRun(rows, func(run int64, list []storedParameter) error { return o.have(&o.list[o.at[run]], list) })
	for i := range o.list { // runs without stored parameters
		if v := &o.list[i]; v.Parameters == nil && err == nil {
			err = o.have(v, nil)
		}
	}
	return err
}

// have adds its parameters to an observation.
func (o *observer) have(v *scaling.Observation, list []storedParameter) (err error) {
	for _, p := range list {
		if text, is := p.value.(string); is && redact.Merged(text) {
			v.Warnings = append(slices.Clip(v.Warnings), fmt.Sprintf("an earlier version replaced all secrets in %s by the same word, so different values may be mixed; `scalebench collect` or `import --replace` reads them again", p.key))
		}
	}
	v.Parameters, err = o.alike.of(append(list, storedParameter{"framework", "text", v.Framework}, storedParameter{"workers", "integer", int64(v.Workers)}))
	return err
}

func (o *observer) values() error {
	all, err := newReader(o.ctx, o.tx)
	if err != nil {
		return err
	}
	return found(o.tx.QueryContext(o.ctx, selectValues+" JOIN run r ON r.id = v.run WHERE "+good+" ORDER BY v.run, v.measure, v.place", o.ids)).each(func(rows *sql.Rows) error {
		return all.scan(rows, func(run int64) held {
			v := &o.list[o.at[run]]
			return held{v.Values, &v.Why, &v.Reported, &v.Places}
		})
	})
}

func (o *observer) evaluations() error {
	return o.each(`SELECT r.id, e.time - t.time, e.epoch, e.step, coalesce(e.trained, -1), e.accuracy, e.loss
		FROM run r JOIN result x ON x.run = r.id
		JOIN event_file f ON f.run = r.id AND f.writer = 'rank' AND f.rank = 0 AND f.restart = x.restart
		JOIN evaluation e ON e.file = f.id AND (e.trained IS NOT NULL OR x.steps = 0)
		JOIN train t ON t.file = f.id AND e.time >= t.time
		WHERE `+good+` ORDER BY r.id, e.time, e.line`,
		func(rows *sql.Rows) error {
			var id int64
			var e scaling.Evaluation
			if err := rows.Scan(&id, &e.Seconds, &e.Epoch, &e.Step, &e.Samples, &e.Accuracy, &e.Loss); err != nil {
				return err
			}
			v := &o.list[o.at[id]]
			v.Evaluations = append(v.Evaluations, e)
			return nil
		})
}

// unreplaced excludes from runs the attempts without a result whose run a later attempt completed.
const unreplaced = ` AND NOT (status <> 'done' AND EXISTS (SELECT 1 FROM run d
	WHERE d.study = runs.study AND d.point = runs.point AND d.repeat = runs.repeat AND d.status = 'done' AND d.attempt > runs.attempt))`

// leftOut adds warnings that count the runs that match the filter but are not used, except failed attempts whose run
// a later attempt completed. If no run matches, it returns an error that names the existing studies.
func (o *observer) leftOut() error {
	count := map[metrics.Status]int{}
	if err := found(o.tx.QueryContext(o.ctx, "SELECT status, count(*) FROM runs WHERE "+o.where+unreplaced+" GROUP BY status", o.args...)).each(func(rows *sql.Rows) error {
		var status metrics.Status
		var n int
		if err := rows.Scan(&status, &n); err != nil {
			return err
		}
		count[status] = n
		return nil
	}); err != nil {
		return err
	}
	if len(count) == 0 && o.filter.Study != "" {
		var forgotten int
		if err := o.tx.QueryRowContext(o.ctx, "SELECT count(*) FROM every_run JOIN forgotten USING (name, study) WHERE study = ?", o.filter.Study).Scan(&forgotten); err != nil {
			return err
		}
		if forgotten > 0 {
			return fmt.Errorf("all of its runs are %w (%d); `scalebench forget --restore %s` brings them back", ErrForgotten, forgotten, o.filter.Study)
		}
		known, err := column1[string](o.tx.QueryContext(o.ctx, "SELECT DISTINCT study FROM run ORDER BY study"))
		if err != nil {
			return err
		}
		if !slices.Contains(known, o.filter.Study) {
			return unknownStudy(known)
		}
	}
	others, total := []string{}, 0
	for _, status := range metrics.Statuses {
		if n := count[status]; n > 0 && !status.Good() {
			others = append(others, fmt.Sprintf("%d %s", n, status))
			total += n
		}
	}
	if total > 0 {
		o.warnings = append(o.warnings, fmt.Sprintf("left out %s without a result: %s", number.Count(total, "run"), strings.Join(others, ", ")))
	}
	if n := count[metrics.Done] - len(o.list); n > 0 {
		o.warnings = append(o.warnings, fmt.Sprintf("left out %s: a later attempt at the same repeat is done", number.Count(n, "run")))
	}
	if o.edited > 0 {
		o.warnings = append(o.warnings, fmt.Sprintf("left out %s of %s that the study file does not have; --unplanned shows them",
			number.Count(o.edited, "run"), number.Count(o.editedPoints, "point")))
	}
	return nil
}

func unknownStudy(known []string) error {
	switch {
	case len(known) == 0:
		return fmt.Errorf("%w: the database has no runs yet; `scalebench collect` adds them", ErrNotFound)
	case len(known) > 20:
		known = append(known[:20:20], "…")
	}
	return fmt.Errorf("%w; `scalebench collect` reads in the runs of a study that has run; studies with runs: %s", ErrNotFound, strings.Join(known, ", "))
}
