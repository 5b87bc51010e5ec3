package study

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// This file suggests corrections of misspelt words.

// NearWords returns up to three valid words that are similar to word, most similar first
// (Jaro-Winkler similarity of at least 0.75). It ignores leading dashes of valid words.
func NearWords(word string, valid []string) []string {
	type scored struct {
		name  string
		score float64
	}
	var list []scored
	if len(word) > 100 { // too long for a typing error, and the time to compare it grows with the square of its length
		return nil
	}
	for _, name := range valid {
		score := smetrics.JaroWinkler(word, strings.TrimLeft(name, "-"), 0.7, 4)
		if score >= 0.75 {
			list = append(list, scored{name, score})
		}
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	var names []string
	for _, s := range list[:min(3, len(list))] {
		names = append(names, s.name)
	}
	return names
}

// SpellingHint returns "Did you mean X?", or "" if no valid word is similar.
func SpellingHint(word string, valid []string) string {
	near := NearWords(word, valid)
	if len(near) == 0 {
		return ""
	}
	return "Did you mean " + strings.Join(near, " or ") + "?"
}
