package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
)

// derived is stored instead of the file's inode if events were not read from an event file but
// from a program's output. If the run's event file is ingested later, its events replace them.
const derived = -1

// ReadFrom returns the source of the events of a run's first rank: the path of its event file, or
// the text from that Reread was given. It is "" without events.
func (s *Store) ReadFrom(ctx context.Context, run string, restart int) (path string, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT f.path FROM event_file f JOIN every_run r ON r.id = f.run
		WHERE r.name = ? AND f.writer = 'rank' AND f.rank = 0 AND f.restart = ?`, run, restart).Scan(&path)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return path, explain(err)
}

// Reread replaces the events of a run's first rank and computes the run's result again. from says
// where the events come from.
func (s *Store) Reread(ctx context.Context, run metrics.Run, restart int, from string, events []metrics.Event) (Report, error) {
	report := Report{Run: run.ID, Changed: true, Files: 1}
	err := s.withTx(ctx, func(tx *sql.Tx) error {
		var id int64
		if err := tx.QueryRow("SELECT id FROM every_run WHERE name = ?", run.ID).Scan(&id); err != nil {
			return err
		}
		in := newIngest(ctx, tx, id, &report, s.hiders(run), catalogue{}, direct{tx})
		if err := in.files(nil); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM event_file WHERE run = ? AND writer = 'rank' AND rank = 0 AND restart = ?", id, restart); err != nil {
			return err
		}
		in.whole[restart] = true
		if err := in.derive(metrics.EventFile{Path: from, Writer: "rank", Restart: restart}, derived, 0, slices.Values(events)); err != nil {
			return err
		}
		if err := in.steps(); err != nil {
			return err
		}
		if err := in.result(); err != nil {
			return err
		}
		_, err := tx.Exec("UPDATE every_run SET ingested = ? WHERE id = ?", metrics.Unix(s.now()), id)
		return err
	})
	if err != nil {
		return Report{Run: run.ID}, fmt.Errorf("run %q: %w", run.ID, err)
	}
	return report, nil
}

// derive stores events that were not read from an event file as if file's writer had written
// them. bytes is the size of their source. It iterates the events three times.
func (in *ingest) derive(file metrics.EventFile, inode, bytes int64, events iter.Seq[metrics.Event]) error {
	// The first event describes the writer and is stored with the file.
	var started *float64
	var world, pid *int
	var host *string
	ranks := 1
	if s := startsWith(events); s != nil {
		if err := startOf(file, s); err != nil {
			return err
		}
		started, world, ranks, host, pid = &s.Unix, &s.WorldSize, s.Covers(), &s.Host, &s.PID
	}
	lines := 0
	for range events {
		lines++
	}
	id, err := in.rows.numbered("event_file", `INSERT INTO event_file (id, run, writer, rank, restart, path, inode, size, modified, head, head_size, offset, line,
			started, world_size, ranks, host, pid)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, x'', 0, ?, ?, ?, ?, ?, ?, ?)`,
		in.run, file.Writer, file.Rank, file.Restart, file.Path, inode, bytes, bytes, lines, started, world, ranks, host, pid)
	if err != nil {
		return err
	}
	w := fileWriter{in: in, file: file, id: id, blocks: map[int]*block{}, had: map[string]bool{}}
	line := 0
	for e := range events {
		line++
		if err := e.Validate(); err != nil {
			return err
		}
		in.report.Events++
		if line == 1 && started != nil {
			continue
		}
		if err := w.event(&e, line); err != nil {
			return err
		}
	}
	return w.flush(math.MaxInt)
}
