package store

import (
	"database/sql"

	"github.com/scalebench/scalebench/metrics"
)

// selectFigures selects figures (table alias g) of event files (alias f) for scanFigures.
const selectFigures = `SELECT g.name, g.value, g.unit, g.better, nullif(g.at, '{}'), g.plus_minus, g.plus_minus_is, g.reduce, g.of, g.note, g.source, g.source_line
	FROM figure g JOIN event_file f ON f.id = g.file`

func scanFigures(rows queried, add func(metrics.Figure)) error {
	return rows.each(func(rows *sql.Rows) error {
		var f metrics.Figure
		if err := rows.Scan(&f.Name, &f.Value, &f.Unit, &f.Better, asJSON{&f.At}, &f.PlusMinus, &f.PlusMinusIs, &f.Reduce, &f.Of, &f.Note, &f.File, &f.Line); err != nil {
			return err
		}
		add(f)
		return nil
	})
}

// figures reads the reported values of the restart from which the run's result was computed.
func (q *details) figures() error {
	return scanFigures(found(q.tx.QueryContext(q.ctx, selectFigures+` JOIN result x ON x.run = f.run AND x.restart = f.restart
		WHERE f.run = ? ORDER BY f.rank, g.line`, q.run)), func(f metrics.Figure) { q.d.Figures = append(q.d.Figures, f) })
}

// source reads path, format and digest of the file from which the run was imported, if it was
// imported.
func (q *details) source() error {
	return q.each("SELECT s.path, s.sha256, i.part, s.format FROM import i JOIN source s ON s.id = i.source WHERE i.run = ?", func(rows *sql.Rows) error {
		q.d.Source = &Source{}
		return rows.Scan(&q.d.Source.Path, &q.d.Source.SHA256, &q.d.Source.Part, &q.d.Source.Format)
	})
}
