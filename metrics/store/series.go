package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// SetPlanned records the points of a study's plan, in the place of those of
// before.
func (s *Store) SetPlanned(ctx context.Context, study string, points []scaling.Planned) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		before, err := planned(ctx, tx, study)
		if err != nil {
			return err
		}
		if equal, err := samePlan(before, points); err != nil || equal {
			return err
		}
		if _, err := tx.Exec("DELETE FROM planned WHERE study = ?", study); err != nil {
			return err
		}
		for _, p := range points {
			text, err := encodeParameters(p.Parameters)
			if err != nil {
				return fmt.Errorf("study %q: point %s: %w", study, p.Point, err)
			}
			if _, err := tx.Exec("INSERT INTO planned (study, point, framework, workers, parameters) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
				study, p.Point, p.Framework, p.Workers, text); err != nil {
				return err
			}
		}
		return disarrange(tx, study)
	})
}

func samePlan(a, b []scaling.Planned) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	of := map[string]string{}
	for _, p := range a {
		text, err := encodeParameters(p.Parameters)
		if err != nil {
			return false, err
		}
		of[p.Point] = fmt.Sprint(p.Framework, p.Workers, text)
	}
	for _, p := range b {
		text, err := encodeParameters(p.Parameters)
		if err != nil || of[p.Point] != fmt.Sprint(p.Framework, p.Workers, text) {
			return false, err
		}
	}
	return true, nil
}

// Planned are the points that were planned of a study when its runs were last
// collected; none of one that was imported.
func (s *Store) Planned(ctx context.Context, study string) (list []scaling.Planned, err error) {
	err = inTx(ctx, s.read, func(tx *sql.Tx) error {
		list, err = planned(ctx, tx, study)
		return err
	})
	return list, err
}

func planned(ctx context.Context, tx *sql.Tx, study string) ([]scaling.Planned, error) {
	rows, err := tx.QueryContext(ctx, "SELECT point, framework, workers, parameters FROM planned WHERE study = ? ORDER BY point", study)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []scaling.Planned
	for rows.Next() {
		var p scaling.Planned
		var text string
		if err := rows.Scan(&p.Point, &p.Framework, &p.Workers, &text); err != nil {
			return nil, err
		}
		if p.Parameters, err = decodeParameters(text); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

// typed is a parameter as table run_parameter has it.
type typed struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

func encodeParameters(parameters map[string]any) (string, error) {
	all := map[string]typed{}
	for key, v := range parameters {
		value, kind, err := parameterValue(hideValue(key, v))
		if err != nil {
			return "", fmt.Errorf("parameter %s: %w", key, err)
		}
		all[key] = typed{kind, value}
	}
	text, err := json.Marshal(all) // keys sorted
	return string(text), err
}

func decodeParameters(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var all map[string]typed
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	parameters := map[string]any{}
	for key, p := range all {
		value := p.Value
		if n, ok := value.(json.Number); ok {
			var err error
			if p.Type == "real" {
				value, err = n.Float64()
			} else {
				value, err = n.Int64()
			}
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", key, err)
			}
		}
		v, err := parameter(value, p.Type)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", key, err)
		}
		parameters[key] = v
	}
	return parameters, nil
}

// disarrange notes that a study's runs, or what is known of them, have changed.
func disarrange(tx *sql.Tx, study string) error {
	_, err := tx.Exec("UPDATE study SET arranged = 0 WHERE name = ?", study)
	return err
}

// Arrange puts the runs of every study that has changed on their curves, for the
// views. Ingest and Import leave that to whoever has stored the last run: what
// makes a curve depends on all runs of a study.
func (s *Store) Arrange(ctx context.Context) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		studies, err := column1[string](tx.QueryContext(ctx, "SELECT name FROM study WHERE NOT arranged"))
		if err != nil {
			return err
		}
		for _, study := range studies {
			if err := arrange(ctx, tx, study); err != nil {
				return fmt.Errorf("study %q: %w", study, err)
			}
		}
		return nil
	})
}

// placeOnAxis is a whole number where it is one, as SQL shows it.
func placeOnAxis(v scaling.Value) any {
	if n := int64(v.Number); v.Numeric() && float64(n) == v.Number {
		return n
	}
	return v.Any()
}

func arrange(ctx context.Context, tx *sql.Tx, study string) error {
	o := observer{tx: tx, ctx: ctx, where: "study = ?", args: []any{study}, at: map[int64]int{}}
	for _, step := range []func() error{o.choose, o.runs, o.parameters, o.places} {
		if err := step(); err != nil {
			return err
		}
	}
	plan, err := planned(ctx, tx, study)
	if err != nil {
		return err
	}
	for _, query := range []string{"DELETE FROM series WHERE study = ?", "UPDATE every_run SET series = '' WHERE study = ?", "UPDATE study SET arranged = 1 WHERE name = ?"} {
		if _, err := tx.Exec(query, study); err != nil {
			return err
		}
	}
	places := map[string]int64{}
	for _, one := range scaling.Arrange(o.list, plan) {
		r, err := tx.Exec("INSERT INTO series (study, name, axis, base) VALUES (?, ?, ?, ?)", study, one.Name, one.Axis, placeOnAxis(one.Base))
		if err != nil {
			return err
		}
		id, err := r.LastInsertId()
		if err != nil {
			return err
		}
		for _, m := range one.Members {
			if _, known := places[m.Place]; !known {
				if places[m.Place], err = putPlace(tx, m.Place); err != nil {
					return err
				}
			}
			if _, err := tx.Exec("INSERT INTO member (run, series, place, at) SELECT id, ?, ?, ? FROM run WHERE name = ?", id, places[m.Place], placeOnAxis(m.At), m.Run); err != nil {
				return err
			}
		}
		// A run that does not count, or not yet, is named like the others of its
		// point, unless these are on several curves.
		for _, point := range one.Points {
			if _, err := tx.Exec(`UPDATE every_run SET series = CASE series WHEN '' THEN ?1 ELSE series || '; ' || ?1 END WHERE study = ?2 AND point = ?3
				AND (EXISTS (SELECT 1 FROM member m WHERE m.run = every_run.id AND m.series = ?4)
					OR NOT ?5 AND NOT EXISTS (SELECT 1 FROM member m WHERE m.run = every_run.id))`, one.Name, study, point, id, one.Part); err != nil {
				return err
			}
		}
	}
	return nil
}
