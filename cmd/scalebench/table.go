package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/report"
)

// Formats of a printed table. Table and markdown are for people: rounded to
// three significant digits, with units. CSV and JSON are for programs: base
// units (seconds, samples, bytes), every digit, and null or an empty field
// where nothing was measured.
const (
	formatTable    = "table"
	formatCSV      = "csv"
	formatJSON     = "json"
	formatMarkdown = "markdown"
)

var formats = []string{formatTable, formatCSV, formatJSON, formatMarkdown}

// table is rows to be printed in any of the formats.
//
// A cell is a string, bool, number, time.Time, a pointer to one of these, nil,
// or anything that encodes to JSON. nil, a nil pointer, the zero time, NaN and
// the infinities are "not had".
type table struct {
	columns []column
	rows    [][]any
	// notes stand below the table; for people only.
	notes []string
}

// column is one column of a table.
type column struct {
	key  string // name in CSV and JSON, snake_case
	head string // name for people; "" is the key with spaces
	unit string // of the numbers as they are stored, "samples/s"; shown in the head
	// show is how a number is written for people; nil is significant. One that
	// writes its own unit goes with an empty unit above.
	show func(float64) string
	// right sets text to the right, where it is made of numbers.
	right bool
	// data keeps the column out of what people are shown: CSV and JSON only.
	data bool
	// optional lets a terminal that is too narrow leave the column out, the
	// last of them first; a line below the table names them.
	optional bool
}

// add appends a row, one cell a column.
func (t *table) add(cells ...any) {
	if len(cells) != len(t.columns) {
		panic(fmt.Sprintf("a row of %d cells in a table of %d columns", len(cells), len(t.columns)))
	}
	row := make([]any, len(cells))
	for i, c := range cells {
		row[i] = bare(c)
	}
	t.rows = append(t.rows, row)
}

// bare takes a cell out of its pointer; nil is "not had".
func bare(cell any) any {
	v := reflect.ValueOf(cell)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil
	}
	switch c := v.Interface().(type) {
	case time.Time:
		if c.IsZero() {
			return nil
		}
		return c
	case float64:
		if math.IsNaN(c) || math.IsInf(c, 0) {
			return nil
		}
		return c
	default:
		return c
	}
}

// write prints the table.
func (t *table) write(w io.Writer, format string, on screen) error {
	switch format {
	case formatCSV:
		return t.writeCSV(w)
	case formatJSON:
		return t.writeJSON(w)
	case formatMarkdown:
		return t.forPeople().writeMarkdown(w)
	case formatTable:
		return t.forPeople().writeText(w, on)
	}
	return fmt.Errorf("unknown table format %q", format)
}

// writeCSV writes RFC 4180 with a line of names. Text that a spreadsheet would
// take for a formula gets an apostrophe in front, as spreadsheets themselves
// mark text: run records may come from other people. JSON is exact.
func (t *table) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	record := make([]string, len(t.columns))
	for i, column := range t.columns {
		record[i] = column.key
	}
	if err := c.Write(record); err != nil {
		return err
	}
	for _, row := range t.rows {
		for i, cell := range row {
			s, err := plain(cell)
			if err != nil {
				return fmt.Errorf("column %s: %w", t.columns[i].key, err)
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
	return encodeJSON(cell)
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
func (t *table) writeJSON(w io.Writer) error {
	list, err := t.list("")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, list+"\n")
	return err
}

// list is the rows as a JSON list, one a line, in a text that stands behind
// indent.
func (t *table) list(indent string) (string, error) {
	if len(t.rows) == 0 {
		return "[]", nil
	}
	objects := make([]string, len(t.rows))
	for i := range t.rows {
		object, err := t.object(i)
		if err != nil {
			return "", err
		}
		objects[i] = "\n" + indent + "  " + object
	}
	return "[" + strings.Join(objects, ",") + "\n" + indent + "]", nil
}

// object is row i as a JSON object, keys in the order of the columns.
func (t *table) object(i int) (string, error) {
	members := make([]string, len(t.columns))
	for j, cell := range t.rows[i] {
		if at, ok := cell.(time.Time); ok {
			cell = at.UTC().Format(time.RFC3339)
		}
		value, err := encodeJSON(cell)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", t.columns[j].key, err)
		}
		key, err := encodeJSON(t.columns[j].key)
		if err != nil {
			return "", err
		}
		members[j] = key + ": " + value
	}
	return "{" + strings.Join(members, ", ") + "}", nil
}

// writeMarkdown writes a table as GitHub's Markdown has it.
func (t *table) writeMarkdown(w io.Writer) error {
	_, err := io.WriteString(w, t.page("", "").Markdown())
	return err
}

// page is the table as text, for a page.
func (t *table) page(id, title string) *report.Table {
	page := &report.Table{ID: id, Title: title}
	for i, c := range t.columns {
		page.Columns = append(page.Columns, report.Column{Title: clean.Line(c.title()), Right: t.numeric(i)})
	}
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = t.columns[i].text(cell)
		}
		page.Rows = append(page.Rows, cells)
	}
	for _, note := range t.notes {
		page.Notes = append(page.Notes, clean.Line(note))
	}
	return page
}

// forPeople is the table without the columns that only programs get.
func (t *table) forPeople() *table {
	return t.only(func(i int) bool { return !t.columns[i].data })
}

// only is the table with some of its columns, by their index.
func (t *table) only(keep func(int) bool) *table {
	part := &table{notes: t.notes}
	for i, c := range t.columns {
		if keep(i) {
			part.columns = append(part.columns, c)
		}
	}
	for _, row := range t.rows {
		var cells []any
		for i, cell := range row {
			if keep(i) {
				cells = append(cells, cell)
			}
		}
		part.rows = append(part.rows, cells)
	}
	return part
}

// numeric reports whether column i holds numbers, which are set to the right.
func (t *table) numeric(i int) bool {
	if t.columns[i].right {
		return true
	}
	for _, row := range t.rows {
		if row[i] == nil {
			continue
		}
		_, ok := number(row[i])
		return ok
	}
	return false
}

// title is the column's name for people.
func (c column) title() string {
	title := c.head
	if title == "" {
		title = strings.ReplaceAll(c.key, "_", " ")
	}
	if c.unit != "" {
		title += " (" + c.unit + ")"
	}
	return title
}
