package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/metrics/table"
)

// session holds the streams and the global options of one invocation.
type session struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	db      string // database file; "" for the default
	runs    string // folder of the run folders; "" for the default
	format  string // an output format
	verbose bool
	quiet   bool
	told    map[string]bool // studies whose home was reported, see noteHome

	partial   map[string]error // by study: how many of its runs an answer does without
	verbosely string           // the command line with -v, for copying

	holds atomic.Bool // see deferInterrupts
	parts sync.Mutex  // see whole
}

// deferInterrupts marks that the command has started something that it must end in an orderly way:
// runs, jobs, a lock, a transaction, a terminal mode. Before that, an interrupt ends it
// immediately.
func (s *session) deferInterrupts() { s.holds.Store(true) }

// whole calls f; an interrupt waits for it. f must be short, remove its temporary files,
// and stop early if the command's context is cancelled.
func (s *session) whole(f func()) {
	s.parts.Lock()
	defer s.parts.Unlock()
	f()
}

// write writes a file atomically; an interrupt waits for it.
func (s *session) write(path string, content []byte, perm fs.FileMode) (err error) {
	s.whole(func() { err = sharedfs.Write(path, content, perm) })
	return err
}

// put writes a file with permissions for everyone to read.
func (s *session) put(path string, content []byte) error {
	return s.write(path, content, sharedfs.ModeOpen)
}

// flags returns new copies of the global options. Every command has them, so that they are
// valid anywhere on the line.
func (s *session) flags() []cli.Flag {
	const category = "Global options"
	return []cli.Flag{
		&cli.StringFlag{Name: "db", Category: category, Destination: &s.db,
			Usage: "database `FILE` (default: $SCALEBENCH_DB, else " + appName + "/" + appName + ".db in the XDG data folder, ~/.local/share)"},
		&cli.StringFlag{Name: "runs", Category: category, Destination: &s.runs,
			Usage: "folder `DIR` of the run folders, which all nodes share (default: $SCALEBENCH_RUNS, else the site file's runs, else runs next to the study file)"},
		&cli.StringFlag{Name: "format", Category: category, Destination: &s.format, Value: table.FormatTable, DefaultText: table.FormatTable,
			Usage: "print tables as `FORMAT`: " + strings.Join(table.Formats, ", ")},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Category: category, Destination: &s.verbose, DisableDefaultText: true,
			Usage: "print more: all rows, warnings and progress"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Category: category, Destination: &s.quiet, DisableDefaultText: true,
			Usage: "errors only: no progress, notes or warnings"},
	}
}

// resolve checks the global options and fills in their defaults.
func (s *session) resolve() error {
	if !slices.Contains(table.Formats, s.format) {
		return usagef("--format %q is not known; valid: %s", s.format, strings.Join(table.Formats, ", "))
	}
	if s.verbose && s.quiet {
		return usagef("--verbose and --quiet cannot be combined; leave one out")
	}
	return nil
}

// print writes a table to standard output in the requested format.
func (s *session) print(t *table.Table) error {
	w := bufio.NewWriter(s.stdout)
	if err := t.Write(w, s.format, screenOf(s.stdout)); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// printDone prints what a command did. If it did nothing, people get a sentence instead of
// an empty table.
func (s *session) printDone(t *table.Table) error {
	if len(t.Rows) == 0 && s.format == table.FormatTable {
		return nil
	}
	return s.print(t)
}

// forPeople reports whether tables are printed for people.
func (s *session) forPeople() bool {
	return s.format != table.FormatCSV && s.format != table.FormatJSON
}

// printEither prints the table people or, if the format is CSV or JSON, the table programs.
func (s *session) printEither(people, programs *table.Table) error {
	if s.forPeople() {
		return s.print(people)
	}
	return s.print(programs)
}

// printSentences prints sentences for people and the table that they refer to.
func (s *session) printSentences(sentences string, t *table.Table) error {
	if _, err := fmt.Fprintf(s.stdout, "%s\n\n", s.sentences(sentences)); err != nil {
		return err
	}
	return s.print(t)
}

// sentences formats a text for the output format.
func (s *session) sentences(text string) string {
	text = clean.Line(text)
	switch s.format {
	case table.FormatMarkdown:
		return clean.Markdown(text)
	case table.FormatTable:
		return screenOf(s.stdout).Wrap(text)
	}
	return text
}

// printJSON prints a value as JSON on one line.
func (s *session) printJSON(v any) error {
	text, err := table.EncodeJSON(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.stdout, text)
	return err
}

// note prints a remark on standard error unless quiet.
func (s *session) note(format string, a ...any) {
	if !s.quiet {
		fmt.Fprintln(s.stderr, clean.Lines(redact.Text(fmt.Sprintf(format, a...))))
	}
}

// detail prints a note only with --verbose.
func (s *session) detail(format string, a ...any) {
	if s.verbose {
		s.note(format, a...)
	}
}

// onTerminal reports whether a stream is a terminal, whose width may be unknown.
func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// screenOf describes the output. The environment variable COLUMNS, if exported, takes
// precedence over the terminal's width, and also applies to a pipe.
func screenOf(w io.Writer) table.Screen {
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || width < 1 {
		width = 0
	}
	f, ok := w.(*os.File)
	if !ok || !onTerminal(w) {
		return table.Screen{Width: width}
	}
	if width == 0 {
		if width, _, err = term.GetSize(int(f.Fd())); err != nil || width < 0 {
			width = 0
		}
	}
	// https://no-color.org: any value except the empty one
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return table.Screen{Width: width, Bold: !plain}
}
