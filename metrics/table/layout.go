package table

import (
	"io"
	"slices"
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
// If a terminal is too narrow, optional columns are left out and named below; then
// prose is wrapped. Names are never wrapped, because people copy them, and nothing is
// truncated.
func (t *Table) writeText(w io.Writer, on Screen) error {
	var natural, words []int // widths; not needed if lines have no limit
	var leftOut []string
	if on.Width > 0 {
		natural, words = t.widths()
		t, natural, words, leftOut = t.narrowed(natural, words, on.Width)
	}
	p := pretty.NewWriter()
	p.SuppressTrailingSpaces()
	style := pretty.StyleDefault
	style.Box = pretty.BoxStyle{MiddleVertical: strings.Repeat(" ", columnGap)}
	style.Options = pretty.Options{SeparateColumns: true}
	style.Format = pretty.FormatOptions{}
	p.SetStyle(style)

	head := make(pretty.Row, len(t.Columns))
	for i, column := range t.Columns {
		title := column.title()
		if on.Bold && title != "" {
			title = "\x1b[1m" + title + "\x1b[0m"
		}
		head[i] = title
	}
	p.AppendHeader(head)
	for _, row := range t.Rows {
		cells := make(pretty.Row, len(row))
		for i, cell := range row {
			cells[i] = t.Columns[i].Text(cell)
		}
		p.AppendRow(cells)
	}
	var config []pretty.ColumnConfig
	widths := fit(natural, words, on.Width)
	for i := range t.Columns {
		c := pretty.ColumnConfig{Number: i + 1}
		if t.numeric(i) {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		if on.Width > 0 && widths[i] < natural[i] {
			c.WidthMax, c.WidthMaxEnforcer = widths[i], text.WrapSoft
		}
		config = append(config, c)
	}
	p.SetColumnConfigs(config)
	lines := p.Render() + "\n"
	if t.Lead != "" {
		lines = wrapped(clean.Line(t.Lead), on.Width) + lines
	}
	for _, note := range t.Notes {
		lines += wrapped(clean.Line(note), on.Width)
	}
	if len(leftOut) > 0 {
		lines += wrapped("Not shown (terminal too narrow): "+strings.Join(leftOut, ", ")+".", on.Width)
	}
	_, err := io.WriteString(w, lines)
	return err
}

// wrapped wraps prose at spaces to the given width; 0 means no limit. A longer word
// gets a line.
func wrapped(prose string, width int) string {
	if width <= 0 || columnsOf(prose) <= width {
		return prose + "\n"
	}
	var lines strings.Builder
	used := 0
	for word := range strings.FieldsSeq(prose) {
		n := columnsOf(word)
		switch {
		case used == 0:
		case used+1+n <= width:
			lines.WriteByte(' ')
			used++
		default:
			lines.WriteByte('\n')
			used = 0
		}
		lines.WriteString(word)
		used += n
	}
	return lines.String() + "\n"
}

// widths returns for each column the width without wrapping and the width of its
// longest word. Columns of numbers are not wrapped.
func (t *Table) widths() (natural, words []int) {
	for i, column := range t.Columns {
		n := columnsOf(column.title())
		longest := n
		numeric := t.numeric(i)
		for _, row := range t.Rows {
			s := column.Text(row[i])
			width := columnsOf(s)
			n = max(n, width)
			if numeric || !strings.Contains(s, " ") {
				longest = max(longest, width)
				continue
			}
			for word := range strings.FieldsSeq(s) {
				longest = max(longest, columnsOf(word))
			}
		}
		natural, words = append(natural, n), append(words, longest)
	}
	return natural, words
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

func total(widths []int) int {
	sum := columnGap * (len(widths) - 1)
	for _, n := range widths {
		sum += n
	}
	return sum
}

// narrowed returns the table without the optional columns that do not fit into width
// (after wrapping prose), its column widths, and the titles of the columns left out.
func (t *Table) narrowed(natural, words []int, width int) (*Table, []int, []int, []string) {
	var leftOut []string
	for i := len(t.Columns) - 1; i >= 0 && total(words) > width; i-- {
		if t.Columns[i].Optional {
			leftOut = append([]string{t.Columns[i].title()}, leftOut...)
			natural, words = slices.Delete(natural, i, i+1), slices.Delete(words, i, i+1)
			t = t.only(func(j int) bool { return j != i })
		}
	}
	return t, natural, words, leftOut
}

// fit narrows the widest columns until the row fits into width, but never below the
// longest word; 0 means no limit.
func fit(natural, words []int, width int) []int {
	widths := slices.Clone(natural)
	for width > 0 && total(widths) > width {
		widest := -1
		for i, n := range widths {
			if n > words[i] && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}
