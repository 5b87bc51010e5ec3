package store

import (
	"context"
	"database/sql"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/scaling/exchange"
)

// links replaces those of the run.
func (in *ingest) links(list []collective.Link) error {
	if _, err := in.tx.Exec("DELETE FROM link WHERE run = ?", in.run); err != nil {
		return err
	}
	for _, l := range list {
		if _, err := in.tx.Exec("INSERT INTO link (run, op, in_place, alpha, beta, sizes, low, high) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			in.run, l.Op, l.InPlace, l.Alpha, l.Beta, l.Sizes, l.Low, l.High); err != nil {
			return err
		}
	}
	return nil
}

// selectLinks selects links l, for scanLink.
const selectLinks = "SELECT l.run, l.op, l.in_place, l.alpha, l.beta, l.sizes, l.low, l.high FROM link l"

func scanLink(rows *sql.Rows) (l collective.Link, run int64, err error) {
	err = rows.Scan(&run, &l.Op, &l.InPlace, &l.Alpha, &l.Beta, &l.Sizes, &l.Low, &l.High)
	return l, run, err
}

// Collectives returns what the runs that fit the filter measured of collectives,
// as benchmarks of ours or in imported logs: the latest good attempt at each
// repeat of each point, as Select has them. Runs that measured none are left out.
func (s *Store) Collectives(ctx context.Context, f Filter) ([]exchange.Run, []string, error) {
	var list []exchange.Run
	o, err := s.observe(ctx, f, func(o *observer) error {
		runs := make([]exchange.Run, len(o.list))
		for i := range runs {
			runs[i].Observation = o.list[i]
		}
		rows, err := o.tx.QueryContext(o.ctx, selectLinks+" JOIN run r ON r.id = l.run WHERE "+good+" ORDER BY l.op, l.in_place", o.ids)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			l, run, err := scanLink(rows)
			if err != nil {
				return err
			}
			r := &runs[o.at[run]]
			r.Links = append(r.Links, l)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for id, i := range o.at {
			figures, err := o.figures(id)
			if err != nil {
				return err
			}
			runs[i].Measurements, _ = collective.Of(figures)
		}
		for _, r := range runs {
			if len(r.Measurements) > 0 {
				list = append(list, r)
			}
		}
		return nil
	})
	return list, o.warnings, err
}

// figures are a run's with a size, of the result's incarnation.
func (o *observer) figures(run int64) ([]metrics.Figure, error) {
	rows, err := o.tx.QueryContext(o.ctx, selectFigures+` JOIN result x ON x.run = f.run AND x.restart = f.restart
		WHERE f.run = ? AND g.at ->> '$.bytes' IS NOT NULL ORDER BY f.rank, g.line`, run)
	if err != nil {
		return nil, err
	}
	return scanFigures(rows)
}
