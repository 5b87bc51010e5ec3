// Package clean makes text of unknown origin harmless to look at: names, logs
// and messages of others, in a terminal, on a page and in a drawing.
package clean

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line makes the characters of s that would steer a terminal readable, so
// that a name or a log line from elsewhere cannot repaint the screen or hide
// itself: "\x1b" for an escape, "\u202e" for a change of direction. Line breaks
// are among them: the result is one line.
func Line(s string) string { return escape(s, "") }

// Lines is Line, with line breaks and tabs kept.
func Lines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	clean := true
	for _, r := range s {
		if Steers(r) && !strings.ContainsRune(keep, r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i]) // a byte that is no UTF-8
		case !Steers(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Steers reports whether a terminal or a page acts on r instead of showing it:
// control characters, and those that change the direction of text, join or part
// it without a trace, or end its line.
func Steers(r rune) bool {
	if r < utf8.RuneSelf { // nearly all text, and a table lookup each otherwise
		return r < ' ' || r == '\x7f'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// JSON escapes what steers a terminal in a JSON text, except the line breaks
// between its values. The values stay what they are.
func JSON(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && Steers(r) }) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case !Steers(r) || r == '\n':
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// Markdown keeps text from being taken for markup, the end of a table's cell or
// HTML.
func Markdown(text string) string { return markdown.Replace(text) }

var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "&", "&amp;", "[", `\[`, "]", `\]`)
