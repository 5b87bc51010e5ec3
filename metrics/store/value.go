package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/summary"
)

// values replaces those of the run: a row for each measure that it has, or has a
// reason not to have.
func (in *ingest) values(kind string, r summary.Result) error {
	if _, err := in.tx.Exec("DELETE FROM value WHERE run = ?", in.run); err != nil {
		return err
	}
	put := func(m measure.Measure, reported bool) error {
		v, has := r.Values[m.Name]
		why := r.Why[m.Name]
		if !has && why == "" {
			return nil
		}
		id, err := putMeasure(in.tx, m, reported)
		if err != nil {
			return err
		}
		value, missed := &v, has && m.Missable && math.IsInf(v, 1)
		if !has || missed {
			value = nil // an infinity would break whoever reads the view as JSON
		}
		_, err = in.tx.Exec("INSERT INTO value (run, measure, value, missed, why) VALUES (?, ?, ?, ?, ?)", in.run, id, value, missed, why)
		return err
	}
	declared := measure.Of(kind)
	for _, target := range r.Targets() {
		declared = append(declared, measure.To(target))
	}
	for _, m := range declared {
		if err := put(m, false); err != nil {
			return err
		}
	}
	for _, m := range r.Reported {
		if err := put(m, true); err != nil {
			return err
		}
	}
	return nil
}

// putMeasure finds or makes a measure's row.
func putMeasure(tx *sql.Tx, m measure.Measure, reported bool) (id int64, err error) {
	var target *float64
	if t, ok := measure.Target(m.Name); ok {
		target = &t
	}
	err = tx.QueryRow(`INSERT INTO measure (name, unit, title, better, reported, target) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET title = excluded.title, better = coalesce(nullif(excluded.better, ''), better) RETURNING id`,
		m.Name, m.Unit, m.Title, m.Better.String(), reported, target).Scan(&id)
	return id, err
}

// measures are all that the database has values of, by their numbers. Where
// programs report a name in several units, each is a measure of its own, whose
// name says the unit.
type measures map[int64]storedMeasure

type storedMeasure struct {
	measure.Measure
	reported bool
}

func readMeasures(ctx context.Context, tx *sql.Tx) (measures, error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, name, unit, better, reported,
		count(*) OVER (PARTITION BY name) > 1 FROM measure`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := measures{}
	for rows.Next() {
		var id int64
		var name, unit, better string
		var m storedMeasure
		var several bool
		if err := rows.Scan(&id, &name, &unit, &better, &m.reported, &several); err != nil {
			return nil, err
		}
		if m.reported {
			direction, err := measure.ParseDirection(better)
			if err != nil {
				return nil, err
			}
			m.Measure = measure.Reported(name, unit, direction)
			if several {
				m.Name += unitSuffix(unit)
			}
		} else if m.Measure, err = measure.Find(name); err != nil {
			continue // of a kind of workload that this scalebench does not know
		}
		all[id] = m
	}
	return all, rows.Err()
}

// selectValues selects values v, for scan.
const selectValues = "SELECT v.run, v.measure, v.value, v.missed, v.why FROM value v"

// scan reads a row of selectValues into the values and reasons of its run, and
// the declarations of what is reported.
func (all measures) scan(rows *sql.Rows, of func(run int64) (values map[string]float64, why map[string]string, reported *[]measure.Measure)) error {
	var run, number int64
	var value *float64
	var missed bool
	var reason string
	if err := rows.Scan(&run, &number, &value, &missed, &reason); err != nil {
		return err
	}
	m, known := all[number]
	if !known {
		return nil
	}
	values, why, reported := of(run)
	switch {
	case missed:
		values[m.Name] = math.Inf(1)
	case value != nil:
		values[m.Name] = *value
	default:
		why[m.Name] = reason
	}
	if m.reported {
		*reported = append(*reported, m.Measure)
	}
	return nil
}

// Reported lists the measures that stored runs' programs and logs report, by
// name.
func (s *Store) Reported(ctx context.Context) ([]measure.Measure, error) {
	var list []measure.Measure
	err := inTx(ctx, s.read, func(tx *sql.Tx) error {
		all, err := readMeasures(ctx, tx)
		for _, m := range all {
			if m.reported {
				list = append(list, m.Measure)
			}
		}
		return err
	})
	slices.SortFunc(list, func(a, b measure.Measure) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// valueOf is a run's value of a measure, with its arguments, in a query over
// view runs or over table run under that name.
func valueOf(m measure.Measure) (sql string, args []any) {
	return "(SELECT v.value FROM value v WHERE v.run = runs.id AND v.measure = (SELECT id FROM measure WHERE name = ? AND unit = ?))",
		[]any{strings.TrimSuffix(m.Name, unitSuffix(m.Unit)), m.Unit}
}

// unitSuffix tells measures of one name apart.
func unitSuffix(unit string) string { return " (" + unit + ")" }
