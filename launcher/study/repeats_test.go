package study

import (
	"strings"
	"testing"
	"time"
)

func TestRepeatsUntilDecided(t *testing.T) {
	in := func(keys string) string {
		return strings.Replace(minimal, `name = "s"`, "name = \"s\"\n"+keys, 1)
	}
	s := parse(t, in(`repeats = "until-decided"`))
	if !s.UntilDecided || s.Repeats != 12 || s.MaxNodeHours != 0 || !s.StopBy.IsZero() {
		t.Errorf("%+v", s)
	}
	if p := plan(t, s, nil); len(p.Points) != 36 {
		t.Errorf("%d runs", len(p.Points))
	}
	s = parse(t, in("repeats = \"until-decided\"\nmax_repeats = 20\nmax_node_hours = 1.5\nstop_by = \"2026-12-24T18:00\""))
	if s.Repeats != 20 || s.MaxNodeHours != 1.5 || !s.StopBy.Equal(time.Date(2026, 12, 24, 18, 0, 0, 0, time.Local)) {
		t.Errorf("%+v", s)
	}
	if s = parse(t, in("repeats = 3")); s.UntilDecided || s.Repeats != 3 {
		t.Errorf("%+v", s)
	}
	for keys, want := range map[string]string{
		`repeats = "often"`:         `study.repeats: want a number from 1 to 1000 or "until-decided", got often`,
		"repeats = 1.5":             `study.repeats: want a number from 1 to 1000 or "until-decided", got 1.5`,
		"max_repeats = 1":           "study.max_repeats: want 2 to 1000, got 1",
		"max_node_hours = -1.0":     "study.max_node_hours: want more than 0, got -1",
		`stop_by = "Christmas Eve"`: `study.stop_by: "Christmas Eve" is no local time like "2026-12-24T18:00"`,
	} {
		if _, err := Parse("study.toml", []byte(in(keys)), frameworks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", keys, err, want)
		}
	}
}
