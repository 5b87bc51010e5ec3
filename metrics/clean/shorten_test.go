package clean

import "testing"

func TestShorten(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"short", "short"},
		{"steps take longer than those after them; if the run was faster", "steps take longer than those after them…"},
		{"a text of words without any end of a clause in its second half", "a text of words without any end of a…"},
	} {
		if got := Shorten(c.text, 41); got != c.want {
			t.Errorf("%q: %q", c.text, got)
		}
	}
}
