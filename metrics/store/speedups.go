package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// curveKey identifies a curve of a study in the table series.
type curveKey struct{ name, axis string }

// storeSpeedups stores those speedups of a study that are corrected for drift. The views compute
// other speedups as ratios of medians. Runs without a start time have no corrected speedup.
func storeSpeedups(ctx context.Context, tx *sql.Tx, study string, plan []scaling.Planned, ids map[curveKey]int64) error {
	counted, err := column1[int64](tx.QueryContext(ctx, "SELECT id FROM counted WHERE study = ?", study))
	if err != nil {
		return err
	}
	o := newObserver(ctx, tx, Filter{})
	o.ids, o.list = jsonList(counted), make([]scaling.Observation, 0, len(counted))
	if err := o.runs(); err != nil {
		return err
	}
	if !slices.ContainsFunc(o.list, func(r scaling.Observation) bool { return r.BeganUnix != 0 }) {
		return nil
	}
	for _, step := range []func() error{o.hosts, o.parameters, o.values} {
		if err := step(); err != nil {
			return err
		}
	}
	rows := newBulk(tx)
	for _, m := range scaling.Frames(o.list) {
		curves, err := scaling.Unbased(o.list, scaling.Options{Planned: plan, Measure: m})
		if err != nil {
			return err
		}
		for _, c := range curves {
			id, known := ids[curveKey{c.Series, c.Axis}]
			if !known {
				continue
			}
			for _, p := range c.Points {
				if err := insertSpeedups(rows, id, p); err != nil {
					return err
				}
			}
		}
	}
	return rows.flush()
}

// insertSpeedups stores the speedups of a curve's point that are corrected for drift.
func insertSpeedups(rows *bulk, series int64, p scaling.Point) error {
	for _, s := range p.Measures {
		g := s.Gain()
		if g == nil || !g.Adjusted {
			continue
		}
		name := strings.TrimSuffix(s.Name, " ("+s.Unit+")")
		if err := rows.insert("INSERT INTO speedup (series, measure, unit, at, value) VALUES (?, ?, ?, ?, ?)", series, name, s.Unit, placeOnAxis(p.At), g.Value); err != nil {
			return err
		}
	}
	return nil
}
