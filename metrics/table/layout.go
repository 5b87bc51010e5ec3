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

// How a table is laid out for a terminal or a pipe.

// Screen is what is known of where a table goes.
type Screen struct {
	Width int  // columns; 0 when it is no terminal
	Bold  bool // whether it understands bold and the user wants it
}

const columnGap = 2 // blanks between two columns

// writeText writes a table for a terminal or a pipe: columns apart by blanks.
// On a terminal that is too narrow, optional columns are left out and named
// below; then prose is broken into lines at its blanks. Names are never broken,
// since people copy them, and nothing is ever cut.
func (t *Table) writeText(w io.Writer, on Screen) error {
	var natural, words []int // widths; not needed where there is no end to a line
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

// wrapped is prose in lines of at most so many columns, 0 being without end, broken
// at its blanks: a longer word has a line of its own.
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

// widths are, for each column, the width that holds everything in one line and
// the width that breaks no word. Columns of numbers are not broken.
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

// columnsOf is how many columns of a terminal s takes.
func columnsOf(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return text.StringWidth(s)
		}
	}
	return len(s) // the common case, without a look at every letter's class
}

func total(widths []int) int {
	sum := columnGap * (len(widths) - 1)
	for _, n := range widths {
		sum += n
	}
	return sum
}

// narrowed is the table with so many optional columns left out as it takes to
// fit into width with its prose broken; the widths of its columns; and the
// titles of those left out.
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

// fit narrows the widest columns until the row fits into width, but none below
// the width of its words; width 0 is unlimited.
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
