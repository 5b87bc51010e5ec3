package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/redact"
)

// PointHistory holds the values of a measure in the successful runs of one point, in no
// particular order.
type PointHistory struct {
	Point   string
	Samples []compare.Sample
}

// History returns the values of a measure in all successful runs that match the filter, for each
// point and, if the measure has coordinates, for each place. It also returns the fingerprints to
// which the samples refer by index. Equal points of different studies count as one point. Runs
// without a value are left out.
func (s *Store) History(ctx context.Context, f Filter, m measure.Measure) ([]PointHistory, []fingerprint.Print, error) {
	value, arguments := valueOf(m)
	// Query the table run and not the view: the view adds a run's job and series, which only a
	// user's condition needs, and takes half as long again.
	places, more, err := placesOf([]measure.Measure{m})
	if err != nil {
		return nil, nil, err
	}
	arguments = append(arguments, more...)
	point := "point"
	if places != "" {
		point = "point || ' ' || place_at"
	}
	query := "SELECT " + point + ", runs.id, created, " + value + " AS figure, fingerprint FROM run runs JOIN result ON result.run = runs.id" + places
	if f.Where != "" {
		query = "SELECT " + point + ", id, created, " + value + " AS figure, (SELECT fingerprint FROM result WHERE run = runs.id) FROM runs" + places
	}
	var points []PointHistory
	var prints []fingerprint.Print
	err = s.filtered(ctx, f, func(ctx context.Context, tx *sql.Tx, where string, args []any) error {
		// Many rows share few points and fingerprints: parse each only once.
		at, of := map[string]int{}, map[string]int{}
		var point, print sql.RawBytes
		return found(tx.QueryContext(ctx, query+" WHERE figure IS NOT NULL AND status = 'done' AND "+where, append(arguments, args...)...)).each(func(rows *sql.Rows) error {
			var sample compare.Sample
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
				if err := json.Unmarshal([]byte(redact.Renamed(string(print))), &p); err != nil {
					return err
				}
				sample.Print = len(prints)
				of[string(print)] = sample.Print
				prints = append(prints, p)
			}
			points[i].Samples = append(points[i].Samples, sample)
			return nil
		})
	})
	slices.SortFunc(points, func(a, b PointHistory) int { return strings.Compare(a.Point, b.Point) })
	return points, prints, err
}

// A RunMark identifies a run in a history.
type RunMark struct {
	Run       string
	Framework string
	Workers   int
	GitCommit string // commit of the study's folder; "" if not recorded
}

// Marks returns descriptions of the runs whose numbers are in the samples of a History.
func (s *Store) Marks(ctx context.Context, ids []int64) (map[int64]RunMark, error) {
	marks := map[int64]RunMark{}
	err := found(s.read.QueryContext(ctx, `SELECT r.id, r.name, r.framework, r.workers, coalesce(x.git_commit, '') FROM run r
		LEFT JOIN result x ON x.run = r.id WHERE `+good, jsonList(ids))).each(func(rows *sql.Rows) error {
		var id int64
		var m RunMark
		if err := rows.Scan(&id, &m.Run, &m.Framework, &m.Workers, &m.GitCommit); err != nil {
			return err
		}
		marks[id] = m
		return nil
	})
	return marks, err
}
