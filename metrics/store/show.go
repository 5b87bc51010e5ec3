package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/summary"
)

// ErrNotFound means that no stored run or study has the name.
var ErrNotFound = errors.New("not found in the database")

// Details holds everything that the database has about one run.
type Details struct {
	Run      metrics.Run
	Series   string
	Ingested time.Time // time of the last change in the database
	Remarks  metrics.Remarks
	// Others are the other runs of the same point, the newest first, if the user named a point
	// instead of a run. It then returns the details of the newest run.
	Others []string

	Result       *summary.Outcome // nil if no rank recorded anything
	Algorithm    int              // version of package summary that computed Result
	Train        *metrics.Train   // as recorded by rank 0 of the attempt (restart) from which Result was computed
	Environments []Environment
	Staged       []Staged              // from all restarts
	Epochs       []metrics.Epoch       // from rank 0 of the restart of Result
	Figures      []metrics.Figure      // values that logs or programs report
	Telemetry    []summary.SampledNode // from the restart of Result, one per node
	// TrainingClock is the time range of the training in Result; zero if none exists.
	TrainingClock summary.Window
	Source        *Source // file from which the run was imported; nil if it was not
	Files         []File
	Errors        []RankError
	BadLines      []metrics.LineError
}

// An Environment is the hardware and software of some ranks, in the restart from which the result
// was computed.
type Environment struct {
	Ranks       []int // first rank of each process
	Environment metrics.Environment
}

// Staged describes the data that was copied to a node before the run.
type Staged struct {
	metrics.EventFile // Rank is the node's number
	Host              string
	metrics.Staged
}

// File is an event file with what was read from it.
type File struct {
	metrics.EventFile
	Host  string // "" until the start event was read
	Bytes int64  // number of bytes read
	Lines int
	// Stop is the writer's last event; nil if the writer was killed or is still running.
	Stop *metrics.Stop
}

// RankError is a failure that a writer reported.
type RankError struct {
	metrics.EventFile
	Error metrics.Error
}

// Show returns everything that the database has about a run. The beginning or the end of an ID
// suffices if only one run, or only runs of one point, match; of several it returns the newest.
func (s *Store) Show(ctx context.Context, id string) (*Details, error) {
	var d Details
	err := inTx(ctx, s.read, func(tx *sql.Tx) error {
		run, others, err := resolve(ctx, tx, id)
		if err != nil {
			return err
		}
		d.Others = others
		q := details{ctx: ctx, tx: tx, run: run, d: &d}
		for _, step := range []func() error{q.row, q.parameters, q.job, q.result, q.environments, q.staged, q.epochs, q.figures, q.telemetry, q.source, q.files, q.errors, q.badLines} {
			if err := step(); err != nil {
				return fmt.Errorf("run %s: %w", d.Run.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &d, nil
}

// resolve returns the run that id names. If id names several runs of one point, it returns the
// newest, and others are the remaining ones.
func resolve(ctx context.Context, tx *sql.Tx, id string) (run int64, others []string, err error) {
	if id == "" {
		return 0, nil, errors.New("no run named; `scalebench runs` lists them")
	}
	err = tx.QueryRowContext(ctx, "SELECT id FROM run WHERE name = ?", id).Scan(&run)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return run, nil, err
	}
	const fits = "(substr(name, 1, length(?1)) = ?1 OR substr(name, -length(?1)) = ?1 OR instr(name, '/' || ?1 || '-r') > 0)"
	names, err := column1[string](tx.QueryContext(ctx, "SELECT name FROM run WHERE "+fits+" ORDER BY created DESC, id DESC LIMIT 11", id))
	if err != nil {
		return 0, nil, err
	}
	if len(names) == 0 {
		var forgotten string
		if err := tx.QueryRowContext(ctx, "SELECT name FROM forgotten WHERE name = ?1 OR substr(name, -length(?1)) = ?1", id).Scan(&forgotten); err == nil {
			return 0, nil, fmt.Errorf("run %q is %w; `scalebench forget --restore %s` brings it back", id, ErrForgotten, forgotten)
		}
		return 0, nil, fmt.Errorf("run %q: %w; `scalebench runs` lists the runs", id, ErrNotFound)
	}
	newest, point := names[0], attemptEnd.ReplaceAllString(names[0], "")
	if len(names) > 1 {
		var elsewhere int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM run WHERE "+fits+" AND substr(name, 1, length(?2)) <> ?2 LIMIT 1)", id, point+"-r").Scan(&elsewhere); err != nil {
			return 0, nil, err
		}
		if len(names) > 10 {
			names[10] = "…"
		}
		if elsewhere > 0 || point == newest {
			return 0, nil, fmt.Errorf("run %q: %w; write more of it:\n  %s", id, ErrAmbiguous, strings.Join(names, "\n  "))
		}
	}
	return run, names[1:], tx.QueryRowContext(ctx, "SELECT id FROM run WHERE name = ?", newest).Scan(&run)
}

// attemptEnd matches the end of a run's ID, which distinguishes the runs of a point: "-r2-a1".
var attemptEnd = regexp.MustCompile(`-r\d+-a\d+$`)

// details collects everything about one run in a transaction.
type details struct {
	ctx context.Context
	tx  *sql.Tx
	run int64
	d   *Details
}

func (q *details) one(query string, into ...any) error {
	return q.tx.QueryRowContext(q.ctx, query, q.run).Scan(into...)
}

func (q *details) each(query string, scan func(*sql.Rows) error) error {
	return found(q.tx.QueryContext(q.ctx, query, q.run)).each(scan)
}

func (q *details) row() error {
	r := &q.d.Run
	var ingested float64
	err := q.one(`SELECT r.name, r.study, r.point, r.repeat, r.attempt, r.kind, r.framework, r.workers, r.nodes, r.status, r.detail,
			r.dir, r.created, r.ingested, r.series FROM run r WHERE r.id = ?`,
		&r.ID, &r.Study, &r.Point, &r.Repeat, &r.Attempt, &r.Kind, &r.Framework, &r.Workers, &r.Nodes, &r.Status, &r.Detail,
		&r.Dir, &r.CreatedUnix, &ingested, &q.d.Series)
	q.d.Ingested = metrics.Time(ingested).UTC()
	if err != nil {
		return err
	}
	q.d.Remarks, err = remarks(q.ctx, q.tx, r.ID)
	return err
}

func (q *details) parameters() error {
	q.d.Run.Parameters = map[string]any{}
	return q.each("SELECT key, value, type FROM run_parameter WHERE run = ?", func(rows *sql.Rows) error {
		var key, kind string
		var value any
		if err := rows.Scan(&key, &value, &kind); err != nil {
			return err
		}
		var err error
		q.d.Run.Parameters[key], err = parameter(value, kind)
		return err
	})
}

func (q *details) job() error {
	var j metrics.Job
	err := q.one("SELECT cluster, id, name, partition, state, reason, exit_code, nodes, coalesce(submitted, 0), coalesce(started, 0), coalesce(ended, 0) FROM job WHERE run = ?",
		&j.Cluster, &j.ID, &j.Name, &j.Partition, &j.State, &j.Reason, &j.ExitCode, asJSON{&j.Nodes}, &j.SubmitUnix, &j.StartUnix, &j.EndUnix)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	q.d.Run.Job = &j
	return err
}

func (q *details) result() error {
	r := summary.Outcome{Values: map[string]float64{}, Why: map[string]string{}}
	err := q.one(`SELECT algorithm, restart, world, steps, warmup_steps, steady_steps, samples, epochs,
			slowest, nullif(warnings, '[]'), git_commit, fingerprint, noise_scale_why FROM result WHERE run = ?`,
		&q.d.Algorithm, &r.Restart, &r.World, &r.Steps, &r.WarmupSteps, &r.SteadySteps, &r.Samples, &r.Epochs,
		asJSON{&r.Slowest}, asJSON{&r.Warnings}, &r.GitCommit, asJSON{&r.Fingerprint}, &r.NoiseScaleWhy)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := q.values(&r); err != nil {
		return err
	}
	q.d.Result = &r
	if r.NoiseScales, err = noiseScalesOf(q.ctx, q.tx, q.run); err != nil {
		return err
	}
	if err := q.each(`SELECT e.time - t.time, e.epoch, e.step, e.trained, e.accuracy, e.loss `+chosen+`
		JOIN evaluation e ON e.file = f.id AND e.trained IS NOT NULL JOIN train t ON t.file = f.id
		WHERE x.run = ? AND f.rank = 0 ORDER BY e.time, e.line`, func(rows *sql.Rows) error {
		var a summary.Accuracy
		err := rows.Scan(&a.Seconds, &a.Epoch, &a.Step, &a.Samples, &a.Accuracy, &a.Loss)
		r.Evaluations = append(r.Evaluations, a)
		return err
	}); err != nil {
		return err
	}
	return q.each(`SELECT t.parameters, t.gradient_bytes, t.train_samples, t.test_samples, t.global_batch, t.steps_per_epoch, t.parameter_sha256, t.data_sha256 `+
		chosen+` JOIN train t ON t.file = f.id WHERE x.run = ? AND f.rank = 0`, func(rows *sql.Rows) error {
		t := new(metrics.Train)
		q.d.Train = t
		return rows.Scan(&t.Parameters, &t.GradientBytes, &t.TrainSamples, &t.TestSamples, &t.GlobalBatch, &t.StepsPerEpoch, &t.ParameterSHA256, &t.DataSHA256)
	})
}

// values reads the run's values of all measures.
func (q *details) values(r *summary.Outcome) error {
	all, err := newReader(q.ctx, q.tx)
	if err != nil {
		return err
	}
	var places []measure.Place
	if err := q.each(selectValues+" WHERE v.run = ? ORDER BY v.measure, v.place", func(rows *sql.Rows) error {
		return all.scan(rows, func(int64) held { return held{r.Values, &r.Why, &r.Reported, &places} })
	}); err != nil || len(places) == 0 {
		return err
	}
	r.Places = &measure.Places{}
	for _, p := range places {
		for name, value := range p.Values {
			r.Places.Add(p.At, name, value)
		}
	}
	return nil
}

// chosen is SQL for the event files (alias f) of the ranks in the restart of a result (alias x).
const chosen = "FROM result x JOIN event_file f ON f.run = x.run AND f.writer = 'rank' AND f.restart = x.restart"

// environments reads the environments of the run's ranks, each different one once with the ranks
// that have it.
func (q *details) environments() error {
	at := map[string]int{} // index of an environment, by its JSON
	return q.each(`SELECT `+placeRank+` AS first, `+placeEnvironment+` AS merged `+chosen+placeJoin+`
		WHERE x.run = ? AND merged IS NOT NULL ORDER BY first`, func(rows *sql.Rows) error {
		var rank int
		var text string
		if err := rows.Scan(&rank, &text); err != nil {
			return err
		}
		i, seen := at[text]
		if !seen {
			i = len(q.d.Environments)
			at[text] = i
			var e Environment
			if err := json.Unmarshal([]byte(text), &e.Environment); err != nil {
				return err
			}
			q.d.Environments = append(q.d.Environments, e)
		}
		q.d.Environments[i].Ranks = append(q.d.Environments[i].Ranks, rank)
		return nil
	})
}

func (q *details) staged() error {
	return q.each(`SELECT f.path, f.writer, f.rank, f.restart, coalesce(f.host, ''), s.item, s.source, s.path, s.bytes, s.seconds, s.reused
		FROM staged s JOIN event_file f ON f.id = s.file WHERE f.run = ? ORDER BY f.restart, f.rank, s.line`, func(rows *sql.Rows) error {
		var s Staged
		err := rows.Scan(&s.EventFile.Path, &s.Writer, &s.Rank, &s.Restart, &s.Host,
			&s.Item, &s.Source, &s.Staged.Path, &s.Bytes, &s.Seconds, &s.Reused)
		q.d.Staged = append(q.d.Staged, s)
		return err
	})
}

func (q *details) epochs() error {
	return q.each(`SELECT p.epoch, p.step, p.samples, p.seconds, p.loss, p.learning_rate `+chosen+`
		JOIN epoch p ON p.file = f.id WHERE x.run = ? AND f.rank = 0 ORDER BY p.line`, func(rows *sql.Rows) error {
		var p metrics.Epoch
		err := rows.Scan(&p.Epoch, &p.Step, &p.Samples, &p.Seconds, &p.Loss, &p.LearningRate)
		q.d.Epochs = append(q.d.Epochs, p)
		return err
	})
}

func (q *details) files() error {
	return q.each(`SELECT f.path, f.writer, f.rank, f.restart, coalesce(f.host, ''), f.offset, f.line,
			s.file IS NOT NULL, coalesce(s.status, ''), coalesce(s.cause, ''), coalesce(s.steps, 0), coalesce(s.epochs, 0), coalesce(s.parameter_sha256, '')
		FROM event_file f LEFT JOIN stop s ON s.file = f.id WHERE f.run = ? ORDER BY f.writer, f.rank, f.restart`, func(rows *sql.Rows) error {
		var f File
		var stop metrics.Stop
		var stopped bool
		err := rows.Scan(&f.Path, &f.Writer, &f.Rank, &f.Restart, &f.Host, &f.Bytes, &f.Lines, &stopped, &stop.Status, &stop.Cause, &stop.Steps, &stop.Epochs, &stop.ParameterSHA256)
		if stopped {
			f.Stop = &stop
		}
		q.d.Files = append(q.d.Files, f)
		return err
	})
}

func (q *details) errors() error {
	return q.each(`SELECT f.path, f.writer, f.rank, f.restart, e.phase, e.message
		FROM error e JOIN event_file f ON f.id = e.file WHERE f.run = ? ORDER BY f.restart, f.rank, e.line`, func(rows *sql.Rows) error {
		var e RankError
		err := rows.Scan(&e.Path, &e.Writer, &e.Rank, &e.Restart, &e.Error.Where, &e.Error.Message)
		q.d.Errors = append(q.d.Errors, e)
		return err
	})
}

func (q *details) badLines() error {
	return q.each(`SELECT f.path, b.line, b.message FROM bad_line b JOIN event_file f ON f.id = b.file
		WHERE f.run = ? ORDER BY f.path, b.line`, func(rows *sql.Rows) error {
		var e metrics.LineError
		var message string
		err := rows.Scan(&e.File, &e.Line, &message)
		e.Err = errors.New(message)
		q.d.BadLines = append(q.d.BadLines, e)
		return err
	})
}
