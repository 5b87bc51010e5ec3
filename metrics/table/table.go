// Package table prints rows as text, Markdown, CSV or JSON, all from one description
// of the columns. Package metrics/report decides what tables contain;
// metrics/number formats numbers.
package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
)

// The output formats. Table and markdown are for people: three significant digits,
// with units. CSV and JSON are for programs: base units (seconds, samples, bytes), all
// digits, and null or an empty field for missing values.
const (
	FormatTable    = "table"
	FormatCSV      = "csv"
	FormatJSON     = "json"
	FormatMarkdown = "markdown"
)

// Formats lists all formats.
var Formats = []string{FormatTable, FormatCSV, FormatJSON, FormatMarkdown}

// A Table holds rows that can be printed in any of the formats.
//
// A cell is a string, bool, number, time.Time, a pointer to one of these, nil, or
// anything that encodes to JSON. nil, a nil pointer, the zero time, NaN and infinities
// mean "not measured": number.Absent for people, null or an empty field for programs.
type Table struct {
	Columns []Column
	Rows    [][]any
	Lead    string // line above the table; for people only
	// Notes are lines below the table; for people only.
	Notes []string
}

// A Column describes one column of a table.
type Column struct {
	Key  string // name in CSV and JSON, snake_case
	Head string // title for people; "" means the key with spaces
	Unit string // unit of the stored numbers, "samples/s"; shown in the title
	// Show formats a number for people; nil means number.Significant. If it writes a
	// unit itself, Unit must be empty.
	Show func(float64) string
	// ID marks a column that identifies the row, such as the number of workers. A table
	// that is too wide for a terminal repeats it. Without any, it is the first column.
	ID bool
	// Right aligns text to the right, for text made of numbers.
	Right bool
	// Data shows the column only in CSV and JSON.
	Data bool
	// People hides the column from CSV and JSON, which have the same facts in another
	// column.
	People bool
	// Optional hides the column from people if it is empty in all rows.
	Optional bool
}

// Add appends a row, one cell per column.
func (t *Table) Add(cells ...any) {
	if len(cells) != len(t.Columns) {
		panic(fmt.Sprintf("a row of %d cells in a table of %d columns", len(cells), len(t.Columns)))
	}
	row := make([]any, len(cells))
	for i, c := range cells {
		row[i] = Deref(c)
	}
	t.Rows = append(t.Rows, row)
}

// Write prints the table.
func (t *Table) Write(w io.Writer, format string, on Screen) error {
	switch format {
	case FormatCSV:
		return t.writeCSV(w)
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

func (t *Table) writeCSV(w io.Writer) error {
	c, err := NewCSV(w, t.Columns)
	if err != nil {
		return err
	}
	for _, row := range t.Rows {
		if err := c.Write(row...); err != nil {
			return err
		}
	}
	return c.Flush()
}

// A CSV writes rows as RFC 4180 with a header line, without columns for people. Text that
// a spreadsheet would read as a formula gets an apostrophe in front, as spreadsheets do
// themselves: run records may come from other people. JSON keeps such text unchanged.
type CSV struct {
	w       *csv.Writer
	columns []Column
	record  []string
}

// NewCSV writes the header line.
func NewCSV(w io.Writer, columns []Column) (*CSV, error) {
	c := &CSV{w: csv.NewWriter(w), columns: columns}
	for _, column := range columns {
		if !column.People {
			c.record = append(c.record, notFormula(clean.Lines(column.Key)))
		}
	}
	return c, c.w.Write(c.record)
}

// Write writes a row, one cell per column.
func (c *CSV) Write(cells ...any) error {
	c.record = c.record[:0]
	for i, cell := range cells {
		if c.columns[i].People {
			continue
		}
		s, err := plain(Deref(cell))
		if err != nil {
			return fmt.Errorf("column %s: %w", c.columns[i].Key, err)
		}
		c.record = append(c.record, s)
	}
	return c.w.Write(c.record)
}

// Flush writes what is buffered.
func (c *CSV) Flush() error {
	c.w.Flush()
	return c.w.Error()
}

// plain formats a cell for a program that reads text.
func plain(cell any) (string, error) {
	switch c := cell.(type) {
	case nil:
		return "", nil
	case string:
		return notFormula(clean.Lines(c)), nil
	case time.Time:
		return c.UTC().Format(time.RFC3339), nil
	case int:
		return strconv.Itoa(c), nil
	case []string:
		if len(c) == 0 && c != nil {
			return "[]", nil
		}
	}
	if v := reflect.ValueOf(cell); v.Kind() == reflect.String {
		return notFormula(clean.Lines(v.String())), nil
	}
	return EncodeJSON(cell)
}

// notFormula marks text that starts like a formula, including the wide forms of East
// Asian keyboards, which some spreadsheets accept.
func notFormula(s string) string {
	if first, size := utf8.DecodeRuneInString(s); size > 0 && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + s
	}
	return s
}

// writeJSON writes a list of objects, one per line.
func (t *Table) writeJSON(w io.Writer) error {
	list, err := t.list("")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, list+"\n")
	return err
}

// list returns the rows as a JSON list, one per line, indented by indent.
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

// object returns row i as a JSON object, keys in the order of the columns.
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

// forPeople returns the table without columns for programs only and without empty
// optional columns.
func (t *Table) forPeople() *Table {
	return t.only(func(i int) bool {
		c := t.Columns[i]
		return !c.Data && (!c.Optional || len(t.Rows) == 0 || slices.ContainsFunc(t.Rows, func(row []any) bool {
			s := c.Text(row[i])
			return s != "" && s != number.Absent
		}))
	})
}

// forPrograms returns the table without columns for people only.
func (t *Table) forPrograms() *Table {
	return t.only(func(i int) bool { return !t.Columns[i].People })
}

// only returns the table with some of its columns, chosen by index. keep may look at
// every row, so it is called once per column.
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

// numeric reports whether column i holds numbers, which are aligned to the right.
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

// title returns the column's title. It is cleaned, because a user's program may have
// named the figure.
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

// Keys returns columns with only a key.
func Keys(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i] = Column{Key: name}
	}
	return columns
}
