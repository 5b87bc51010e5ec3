package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/history"
)

// figures are what History can follow, by name; a time to a target is asked for
// as "to_0.75".
var figures = map[string]bool{"throughput": true, "end_to_end": true, "train_seconds": true, "init_seconds": true,
	"step_p50": true, "step_p95": true, "step_p99": true, "skew": true, "final_accuracy": true}

// ErrFigure is wrapped by the error for a figure that runs do not have.
var ErrFigure = errors.New("no figure of a run")

// Figures lists the names of figures that History knows.
func Figures() []string { return slices.Sorted(maps.Keys(figures)) }

// PointHistory is the values of one point's good runs, in no order.
type PointHistory struct {
	Point   string
	Samples []history.Sample
}

// History returns the values of a figure of all good runs that fit the filter,
// by point, and the fingerprints that samples refer to. A point is the same in
// all studies. Runs without the figure are left out.
func (s *Store) History(ctx context.Context, f Filter, figure string) ([]PointHistory, []fingerprint.Print, error) {
	value := figure
	if target, ok := strings.CutPrefix(figure, "to_"); ok {
		accuracy, err := strconv.ParseFloat(target, 64)
		if err != nil || !(accuracy >= 0 && accuracy <= 1) {
			return nil, nil, fmt.Errorf("%q: %w; a target is a fraction, like to_0.75", figure, ErrFigure)
		}
		value = "(SELECT t.seconds FROM target t WHERE t.run = runs.id AND t.accuracy = " + strconv.FormatFloat(accuracy, 'g', -1, 64) + " LIMIT 1)"
	} else if !figures[figure] {
		return nil, nil, fmt.Errorf("%q: %w; valid: %s, or the time to a target, like to_0.75", figure, ErrFigure, strings.Join(Figures(), ", "))
	}
	// The view has a run's job and series beside it, which only a user's
	// condition needs, and costs half as much again.
	query := "SELECT point, runs.id, created, " + value + " AS figure, fingerprint FROM run runs JOIN result ON result.run = runs.id"
	if f.Where != "" {
		query = "SELECT point, id, created, " + value + " AS figure, (SELECT fingerprint FROM result WHERE run = runs.id) FROM runs"
	}
	var points []PointHistory
	var prints []fingerprint.Print
	err := s.filtered(ctx, f, func(ctx context.Context, tx *sql.Tx, where string, args []any) error {
		rows, err := tx.QueryContext(ctx, query+" WHERE figure IS NOT NULL AND status = 'done' AND "+where, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		// Points and fingerprints come a hundred thousand times, and are few.
		at, of := map[string]int{}, map[string]int{}
		var point, print sql.RawBytes
		for rows.Next() {
			var sample history.Sample
			if err := rows.Scan(&point, &sample.Run, &sample.Unix, &sample.Value, &print); err != nil {
				return err
			}
			i, known := at[string(point)]
			if !known {
				i = len(points)
				at[string(point)] = i
				points = append(points, PointHistory{Point: string(point)})
			}
			if sample.Print, known = of[string(print)]; !known {
				var p fingerprint.Print
				if err := json.Unmarshal(print, &p); err != nil {
					return err
				}
				sample.Print = len(prints)
				of[string(print)] = sample.Print
				prints = append(prints, p)
			}
			points[i].Samples = append(points[i].Samples, sample)
		}
		return rows.Err()
	})
	slices.SortFunc(points, func(a, b PointHistory) int { return strings.Compare(a.Point, b.Point) })
	return points, prints, err
}

// RunMark is what names a run in its history.
type RunMark struct {
	Run       string
	Framework string
	Workers   int
	GitCommit string // of the study's folder; "" when not recorded
}

// Marks names runs by their numbers, those of History's samples.
func (s *Store) Marks(ctx context.Context, ids []int64) (map[int64]RunMark, error) {
	list, err := jsonList(ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT r.id, r.name, r.framework, r.workers, coalesce(x.git_commit, '') FROM run r
		LEFT JOIN result x ON x.run = r.id WHERE `+good, list)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	marks := map[int64]RunMark{}
	for rows.Next() {
		var id int64
		var m RunMark
		if err := rows.Scan(&id, &m.Run, &m.Framework, &m.Workers, &m.GitCommit); err != nil {
			return nil, err
		}
		marks[id] = m
	}
	return marks, rows.Err()
}
