package query

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/store"
)

// A side's filter narrows the filter for both sides; setting an option in both is an error.
func TestSideOf(t *testing.T) {
	db, err := store.Open(filepath.Join(t.TempDir(), "db.sqlite"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	for text, want := range map[string]store.Filter{
		"study:demo":             {Study: "demo", Framework: "native"},
		"commit:3f2a":            {Commit: "3f2a", Framework: "native"},
		"3f2a3f2a":               {Commit: "3f2a3f2a", Framework: "native"},
		"files:3f2a":             {Files: "3f2a", Framework: "native"},
		"date:2026-11-01":        {Since: day(1), Until: day(2), Framework: "native"},
		"2026-11-01..2026-11-08": {Since: day(1), Until: day(8), Framework: "native"},
		"date:..2026-11-08":      {Until: day(8), Framework: "native"},
		"where:workers > 2":      {Where: "workers > 2", Framework: "native"},
	} {
		got, err := sideOf(t.Context(), db, store.Filter{Framework: "native"}, text, now)
		if err != nil || got.Study != want.Study || got.Commit != want.Commit || got.Files != want.Files || got.Where != want.Where || !got.Since.Equal(want.Since) || !got.Until.Equal(want.Until) || got.Framework != want.Framework {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	both := store.Filter{Commit: "aaaa", Files: "bbbb", Since: day(1), Where: "repeat = 1"}
	for _, text := range []string{"commit:3f2a", "files:3f2a", "date:2026-11-01", "commit:", "files:xyz", "date:..", "unknown"} {
		if _, err := sideOf(t.Context(), db, both, text, now); err == nil {
			t.Errorf("%s within %+v is not refused", text, both)
		}
	}
	if got, err := sideOf(t.Context(), db, both, "where:workers > 2", now); err != nil || got.Where != "(repeat = 1) AND (workers > 2)" {
		t.Errorf("conditions together: %q, %v", got.Where, err)
	}
}

func TestParsePercent(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "5%": 0.05, "5 %": 0.05, "100%": 1, "0%": 0} {
		if got, err := ParsePercent(text); err != nil || got != want {
			t.Errorf("ParsePercent(%q) = %g, %v; want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"5", "-1%", "101%", "x%", "%"} {
		if got, err := ParsePercent(text); err == nil {
			t.Errorf("ParsePercent(%q) = %g; want an error", text, got)
		}
	}
}

// A condition on a load chooses places within runs.
func TestLoadOf(t *testing.T) {
	for where, want := range map[string]string{"threads = 4": "threads=4", "rate=100": "rate=100", "workers = 4": "", "threads > 4": "", "threads = x": ""} {
		got := ""
		if at, ok := loadOf(where); ok {
			got = at.Key + "=" + at.Value
		}
		if got != want {
			t.Errorf("loadOf(%q) = %q; want %q", where, got, want)
		}
	}
}
