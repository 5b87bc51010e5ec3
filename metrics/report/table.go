package report

import "strings"

// Table is a table of text.
type Table struct {
	ID      string
	Title   string
	Columns []Column
	Rows    [][]string // as many cells as there are columns
	Notes   []string
	Folded  bool // long: shown only when asked for
}

// Column is one column of a table.
type Column struct {
	Title string
	Right bool // of numbers: set to the right
}

// Markdown is the table as GitHub's Markdown has it, with its notes below.
func (t *Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, rule := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i], rule[i] = escape(c.Title), "---"
		if c.Right {
			rule[i] = "---:"
		}
	}
	line(head)
	line(rule)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, s := range row {
			cells[i] = escape(s)
		}
		line(cells)
	}
	for _, note := range t.Notes {
		b.WriteString("\n" + escape(note) + "\n")
	}
	return b.String()
}

// escape keeps text from being taken for markup, a cell's end or HTML.
var escape = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "&", "&amp;", "[", `\[`, "]", `\]`).Replace
