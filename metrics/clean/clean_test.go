package clean

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"plain":             "plain",
		"été 東京":            "été 東京",
		"\x1b[31mred":       `\x1b[31mred`,
		"a\nb\tc":           `a\nb\tc`,
		"\u202egnp.exe":     `\u202egnp.exe`,
		"\u009b2J":          `\u009b2J`,
		"half \xc3 a rune":  `half \xc3 a rune`,
		"\ufffd stays":      "\ufffd stays",
		"carriage\rreturn":  `carriage\rreturn`,
		"bell\a and delete": `bell\a and delete`,
	} {
		if got := Line(s); got != want {
			t.Errorf("Line(%q) = %q, want %q", s, got, want)
		}
	}
	if got := Lines("a\nb\tc\x1b"); got != "a\nb\tc\\x1b" {
		t.Errorf("Lines gives %q", got)
	}
}

// Escaping does not change the decoded JSON value.
func TestJSON(t *testing.T) {
	if got, want := JSON("{\"a\u202e\": \"\u009b\U000e0041\"}\n"), `{"a\u202e": "\u009b\udb40\udc41"}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The ASCII fast path agrees with the Unicode tables.
func TestASCIIFastPath(t *testing.T) {
	for r := rune(0); r < utf8.RuneSelf; r++ {
		if got, want := Steers(r), unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control); got != want {
			t.Errorf("Steers(%q) = %v, the tables say %v", r, got, want)
		}
	}
}
