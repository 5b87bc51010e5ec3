package extract

import (
	"bytes"
	"regexp"
	"slices"
)

// Blanks between the columns of a table: two or more, if names and cells may contain one.
var (
	wideBlanks = regexp.MustCompile(` {2,}`)
	anyBlanks  = regexp.MustCompile(` +`)
)

// spaced replaces the blanks between the columns of a table by tabs, as in the output of column -t, pandas and
// squeue, and in data files of gnuplot, where the names are in a comment. It returns data unchanged if the table
// has other separators, or if its lines differ in their number of columns.
func spaced(data []byte) []byte {
	if bytes.ContainsAny(data, "\t;|\"") {
		return data
	}
	for rest := data; len(rest) > 0; { // most tables have commas, and are not split into lines
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			if bytes.ContainsRune(text, ',') {
				return data
			}
			break
		}
	}
	lines := bytes.Split(data, []byte{'\n'})
	names := -1 // the line with the names: the last comment before the first row, or else the first line
	var rows []int
	for i, line := range lines {
		text := bytes.TrimSpace(line)
		switch comment := bytes.HasPrefix(text, []byte{'#'}); {
		case len(bytes.Trim(text, "-=# ")) == 0:
			lines[i] = nil
		case comment && len(rows) == 0:
			names = i
		case !comment:
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return data
	}
	split := func(i int, blanks *regexp.Regexp) [][]byte {
		text := bytes.TrimSpace(bytes.TrimLeft(bytes.TrimSpace(lines[i]), "#"))
		return bytes.Split(blanks.ReplaceAll(text, []byte{'\t'}), []byte{'\t'})
	}
	for _, way := range []struct{ names, cells *regexp.Regexp }{{wideBlanks, wideBlanks}, {wideBlanks, anyBlanks}, {anyBlanks, anyBlanks}} {
		columns := len(split(rows[len(rows)-1], way.cells))
		head, body := rows[0], rows[1:]
		if names >= 0 && len(split(names, way.names)) == columns {
			head, body = names, rows
		}
		first := split(head, way.names)
		if len(body) == 0 || columns < 2 || len(first) != columns || isNumbers(first) || bytes.ContainsRune(lines[head], ',') ||
			slices.ContainsFunc(body, func(i int) bool { return len(split(i, way.cells)) != columns }) {
			continue
		}
		out := make([][]byte, len(lines)) // other lines become empty, so that line numbers stay
		out[head] = bytes.Join(first, []byte{'\t'})
		for _, i := range body {
			out[i] = bytes.Join(split(i, way.cells), []byte{'\t'})
		}
		return bytes.Join(out, []byte{'\n'})
	}
	return data
}

// isNumbers reports whether all cells are numbers, so that they are no names.
func isNumbers(cells [][]byte) bool {
	return !slices.ContainsFunc(cells, func(cell []byte) bool { _, ok := parsed(string(cell)); return !ok })
}
