package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// News are the facts of a message that a study ended.
type News struct {
	Study    string
	Attempts []*launcher.Attempt
	Verdict  string // what became of the study: "ended", "decided"
	Answer   string // one sentence
	Spent    string // "3.4 node-hours, 1.2 EUR"
	Report   string // path of the report; "" for none
}

// Message returns the message.
func (n News) Message() Message {
	good := map[string]bool{}
	unread := 0
	for _, a := range n.Attempts { // each has ended, or cannot be read
		if a.Unreadable != nil {
			unread++
			continue
		}
		run := runOf(a)
		good[run] = good[run] || a.Verdict.Status.Good()
	}
	done := 0
	for _, is := range good {
		if is {
			done++
		}
	}
	state := fmt.Sprintf("%d of %s good", done, number.Count(len(good), "run"))
	lines := []string{n.Answer, "", "Runs: " + state + "."}
	if first := failure(last(n.Attempts, good)); first != nil {
		lines = append(lines, "First failure: "+failureText(first))
	}
	if unread > 0 {
		lines = append(lines, number.Are(unread, "run folder")+" unreadable; `scalebench status` says why.")
	}
	lines = append(lines, "Cost so far, failed runs included: "+n.Spent+".")
	if n.Report != "" {
		lines = append(lines, "Report: "+n.Report)
	}
	return Message{Subject: fmt.Sprintf("scalebench: %s %s, %s", n.Study, n.Verdict, state), Text: strings.Join(lines, "\n")}
}

// last returns the last attempt at each run that has no good one.
func last(attempts []*launcher.Attempt, good map[string]bool) []*launcher.Attempt {
	at := map[string]*launcher.Attempt{}
	for _, a := range attempts {
		if run := runOf(a); a.Unreadable == nil && !good[run] && (at[run] == nil || a.Number > at[run].Number) {
			at[run] = a
		}
	}
	return slices.Collect(maps.Values(at))
}

// runOf identifies the run that an attempt is at.
func runOf(a *launcher.Attempt) string { return fmt.Sprintf("%s-r%d", a.Point.ID, a.Point.Repeat) }

// FirstFailure returns the message about the first attempt that failed.
func FirstFailure(study string, attempts []*launcher.Attempt) Message {
	a := failure(attempts)
	return Message{Subject: fmt.Sprintf("scalebench: %s: a run failed", study), Text: failureText(a) + "\nFolder: " + a.Run.Path()}
}

func failureText(a *launcher.Attempt) string {
	text := fmt.Sprintf("%s: %s", a.Record.ID, a.Verdict.Status)
	if a.Verdict.Detail != "" {
		text += ": " + a.Verdict.Detail
	}
	return text
}

// failure returns the failed attempt that was created first; nil if none failed.
func failure(attempts []*launcher.Attempt) (first *launcher.Attempt) {
	for _, a := range attempts {
		if failed(a) && (first == nil || a.Record.CreatedUnix < first.Record.CreatedUnix) {
			first = a
		}
	}
	return first
}

// failed reports whether an attempt ended without a good result, and not because the user cancelled it.
func failed(a *launcher.Attempt) bool {
	return a.Verdict != nil && !a.Verdict.Status.Good() && a.Verdict.Status != metrics.Cancelled
}
