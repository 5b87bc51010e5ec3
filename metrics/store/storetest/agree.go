// Package storetest holds a database's view "scaling" against package scaling,
// for tests.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the driver, for the view as a user has it

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// Agree compares the view with the curves of every study in the database at
// path: series, workers, runs, median, base and speedup. It returns how many
// points it has compared, and in the error all that differs.
func Agree(ctx context.Context, path string) (points int, err error) {
	s, err := store.OpenReadOnly(path, store.Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	studies, err := s.Studies(ctx)
	if err != nil {
		return 0, err
	}
	var problems []error
	for _, study := range studies {
		want, err := curves(ctx, s, study.Study)
		if err != nil {
			return points, err
		}
		got, err := view(ctx, db, study.Study)
		if err != nil {
			return points, err
		}
		points += len(want)
		if !slices.Equal(got, want) {
			problems = append(problems, fmt.Errorf("study %q: view scaling has\n\t%s\nthe curves are\n\t%s", study.Study, strings.Join(got, "\n\t"), strings.Join(want, "\n\t")))
		}
	}
	return points, errors.Join(problems...)
}

func line(series string, workers, runs int, median float64, base int, speedup *float64) string {
	text := "none"
	if speedup != nil {
		text = fmt.Sprintf("%.9g", *speedup)
	}
	return fmt.Sprintf("%s|%d|%d|%.9g|%d|%s", series, workers, runs, median, base, text)
}

// curves are the points that have a throughput, as the command has them.
func curves(ctx context.Context, s *store.Store, study string) ([]string, error) {
	obs, _, err := s.Observations(ctx, study)
	if err != nil {
		return nil, err
	}
	planned, err := s.Planned(ctx, study)
	if err != nil {
		return nil, err
	}
	list, err := scaling.Analyse(obs, scaling.Options{Planned: planned})
	missing := map[string]int{}
	var noBase *scaling.NoBaseError
	if errors.As(err, &noBase) {
		for _, m := range noBase.Missing {
			missing[m.Series] = int(m.At.Number)
		}
	} else if err != nil {
		return nil, err
	}
	var lines []string
	for _, c := range list {
		base := missing[c.Series]
		if c.Base != nil {
			base = c.Base.Workers
		}
		for _, p := range c.Points {
			x := p.Of(measure.Throughput)
			if x.Median == nil {
				continue
			}
			// The view's is the ratio of the medians, also where runs were made in
			// blocks.
			var speedup *float64
			if b := x.Base(); b != nil && b.Median != nil {
				if ratio := x.Median.Value / b.Median.Value; ratio > 0 && !math.IsInf(ratio, 0) {
					speedup = &ratio
				}
			}
			lines = append(lines, line(c.Series, p.Workers, x.Runs, x.Median.Value, base, speedup))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

func view(ctx context.Context, db *sql.DB, study string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT series, workers, runs, throughput_median, base_workers, speedup FROM scaling WHERE study = ?", study)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var series string
		var workers, runs, base int
		var median float64
		var speedup *float64
		if err := rows.Scan(&series, &workers, &runs, &median, &base, &speedup); err != nil {
			return nil, err
		}
		lines = append(lines, line(series, workers, runs, median, base, speedup))
	}
	slices.Sort(lines)
	return lines, rows.Err()
}
