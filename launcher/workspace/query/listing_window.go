package query

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/table"
)

// A Window shows the part of a table that fits on a terminal.
type Window struct {
	top, left int    // the first line and column that is shown
	escape    string // the bytes of an unfinished key
}

// Page returns the lines to show on a terminal of the given width and height: the
// table's header, the rows that fit, the error trouble unless it is nil, and a summary
// line.
func (v *Window) Page(width, height int, states []launcher.State, planned []launcher.Unbegun, trouble error, next time.Duration) []string {
	var text bytes.Buffer
	if err := inOrder(states, planned).Write(&text, table.FormatTable, table.Screen{}); err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	frame := 3 // header, range shown, footer
	if trouble != nil {
		frame++
	}
	lines = v.cut(lines[:1], lines[1:], width, max(1, height-frame))
	if trouble != nil {
		lines = append(lines, clean.Line(strings.Split(trouble.Error(), "\n")[0]))
	}
	if len(lines) >= height {
		lines = lines[:height-1]
	}
	lines = append(lines, foot(states, planned, next))
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			lines[i] = string(runes[:width])
		}
	}
	return lines
}

// cut returns the visible part of the table, followed by a line that says which part
// it is.
func (v *Window) cut(head, body []string, width, room int) []string {
	v.top = max(0, min(v.top, len(body)-room))
	lines := slices.Concat(head, body[v.top:min(v.top+room, len(body))])
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
	return lines
}

// foot returns the summary line: the number of runs in each status, the time left, and
// when Slurm is queried next, if a run waits for it.
func foot(states []launcher.State, planned []launcher.Unbegun, next time.Duration) string {
	by := map[metrics.Status]int{metrics.Planned: len(planned)}
	for _, state := range states {
		by[state.Status]++
	}
	counts := workspace.ByStatus(by)
	if left := remainingTime(BriefsOf(states, planned), float64(time.Now().UnixMilli())/1000); left != "" {
		counts = append(counts, left)
	}
	if slices.ContainsFunc(states, func(s launcher.State) bool { return !s.Status.Terminal() && !s.Attached() }) {
		counts = append(counts, fmt.Sprintf("next Slurm query in %s", next.Round(time.Second)))
	}
	return strings.Join(append(counts, "q quits"), " · ")
}

// Move handles one byte of input and reports whether it belongs to a key that moves
// the window. An arrow key is three bytes.
func (v *Window) Move(key byte) bool {
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
