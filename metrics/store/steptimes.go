package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// StepTimes returns percentiles of the step times in the steady state for every rank of a run,
// sorted by rank. It leaves out ranks without steps. It returns nil for a run without a steady
// state.
func (s *Store) StepTimes(ctx context.Context, run string) ([]scaling.StepTimes, error) {
	var list []scaling.StepTimes
	err := inTx(ctx, s.read, func(tx *sql.Tx) error {
		var id int64
		var restart, warmup, steps int
		switch err := tx.QueryRowContext(ctx, `SELECT r.id, x.restart, x.warmup_steps, x.steps FROM run r JOIN result x ON x.run = r.id
			WHERE r.name = ? AND x.steady_steps > 0`, run).Scan(&id, &restart, &warmup, &steps); {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		one, current := new(block), -1
		var durations []float64
		flush := func() {
			if len(durations) > 0 {
				list = append(list, scaling.NewStepTimes(current, durations))
			}
			durations = durations[:0]
		}
		err := found(tx.QueryContext(ctx, `SELECT f.rank, b.block, `+blockColumns+`
			FROM event_file f JOIN block b ON b.file = f.id
			WHERE f.run = ? AND f.writer = 'rank' AND f.restart = ? ORDER BY f.rank, b.block`, id, restart)).each(func(rows *sql.Rows) error {
			var rank int
			if err := one.scan(rows, &rank, &one.number); err != nil {
				return err
			}
			if rank != current {
				flush()
				current = rank
			}
			for i := range blockSteps {
				if step := one.number*blockSteps + i; one.has(i) && step >= warmup && step < steps {
					durations = append(durations, float64(one.columns[duration][i])*one.tick)
				}
			}
			return nil
		})
		flush()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return list, nil
}
