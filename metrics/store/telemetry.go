package store

import (
	"database/sql"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/summary"
)

// telemetry stores a batch of telemetry samples.
func (w *fileWriter) telemetry(t *metrics.Telemetry, line int) error {
	missing := t.Missing
	if missing == nil {
		missing = map[string]string{}
	}
	return w.in.rows.insert("INSERT INTO telemetry (file, line, tick, at, columns, missing) VALUES (?, ?, ?, ?, ?, ?)",
		w.id, line, t.Tick, asJSON{t.At}, asJSON{t.Columns}, asJSON{missing})
}

const selectTelemetry = `SELECT f.id, f.rank, coalesce(f.host, ''), f.started, t.tick, t.at, t.columns, t.missing
	FROM telemetry t JOIN event_file f ON f.id = t.file`

// scanTelemetry returns the samples of each node, combined from its batches in the order of the
// rows. It reads only the columns in wanted, or all if wanted is nil.
func scanTelemetry(rows queried, wanted []string) (list []summary.SampledNode, err error) {
	last := int64(-1)
	err = rows.each(func(rows *sql.Rows) error {
		var file int64
		var rank int
		var host string
		var started sql.NullFloat64
		var t metrics.Telemetry
		if err := rows.Scan(&file, &rank, &host, &started, &t.Tick, asJSON{&t.At}, asJSON{&t.Columns}, asJSON{&t.Missing}); err != nil {
			return err
		}
		if wanted != nil {
			t.Columns = slices.DeleteFunc(t.Columns, func(c metrics.TelemetryColumn) bool { return !slices.Contains(wanted, c.Name) })
		}
		if !started.Valid {
			return nil // the line is bad
		}
		if file != last {
			list = append(list, summary.SampledNode{Rank: rank, Host: host})
			last = file
		}
		list[len(list)-1].Add(started.Float64, &t)
		return nil
	})
	return list, err
}

// nodes returns the telemetry samples of a restart, sorted by the nodes' first ranks.
func (in *ingest) nodes(restart int) ([]summary.SampledNode, error) {
	return scanTelemetry(found(in.tx.Query(selectTelemetry+" WHERE f.run = ? AND f.writer = 'telemetry' AND f.restart = ? ORDER BY f.rank, t.line", in.run, restart)), summary.Telemetry)
}

// telemetry reads the telemetry of the restart from which the result was computed.
func (q *details) telemetry() error {
	var err error
	if q.d.Telemetry, err = scanTelemetry(found(q.tx.QueryContext(q.ctx, selectTelemetry+` JOIN result x ON x.run = f.run AND x.restart = f.restart
		WHERE f.run = ? AND f.writer = 'telemetry' ORDER BY f.rank, t.line`, q.run)), nil); err != nil || q.d.Result == nil || q.d.Result.Steps == 0 {
		return err
	}
	return q.each("SELECT f.started + t.time "+chosen+" JOIN train t ON t.file = f.id WHERE x.run = ? AND f.rank = 0 AND f.started IS NOT NULL", func(rows *sql.Rows) error {
		var from float64
		err := rows.Scan(&from)
		if seconds := q.d.Result.Known(measure.TrainSeconds); seconds != nil && *seconds > 0 {
			q.d.TrainingClock = summary.Window{From: from, To: from + *seconds}
		}
		return err
	})
}
