package dataset

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A sentence's free words have as many values as Entropy counts, evenly, and its mean
// length is the one by hand: 4+1+1+1+5+4+2 letters that are always there, two kinds of
// 36/8, three names of 34/8 and a verb of 35/6.
func TestSentences(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := WriteText(dir, TextOptions{TrainBytes: 1 << 20, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	train, test := read(t, dir, TrainText), read(t, dir, TestText)
	if len(train) != 1<<20+1 || len(test) != DefaultTestBytes+1 {
		t.Errorf("%d and %d bytes", len(train), len(test))
	}
	if strings.HasPrefix(train, test[:200]) {
		t.Error("the test text is the training text")
	}
	form := regexp.MustCompile(`^the (\w+) (\w+) (\w+) (\w+) and (\w+) is (\w+)\. $`)
	sentences := strings.SplitAfter(train, ". ")
	sentences = sentences[:len(sentences)-1] // the last is cut off
	said := map[string]int{}
	for _, s := range sentences {
		m := form.FindStringSubmatch(s)
		if m == nil || m[1] != m[6] || m[2] != m[5] {
			t.Fatalf("sentence %q", s)
		}
		said[strings.Join(m[1:5], " ")]++
	}
	// Of 23,000 sentences each of 3072 is missing with e^-7.5.
	if len(said) < 3050 || len(said) > 3072 {
		t.Errorf("%d different sentences of 3072", len(said))
	}
	mean := 18 + 2*36.0/8 + 3*34.0/8 + 35.0/6
	if got := float64(len(train)) / float64(len(sentences)); math.Abs(got/mean-1) > 0.005 {
		t.Errorf("%g bytes a sentence, want %g", got, mean)
	}
	if want := math.Log(8*8*6*8) / mean; math.Abs(want-Entropy) > 5e-5 {
		t.Errorf("an entropy of %g nats a byte, which Entropy says is %g", want, Entropy)
	}
}

func TestSameText(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		if err := WriteText(dir, TextOptions{Seed: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, a, TrainText) != read(t, b, TrainText) || read(t, a, TestText) != read(t, b, TestText) {
		t.Error("equal options gave other bytes")
	}
	if err := WriteText(a, TextOptions{Seed: 2}); err == nil || !strings.Contains(err.Error(), "already there") {
		t.Errorf("error %v", err)
	}
	if err := WriteText(filepath.Join(a, "x"), TextOptions{TestBytes: -1}); err == nil {
		t.Error("a text of -1 bytes")
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
