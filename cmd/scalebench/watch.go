package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

func watchCommand(s *session) *cli.Command {
	var interval time.Duration
	var where string
	return &cli.Command{
		Name:      "watch",
		Usage:     "show the state and progress of runs, live",
		ArgsUsage: "[STUDY]",
		Description: "On a terminal the table is redrawn in place; q quits. Elsewhere the command prints a\n" +
			"line for each change, and ends when no run waits or runs.",
		Flags: []cli.Flag{intervalFlag(&interval), whereFlag(&where)},
		Action: func(c *cli.Context) error {
			if err := checkInterval(interval); err != nil {
				return err
			}
			if s.format != table.FormatTable {
				return &usageError{err: fmt.Errorf("watch has no --format %s: it prints a line for each change", s.format), hint: "`scalebench status --format " + s.format + "` prints the table once."}
			}
			folders, err := s.workspace().Folders(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			v := &viewer{s: s, Watcher: workspace.Watcher{Folders: folders, Interval: interval, Where: where}}
			if on := screenOf(s.stdout); on.Width > 0 && os.Getenv("TERM") != "dumb" {
				return v.live(c.Context)
			}
			return v.log(c.Context)
		},
	}
}

// log prints a line for each change until no run is in progress and none has begun for startWait, since `run` begins
// planned runs one after another.
func (v *viewer) log(ctx context.Context) error {
	said, trouble := map[rundir.Folder]string{}, ""
	busy := time.Now() // when a run was last in progress
	for {
		if err := v.Look(ctx); err != nil {
			return err
		}
		if err := v.news(said); err != nil {
			return err
		}
		switch {
		case v.Trouble == nil:
			trouble = ""
		case v.Trouble.Error() != trouble:
			trouble = v.Trouble.Error()
			v.s.warn("%s", trouble)
		}
		switch waiting := len(v.Planned); {
		case v.Underway() > 0 || v.Trouble != nil:
			busy = time.Now()
		case waiting > 0 && time.Since(busy) < startWait:
			v.Due()
		default:
			if waiting > 0 {
				v.s.note("%s not begun: nothing has run for %s", number.Are(waiting, "planned run"), startWait)
			}
			if v.Unread != nil {
				v.s.warn("%v", v.Unread)
			}
			return workspace.Unread(v.Unjudged())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tick):
		}
	}
}

// news prints a line for each state that differs from the one said before.
func (v *viewer) news(said map[rundir.Folder]string) error {
	for _, state := range v.States() {
		line := fmt.Sprintf("%s: %s", state.Record.ID, state.Status)
		if state.Detail != "" {
			line += ": " + state.Detail
		}
		if said[state.Run] != line {
			said[state.Run] = line
			if _, err := fmt.Fprintln(v.s.stdout, time.Now().Format("15:04:05"), clean.Line(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// live redraws a table in place until q. Keys are read one by one without echo. The
// terminal's state is restored in any case.
func (v *viewer) live(ctx context.Context) error {
	v.s.deferInterrupts()
	keys, restore, err := v.s.keys(ctx)
	if err != nil {
		return err
	}
	defer restore()
	// Use the alternate screen without a cursor; afterwards the terminal shows its earlier
	// text.
	if _, err := io.WriteString(v.s.stdout, "\x1b[?1049h\x1b[?25l"); err != nil {
		return err
	}
	defer io.WriteString(v.s.stdout, "\x1b[?25h\x1b[?1049l")
	for {
		if err := v.Look(ctx); err != nil {
			return err
		}
		if err := v.draw(); err != nil {
			return err
		}
		if v.Underway() == 0 && len(v.Planned) > 0 {
			v.Due()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tick):
		case key := <-keys:
			if v.window.Move(key) {
				continue
			}
			switch key {
			case 'q', 'Q':
				return nil
			case 3, 4: // Ctrl-C and Ctrl-D, which send no signals in raw mode
				return context.Canceled
			}
		}
	}
}

// viewer shows the state of a watcher.
type viewer struct {
	s *session
	workspace.Watcher
	window query.Window
}

// startWait is how long watch waits for the next planned run to begin. It is longer than a local run takes to start.
const startWait = 20 * time.Second

// tick is the interval at which the state of runs on this machine is read.
const tick = time.Second

// draw prints the part of the table that fits on the terminal.
func (v *viewer) draw() error {
	width, height := 80, 24
	if out, ok := v.s.stdout.(*os.File); ok {
		if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 {
			width, height = w, h
		}
	}
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for _, line := range v.page(width, height) {
		b.WriteString(line + "\x1b[K\r\n")
	}
	// Omit the last newline, which would scroll a full page.
	_, err := v.s.stdout.Write(append(bytes.TrimSuffix(b.Bytes(), []byte("\r\n")), "\x1b[J"...))
	return err
}

// page returns the part of the table that fits into the given columns and lines.
func (v *viewer) page(width, height int) []string {
	return v.window.Page(width, height, v.States(), v.Planned, v.Trouble, v.NextQuery())
}

// keys returns the keys pressed, one by one and without echo, until restore is called.
// Without a terminal, no keys arrive.
func (s *session) keys(ctx context.Context) (keys chan byte, restore func(), err error) {
	keys = make(chan byte)
	in, ok := s.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return keys, func() {}, nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read single keys from the terminal: %w", err)
	}
	go func() {
		for key := make([]byte, 1); ; {
			if n, err := in.Read(key); n == 0 || err != nil {
				return // the terminal is gone; its signal ends the command
			}
			select {
			case keys <- key[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	return keys, func() { _ = term.Restore(int(in.Fd()), before) }, nil
}
