package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Warnings are of two kinds. Those about this command's own work, such as an unreadable
// file, are printed as they occur (warn, warnAll). Those about the data, which every command
// on the study would repeat, follow the command's output (doubt): worst first, only a few,
// one line each, and only those that the previous command did not print. --quiet hides
// both; --verbose prints all; JSON always includes all.

const (
	// inFull is the number of warnings of one kind that are printed completely.
	inFull = 2
	// lineLength limits the characters of a printed warning about data.
	lineLength = 120
)

// warn prints a warning about the command's own work.
func (s *session) warn(format string, a ...any) {
	if !s.quiet {
		fmt.Fprintln(s.stderr, "warning: "+clean.Lines(redact.Text(fmt.Sprintf(format, a...))))
	}
}

// warnAll prints the first warnings of each kind and the number of further ones, so that
// many of one kind do not hide the others; with --verbose, all. Warnings about other users'
// files are merged into one question to their owner.
func (s *session) warnAll(list []workspace.Warning) {
	var kinds []string
	count := map[string]int{}
	asks, strangers := "", 0
	for _, w := range list {
		if w.Ask != "" && !s.verbose {
			asks, strangers = cmp.Or(asks, w.Ask), strangers+1
			continue
		}
		if count[w.Kind] == 0 {
			kinds = append(kinds, w.Kind)
		}
		if count[w.Kind]++; s.verbose || count[w.Kind] <= inFull {
			s.warn("%s", w.Text)
		}
	}
	for _, kind := range kinds {
		if n := count[kind] - inFull; n > 0 && !s.verbose {
			noun, rest, _ := strings.Cut(kind, " ")
			s.note("%s %s: %s", number.Count(n, "more "+noun), rest, s.verbosely)
		}
	}
	if strangers > 0 {
		s.warn("%s: permission denied; %s", number.Count(strangers, "run"), asks)
	}
}

// warnStudy prints warnings about a study's data in the given order.
func (s *session) warnStudy(study string, lines ...string) {
	if err := s.partial[study]; err != nil { // the command's error says it
		lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(err.Error(), line) })
	}
	if s.quiet || len(lines) == 0 {
		return
	}
	if s.verbose {
		for _, line := range lines {
			s.warn("%s", line)
		}
		return
	}
	printed, more, cut := 0, 0, false
	repeated := s.workspace().Repeated(appName, study, lines)
	for i, line := range lines {
		if repeated[i] || printed == inFull {
			more++
			continue
		}
		short := clean.Shorten(clean.Line(redact.Text(line)), lineLength-len("warning: ")-1)
		cut = cut || short != clean.Line(redact.Text(line))
		s.warn("%s", short)
		printed++
	}
	switch {
	case more == len(lines):
		s.note("%s as before: %s", number.Count(more, "warning"), s.verbosely)
	case more > 0:
		s.note("%d more: %s", more, s.verbosely)
	case cut:
		s.note("in full: %s", s.verbosely)
	}
}

// warnStudySorted prints warnings about a study's data, after sorting them.
func (s *session) warnStudySorted(study string, texts ...string) {
	remarks := make([]scaling.Remark, len(texts))
	for i, text := range texts {
		remarks[i].Text = text
	}
	s.warnStudy(study, s.linesOf(remarks, 1)...)
}

// linesOf returns the lines for remarks, worst first: one per kind, or, with --verbose, one
// per remark.
func (s *session) linesOf(remarks []scaling.Remark, series int) []string {
	scaling.WorstFirst(remarks)
	var list []string
	if s.verbose {
		for _, r := range remarks {
			list = append(list, r.String())
		}
		return list
	}
	for i, r := range remarks {
		if r.Severity() == scaling.Remarkable {
			remarks = remarks[:i]
			break
		}
	}
	return scaling.Lines(remarks, series)
}
