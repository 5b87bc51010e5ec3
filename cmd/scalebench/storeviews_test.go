package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the driver, for the view as a user has it

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// The functions in this file compare a database's views "scaling" and "curves" with package
// scaling.

// viewsAgree compares the views with the curves of every study in the database at
// path: series, place on the axis, runs, median, base and speedup, of throughput
// over workers and of every measure along its own axis. It returns the number of compared points
// (with a throughput, or at a place within runs) and an error that lists all
// differences.
func viewsAgree(ctx context.Context, path string) (points int, err error) {
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
		want, all, placed, err := viewCurves(ctx, s, study)
		if err != nil {
			return points, err
		}
		for _, one := range []struct {
			view, query string
			want        []string
		}{
			{"scaling", "SELECT series, 'throughput', workers, runs, throughput_median, base_workers, speedup FROM scaling WHERE study = ?", want},
			{"curves", "SELECT series, measure, at, runs, median, base, speedup FROM curves WHERE study = ?", all},
		} {
			got, err := viewRows(ctx, db, study, one.query)
			if err != nil {
				return points, err
			}
			if !slices.EqualFunc(got, one.want, sameLine) {
				problems = append(problems, fmt.Errorf("study %q: view %s has\n\t%s\nthe curves are\n\t%s", study, one.view, strings.Join(got, "\n\t"), strings.Join(one.want, "\n\t")))
			}
		}
		points += len(want) + placed
	}
	return points, errors.Join(problems...)
}

func line(series, measure string, at any, runs int, median *float64, base any, speedup *float64) string {
	number := func(x *float64) string {
		if x == nil {
			return "none"
		}
		return fmt.Sprintf("%.12g", *x)
	}
	place := func(v any) string {
		if n, whole := v.(int64); whole {
			v = float64(n)
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%s|%s|%s|%d|%s|%s|%s", series, measure, place(at), runs, number(median), place(base), number(speedup))
}

// sameLine reports whether two lines are equal, except for relative differences of numbers up to
// 1e-9.
func sameLine(a, b string) bool {
	return slices.EqualFunc(strings.Split(a, "|"), strings.Split(b, "|"), func(a, b string) bool {
		x, err := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return a == b || err == nil && err2 == nil && math.Abs(x-y) <= 1e-9*math.Abs(y)
	})
}

// viewCurves returns the points as the command computes them: those with a throughput, and
// those of every measure. placed is the number of points at places within runs.
func viewCurves(ctx context.Context, s *store.Store, study string) (throughput, all []string, placed int, err error) {
	obs, _, err := s.Select(ctx, store.Filter{Study: study, Planned: true})
	if err != nil {
		return nil, nil, 0, err
	}
	planned, err := s.Planned(ctx, study)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, m := range scaling.Frames(obs) {
		list, err := scaling.Analyse(obs, scaling.Options{Planned: planned, Measure: m})
		missing := map[string]scaling.Value{}
		var noBase *scaling.NoBaseError
		if errors.As(err, &noBase) {
			for _, m := range noBase.Missing {
				missing[m.Series] = m.At
			}
		} else if err != nil {
			return nil, nil, 0, err
		}
		for _, c := range list {
			base := missing[c.Series]
			if c.Base != nil {
				base = c.Base.At
			}
			for _, p := range c.Points {
				for _, x := range p.Measures {
					var median, speedup *float64
					// The view lacks medians that depend on their intervals.
					if x.Median != nil && x.Censored() == 0 {
						median = &x.Median.Value
					}
					if g := x.Gain(); g != nil && median != nil && x.Speeds() {
						speedup = &g.Value
					}
					text := line(c.Series, summaryName(x), p.At.Any(), x.Runs, median, base.Any(), speedup)
					all = append(all, text)
					if m.At != "" {
						placed++
					} else if x.Name == measure.Throughput && median != nil {
						throughput = append(throughput, text)
					}
				}
			}
		}
	}
	slices.Sort(throughput)
	slices.Sort(all)
	return throughput, all, placed, nil
}

// summaryName returns the measure's name in the view, which has the unit in another column.
func summaryName(x *scaling.Summary) string { return strings.TrimSuffix(x.Name, " ("+x.Unit+")") }

func viewRows(ctx context.Context, db *sql.DB, study, query string) ([]string, error) {
	rows, err := db.QueryContext(ctx, query, study)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var series, measure string
		var runs int
		var at, base any
		var median, speedup *float64
		if err := rows.Scan(&series, &measure, &at, &runs, &median, &base, &speedup); err != nil {
			return nil, err
		}
		lines = append(lines, line(series, measure, at, runs, median, base, speedup))
	}
	slices.Sort(lines)
	return lines, rows.Err()
}
