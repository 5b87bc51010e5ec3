package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// In a pipe there is one line for each finished thing, and no bar.
func TestProgressInAPipe(t *testing.T) {
	var b bytes.Buffer
	s := &session{stderr: &b}
	p := s.startProgress("runs", 2)
	p.describe("512 samples/s")
	for i := range 2 {
		p.finished("run %d: done \x1b[2J", i)
		p.advance(1)
	}
	p.stop()
	p.stop()
	if want := "run 0: done \\x1b[2J\nrun 1: done \\x1b[2J\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestQuietProgress(t *testing.T) {
	var b bytes.Buffer
	s := &session{stderr: &b, quiet: true}
	p := s.startProgress("runs", 1)
	p.finished("run: done")
	p.stop()
	s.note("a note")
	s.warn("a doubt") // -q prints errors only
	if b.Len() > 0 {
		t.Errorf("quiet says %q", b.String())
	}
}

// On a terminal there is a bar with the count and the description; finished
// lines stay, the bar does not.
func TestProgressOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	terminal, output := openTerminal(t)
	s := &session{stderr: terminal}
	p := s.startProgress("runs", 2)
	p.advance(1)
	time.Sleep(150 * time.Millisecond) // the bar is repainted ten times a second
	p.describe("512 samples/s")
	p.finished("run 0: done")
	p.advance(1)
	p.finished("run 1: done")
	p.stop()
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	got := output()
	for _, want := range []string{"runs", "(1/2)", "512 samples/s", "run 0: done\r\n", "run 1: done\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the terminal lacks %q: %q", want, got)
		}
	}
	if rest := got[strings.LastIndexAny(got, "\r\n")+1:]; strings.Contains(rest, "/2)") {
		t.Errorf("the bar stays: %q", got)
	}
}

// openTerminal opens a pseudo-terminal; output returns what was written to it, once it is
// closed.
func openTerminal(t *testing.T) (terminal *os.File, output func() string) {
	t.Helper()
	control, terminal := newTerminal(t, 24, 100)
	if on := screenOf(terminal); on.Width != 100 {
		t.Errorf("the terminal is %d columns wide, want 100", on.Width)
	}
	return terminal, func() string {
		// Reading ends with an error once no process has the terminal open.
		text, _ := io.ReadAll(control)
		return string(text)
	}
}

// newTerminal opens a new pseudo-terminal and the side that a person sits at.
func newTerminal(t *testing.T, rows, columns uint16) (control, terminal *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return control, terminal
}
