package query

import (
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	zone := time.FixedZone("test", 3600)
	now := time.Date(2026, 11, 21, 12, 30, 0, 0, zone)
	for s, want := range map[string]time.Time{
		"":                          {},
		"2026-11-20":                time.Date(2026, 11, 20, 0, 0, 0, 0, zone),
		"2026-11-20T10:00:00Z":      time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		"2026-11-20T10:00:00+01:00": time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
		"12h":                       time.Date(2026, 11, 21, 0, 30, 0, 0, zone),
		"1h30m":                     time.Date(2026, 11, 21, 11, 0, 0, 0, zone),
		"7d":                        time.Date(2026, 11, 14, 12, 30, 0, 0, zone),
	} {
		if got, err := parseSince(s, now); err != nil || !got.Equal(want) {
			t.Errorf("ParseSince(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"yesterday", "-1h", "7", "2026-13-01", "d", "-7d", "123456789d"} {
		if got, err := parseSince(s, now); err == nil {
			t.Errorf("ParseSince(%q) = %v, want an error", s, got)
		}
	}
}

// FuzzParseSince: no text panics, and a length of time never lies ahead.
func FuzzParseSince(f *testing.F) {
	for _, s := range []string{"2026-11-20", "7d", "12h", "99999d", "", "9999999h", "0001-01-01"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseSince(s, now)
		if err != nil || s == "" {
			return
		}
		if _, err := time.ParseDuration(s); err == nil && got.After(now) {
			t.Errorf("ParseSince(%q) = %v lies ahead", s, got)
		}
	})
}
