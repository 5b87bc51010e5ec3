package clean

import (
	"strings"
	"unicode/utf8"
)

// Shorten cuts a text at the end of a clause, to at most most characters.
func Shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	head := string([]rune(text)[:most])
	at := -1
	for _, end := range []string{"; ", ": ", ", ", " ("} {
		at = max(at, strings.LastIndex(head, end))
	}
	if at < len(head)/2 {
		at = strings.LastIndex(head, " ")
	}
	if at < 0 {
		at = len(string([]rune(text)[:most-1]))
	}
	return head[:at] + "…"
}
