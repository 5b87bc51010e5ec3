package study

import (
	"strings"
	"testing"
)

// The first repeat must be within the repeats, even if there is only one.
func TestFirstRepeat(t *testing.T) {
	for _, c := range []struct {
		head  string // added to [study]
		valid bool
		error string
	}{
		{"", true, ""},
		{"first_repeat = 1\nrepeats = 1", true, ""},
		{"first_repeat = 2\nrepeats = 2", true, ""},
		{"first_repeat = 2\nrepeats = 1", false, "study.first_repeat: 2 is more than study.repeats, 1"},
		{"first_repeat = 2", false, "study.first_repeat: 2 is more than study.repeats, 1"}, // the default
		{"first_repeat = 4\nrepeats = 3", false, "study.first_repeat: 4 is more than study.repeats, 3"},
		{"first_repeat = 0\nrepeats = 3", false, "study.first_repeat: want 1 or more, got 0"},
		{"first_repeat = 1\nrepeats = 0", false, "study.repeats: want 1 to 1000, got 0"},
		{"repeats = 1000", true, ""},
		{"repeats = 1001", false, "study.repeats: want 1 to 1000, got 1001"},
	} {
		_, err := Parse("study.toml", []byte(strings.Replace(minimal, "[study]", "[study]\n"+c.head, 1)), frameworks)
		switch {
		case c.valid && err != nil:
			t.Errorf("%q: %v", c.head, err)
		case !c.valid && (err == nil || !strings.Contains(err.Error(), c.error)):
			t.Errorf("%q: %v, want %q", c.head, err, c.error)
		case !c.valid && strings.Count(err.Error(), "\n") > 0:
			t.Errorf("%q: more than one problem:\n%v", c.head, err)
		}
	}
}
