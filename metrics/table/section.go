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
		return flat(sections).Write(w, format, on)
	}
	gap := ""
	for _, part := range sections {
		if len(part.Table.Rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", gap, part.title(format, on)); err != nil {
			return err
		}
		if err := part.write(w, format, on); err != nil {
			return err
		}
		gap = "\n"
	}
	return nil
}

// flat returns a table with a row per value of the sections.
func flat(sections []Section) *Table {
	t := &Table{Columns: Keys("section", "row", "key", "value")}
	for _, part := range sections {
		for i, row := range part.Table.Rows {
			number := any(i + 1)
			if part.Record {
				number = nil
			}
			for j, cell := range row {
				t.Add(part.Key, number, part.Table.Columns[j].Key, cell)
			}
		}
	}
	return t
}

func (s Section) title(format string, on Screen) string {
	title := strings.ReplaceAll(s.Key, "_", " ")
	switch {
	case format == FormatMarkdown:
		return "## " + title + "\n"
	case on.Bold:
		return "\x1b[1m" + title + "\x1b[0m"
	}
	return title
}

// write prints a section's table, or one table per row if it is upright.
func (s Section) write(w io.Writer, format string, on Screen) error {
	if !s.Upright {
		return s.Table.Write(w, format, on)
	}
	for i, t := range s.Table.forPeople().uprights() {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := t.Write(w, format, on); err != nil {
			return err
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
