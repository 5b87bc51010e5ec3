package redact

import (
	"strings"
	"testing"
)

// Checking for marks first does not change what is hidden.
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

// Text without marks is not matched against the regular expressions, which take 3 s per megabyte.
// The search for marks allocates memory once, and none per line.
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
