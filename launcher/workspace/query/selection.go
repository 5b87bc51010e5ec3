package query

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Selection selects runs in the database.
type Selection struct {
	Study     string // file or name; "" for all
	Framework string
	Workers   int // 0 for any
	Since     string
	Until     string
	Commit    string
	Files     string // first digits of the SHA-256 of the user's own file
	Where     string
	States    []string
	Limit     int // 0 for all
}

// Filter converts the selection to a filter for the database. Relative times, such
// as 7d, are counted back from now.
func (o Selection) Filter(now time.Time) (store.Filter, error) {
	f := store.Filter{Framework: o.Framework, Workers: o.Workers, Commit: o.Commit, Files: o.Files, Where: o.Where, Limit: o.Limit}
	if o.Workers < 0 || o.Limit < 0 {
		return f, workspace.Errorf("--workers and --limit are counts; want 1 or more, or 0 for any")
	}
	for _, name := range o.States {
		status := metrics.Status(name)
		if !slices.Contains(metrics.Statuses, status) {
			var valid []string
			for _, s := range metrics.Statuses {
				valid = append(valid, string(s))
			}
			return f, workspace.Errorf("--state %q is not known; valid: %s", name, strings.Join(valid, ", "))
		}
		f.Statuses = append(f.Statuses, status)
	}
	var err error
	if f.Since, err = parseSince(o.Since, now); err != nil {
		return f, &workspace.Error{Err: fmt.Errorf("--since %q: %w", o.Since, err)}
	}
	if o.Study != "" {
		if f.Study, err = workspace.StudyName(o.Study); err != nil {
			return f, err
		}
	}
	if f.Until, err = parseSince(o.Until, now); err != nil {
		return f, &workspace.Error{Err: fmt.Errorf("--until %q: %w", o.Until, err)}
	}
	if o.Since != "" && o.Until != "" && !f.Since.Before(f.Until) {
		return f, workspace.Errorf("--since %s is not before --until %s: no run can match", f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	return f, nil
}

// OpenFor checks the selection, opens the database, and returns both the database
// and the filter for the selected runs.
func (r *Reader) OpenFor(o Selection) (*store.Store, store.Filter, error) {
	filter, err := o.Filter(time.Now())
	if err != nil {
		return nil, filter, err
	}
	db, err := r.Open()
	return db, filter, err
}

// observations reads the selected runs that have good results, and returns them
// with warnings. It returns an error if none exist.
func (r *Reader) observations(ctx context.Context, o Selection) ([]scaling.Observation, []string, error) {
	db, filter, err := r.OpenFor(o)
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	list, warnings, err := db.Select(ctx, filter)
	if err != nil {
		return nil, nil, r.Missing(ctx, filter.Study, err)
	}
	if len(list) == 0 {
		r.WarnStudy(filter.Study, warnings...)
		return nil, nil, &workspace.Error{Err: errors.New("no good run matches"), Hint: "`scalebench runs` lists all runs."}
	}
	if o.Study != "" {
		if _, err := r.unread(ctx, db, o.Study, filter.Study, list); err != nil {
			return nil, nil, err
		}
	}
	return list, warnings, nil
}

var days = regexp.MustCompile(`^(\d{1,5})d$`)

// parseSince parses a point in time: a date (its start in local time), a date with
// time (RFC 3339), or a duration before now. For "" it returns the zero time.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if m := days.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return time.Time{}, err
		}
		return now.AddDate(0, 0, -n), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.Time{}, errors.New("not a time; write 2026-11-21, 2026-11-21T15:04:05Z, or how long ago: 12h, 7d")
}
