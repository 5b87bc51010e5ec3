package table

import (
	"fmt"
	"io"
	"strings"
)

// A Section is one part of the page about a run.
type Section struct {
	Key     string
	Table   *Table
	Record  bool // at most one row
	Upright bool // for people: list the cells of a row vertically
}

// WriteSections prints the sections in any of the formats. JSON has a member per
// section: an object or null for a record, a list for the others. CSV has a line per
// value.
func WriteSections(w io.Writer, sections []Section, format string, on Screen) error {
	switch format {
	case FormatJSON:
		return writeSectionsJSON(w, sections)
	case FormatCSV:
		flat := &Table{Columns: []Column{{Key: "section"}, {Key: "row"}, {Key: "key"}, {Key: "value"}}}
		for _, part := range sections {
			for i, row := range part.Table.Rows {
				number := any(i + 1)
				if part.Record {
					number = nil
				}
				for j, cell := range row {
					flat.Add(part.Key, number, part.Table.Columns[j].Key, cell)
				}
			}
		}
		return flat.Write(w, format, on)
	}
	first := true
	for _, part := range sections {
		if len(part.Table.Rows) == 0 {
			continue
		}
		gap := "\n"
		if first {
			gap, first = "", false
		}
		title := strings.ReplaceAll(part.Key, "_", " ")
		switch {
		case format == FormatMarkdown:
			title = "## " + title + "\n"
		case on.Bold:
			title = "\x1b[1m" + title + "\x1b[0m"
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", gap, title); err != nil {
			return err
		}
		shown := []*Table{part.Table}
		if part.Upright {
			shown = part.Table.forPeople().uprights()
		}
		for i, t := range shown {
			if i > 0 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return err
				}
			}
			if err := t.Write(w, format, on); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeSectionsJSON(w io.Writer, sections []Section) error {
	members := make([]string, len(sections))
	for i, part := range sections {
		value := "null"
		var err error
		switch {
		case !part.Record:
			value, err = part.Table.list("  ")
		case len(part.Table.Rows) > 0:
			value, err = part.Table.object(0)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", part.Key, err)
		}
		members[i] = fmt.Sprintf("\n  %q: %s", part.Key, value)
	}
	_, err := io.WriteString(w, "{"+strings.Join(members, ",")+"\n}\n")
	return err
}

// uprights returns each row as a table of two columns, for people.
func (t *Table) uprights() []*Table {
	list := make([]*Table, len(t.Rows))
	for i, row := range t.Rows {
		list[i] = &Table{Columns: Keys("key", "value")}
		for j, cell := range row {
			list[i].Add(t.Columns[j].title(), t.Columns[j].Text(cell))
		}
	}
	return list
}
