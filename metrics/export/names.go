package export

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// safeName replaces characters that a format does not allow in names by "_". A changed name ends
// with a hash of the original, so that two names never become one.
func safeName(name string, allowed func(rune) bool) string {
	safe := strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '_'
	}, name)
	if safe == name && name != "" {
		return name
	}
	return safe + "-" + digest(name)[:8]
}

// digest returns the SHA-256 of a text in hexadecimal digits.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// word reports whether a character is an ASCII letter, a digit, "_", "-" or ".".
func word(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r)
}

// titled returns a measure's name with its unit: "throughput (samples/s)".
func titled(measure, unit string) string {
	if unit == "" {
		return measure
	}
	return measure + " (" + unit + ")"
}

// placed returns the coordinates of a place within a run as text: "bytes=1024 op=all_reduce".
func placed(at map[string]any) string {
	parts := make([]string, 0, len(at))
	for _, key := range slices.Sorted(maps.Keys(at)) {
		parts = append(parts, fmt.Sprintf("%s=%v", key, at[key]))
	}
	return strings.Join(parts, " ")
}

// text returns s as valid UTF-8, which the formats require.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
