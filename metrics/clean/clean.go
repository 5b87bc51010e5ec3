// Package clean makes untrusted text safe to show in a terminal, on a page or in a
// figure.
package clean

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line escapes the characters of s that would control a terminal, such as "\x1b"
// (escape) and "\u202e" (right-to-left override), so that a name or log line cannot
// repaint the screen or hide itself. It escapes line breaks too: the result is one
// line.
func Line(s string) string { return escape(s, "") }

// Lines is like Line but keeps line breaks and tabs.
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
			fmt.Fprintf(&b, `\x%02x`, s[i]) // invalid UTF-8
		case !Steers(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Steers reports whether a terminal or page interprets r instead of showing it:
// control characters, line separators, and invisible characters that change direction
// or join text.
func Steers(r rune) bool {
	if r < utf8.RuneSelf { // fast path: avoids a table lookup for ASCII
		return r < ' ' || r == '\x7f'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// JSON escapes terminal controls in a JSON text, except line breaks between values.
// The decoded values do not change.
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

// Markdown escapes characters that Markdown would read as markup, HTML or the end of a
// table cell.
func Markdown(text string) string { return markdown.Replace(text) }

var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "&", "&amp;", "[", `\[`, "]", `\]`)
