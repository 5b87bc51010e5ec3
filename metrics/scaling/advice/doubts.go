package advice

import (
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Sentences are Reason as one text.
func (a *Advice) Sentences() string { return strings.TrimSpace(a.Reason[0] + " " + a.Reason[1]) }

// Doubts are the warnings of all, with whose they are where they are several.
func Doubts(list []*Advice) []scaling.Remark {
	var doubts []scaling.Remark
	for _, a := range list {
		for _, w := range a.Warnings {
			r := scaling.Remark{Text: w}
			if len(list) > 1 {
				r.Series = a.Series
			}
			doubts = append(doubts, r)
		}
	}
	return doubts
}
