package advice

import "strings"

// Sentences are Reason as one text.
func (a *Advice) Sentences() string { return strings.TrimSpace(a.Reason[0] + " " + a.Reason[1]) }

// Doubts are the warnings of all, with whose they are where they are several.
func Doubts(list []*Advice) []string {
	var doubts []string
	for _, a := range list {
		for _, w := range a.Warnings {
			if len(list) > 1 {
				w = a.Series + ": " + w
			}
			doubts = append(doubts, w)
		}
	}
	return doubts
}
