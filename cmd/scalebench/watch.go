package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/listing"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/clean"
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
			"line for each change, and ends when no run waits or runs. Slurm is queried once\n" +
			"every --interval for all runs together; runs on this machine are checked every\n" +
			"second. The command submits nothing.",
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
			v := &viewer{s: s, folders: folders, interval: interval, where: where, states: map[rundir.Folder]launcher.State{}}
			if on := screenOf(s.stdout); on.Width > 0 && os.Getenv("TERM") != "dumb" {
				return v.live(c.Context)
			}
			return v.log(c.Context)
		},
	}
}

// viewer follows the runs of studies.
type viewer struct {
	s        *session
	folders  []rundir.Study
	interval time.Duration
	where    string // condition on runs; "": all

	top, left int    // of the table's lines and columns, the first that is shown
	escape    string // the bytes of a key that has more than one
	attempts  map[rundir.Study][]*launcher.Attempt
	states    map[rundir.Folder]launcher.State
	shown     map[rundir.Folder]bool // for which the condition holds; nil: all
	unbegun   []launcher.Unbegun     // all that is planned and not begun
	planned   []launcher.Unbegun     // of those, what the condition holds for
	asked     time.Time              // when Slurm was last asked, or would have been
	failures  int                    // times in a row that it did not answer
	trouble   error                  // of the last look
	unread    error                  // a run folder that cannot be read; its row says so too
}

// tick is how often runs on this machine are looked at.
const tick = time.Second

// pause is how long Slurm is left alone after a look: longer while it does not
// answer.
func (v *viewer) pause() time.Duration {
	return v.interval * time.Duration(min(1<<min(v.failures, 3), 8))
}

// look brings the states up to date: all of them when it is time to ask Slurm,
// else those that take no more than reading a folder. A run that has ended is
// not looked at again.
func (v *viewer) look(ctx context.Context) error {
	due := time.Since(v.asked) >= v.pause()
	if due {
		v.asked, v.trouble, v.unread = time.Now(), nil, nil
		if err := v.list(); err != nil {
			return err
		}
	}
	var open []*launcher.Attempt
	for _, folder := range v.folders {
		for _, a := range v.attempts[folder] {
			if state, seen := v.states[a.Run]; seen && state.Verdict != nil {
				continue
			}
			if due || a.Attached() || a.Verdict != nil {
				open = append(open, a)
			}
		}
	}
	states, err := launcher.Survey(ctx, open)
	for _, state := range states {
		v.states[state.Run] = state
		if state.Err != nil {
			v.unread = state.Err
		}
	}
	if err != nil {
		v.trouble = err
	}
	if err := v.choose(ctx); err != nil {
		return err
	}
	if due {
		if v.failures++; err == nil {
			v.failures = 0
		}
	}
	return ctx.Err()
}

// choose leaves what the condition holds for. It is judged anew at each look: a
// status changes.
func (v *viewer) choose(ctx context.Context) error {
	if v.where == "" {
		return nil
	}
	v.shown = nil
	chosen, err := workspace.Runs{States: v.current(), Planned: v.unbegun}.Where(ctx, v.where)
	if err != nil {
		return err
	}
	v.shown, v.planned = map[rundir.Folder]bool{}, chosen.Planned
	for _, state := range chosen.States {
		v.shown[state.Run] = true
	}
	return nil
}

// list reads the folders: which attempts there are, and what is still planned.
func (v *viewer) list() error {
	before := v.attempts
	v.attempts, v.unbegun = map[rundir.Study][]*launcher.Attempt{}, nil
	for _, folder := range v.folders {
		plan, err := launcher.ReadPlan(folder)
		if err != nil { // the runs say themselves what they are of
			plan = &study.Plan{}
		}
		if !errors.Is(err, fs.ErrNotExist) { // not purged meanwhile
			v.unread = err
		}
		list, err := launcher.Refresh(folder, before[folder])
		if err != nil {
			v.unread = err
			list = before[folder]
		}
		v.attempts[folder] = list
		v.unbegun = append(v.unbegun, launcher.NotBegun(plan, folder, list)...)
	}
	v.planned = v.unbegun
	return nil
}

// current are the states of the attempts there are: what is under way first,
// then what ended last.
func (v *viewer) current() []launcher.State {
	var list []launcher.State
	for _, folder := range v.folders {
		for _, a := range v.attempts[folder] {
			if state, ok := v.states[a.Run]; ok && (v.shown == nil || v.shown[a.Run]) {
				list = append(list, state)
			}
		}
	}
	rank := func(s launcher.State) int {
		switch {
		case s.Status == metrics.Running:
			return 0
		case !s.Status.Terminal():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(list, func(a, b launcher.State) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// underway is how many attempts have not ended.
func (v *viewer) underway() int {
	n := 0
	for _, state := range v.current() {
		if !state.Status.Terminal() && state.Err == nil {
			n++
		}
	}
	return n
}

// unjudged is how many attempts cannot be read, and one for a study of which
// nothing can be.
func (v *viewer) unjudged() int {
	n := 0
	for _, state := range v.current() {
		if state.Err != nil {
			n++
		}
	}
	if n == 0 && v.unread != nil {
		n = 1
	}
	return n
}

// log prints a line for each change until nothing is under way.
func (v *viewer) log(ctx context.Context) error {
	said, trouble := map[rundir.Folder]string{}, ""
	for {
		if err := v.look(ctx); err != nil {
			return err
		}
		for _, state := range v.current() {
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
		switch {
		case v.trouble == nil:
			trouble = ""
		case v.trouble.Error() != trouble:
			trouble = v.trouble.Error()
			v.s.warn("%s", trouble)
		}
		if v.underway() == 0 && v.trouble == nil {
			if v.unread != nil {
				v.s.warn("%v", v.unread)
			}
			return workspace.Unread(v.unjudged())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tick):
		}
	}
}

// live redraws a table in place until q. Keys are read one by one, without
// echo; the terminal is as it was afterwards, however this ends.
func (v *viewer) live(ctx context.Context) error {
	v.s.hold()
	keys := make(chan byte)
	if in, ok := v.s.stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return fmt.Errorf("cannot read single keys from the terminal: %w", err)
		}
		defer term.Restore(int(in.Fd()), before)
		go func() {
			for key := make([]byte, 1); ; {
				if n, err := in.Read(key); n == 0 || err != nil {
					return // the terminal is gone; its signal ends us
				}
				select {
				case keys <- key[0]:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	// The alternate screen, without a cursor: what stood there comes back.
	if _, err := io.WriteString(v.s.stdout, "\x1b[?1049h\x1b[?25l"); err != nil {
		return err
	}
	defer io.WriteString(v.s.stdout, "\x1b[?25h\x1b[?1049l")
	for {
		if err := v.look(ctx); err != nil {
			return err
		}
		if err := v.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tick):
		case key := <-keys:
			if v.move(key) {
				continue
			}
			switch key {
			case 'q', 'Q':
				return nil
			case 3, 4: // Ctrl-C and Ctrl-D, which a raw terminal makes no signals of
				return context.Canceled
			}
		}
	}
}

// draw fills the terminal with as much of the table as it holds.
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
	// Without the last line feed, which would scroll a full page.
	_, err := v.s.stdout.Write(append(bytes.TrimSuffix(b.Bytes(), []byte("\r\n")), "\x1b[J"...))
	return err
}

// page is the part of the table that fits into so many columns and lines.
func (v *viewer) page(width, height int) []string {
	states := v.current()
	by := map[metrics.Status]int{metrics.Planned: len(v.planned)}
	for _, state := range states {
		by[state.Status]++
	}
	var text bytes.Buffer
	if err := listing.Watched(states, v.planned).Write(&text, table.FormatTable, table.Screen{Width: width}); err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	head, body := lines[:1], lines[1:]
	const frame = 3 // the head, where the lines shown lie among all, the foot
	room := max(1, height-frame-troubles(v.trouble))
	v.top = max(0, min(v.top, len(body)-room))
	lines = slices.Concat(head, body[v.top:min(v.top+room, len(body))])
	widest := 0
	for _, line := range slices.Concat(head, body) {
		widest = max(widest, len([]rune(line)))
	}
	v.left = max(0, min(v.left, widest-width))
	for i, line := range lines {
		runes := []rune(line)
		lines[i] = string(runes[min(v.left, len(runes)):])
	}
	if len(body) > room || widest > width {
		lines = append(lines, fmt.Sprintf("lines %d to %d of %d; arrow keys scroll", v.top+1, min(v.top+room, len(body)), len(body)))
	}
	if v.trouble != nil {
		lines = append(lines, clean.Line(strings.Split(v.trouble.Error(), "\n")[0]))
	}
	var counts []string
	for _, status := range metrics.Statuses {
		if n := by[status]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if left := listing.Left(states, v.planned, float64(time.Now().UnixMilli())/1000); left != "" {
		counts = append(counts, left)
	}
	foot := strings.Join(append(counts, fmt.Sprintf("next Slurm query in %s", max(0, time.Until(v.asked.Add(v.pause()))).Round(time.Second)), "q quits"), " · ")
	if len(lines) >= height {
		lines = lines[:height-1]
	}
	lines = append(lines, foot)
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			lines[i] = string(runes[:width])
		}
	}
	return lines
}

// move moves the part that is shown by a key, and reports whether it is one for
// that. An arrow is three bytes, of which v.escape are the first.
func (v *viewer) move(key byte) bool {
	const page = 10
	sequence := v.escape + string(key)
	v.escape = ""
	switch sequence {
	case "\x1b", "\x1b[", "\x1bO", "\x1b[5", "\x1b[6":
		v.escape = sequence
	case "\x1b[A", "\x1bOA", "k":
		v.top--
	case "\x1b[B", "\x1bOB", "j":
		v.top++
	case "\x1b[5~":
		v.top -= page
	case "\x1b[6~":
		v.top += page
	case "\x1b[D", "\x1bOD", "h":
		v.left -= page
	case "\x1b[C", "\x1bOC", "l":
		v.left += page
	default:
		return false
	}
	return true
}

// troubles is how many lines an error takes.
func troubles(err error) int {
	if err == nil {
		return 0
	}
	return 1
}
