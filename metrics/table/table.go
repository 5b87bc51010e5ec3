// Package table prints rows as text for a terminal or a pipe, as Markdown, CSV
// and JSON, all from one description of the columns. What a table says is in
// metrics/report/tables; how a number is written is in metrics/number.
package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
)

// The formats of a printed table. Table and markdown are for people: rounded to
// three significant digits, with units. CSV and JSON are for programs: base
// units (seconds, samples, bytes), every digit, and null or an empty field
// where nothing was measured.
const (
	FormatTable    = "table"
	FormatCSV      = "csv"
	FormatJSON     = "json"
	FormatMarkdown = "markdown"
)

// Formats are all of them.
var Formats = []string{FormatTable, FormatCSV, FormatJSON, FormatMarkdown}

// Table is rows to be printed in any of the formats.
//
// A cell is a string, bool, number, time.Time, a pointer to one of these, nil,
// or anything that encodes to JSON. nil, a nil pointer, the zero time, NaN and
// the infinities were not measured: number.Absent for people, null or an empty
// field for programs.
type Table struct {
	Columns []Column
	Rows    [][]any
	Lead    string // line above the table; for people only
	// Notes are the lines below the table; for people only.
	Notes []string
}

// Column is one column of a table.
type Column struct {
	Key  string // name in CSV and JSON, snake_case
	Head string // name for people; "" is the key with spaces
	Unit string // of the numbers as they are stored, "samples/s"; shown in the head
	// Show is how a number is written for people; nil is number.Significant. One that
	// writes its own unit goes with an empty unit above.
	Show func(float64) string
	// Right sets text to the right, where it is made of numbers.
	Right bool
	// Data keeps the column out of what people are shown: CSV and JSON only.
	Data bool
	// People keeps it out of CSV and JSON, which say the same in another column.
	People bool
	// Optional leaves the column out for people where no row has anything in it, and
	// on a terminal that is too narrow, the last of them first; a line below the
	// table names those.
	Optional bool
}

// Add appends a row, one cell a column.
func (t *Table) Add(cells ...any) {
	if len(cells) != len(t.Columns) {
		panic(fmt.Sprintf("a row of %d cells in a table of %d columns", len(cells), len(t.Columns)))
	}
	row := make([]any, len(cells))
	for i, c := range cells {
		row[i] = Bare(c)
	}
	t.Rows = append(t.Rows, row)
}

// Write prints the table.
func (t *Table) Write(w io.Writer, format string, on Screen) error {
	switch format {
	case FormatCSV:
		return t.forPrograms().writeCSV(w)
	case FormatJSON:
		return t.forPrograms().writeJSON(w)
	case FormatMarkdown:
		_, err := io.WriteString(w, t.Text().Markdown())
		return err
	case FormatTable:
		return t.forPeople().writeText(w, on)
	}
	return fmt.Errorf("unknown table format %q", format)
}

// writeCSV writes RFC 4180 with a line of names. Text that a spreadsheet would
// take for a formula gets an apostrophe in front, as spreadsheets themselves
// mark text: run records may come from other people. JSON is exact.
func (t *Table) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	record := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		record[i] = notFormula(clean.Lines(column.Key))
	}
	if err := c.Write(record); err != nil {
		return err
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			s, err := plain(cell)
			if err != nil {
				return fmt.Errorf("column %s: %w", t.Columns[i].Key, err)
			}
			record[i] = s
		}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// plain is a cell for a program that reads text.
func plain(cell any) (string, error) {
	switch c := cell.(type) {
	case nil:
		return "", nil
	case string:
		return notFormula(clean.Lines(c)), nil
	case time.Time:
		return c.UTC().Format(time.RFC3339), nil
	}
	if v := reflect.ValueOf(cell); v.Kind() == reflect.String {
		return notFormula(clean.Lines(v.String())), nil
	}
	return EncodeJSON(cell)
}

// notFormula marks a text that begins as formulas do, also in the wide forms of
// East Asian keyboards, which some spreadsheets take for the narrow ones.
func notFormula(s string) string {
	if first, size := utf8.DecodeRuneInString(s); size > 0 && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + s
	}
	return s
}

// writeJSON writes a list of objects, one a line.
func (t *Table) writeJSON(w io.Writer) error {
	list, err := t.list("")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, list+"\n")
	return err
}

// list is the rows as a JSON list, one a line, in a text that stands behind
// indent.
func (t *Table) list(indent string) (string, error) {
	if len(t.Rows) == 0 {
		return "[]", nil
	}
	objects := make([]string, len(t.Rows))
	for i := range t.Rows {
		object, err := t.object(i)
		if err != nil {
			return "", err
		}
		objects[i] = "\n" + indent + "  " + object
	}
	return "[" + strings.Join(objects, ",") + "\n" + indent + "]", nil
}

// object is row i as a JSON object, keys in the order of the columns.
func (t *Table) object(i int) (string, error) {
	members := make([]string, len(t.Columns))
	for j, cell := range t.Rows[i] {
		if at, ok := cell.(time.Time); ok {
			cell = at.UTC().Format(time.RFC3339)
		}
		value, err := EncodeJSON(cell)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", t.Columns[j].Key, err)
		}
		key, err := EncodeJSON(t.Columns[j].Key)
		if err != nil {
			return "", err
		}
		members[j] = key + ": " + value
	}
	return "{" + strings.Join(members, ", ") + "}", nil
}

// forPeople is the table without the columns that only programs get, and without
// the optional ones that no row has anything in.
func (t *Table) forPeople() *Table {
	return t.only(func(i int) bool {
		c := t.Columns[i]
		return !c.Data && (!c.Optional || len(t.Rows) == 0 || slices.ContainsFunc(t.Rows, func(row []any) bool {
			s := c.Text(row[i])
			return s != "" && s != number.Absent
		}))
	})
}

// forPrograms is the table without the columns that only people get.
func (t *Table) forPrograms() *Table {
	return t.only(func(i int) bool { return !t.Columns[i].People })
}

// only returns the table with some of its columns, chosen by index. keep may look at
// every row, so it is asked once per column.
func (t *Table) only(keep func(int) bool) *Table {
	part := &Table{Lead: t.Lead, Notes: t.Notes}
	var kept []int
	for i, c := range t.Columns {
		if keep(i) {
			kept = append(kept, i)
			part.Columns = append(part.Columns, c)
		}
	}
	for _, row := range t.Rows {
		cells := make([]any, len(kept))
		for i, column := range kept {
			cells[i] = row[column]
		}
		part.Rows = append(part.Rows, cells)
	}
	return part
}

// numeric reports whether column i holds numbers, which are set to the right.
func (t *Table) numeric(i int) bool {
	if t.Columns[i].Right {
		return true
	}
	for _, row := range t.Rows {
		if row[i] == nil {
			continue
		}
		_, ok := numeric(row[i])
		return ok
	}
	return false
}

// title is the column's name for people. A column may be called what a program of
// somebody's calls its figure.
func (c Column) title() string {
	title := c.Head
	if title == "" {
		title = strings.ReplaceAll(c.Key, "_", " ")
	}
	if c.Unit != "" {
		title += " (" + c.Unit + ")"
	}
	return clean.Line(title)
}

// Keys are columns that need nothing but a name.
func Keys(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i] = Column{Key: name}
	}
	return columns
}
