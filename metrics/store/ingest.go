package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/summary"
)

// A Report describes what one call of Ingest read and stored.
type Report struct {
	Run     string
	Changed bool // something new was stored
	Files   int  // number of event files that were read
	Events  int  // number of events read
	Steps   int  // number of steps that were read, counted for each rank
	// BadLines are the invalid lines of this reading, sorted by file and line. They are also
	// stored.
	BadLines []*metrics.LineError
	// Unread is the number of event files that could not be opened; Warnings give the reasons.
	Unread int
	// Warnings are about event files that were replaced or cannot be read. Doubts about the run's
	// results are stored with its result.
	Warnings []string
}

// Ingest stores a run, and reads its event files from where the last Ingest stopped. Files may be
// missing or still growing. Events of files that no longer exist are kept. Without files, only
// the run's own row is updated.
//
// All changes are made in one transaction. A *RunError is about this run, so that other runs can
// still be read; any other error is about the database.
//
// Calling Ingest again without new events changes nothing.
func (s *Store) Ingest(ctx context.Context, run metrics.Run, files []metrics.EventFile) (Report, error) {
	report := Report{Run: run.ID}
	if s.write == nil {
		return report, fmt.Errorf("database %s: %w", s.path, ErrReadOnly)
	}
	run = withoutSecrets(run, redact.Known(run.Secrets), redact.Hider(s.digests.hide).Value)
	facts, err := describe(run)
	if err != nil {
		return report, &RunError{run.ID, err}
	}
	if err := distinct(files); err != nil {
		return report, &RunError{run.ID, err}
	}
	err = s.withTx(ctx, func(tx *sql.Tx) error {
		if err := ofStudy(tx, run); err != nil {
			return err
		}
		id, changed, err := s.putRun(tx, run, facts)
		if err != nil {
			return err
		}
		in := newIngest(ctx, tx, id, &report, s.hiders(run), catalogue{}, direct{tx})
		if err := in.files(files); err != nil {
			return err
		}
		if err := in.steps(); err != nil {
			return err
		}
		report.Changed = changed || report.Files > 0
		old, err := in.resultIsOld()
		if err != nil {
			return err
		}
		if report.Changed || old {
			report.Changed = true
			if err := in.result(); err != nil {
				return err
			}
		}
		if report.Changed {
			_, err = tx.Exec("UPDATE every_run SET ingested = ? WHERE id = ?", metrics.Unix(s.now()), id)
		}
		return err
	})
	var unread errRead
	switch {
	case errors.As(err, &unread):
		return Report{Run: run.ID}, &RunError{run.ID, unread.error}
	case err != nil:
		return Report{Run: run.ID}, fmt.Errorf("run %q: %w", run.ID, err)
	}
	return report, nil
}

// A RunError means that a run's record or event files cannot be read. Nothing of this reading was
// stored.
type RunError struct {
	Run string
	Err error
}

func (e *RunError) Error() string { return fmt.Sprintf("run %q: %v", e.Run, e.Err) }
func (e *RunError) Unwrap() error { return e.Err }

// Recompute computes results of older versions of the algorithm again. It uses stored data and no
// event files. It returns the number of these results.
func (s *Store) Recompute(ctx context.Context) (int, error) {
	n := 0
	err := s.withTx(ctx, func(tx *sql.Tx) error {
		ids, err := column1[int64](tx.QueryContext(ctx, "SELECT run FROM result WHERE algorithm <> ?", summary.AlgorithmVersion))
		if err != nil {
			return err
		}
		known := catalogue{}
		for _, id := range ids {
			in := newIngest(ctx, tx, id, &Report{}, s.hiders(metrics.Run{}), known, direct{tx})
			if err := in.result(); err != nil {
				return err
			}
		}
		n = len(ids)
		return nil
	})
	return n, err
}

// hiders hide secrets in the texts that a program wrote.
type hiders struct {
	hide func(string) string // hides secrets in sentences
	name func(string) string // hides secrets in names, keeping different names different
}

func (s *Store) hiders(run metrics.Run) hiders {
	return hiders{redact.Known(run.Secrets), redact.Hider(s.digests.hide).Known(run.Secrets)}
}

// distinct returns an error if two event files have the same writer, rank and restart.
func distinct(files []metrics.EventFile) error {
	seen := map[metrics.EventFile]string{}
	for _, f := range files {
		key := f
		key.Path = ""
		if other, ok := seen[key]; ok {
			return fmt.Errorf("%s and %s are both the event file of %s %d, restart %d; there must be one writer per file",
				other, f.Path, f.Writer, f.Rank, f.Restart)
		}
		seen[key] = f.Path
	}
	return nil
}

// ingest is the state of reading one run, inside its transaction.
type ingest struct {
	ctx    context.Context
	tx     *sql.Tx
	run    int64
	report *Report
	hiders
	rows inserter // inserts rows that a run has only once

	measures catalogue

	touched map[int]map[int]bool // numbers of the blocks with new steps, by restart
	whole   map[int]bool         // restarts of which all steps must be combined again
	worlds  map[int]int          // world size before this reading, by restart
}

func newIngest(ctx context.Context, tx *sql.Tx, run int64, report *Report, h hiders, measures catalogue, rows inserter) *ingest {
	return &ingest{ctx: ctx, tx: tx, run: run, report: report, hiders: h, measures: measures, rows: rows,
		touched: map[int]map[int]bool{}, whole: map[int]bool{}, worlds: map[int]int{}}
}

// files reads the new events of every event file.
func (in *ingest) files(files []metrics.EventFile) error {
	if err := found(in.tx.Query(`SELECT f.restart, coalesce(max(f.world_size), r.workers) FROM event_file f JOIN every_run r ON r.id = f.run
		WHERE f.run = ? AND f.writer = 'rank' GROUP BY f.restart`, in.run)).each(func(rows *sql.Rows) error {
		var restart, world int
		if err := rows.Scan(&restart, &world); err != nil {
			return err
		}
		in.worlds[restart] = world
		return nil
	}); err != nil {
		return err
	}
	known, err := knownFiles(in.tx, in.run)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := in.ctx.Err(); err != nil {
			return err
		}
		var at *position
		if p, ok := known[f.Writer][place{f.Rank, f.Restart}]; ok {
			at = &p
		}
		err := in.file(f, at)
		var unopened errOpen
		switch {
		case errors.As(err, &unopened) && at != nil && errors.Is(err, fs.ErrNotExist):
			// the file was removed: keep its events
		case errors.As(err, &unopened):
			in.report.Unread++
			in.warn("%v; the others were read", err)
		case err != nil:
			return err
		}
	}
	return nil
}

func (in *ingest) warn(format string, args ...any) {
	in.report.Warnings = append(in.report.Warnings, fmt.Sprintf(format, args...))
}

// touch records that a block of a restart has new steps.
func (in *ingest) touch(restart, number int) {
	if in.touched[restart] == nil {
		in.touched[restart] = map[int]bool{}
	}
	in.touched[restart][number] = true
}

// resultIsOld reports whether the run's result was computed by another version of the algorithm.
// It returns false for a run without a result.
func (in *ingest) resultIsOld() (bool, error) {
	var old bool
	err := in.tx.QueryRow("SELECT EXISTS (SELECT 1 FROM result WHERE run = ? AND algorithm <> ?)", in.run, summary.AlgorithmVersion).Scan(&old)
	return old, err
}
