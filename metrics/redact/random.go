package redact

import "strings"

// random reports whether a value looks random: a run of eight or more letters
// and digits that alternate. Words, numbers, paths and identifiers like
// resnet50-v2 do not.
func random(value string) bool {
	for start := 0; start < len(value); {
		end, changes := start, 0
		for end < len(value) && kindOf(value[end]) != other {
			if end > start && (kindOf(value[end]) == digit) != (kindOf(value[end-1]) == digit) {
				changes++
			}
			end++
		}
		if end-start >= 8 && changes >= 2 {
			return true
		}
		start = end + 1
	}
	return false
}

// The kinds of characters in keys.
const (
	other = iota
	lower
	upper
	digit
	joiner // - _ +, within a key
)

func kindOf(c byte) int {
	switch {
	case c >= 'a' && c <= 'z':
		return lower
	case c >= 'A' && c <= 'Z':
		return upper
	case c >= '0' && c <= '9':
		return digit
	}
	return other
}

// shortestKey is the length of the shortest key that is recognised without a
// name or a prefix.
const shortestKey = 24

// hideKeys hides keys of unknown services: 24 or more characters, at least half of which differ in
// kind (upper case, lower case, digit) from the previous one. Hexadecimal digests and UUIDs have
// only one case of letters, and words in camel case rarely change the kind.
func hideKeys(text string, hide func(string) string) string {
	var b strings.Builder
	done := 0
	for start := 0; start < len(text); {
		end := start
		var has [joiner + 1]int
		changes := 0
		for ; end < len(text); end++ {
			kind := kindOf(text[end])
			if kind == other && end > start && strings.IndexByte("-_+", text[end]) >= 0 {
				kind = joiner
			}
			if kind == other {
				break
			}
			has[kind]++
			if end > start && kind != kindOf(text[end-1]) && kind != joiner && kindOf(text[end-1]) != other {
				changes++
			}
		}
		letters := has[lower] + has[upper] + has[digit]
		if letters >= shortestKey && has[lower] > 1 && has[upper] > 1 && has[digit] > 1 && 2*changes >= letters && 8*has[joiner] <= letters {
			b.WriteString(text[done:start])
			b.WriteString(hide(text[start:end]))
			done = end
		}
		start = end + 1
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}
