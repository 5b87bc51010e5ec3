package query

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/store"
)

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
	known := slices.ContainsFunc(studies, func(r store.StudyRow) bool { return r.Study == text })
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
