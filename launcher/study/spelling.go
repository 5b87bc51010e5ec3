package study

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// This file finds what a misspelt word was meant to be.

// NearWords are up to three of the valid words that are spelled much like word, the
// nearest first (Jaro-Winkler similarity of at least 0.75). Dashes in front of
// a valid word are left out of account.
func NearWords(word string, valid []string) []string {
	type scored struct {
		name  string
		score float64
	}
	var list []scored
	if len(word) > 100 { // nobody's slip of the pen, and the comparison takes the square of it
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

// SpellingHint is "Did you mean X?", "" where no valid word is near.
func SpellingHint(word string, valid []string) string {
	near := NearWords(word, valid)
	if len(near) == 0 {
		return ""
	}
	return "Did you mean " + strings.Join(near, " or ") + "?"
}
