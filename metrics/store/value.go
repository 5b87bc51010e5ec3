package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/summary"
)

// values stores the measures of the run: a row for each value, or for the reason why it is
// missing.
func (in *ingest) values(kind string, r summary.Outcome) error {
	put := func(m measure.Measure, reported bool) error {
		v, has := r.Values[m.Name]
		why := r.Why[m.Name]
		if !has && why == "" {
			return nil
		}
		id, err := in.measures.put(in.tx, m, reported)
		if err != nil {
			return err
		}
		value, missed := &v, has && m.Missable && math.IsInf(v, 1)
		if !has || missed {
			value = nil // JSON, which the views produce, has no infinity
		}
		return in.rows.insert("INSERT INTO value (run, measure, place, value, missed, why) VALUES (?, ?, 0, ?, ?, ?)", in.run, id, value, missed, why)
	}
	for m := range measure.Each(kind) {
		if m.At != "" {
			continue
		}
		if err := put(m, false); err != nil {
			return err
		}
	}
	for _, target := range r.Targets() {
		if err := put(target.Time(), false); err != nil {
			return err
		}
	}
	for _, m := range r.Reported {
		if err := put(m, true); err != nil {
			return err
		}
	}
	return in.placed(r.Places)
}

// placed stores the values of measures with coordinates, such as a latency at each load.
func (in *ingest) placed(places *measure.Places) error {
	ids := map[string]int64{}
	for p := range places.All() {
		place, err := putPlace(in.tx, measure.Key(p.At))
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(p.Values)) {
			if _, known := ids[name]; !known {
				m, err := measure.Find(name)
				if err != nil {
					return err
				}
				if ids[name], err = in.measures.put(in.tx, m, false); err != nil {
					return err
				}
			}
			if err := in.rows.insert("INSERT INTO value (run, measure, place, value, missed, why) VALUES (?, ?, ?, ?, 0, '')", in.run, ids[name], place, p.Values[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// putPlace returns the ID of a place's row, which it creates if necessary. An upsert that returns
// its row is not used, because it would create a temporary table each time.
func putPlace(tx *sql.Tx, key string) (id int64, err error) {
	err = tx.QueryRow("SELECT id FROM place WHERE at = ?", key).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	r, err := tx.Exec("INSERT INTO place (at) VALUES (?)", key)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// put returns the ID of a measure's row, which it creates or updates if necessary. It does so
// once per transaction and declaration.
func (c catalogue) put(tx *sql.Tx, m measure.Measure, reported bool) (id int64, err error) {
	key := measureKey{m.Name, m.Unit, m.At}
	known := storedMeasure{measure.Measure{Title: m.Title, Better: m.Better}, reported}
	if row, again := c[key]; again && row.Title == m.Title && row.Better == m.Better && row.reported == reported {
		return row.id, nil
	}
	var target *float64
	var of *string
	if t, ok := measure.TargetOf(m.Name); ok {
		target, of = &t.Value, &t.Of
	}
	if err := tx.QueryRow(`INSERT INTO measure (name, unit, title, better, speeds, reported, target, target_of, coordinates) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET title = excluded.title, better = coalesce(nullif(excluded.better, ''), better),
			speeds = iif(excluded.better = '', speeds, excluded.speeds) RETURNING id`,
		m.Name, m.Unit, m.Title, m.Better.String(), m.Speeds(), reported, target, of, jsonList(m.At.Keys())).Scan(&id); err != nil {
		return 0, err
	}
	c[key] = cataloguedMeasure{known, id}
	return id, nil
}

// catalogue holds the measures that a transaction has stored, each as declared last.
type catalogue map[measureKey]cataloguedMeasure

// A measureKey identifies a measure.
type measureKey struct {
	name, unit string
	at         measure.Coordinates
}

type cataloguedMeasure struct {
	storedMeasure
	id int64
}

// measures holds all measures of which the database has values, by number. If programs report a
// measure of one name in several units, each unit gives a separate measure with the unit in its
// name.
type measures map[int64]storedMeasure

type storedMeasure struct {
	measure.Measure
	reported bool
}

func readMeasures(ctx context.Context, tx *sql.Tx) (measures, error) {
	all := measures{}
	err := found(tx.QueryContext(ctx, `SELECT id, name, unit, better, reported,
		count(*) OVER (PARTITION BY name) > 1 FROM measure`)).each(func(rows *sql.Rows) (err error) {
		var id int64
		var name, unit, better string
		var m storedMeasure
		var several bool
		if err := rows.Scan(&id, &name, &unit, &better, &m.reported, &several); err != nil {
			return err
		}
		if m.reported {
			direction, err := measure.ParseDirection(better)
			if err != nil {
				return err
			}
			m.Measure = measure.Reported(name, unit, direction)
			if several {
				m.Name += unitSuffix(unit)
			}
		} else if m.Measure, err = measure.Find(name); err != nil {
			return nil // it belongs to a kind of workload that this version does not know
		}
		all[id] = m
		return nil
	})
	return all, err
}

// selectValues selects values (alias v) for the method scan.
const selectValues = "SELECT v.run, v.measure, v.value, v.missed, v.why, v.place, p.at FROM value v JOIN place p ON p.id = v.place"

// held points to the locations where the values of a run are stored: values, reasons for missing
// ones, declarations of reported measures, and values at places.
type held struct {
	values   map[string]float64
	why      *map[string]string // allocated when the first reason is stored
	reported *[]measure.Measure
	places   *[]measure.Place
}

// reader reads the rows of selectValues, which must be grouped by run.
type reader struct {
	measures
	at    map[int64]map[string]any // coordinates, by the number of the place
	run   int64
	index map[int64]int // index in the run's list, by the number of the place
}

func newReader(ctx context.Context, tx *sql.Tx) (*reader, error) {
	all, err := readMeasures(ctx, tx)
	return &reader{measures: all, at: map[int64]map[string]any{}}, err
}

// scan reads one row and stores its value in the variables that the function of returns for the
// row's run.
func (r *reader) scan(rows *sql.Rows, of func(run int64) held) error {
	var run, number, place int64
	var value *float64
	var missed bool
	var reason string
	var at sql.RawBytes
	if err := rows.Scan(&run, &number, &value, &missed, &reason, &place, &at); err != nil {
		return err
	}
	m, known := r.measures[number]
	if !known {
		return nil
	}
	into := of(run)
	if place != 0 {
		if value == nil {
			return nil
		}
		return r.locate(into.places, run, place, at, m.Name, *value)
	}
	switch {
	case missed:
		into.values[m.Name] = math.Inf(1)
	case value != nil:
		into.values[m.Name] = *value
	default:
		if *into.why == nil {
			*into.why = map[string]string{}
		}
		(*into.why)[m.Name] = reason
	}
	if m.reported {
		*into.reported = append(*into.reported, m.Measure)
	}
	return nil
}

// locate adds a value to the place with its coordinates, such as a load, in a list of places.
func (r *reader) locate(list *[]measure.Place, run, place int64, text []byte, name string, value float64) error {
	if run != r.run || r.index == nil {
		r.run, r.index = run, map[int64]int{}
	}
	if r.at[place] == nil {
		var at map[string]any
		if err := json.Unmarshal(text, &at); err != nil {
			return fmt.Errorf("place %d: %w", place, err)
		}
		r.at[place] = at
	}
	i, known := r.index[place]
	if !known {
		i = len(*list)
		r.index[place] = i
		*list = append(*list, measure.Place{At: r.at[place], Values: map[string]float64{}})
	}
	(*list)[i].Values[name] = value
	return nil
}

// Reported returns the measures that programs and logs of stored runs report, sorted by name.
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

// valueOf returns SQL, and its arguments, for a run's value of a measure. It is for queries on
// the view or the table runs.
func valueOf(m measure.Measure) (sql string, args []any) {
	place := "0"
	if m.At != "" {
		place = "place_id"
	}
	return "(SELECT v.value FROM value v WHERE v.run = runs.id AND v.place = " + place + " AND v.measure = (SELECT id FROM measure WHERE name = ? AND unit = ? AND coordinates = ?))",
		[]any{strings.TrimSuffix(m.Name, unitSuffix(m.Unit)), m.Unit, jsonList(m.At.Keys())}
}

// placesOf returns an SQL join, and its arguments, that adds a row for each place within a run at
// which measures with coordinates have values. Its columns are place_id and place_at. It is "" if
// no measure has coordinates. Measures with different coordinates cannot share rows; that is an
// error.
func placesOf(list []measure.Measure) (join string, args []any, err error) {
	var of *measure.Measure
	for i, m := range list {
		if m.At == "" {
			continue
		}
		if of != nil && of.At != m.At {
			return "", nil, fmt.Errorf("%w: %s is per %s, %s per %s; ask for one at a time", ErrPlaces,
				of.Name, strings.Join(of.At.Keys(), ", "), m.Name, strings.Join(m.At.Keys(), ", "))
		}
		of = &list[i]
	}
	if of == nil {
		return "", nil, nil
	}
	return ` LEFT JOIN (SELECT DISTINCT v.run AS place_run, p.id AS place_id, p.at AS place_at FROM measure m JOIN value v ON v.measure = m.id JOIN place p ON p.id = v.place
		WHERE m.coordinates = ?) ON place_run = runs.id`, []any{jsonList(of.At.Keys())}, nil
}

// ErrPlaces means that measures with different coordinates were requested in one list.
var ErrPlaces = errors.New("measures at different places")

// unitSuffix returns what is appended to the names of measures that differ only in their unit.
func unitSuffix(unit string) string { return " (" + unit + ")" }
