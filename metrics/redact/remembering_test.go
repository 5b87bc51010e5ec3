package redact

import (
	"slices"
	"testing"
)

// A remembered result is that of the same name and value, and each secret is hidden once.
func TestRemembering(t *testing.T) {
	var hidden []string
	value := Hider(func(secret string) string {
		hidden = append(hidden, secret)
		return "hidden-" + secret
	}).Remembering()
	for range 2 {
		for _, tt := range []struct {
			name    string
			v, want any
		}{
			{"model", "s3cr3t", "s3cr3t"},
			{"password", "s3cr3t", "hidden-s3cr3t"},
			{"password", int64(7), "hidden-7"},
			{"password", 7.0, "hidden-7"},
			{"seed", int64(7), int64(7)},
			{"seed", true, true},
			{"", "https://user:pa55word@host", "https://user:hidden-pa55word@host"},
		} {
			if got := value(tt.name, tt.v); got != tt.want {
				t.Errorf("%s = %v becomes %v, want %v", tt.name, tt.v, got, tt.want)
			}
		}
		if got := value("password", []any{"a", int64(1)}).([]any); !slices.Equal(got, []any{"hidden-a", "hidden-1"}) {
			t.Errorf("a list becomes %v", got)
		}
	}
	if want := []string{"s3cr3t", "7", "7", "pa55word", "a", "1", "a", "1"}; !slices.Equal(hidden, want) {
		t.Errorf("hidden: %q, want %q", hidden, want)
	}
}
