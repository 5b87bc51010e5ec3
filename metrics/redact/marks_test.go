package redact

import (
	"strings"
	"testing"
)

// Marks leave no shape out: with them, as without them, the same is hidden.
func TestMarks(t *testing.T) {
	for _, text := range texts {
		text = strings.ReplaceAll(text, "MARK", marker+"UPPERCASE")
		lower := strings.ToLower(text)
		for _, s := range shapes {
			if s.replace(text, Key(nil).Hide) != text && !s.marked(lower) {
				t.Errorf("%q has the shape %s, and none of its marks", text, s.pattern)
			}
		}
	}
	for _, word := range append(weakWords, "passphrase", "passcode", "api.key", "access_key", "private-key", "dbkey", "creds", "token") {
		if !Named(word, "a1b2c3d4e5") || !(shape{marks: nameMarks}).marked(word) {
			t.Errorf("%s is not a name of a secret, or has none of their marks", word)
		}
	}
}

// Ordinary text passes no regular expression, which took 3 s a megabyte: to look
// for the marks needs some memory for the whole, and none for each line.
func TestOrdinaryTextIsQuick(t *testing.T) {
	line := "rank 3: iteration 1000, loss 0.1, 4.2 GB/s over eth0: warning=1 of \"x\" "
	const lines = 10_000
	text := strings.Repeat(line, lines)
	if n := testing.AllocsPerRun(1, func() {
		if Text(text) != text {
			t.Error("something in it was taken for a secret")
		}
	}); n > lines/10 {
		t.Errorf("%d lines take %.0f pieces of memory", lines, n)
	}
}
