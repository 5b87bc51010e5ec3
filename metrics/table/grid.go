package table

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/number"
)

// A grid is a table's formatted columns, whose widths are chosen to fit a terminal.
type grid []*gridColumn

// A gridColumn is one column of a grid.
type gridColumn struct {
	title string
	cells []string
	right bool // numbers, aligned to the right
	id    bool // identifies the row
	width int  // longest line; 0 means no limit
	least int  // the width with all lines as short as possible; 0 before it is computed
}

// grid formats the table's cells.
func (t *Table) grid() grid {
	g := make(grid, len(t.Columns))
	identified := slices.ContainsFunc(t.Columns, func(c Column) bool { return c.ID })
	for i, column := range t.Columns {
		c := &gridColumn{title: column.title(), right: t.numeric(i), id: column.ID || !identified && i == 0}
		for _, row := range t.Rows {
			c.cells = append(c.cells, column.Text(row[i]))
		}
		g[i] = c
	}
	return g
}

// head returns the title, folded to the column's width.
func (c *gridColumn) head(bold bool) string {
	lines := strings.Split(c.folded(c.title, false), "\n")
	for i, line := range lines {
		if bold && line != "" {
			lines[i] = "\x1b[1m" + line + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}

// folded returns a text in lines of at most the column's width, or of its longest part.
func (c *gridColumn) folded(text string, numeric bool) string {
	if c.width <= 0 || columnsOf(text) <= c.width {
		return text
	}
	return strings.Join(filled(parts(text, numeric), c.width), "\n")
}

// parts returns the parts of a cell or title that have to stay on one line: words, or,
// of a number, the value with its unit and the interval.
func parts(text string, numeric bool) []string {
	if !numeric {
		return words(text)
	}
	var list []string
	for word := range strings.FieldsSeq(text) {
		if len(list) > 0 && together(list[len(list)-1], word) {
			list[len(list)-1] += " " + word
		} else {
			list = append(list, word)
		}
	}
	return list
}

// together reports whether a word has to stay on the line of the one before it.
func together(before, word string) bool {
	if strings.Count(before, "[") > strings.Count(before, "]") || strings.Count(before, "(") > strings.Count(before, ")") {
		return true
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsDigit(last) && !strings.ContainsAny(word[:1], "[(") // a unit
}

// needed returns the width that the column takes if its lines have at most width
// columns; 0 means no limit.
func (c *gridColumn) needed(width int) int {
	limited := *c
	limited.width = width
	n := 0
	for line := range strings.SplitSeq(limited.folded(c.title, false), "\n") {
		n = max(n, columnsOf(line))
	}
	for _, cell := range c.cells {
		if width <= 0 || columnsOf(cell) <= width { // fast path
			n = max(n, columnsOf(cell))
			continue
		}
		for line := range strings.SplitSeq(limited.folded(cell, c.right), "\n") {
			n = max(n, columnsOf(line))
		}
	}
	return n
}

// least returns the width of the table with all cells folded as much as possible.
func (g grid) least() int {
	sum := columnGap * (len(g) - 1)
	for _, c := range g {
		if c.least == 0 {
			c.least = c.needed(1)
		}
		sum += c.least
	}
	return sum
}

// parts splits the grid into grids that fit into width. Each begins with the columns
// that identify the rows; it returns nil if these take most of the width.
func (g grid) parts(width int) []grid {
	if g.least() <= width {
		return []grid{g}
	}
	var ids grid
	for _, c := range g {
		if c.id {
			ids = append(ids, c)
		}
	}
	if ids.least() > width*3/4 {
		return nil
	}
	list := []grid{slices.Clone(ids)}
	for _, c := range g {
		if c.id {
			continue
		}
		last := &list[len(list)-1]
		if len(*last) > len(ids) && append(slices.Clone(*last), c).least() > width {
			list = append(list, slices.Clone(ids))
			last = &list[len(list)-1]
		}
		*last = append(*last, c)
	}
	return list
}

// records returns each row as a grid of two columns, without empty cells.
func (t *Table) records() []grid {
	var list []grid
	for _, record := range t.uprights() {
		record.Rows = slices.DeleteFunc(record.Rows, func(row []any) bool { return row[1] == number.Absent || row[1] == "" })
		list = append(list, record.grid())
	}
	return list
}

// fit sets the columns' widths so that the rows fit into width if possible. It folds
// the widest column first.
func (g grid) fit(width int) {
	widths, sum := make([]int, len(g)), columnGap*(len(g)-1)
	for i, c := range g {
		widths[i] = c.needed(0)
		sum += widths[i]
	}
	done := make([]bool, len(g)) // cannot be narrower
	for sum > width {
		widest := -1
		for i, n := range widths {
			if !done[i] && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		n := g[widest].needed(widths[widest] - 1)
		if done[widest] = n >= widths[widest]; !done[widest] {
			sum -= widths[widest] - n
			widths[widest] = n
		}
	}
	for i, c := range g {
		c.width = widths[i]
	}
}
