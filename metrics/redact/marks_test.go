package redact

import (
	"strings"
	"testing"
	"time"
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
		if !Name(word) || !(shape{marks: nameMarks}).marked(word) {
			t.Errorf("%s is no name of a secret, or has none of their marks", word)
		}
	}
}

// Without marks the text of a log took 3 s a megabyte.
func TestOrdinaryTextIsQuick(t *testing.T) {
	line := "rank 3: iteration 1000, loss 0.1, 4.2 GB/s over eth0: warning=1 of \"x\" "
	text := strings.Repeat(line, 8<<20/len(line))
	began := time.Now()
	if Text(text) != text {
		t.Fatal("something in it was taken for a secret")
	}
	if d := time.Since(began); d > 8*time.Second {
		t.Errorf("8 MiB took %v", d)
	}
}
