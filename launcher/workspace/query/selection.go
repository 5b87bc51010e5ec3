package query

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

var hexDigits = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

var looksLikeCommit = regexp.MustCompile(`^[0-9a-f]{7,64}(-dirty)?$`)

// sideOf returns a filter for one of the two sets of runs that are compared. f
// is the filter that applies to both sets; text describes this set.
func sideOf(ctx context.Context, db *store.Store, f store.Filter, text string, now time.Time) (store.Filter, error) {
	kind, value, err := kindOfSide(ctx, db, text)
	if err != nil {
		return f, err
	}
	switch kind {
	case "study":
		f.Study, err = workspace.StudyName(value)
	case "commit":
		if f.Commit != "" {
			return f, clash(text, "commit")
		}
		if value == "" {
			return f, workspace.Errorf("%q does not name a commit; write commit:HASH", text)
		}
		f.Commit = value
	case "files":
		if f.Files != "" {
			return f, clash(text, "files")
		}
		if !hexDigits.MatchString(value) {
			return f, workspace.Errorf("%q does not name a version of a file; write the first 4 or more digits of its SHA-256, like files:3f2a", text)
		}
		f.Files = value
	case "date":
		return dates(f, text, value, now)
	case "where":
		if f.Where != "" {
			value = "(" + f.Where + ") AND (" + value + ")"
		}
		f.Where = value
	}
	return f, err
}

func clash(text, option string) error {
	return workspace.Errorf("%s and --%s cannot be combined", text, option)
}

// kindOfSide splits KIND:VALUE, or determines the kind of a value without one.
func kindOfSide(ctx context.Context, db *store.Store, text string) (kind, value string, err error) {
	kind, value, has := strings.Cut(text, ":")
	if has && slices.Contains([]string{"study", "commit", "files", "date", "where"}, kind) {
		return kind, value, nil
	}
	studies, err := db.Studies(ctx)
	if err != nil {
		return "", "", workspace.StoreError(err)
	}
	known := slices.Contains(studies, text)
	switch {
	case known || filepath.Ext(text) == ".toml":
		return "study", text, nil
	case looksLikeCommit.MatchString(text):
		return "commit", text, nil
	case strings.Contains(text, ".."):
		return "date", text, nil
	}
	return "", "", &workspace.Error{Err: fmt.Errorf("%q is not a study with runs", text), Hint: "Other sets of runs are written commit:HASH, files:DIGITS, date:FROM..TO or where:CONDITION."}
}

// dates limits the filter f to the dates FROM..TO in value, or to one day.
func dates(f store.Filter, text, value string, now time.Time) (store.Filter, error) {
	if !f.Since.IsZero() || !f.Until.IsZero() {
		return f, clash(text, "since or --until")
	}
	if day, err := time.ParseInLocation(time.DateOnly, value, now.Location()); err == nil {
		f.Since, f.Until = day, day.AddDate(0, 0, 1)
		return f, nil
	}
	from, to, is := strings.Cut(value, "..")
	if !is || from == "" && to == "" {
		return f, workspace.Errorf("%q is not a date range; write date:2026-11-01..2026-11-08, leave one of them out, or name one day", text)
	}
	var err error
	if f.Since, err = parseSince(from, now); err == nil {
		f.Until, err = parseSince(to, now)
	}
	if err != nil {
		return f, &workspace.Error{Err: fmt.Errorf("%s: %w", text, err)}
	}
	return f, nil
}
