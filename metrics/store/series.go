package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// SetPlanned replaces the stored points of a study's plan.
func (s *Store) SetPlanned(ctx context.Context, study string, points []scaling.Planned) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		before, err := planned(ctx, tx, study)
		if err != nil {
			return err
		}
		if equal, err := s.samePlan(before, points); err != nil || equal {
			return err
		}
		if _, err := tx.Exec("DELETE FROM planned WHERE study = ?", study); err != nil {
			return err
		}
		for _, p := range points {
			text, err := s.encodeParameters(p.Parameters)
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

// Hidden returns the points with digests instead of secrets, as the database and the runs have
// them.
func (s *Store) Hidden(points []scaling.Planned) []scaling.Planned {
	list := slices.Clone(points)
	for i := range list {
		list[i].Parameters = maps.Clone(list[i].Parameters)
		for key, v := range list[i].Parameters {
			list[i].Parameters[key] = redact.Hider(s.digests.hide).Value(key, v)
		}
	}
	return list
}

func (s *Store) samePlan(a, b []scaling.Planned) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	of := map[string]string{}
	for _, p := range a {
		text, err := s.encodeParameters(p.Parameters)
		if err != nil {
			return false, err
		}
		of[p.Point] = fmt.Sprint(p.Framework, p.Workers, text)
	}
	for _, p := range b {
		text, err := s.encodeParameters(p.Parameters)
		if err != nil || of[p.Point] != fmt.Sprint(p.Framework, p.Workers, text) {
			return false, err
		}
	}
	return true, nil
}

// Planned returns the points of a study's plan at the last collect; none for an imported study.
func (s *Store) Planned(ctx context.Context, study string) (list []scaling.Planned, err error) {
	err = inTx(ctx, s.read, func(tx *sql.Tx) error {
		list, err = planned(ctx, tx, study)
		return err
	})
	return list, err
}

func planned(ctx context.Context, tx *sql.Tx, study string) ([]scaling.Planned, error) {
	return listOf(found(tx.QueryContext(ctx, "SELECT point, framework, workers, parameters FROM planned WHERE study = ? ORDER BY point", study)), func(rows *sql.Rows, p *scaling.Planned) (err error) {
		var text string
		if err := rows.Scan(&p.Point, &p.Framework, &p.Workers, &text); err != nil {
			return err
		}
		p.Parameters, err = decodeParameters(text)
		return err
	})
}

// typed is a parameter's value and type as the table run_parameter stores them.
type typed struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

func (s *Store) encodeParameters(parameters map[string]any) (string, error) {
	all := map[string]typed{}
	for key, v := range parameters {
		value, kind, err := parameterValue(redact.Hider(s.digests.hide).Value(key, v))
		if err != nil {
			return "", fmt.Errorf("parameter %s: %w", key, err)
		}
		all[key] = typed{kind, value}
	}
	text, err := json.Marshal(all) // with sorted keys
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

// disarrange records that runs of a study, or facts about them, changed, so that Arrange has to
// assign them to curves again.
func disarrange(tx *sql.Tx, study string) error {
	_, err := tx.Exec("UPDATE study SET arranged = 0 WHERE name = ?", study)
	return err
}

// Arrange assigns the runs of every study that changed to curves, which the views show. Ingest
// and Import do not do this, because a curve depends on all runs of a study; the caller does it
// after the last run.
func (s *Store) Arrange(ctx context.Context) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		studies, err := column1[string](tx.QueryContext(ctx, "SELECT name FROM study WHERE NOT arranged"))
		if err != nil || len(studies) == 0 {
			return err
		}
		if err := setCache(tx, sparingKiB); err != nil {
			return err
		}
		for _, study := range studies {
			if err := arrange(ctx, tx, study); err != nil {
				return fmt.Errorf("study %q: %w", study, err)
			}
		}
		return setCache(tx, cacheKiB)
	})
}

// placeOnAxis returns a position in the form in which SQL shows it: an integer if it is whole.
func placeOnAxis(v scaling.Value) any {
	if n := int64(v.Number); v.Numeric() && float64(n) == v.Number {
		return n
	}
	return v.Any()
}

// arrange replaces the stored curves of a study.
func arrange(ctx context.Context, tx *sql.Tx, study string) error {
	c := curveWriter{tx: tx, study: study, members: newBulk(tx)}
	if err := c.observe(ctx); err != nil {
		return err
	}
	plan, err := planned(ctx, tx, study)
	if err != nil {
		return err
	}
	for _, query := range []string{"DELETE FROM series WHERE study = ?", "UPDATE study SET arranged = 1 WHERE name = ?"} {
		if _, err := tx.Exec(query, study); err != nil {
			return err
		}
	}
	names, ids := map[string]string{}, map[curveKey]int64{}
	for _, one := range scaling.Arrange(c.o.list, plan) {
		id, err := c.write(one)
		if err != nil {
			return err
		}
		ids[curveKey{one.Name, one.Axis}] = id
		if one.Part {
			continue
		}
		for _, point := range one.Points {
			if names[point] != "" {
				names[point] += "; "
			}
			names[point] += one.Name
		}
	}
	if err := storeSpeedups(ctx, tx, study, plan, ids); err != nil {
		return err
	}
	return nameSeries(ctx, tx, study, names)
}

// A curveWriter stores a study's curves and their runs.
type curveWriter struct {
	tx      *sql.Tx
	study   string
	o       observer           // has the first run of each group of runs that are on the same curves
	alike   map[string][]int64 // the IDs of each group, by the name of its first run
	members *bulk
}

// observe reads the first run of each group of runs that are on the same curves.
func (c *curveWriter) observe(ctx context.Context) error {
	alike, err := runsAlike(ctx, c.tx, c.study)
	if err != nil {
		return err
	}
	first := make([]int64, len(alike))
	for i, ids := range alike {
		first[i] = ids[0]
	}
	c.o = newObserver(ctx, c.tx, Filter{})
	c.o.ids = jsonList(first)
	for _, step := range []func() error{c.o.runs, c.o.parameters, c.o.places} {
		if err := step(); err != nil {
			return err
		}
	}
	c.alike = make(map[string][]int64, len(alike))
	for _, ids := range alike {
		c.alike[c.o.list[c.o.at[ids[0]]].Run] = ids
	}
	return nil
}

// write stores a curve with its runs, and returns its ID.
func (c *curveWriter) write(one scaling.Series) (id int64, err error) {
	r, err := c.tx.Exec("INSERT INTO series (study, name, axis, base) VALUES (?, ?, ?, ?)", c.study, one.Name, one.Axis, placeOnAxis(one.Base))
	if err != nil {
		return 0, err
	}
	if id, err = r.LastInsertId(); err != nil {
		return 0, err
	}
	for _, m := range one.Members {
		places := c.spots(one, m)
		for _, run := range c.alike[m.Run] {
			for _, p := range places {
				if err := c.members.insert("INSERT INTO member (run, series, place, at) VALUES (?, ?, ?, ?)", run, id, p.place, placeOnAxis(p.at)); err != nil {
					return 0, err
				}
			}
		}
	}
	return id, c.members.flush()
}

// spots returns the positions of a member on a curve. A run with several places within it may
// have several.
func (c *curveWriter) spots(one scaling.Series, m scaling.Member) []spot {
	if one.Within == "" {
		return []spot{{0, m.At}}
	}
	s := c.o.spans[spanKey{m.Run, one.Within, m.Place}]
	if !s.along {
		return []spot{{s.least.place, m.At}}
	}
	return s.places
}

// nameSeries stores in each run of a study the names of its curves. A run that is on no curve yet
// gets the name that the other runs of its point have, unless these are on several curves. names
// maps the points whose runs share one curve to its name.
func nameSeries(ctx context.Context, tx *sql.Tx, study string, names map[string]string) error {
	// This takes one pass over the table. A pass for each point would rewrite each page as often
	// as there are points.
	if _, err := tx.ExecContext(ctx, `UPDATE every_run SET series = coalesce((SELECT group_concat(name, '; ')
			FROM (SELECT s.name FROM series s WHERE s.id IN (SELECT m.series FROM member m WHERE m.run = every_run.id) ORDER BY s.id)), '')
		WHERE study = ?`, study); err != nil {
		return err
	}
	named := map[int64]string{}
	if err := found(tx.QueryContext(ctx, "SELECT id, point FROM every_run WHERE study = ? AND series = ''", study)).each(func(rows *sql.Rows) error {
		var id int64
		var point string
		if err := rows.Scan(&id, &point); err != nil {
			return err
		}
		if name := names[point]; name != "" {
			named[id] = name
		}
		return nil
	}); err != nil {
		return err
	}
	for id, name := range named {
		if _, err := tx.ExecContext(ctx, "UPDATE every_run SET series = ? WHERE id = ?", name, id); err != nil {
			return err
		}
	}
	return nil
}

// runsAlike groups those runs of a study that are certainly on the same curves: they have the
// same point, parameters and fingerprint, and no places within them. Even a study of a million
// runs has few such groups, so that only these are in memory.
func runsAlike(ctx context.Context, tx *sql.Tx, study string) (list [][]int64, err error) {
	at := map[[sha256.Size]byte]int{}
	err = found(tx.QueryContext(ctx, `SELECT r.id, json_array(r.point, r.kind, r.framework, r.workers, r.nodes, x.fingerprint,
			(SELECT json_group_array(json_array(p.key, p.type, CASE typeof(p.value) WHEN 'text' THEN p.value ELSE quote(p.value) END))
				FROM run_parameter p WHERE p.run = r.id),
			CASE WHEN EXISTS (SELECT 1 FROM value v WHERE v.run = r.id AND v.place <> 0) THEN r.id END)
		FROM counted r LEFT JOIN result x ON x.run = r.id
		WHERE r.study = ?
		ORDER BY r.workers, r.point, r.repeat`, study)).each(func(rows *sql.Rows) error {
		var id int64
		var text sql.RawBytes
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		digest := sha256.Sum256(text)
		i, known := at[digest]
		if !known {
			i = len(list)
			at[digest], list = i, append(list, nil)
		}
		list[i] = append(list[i], id)
		return nil
	})
	return list, err
}
