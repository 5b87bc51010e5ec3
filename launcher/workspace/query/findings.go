package query

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/metrics/export"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

// Findings returns the table of what doctor found. folded leaves out what is in order; sum adds the
// numbers of checks.
func Findings(findings []cluster.Finding, folded, sum bool) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "check"}, {Key: "subject"}, {Key: "result"}, {Key: "found"}, {Key: "advice", Data: true}}}
	rows := findings
	if folded {
		rows = cluster.Folded(findings)
	}
	for _, f := range rows {
		t.Add(f.Check, table.NonZero(f.Subject), string(f.Verdict), f.Found, table.NonZero(f.Advice))
	}
	t.Notes = cluster.Advice(findings) // a column would be wider than any terminal
	if sum {
		t.Notes = append(t.Notes, fmt.Sprintf("%s, none failed; %d with a warning, %d not tested; -v lists all", number.Count(len(findings), "check"),
			cluster.Count(findings, cluster.Warn), cluster.Count(findings, cluster.NotTested)))
	}
	return t
}

// FindingChecks returns the findings as test cases.
func FindingChecks(findings []cluster.Finding) (list []export.Check) {
	for _, f := range findings {
		c := export.Check{Class: f.Check, Name: cmp.Or(f.Subject, f.Check), Output: fmt.Sprintf("%s: %s", f.Verdict, f.Found)}
		switch f.Verdict {
		case cluster.Fail:
			c.Failure = strings.TrimSpace(f.Found + "\n" + f.Advice)
		case cluster.NotTested:
			c.Skipped = cmp.Or(f.Found, "not tested")
		}
		list = append(list, c)
	}
	return list
}

// LastLine returns the last line of a command's output; earlier lines say what it tried.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
