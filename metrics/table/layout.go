package table

import (
	"io"
	"strings"
	"unicode/utf8"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/scalebench/scalebench/metrics/clean"
)

// This file lays out tables for a terminal or a pipe.

// A Screen describes the output device of a table.
type Screen struct {
	Width int  // columns; 0 if it is not a terminal
	Bold  bool // supports bold, and the user wants it
}

const columnGap = 2 // blanks between two columns

// writeText writes a table for a terminal or a pipe, with columns separated by spaces.
// If a terminal is too narrow, long cells and titles get several lines; then the table is
// folded into parts, each with the columns that identify the rows. Names are never
// wrapped, because people copy them, and nothing is left out. If the identifying columns alone are too wide, each row
// is printed as a list.
func (t *Table) writeText(w io.Writer, on Screen) error {
	var lines strings.Builder
	if t.Lead != "" {
		lines.WriteString(wrapped(clean.Line(t.Lead), on.Width))
	}
	if on.Width <= 0 {
		t.grid().write(&lines, on)
	} else {
		list := t.grid().parts(on.Width)
		if list == nil {
			list = t.records()
		}
		for i, part := range list {
			if i > 0 {
				lines.WriteByte('\n')
			}
			part.fit(on.Width)
			part.write(&lines, on)
		}
	}
	for _, note := range t.Notes {
		lines.WriteString(wrapped(clean.Line(note), on.Width))
	}
	_, err := io.WriteString(w, lines.String())
	return err
}

// write writes the columns next to each other.
func (g grid) write(w *strings.Builder, on Screen) {
	p := pretty.NewWriter()
	p.SuppressTrailingSpaces()
	style := pretty.StyleDefault
	style.Box = pretty.BoxStyle{MiddleVertical: strings.Repeat(" ", columnGap)}
	style.Options = pretty.Options{SeparateColumns: true}
	style.Format = pretty.FormatOptions{}
	p.SetStyle(style)
	head := make(pretty.Row, len(g))
	var config []pretty.ColumnConfig
	for i, c := range g {
		head[i] = c.head(on.Bold)
		config = append(config, pretty.ColumnConfig{Number: i + 1, VAlignHeader: text.VAlignBottom})
		if c.right {
			config[i].Align, config[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	p.AppendHeader(head)
	p.SetColumnConfigs(config)
	if len(g) > 0 {
		for row := range g[0].cells {
			cells := make(pretty.Row, len(g))
			for i, c := range g {
				cells[i] = c.folded(c.cells[row], c.right)
			}
			p.AppendRow(cells)
		}
	}
	w.WriteString(p.Render() + "\n")
}

// Wrap wraps prose at spaces to the screen's width, without a line end at the end. A
// longer word and a command in backticks get a line.
func (on Screen) Wrap(prose string) string {
	return strings.TrimSuffix(wrapped(prose, on.Width), "\n")
}

// wrapped wraps prose at spaces to the given width; 0 means no limit. A longer word
// and a command in backticks get a line.
func wrapped(prose string, width int) string {
	if width <= 0 || columnsOf(prose) <= width {
		return prose + "\n"
	}
	return strings.Join(filled(words(prose), width), "\n") + "\n"
}

// filled joins words to lines of at most width columns. A longer word gets a line.
func filled(words []string, width int) []string {
	var lines []string
	used := 0
	for _, word := range words {
		n := columnsOf(word)
		if len(lines) > 0 && used+1+n <= width {
			lines[len(lines)-1] += " " + word
			used += 1 + n
			continue
		}
		lines, used = append(lines, word), n
	}
	return lines
}

// words splits prose at spaces, but not within a command in backticks, which people
// copy.
func words(prose string) []string {
	var list []string
	quoted := false
	for word := range strings.FieldsSeq(prose) {
		if quoted {
			list[len(list)-1] += " " + word
		} else {
			list = append(list, word)
		}
		if strings.Count(word, "`")%2 == 1 {
			quoted = !quoted
		}
	}
	return list
}

// columnsOf returns the number of terminal columns that s takes.
func columnsOf(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return text.StringWidth(s)
		}
	}
	return len(s) // fast path for ASCII
}
