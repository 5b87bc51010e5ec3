package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/sharedfs"
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
	// remembered is the time within which a warning about data is not repeated in the same
	// terminal or script.
	remembered = 10 * time.Minute
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
	repeated := s.repeats(study, lines)
	for i, line := range lines {
		if repeated[i] || printed == inFull {
			more++
			continue
		}
		short := shorten(clean.Line(redact.Text(line)), lineLength-len("warning: ")-1)
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

// shorten cuts a text at the end of a clause, to at most most characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	head := string([]rune(text)[:most])
	at := -1
	for _, end := range []string{"; ", ": ", ", ", " ("} {
		at = max(at, strings.LastIndex(head, end))
	}
	if at < len(head)/2 {
		at = strings.LastIndex(head, " ")
	}
	if at < 0 {
		at = len(string([]rune(text)[:most-1]))
	}
	return head[:at] + "…"
}

// verbosely returns the command line with -v, for copying.
func (line invocation) verbosely() string {
	words := line.operands
	var flags []string
	for _, f := range line.flags {
		flag := f.name
		if f.has {
			flag += " " + workspace.ShellQuote(f.value)
		}
		flags = append(flags, flag)
	}
	text := line.name()
	if len(words) > 0 && words[0] == "--" { // a command to measure
		for _, flag := range append(flags, "-v") {
			text += " " + flag
		}
		flags = nil
	} else {
		flags = append(flags, "-v")
	}
	for _, w := range words {
		text += " " + workspace.ShellQuote(w)
	}
	for _, flag := range flags {
		text += " " + flag
	}
	return text
}

// repeats reports which warnings a command on the same study printed recently in this
// terminal or script, and remembers them. If the file cannot be read or written, warnings
// are printed again, so errors are ignored.
func (s *session) repeats(study string, lines []string) []bool {
	repeated := make([]bool, len(lines))
	cache, err := os.UserCacheDir()
	if err != nil {
		return repeated
	}
	file := filepath.Join(cache, appName, "warned.json")
	now := time.Now()
	all := map[string]int64{} // digest of a warning → Unix time when it was last due
	if content, err := sharedfs.ReadFile(file, 1<<20); err == nil {
		if json.Unmarshal(content, &all) != nil {
			all = map[string]int64{}
		}
	}
	maps.DeleteFunc(all, func(_ string, at int64) bool {
		age := now.Sub(time.Unix(at, 0))
		return age > remembered || age < -time.Minute
	})
	for i, line := range lines {
		key := s.digest(study, line)
		_, repeated[i] = all[key]
		all[key] = now.Unix()
	}
	content, err := json.Marshal(all)
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return repeated
	}
	_ = s.write(file, content, 0o600)
	return repeated
}

// digest identifies a warning about a study in a database, in this command's terminal or
// script.
func (s *session) digest(study, line string) string {
	database, _ := s.workspace().Database()
	database, _ = filepath.Abs(database)
	script, _ := unix.Getsid(0)
	h := sha256.New()
	for _, part := range []string{fmt.Sprint(script), database, study, line} {
		_, _ = io.WriteString(h, part+"\x00")
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
