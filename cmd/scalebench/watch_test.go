package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
)

// endedStudy creates a study's folder with n ended runs, whose state needs no query, and
// one that never started.
func endedStudy(t *testing.T, n int) rundir.Study {
	t.Helper()
	folder := rundir.OpenStudy(t.TempDir(), "s")
	plan := study.Plan{Study: "s"}
	write := func(path string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := rundir.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for repeat := 1; repeat <= n+1; repeat++ {
		p := study.Point{ID: "p", Study: "s", Repeat: repeat, Workers: 2, Nodes: 1, WorkersPerNode: 2}
		plan.Points = append(plan.Points, study.Planned{Point: p})
		run := folder.Run("p", repeat, 1)
		if repeat > n {
			break
		}
		if err := os.MkdirAll(run.Path(), 0o755); err != nil {
			t.Fatal(err)
		}
		write(run.Point(), p)
		write(run.Attempt(), launcher.Record{ID: run.ID(), Backend: study.DefaultBackend, JobName: run.ID()})
		write(run.State(), launcher.Verdict{Status: metrics.Done})
	}
	write(folder.Plan(), plan)
	return folder
}

// watching starts watch on a new terminal; end waits for it and returns its output and
// error.
func watching(t *testing.T, ctx context.Context, folder rundir.Study) (control, terminal *os.File, end func() (string, error)) {
	t.Helper()
	control, terminal = newTerminal(t, 10, 70)
	s := &session{stdin: terminal, stdout: terminal, stderr: terminal}
	v := &viewer{s: s, Watcher: workspace.Watcher{Folders: []rundir.Study{folder}, Interval: time.Hour}}
	result := make(chan error, 1)
	go func() { result <- v.live(ctx) }()
	var drawn strings.Builder
	seen := make(chan bool, 1)
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := control.Read(b)
			drawn.Write(b[:n])
			if strings.Contains(drawn.String(), "q quits") {
				select {
				case seen <- true:
				default:
				}
			}
			if err != nil || strings.Contains(drawn.String(), "\x1b[?1049l") {
				close(seen)
				return
			}
		}
	}()
	select {
	case <-seen:
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing was drawn")
	}
	return control, terminal, func() (string, error) {
		select {
		case err := <-result:
			for range seen { // until it has scrolled off the screen
			}
			return drawn.String(), err
		case <-time.After(2 * time.Minute):
			t.Fatal("watch does not end")
			return "", nil
		}
	}
}

// However watch ends, the terminal is restored.
func TestWatchLeavesTheTerminalAsItWas(t *testing.T) {
	folder := endedStudy(t, 2)
	for name, c := range map[string]struct {
		leave func(control *os.File, cancel context.CancelFunc)
		want  error
	}{
		"q":      {func(control *os.File, _ context.CancelFunc) { control.WriteString("xq") }, nil},
		"Ctrl-C": {func(control *os.File, _ context.CancelFunc) { control.WriteString("\x03") }, context.Canceled},
		"signal": {func(_ *os.File, cancel context.CancelFunc) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			control, terminal, end := watching(t, ctx, folder)
			raw, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
			if err != nil || raw.Lflag&unix.ICANON != 0 {
				t.Errorf("the terminal still waits for whole lines (%v)", err)
			}
			c.leave(control, cancel)
			drawn, err := end()
			if !errors.Is(err, c.want) {
				t.Errorf("ended with %v, want %v", err, c.want)
			}
			after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
			if err != nil || after.Lflag&unix.ICANON == 0 || after.Lflag&unix.ECHO == 0 {
				t.Errorf("the terminal is left raw (%v)", err)
			}
			for _, want := range []string{"\x1b[?1049h", "s/p-r1-a1", "done", "s/p-r3-a1", "planned", "2 done", "\x1b[?25h\x1b[?1049l"} {
				if !strings.Contains(drawn, want) {
					t.Errorf("not drawn: %q in %q", want, drawn)
				}
			}
		})
	}
}

// The page fits the terminal for any number of runs and any size, and states what it
// omits.
func TestWatchFitsTheTerminal(t *testing.T) {
	v := &viewer{s: &session{}, Watcher: workspace.Watcher{Folders: []rundir.Study{endedStudy(t, 40)}, Interval: time.Hour}}
	if err := v.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.Trouble = errors.New("Slurm cannot be reached\nmore")
	for _, size := range [][2]int{{200, 60}, {200, 20}, {80, 10}, {40, 5}, {20, 4}} {
		page := v.page(size[0], size[1])
		if len(page) > size[1] {
			t.Errorf("%d lines on a terminal of %d", len(page), size[1])
		}
		for _, line := range page {
			if n := len([]rune(line)); n > size[0] {
				t.Errorf("%d columns on a terminal of %d: %q", n, size[0], line)
			}
		}
		foot := page[len(page)-1]
		if size[0] >= 80 && (!strings.Contains(foot, "40 done") || !strings.Contains(foot, "q quits")) {
			t.Errorf("foot: %q", foot)
		}
		if all := strings.Join(page, "\n"); size[1] == 20 && (!strings.Contains(all, "lines 1 to 16 of 41; arrow keys scroll") || !strings.Contains(all, "Slurm cannot be reached")) {
			t.Errorf("page:\n%s", all)
		}
	}
}

// The arrow keys scroll to lines that do not fit, with at most one key press per
// line.
func TestWatchScrolls(t *testing.T) {
	v := &viewer{s: &session{}, Watcher: workspace.Watcher{Folders: []rundir.Study{endedStudy(t, 40)}, Interval: time.Hour}}
	if err := v.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	press := func(keys string) string {
		for _, key := range []byte(keys) {
			if !v.window.Move(key) {
				t.Errorf("%q is no key", key)
			}
		}
		return strings.Join(v.page(120, 10), "\n")
	}
	if page := press("\x1b[B\x1b[B"); strings.Contains(page, "s/p-r2-a1") || !strings.Contains(page, "s/p-r3-a1") {
		t.Errorf("two down:\n%s", page)
	}
	if page := press(strings.Repeat("\x1b[6~", 9)); !strings.Contains(page, "s/p-r41-a1") || !strings.Contains(page, "lines 35 to 41 of 41") {
		t.Errorf("the end:\n%s", page)
	}
	if page := press("\x1b[5~"); !strings.Contains(page, "lines 25 to 31 of 41") {
		t.Errorf("a page up from the end:\n%s", page)
	}
	for range 50 {
		press("\x1b[A")
	}
	if page := press("\x1b[C"); !strings.HasPrefix(page, "run ") {
		t.Errorf("the table is as wide as the terminal, and moved right:\n%s", page)
	}
	narrow := func() string { return v.page(30, 10)[0] }
	if before := narrow(); strings.Contains(before, "detail") {
		t.Fatalf("no column is cut: %q", before)
	}
	reached := false
	for range 9 {
		v.window.Move('l')
		reached = reached || strings.Contains(narrow(), "detail")
	}
	if !reached {
		t.Errorf("the last column is not reached: %q", narrow())
	}
}
