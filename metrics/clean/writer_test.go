package clean

import (
	"strings"
	"testing"
)

// The output does not depend on how the text is cut into parts.
func TestWriter(t *testing.T) {
	for text, want := range map[string]string{
		"epoch 1\nepoch 2\n":      "epoch 1\nepoch 2\n",
		"\x1b[31mred\x1b[0m\t1\n": "red\t1\n",
		"10%\r20%\r\nend":         "10%\n20%\nend",
		"title \x1b]0;x\x07\n":    `title \x1b]0;x\a` + "\n",
		"ä€😀\u202e\xff\n":         `ä€😀\u202e\xff` + "\n",
		"cut \x1b[3":              `cut \x1b[3`,
		"a\r":                     "a\n",
		"cut \xe2\x82":            `cut \xe2\x82`,
	} {
		for size := 1; size <= len(text); size++ {
			var out strings.Builder
			w := NewWriter(&out)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := w.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != want {
				t.Errorf("%q in parts of %d: %q, want %q", text, size, got, want)
			}
		}
	}
}
