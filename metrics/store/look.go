package store

import (
	"context"
	"database/sql"

	"github.com/scalebench/scalebench/metrics"
)

// SetLooks replaces the stored interim analyses ("looks") of a study.
func (s *Store) SetLooks(ctx context.Context, study string, looks []metrics.Look) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.Exec("DELETE FROM look WHERE study = ?", study); err != nil {
			return err
		}
		rows := newBulk(tx)
		for _, l := range looks {
			if err := rows.insert(`INSERT INTO look (study, series, number, at, runs, most, confidence, workers, probability, decided, rival, ratio, low, high, price, text)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				study, l.Series, l.Number, l.Unix, l.Runs, l.Most, l.Confidence, l.Workers, l.Probability, l.Decided, l.Rival, l.Ratio, l.Low, l.High, l.Price, l.Text); err != nil {
				return err
			}
		}
		return rows.flush()
	})
}

// Looks returns the interim analyses of a study, sorted by series and number.
func (s *Store) Looks(ctx context.Context, study string) (list []metrics.Look, err error) {
	return listOf(found(s.read.QueryContext(ctx, `SELECT series, number, at, runs, most, confidence, workers, probability, decided, rival, ratio, low, high, price, text
		FROM look WHERE study = ? ORDER BY series, number`, study)), func(rows *sql.Rows, l *metrics.Look) error {
		return rows.Scan(&l.Series, &l.Number, &l.Unix, &l.Runs, &l.Most, &l.Confidence, &l.Workers, &l.Probability, &l.Decided, &l.Rival, &l.Ratio, &l.Low, &l.High, &l.Price, &l.Text)
	})
}

// Looked returns the studies that have interim analyses, each with the maximum number of runs per
// point that its last one planned.
func (s *Store) Looked(ctx context.Context) (map[string]int, error) {
	most := map[string]int{}
	// SQLite takes most from the row of the maximum.
	err := found(s.read.QueryContext(ctx, "SELECT study, most, max(at) FROM look GROUP BY study")).each(func(rows *sql.Rows) error {
		var study string
		var n int
		var at float64
		if err := rows.Scan(&study, &n, &at); err != nil {
			return err
		}
		most[study] = n
		return nil
	})
	return most, err
}
