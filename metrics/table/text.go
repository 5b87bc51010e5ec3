package table

import (
	"strings"

	"github.com/scalebench/scalebench/metrics/clean"
)

// A Text is a table with formatted cells.
type Text struct {
	Columns []Title
	Rows    [][]string // one cell per column
	Lead    string     // above it
	Notes   []string
}

// A Title is the header of one column.
type Title struct {
	Title string
	Right bool // right-aligned, for numbers
}

// Text formats the table for people, each cell as one line.
func (t *Table) Text() Text {
	t = t.forPeople()
	var text Text
	for i, c := range t.Columns {
		text.Columns = append(text.Columns, Title{Title: c.title(), Right: t.numeric(i)})
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = t.Columns[i].Text(cell)
		}
		text.Rows = append(text.Rows, cells)
	}
	text.Lead = clean.Line(t.Lead)
	for _, note := range t.Notes {
		text.Notes = append(text.Notes, clean.Line(note))
	}
	return text
}

// Markdown returns the table in GitHub's Markdown, followed by its notes.
func (t Text) Markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, rule := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i], rule[i] = clean.Markdown(c.Title), "---"
		if c.Right {
			rule[i] = "---:"
		}
	}
	if t.Lead != "" {
		b.WriteString(clean.Markdown(t.Lead) + "\n\n")
	}
	line(head)
	line(rule)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, s := range row {
			cells[i] = clean.Markdown(s)
		}
		line(cells)
	}
	for _, note := range t.Notes {
		b.WriteString("\n" + clean.Markdown(note) + "\n")
	}
	return b.String()
}
