package store

import (
	"context"
	"database/sql"
)

// A Look is one look at the results of a study that is measured until its question is
// decided, for one series.
type Look struct {
	Series      string   `json:"series"`
	Number      int      `json:"look"` // from 1 on
	Unix        float64  `json:"unix"` // when, seconds since 1970
	Runs        int      `json:"runs"` // good ones of the series so far
	Most        int      `json:"max_repeats"`
	Confidence  float64  `json:"confidence"`  // of an interval at each look, a fraction
	Workers     *int     `json:"workers"`     // the answer; null: none yet
	Probability *float64 `json:"probability"` // of the answer, a fraction; null: not known
	Decided     bool     `json:"decided"`
	// Rival is the count that the answer was compared with, 0 for none, and Ratio how many
	// times as fast the larger of the two was, with its interval; null: not known.
	Rival int      `json:"rival"`
	Ratio *float64 `json:"ratio"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Text  string   `json:"text"` // the answer in words
}

// SetLooks replaces the looks at a study.
func (s *Store) SetLooks(ctx context.Context, study string, looks []Look) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.Exec("DELETE FROM look WHERE study = ?", study); err != nil {
			return err
		}
		rows := newBulk(tx)
		for _, l := range looks {
			if err := rows.insert(`INSERT INTO look (study, series, number, at, runs, most, confidence, workers, probability, decided, rival, ratio, low, high, text)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				study, l.Series, l.Number, l.Unix, l.Runs, l.Most, l.Confidence, l.Workers, l.Probability, l.Decided, l.Rival, l.Ratio, l.Low, l.High, l.Text); err != nil {
				return err
			}
		}
		return rows.flush()
	})
}

// Looks returns the looks at a study, by series and number.
func (s *Store) Looks(ctx context.Context, study string) (list []Look, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT series, number, at, runs, most, confidence, workers, probability, decided, rival, ratio, low, high, text
		FROM look WHERE study = ? ORDER BY series, number`, study)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var l Look
		if err := rows.Scan(&l.Series, &l.Number, &l.Unix, &l.Runs, &l.Most, &l.Confidence, &l.Workers, &l.Probability, &l.Decided, &l.Rival, &l.Ratio, &l.Low, &l.High, &l.Text); err != nil {
			return nil, explain(err)
		}
		list = append(list, l)
	}
	return list, explain(rows.Err())
}
