package workspace

import (
	"errors"
	"strings"
	"testing"
)

// A name means a run in full, or the runs of the one point that begins with it.
func TestMatching(t *testing.T) {
	names := []string{"native-w1-aa-r1-a1", "native-w1-aa-r2-a1", "native-w16-bb-r1-a1"}
	for arg, want := range map[string]string{
		"native-w1-aa":       "native-w1-aa-r1-a1 native-w1-aa-r2-a1",
		"native-w1-aa-r2":    "native-w1-aa-r2-a1",
		"native-w1-aa-r2-a1": "native-w1-aa-r2-a1",
		"native-w16":         "native-w16-bb-r1-a1",
		"native-w1-":         "native-w1-aa-r1-a1 native-w1-aa-r2-a1",
		"native-w1":          `"native-w1" matches 2 points`,
		"other":              "",
	} {
		means, err := matchingNames(arg, names)
		var got []string
		for _, n := range names {
			if err == nil && means(n) {
				got = append(got, n)
			}
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s means %q, want %q", arg, text, want)
		}
	}
}

func TestSplitRun(t *testing.T) {
	for arg, want := range map[string]string{"demo": "demo|", "demo/w1": "demo|w1", "a/demo.toml": "a/demo.toml|", "/w1": "", "demo/": ""} {
		name, run, err := splitRun(arg)
		if got := name + "|" + run; (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("SplitRun(%q) = %q, %v; want %q", arg, got, err, want)
		}
	}
}

// The error counts unread runs, so that a command can tell them from other failures.
func TestUnread(t *testing.T) {
	var partial *PartialError
	if err := Unread(0); err != nil {
		t.Errorf("Unread(0) = %v", err)
	}
	if err := Unread(2); !errors.As(err, &partial) || partial.Runs != 2 || !strings.Contains(err.Error(), "2 runs") || partial.Hint == "" {
		t.Errorf("Unread(2) = %#v", err)
	}
}
