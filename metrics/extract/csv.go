package extract

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// largest is the size limit, in bytes, of a file that must be read as a whole.
const largest = 256 << 20

// wholeFile returns the content of a file that can only be parsed as a whole.
func (l *log) wholeFile(r io.Reader) ([]byte, error) { return l.upTo(r, largest) }

// upTo returns the content of a file, or an error if it has more than most bytes.
func (l *log) upTo(r io.Reader, most int64) ([]byte, error) {
	tooLarge := fmt.Errorf("%s: larger than %d MiB, the limit for a file of this format", l.o.File, most>>20)
	if l.o.Bytes > most {
		return nil, tooLarge
	}
	data := bytes.NewBuffer(make([]byte, 0, l.o.Bytes+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(r, most+1)); err != nil {
		return nil, fmt.Errorf("%s: %w", l.o.File, err)
	}
	if int64(data.Len()) > most {
		return nil, tooLarge
	}
	return data.Bytes(), nil
}

// table is a CSV file with a header line.
type table struct {
	l    *log
	at   map[string]int // column index by name
	rows [][]string
	line []int       // line number of each row
	more *csv.Reader // reads the remaining rows
	// header is the first row. A later row equal to it is the header of a second table.
	header []string
	// reads says how to convert each column of a table of runs; the keys are our names of figures
	// and labels.
	reads map[string]reading
	data  []byte // the whole file
	weak  bool   // weak scaling: runs on more workers do more work
}

// table reads a CSV file. A last line without a newline is an error, because its last
// number may be cut off.
func (l *log) table(r io.Reader, separators string) *table {
	t := l.names(r, separators)
	for {
		row, line, err := t.next()
		if errors.Is(err, io.EOF) {
			return t
		}
		failIf(err)
		t.rows, t.line = append(t.rows, row), append(t.line, line)
	}
}

// names parses only the header line; next then returns the rows.
func (l *log) names(r io.Reader, separators string) *table {
	data := must(l.wholeFile(r))
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if separators == tableSeparators {
		data = unframed(spaced(boxes(data)), separators)
		first := bytes.TrimSpace(data[:min(len(data), 64)])
		switch {
		case latexTable.Match(data[:min(len(data), 4096)]):
			l.fail(0, "it is a table in LaTeX: replace & by commas, and delete the \\\\ and the lines that begin with a backslash")
		case len(first) > 0 && bytes.ContainsAny(first[:1], "[{<"):
			l.fail(0, "it is JSON or HTML, and not a table in CSV: convert it (jq -r '… | @csv', or a spreadsheet), or name its format with --from")
		}
	}
	t := &table{l: l, at: map[string]int{}, more: csv.NewReader(bytes.NewReader(data)), data: data}
	if len(data) == 0 {
		return t
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		l.fail(0, inUTF16)
	}
	if data[len(data)-1] != '\n' {
		lines := bytes.Count(data, []byte{'\n'})
		l.fail(lines+1, "the last line has no line end: the file may be cut off. If it is whole, end it with a newline")
	}
	head, _, _ := bytes.Cut(bytes.TrimLeft(data, "\r\n"), []byte{'\n'})
	if i := bytes.IndexAny(head, separators); i >= 0 {
		t.more.Comma = rune(head[i])
	}
	names, line, err := t.next()
	if errors.Is(err, io.EOF) { // blank lines
		return t
	}
	failIf(err)
	for i, name := range names {
		name = strings.TrimSpace(name)
		if _, twice := t.at[name]; twice {
			l.fail(line, "two columns are named %s: give each column a name of its own, in one line (a header of two lines, or of merged cells, is not read)", clip(name))
		}
		t.at[name] = i
	}
	t.header = slices.Clone(names)
	return t
}

// boxes replaces the characters with which programs draw the frame of a table.
func boxes(data []byte) []byte {
	if !bytes.ContainsAny(data[:min(len(data), 4096)], "│┃║") {
		return data
	}
	return []byte(strings.Map(func(r rune) rune {
		switch {
		case r == '│' || r == '┃' || r == '║':
			return '|'
		case r >= 0x2500 && r <= 0x257f:
			return '-'
		}
		return r
	}, string(data)))
}

// unframed blanks the lines of a table that a CSV reader does not know, so that line numbers stay:
// the first lines if they are comments or Excel's "sep=;", and the frame of a table in Markdown or in text.
func unframed(data []byte, separators string) []byte {
	if first := bytes.TrimSpace(data[:min(len(data), 64)]); len(first) == 0 || !bytes.ContainsAny(first[:1], "#|s+-") {
		return data
	}
	lines := bytes.SplitAfter(data, []byte{'\n'})
	markdown := false
	for i, line := range lines {
		text := bytes.TrimSpace(line)
		preface := !markdown && (bytes.HasPrefix(text, []byte("#")) && !bytes.ContainsAny(text, separators) || bytes.HasPrefix(text, []byte("sep=")))
		switch {
		case len(text) == 0:
		case preface:
			lines[i] = []byte{'\n'}
		case len(bytes.Trim(text, "|:-+= ")) == 0:
			markdown, lines[i] = true, []byte{'\n'}
		case !markdown && (text[0] != '|' || text[len(text)-1] != '|'):
			return bytes.Join(lines, nil)
		default:
			markdown = true
			lines[i] = bytes.Replace(line, text, bytes.TrimSuffix(bytes.TrimPrefix(text, []byte{'|'}), []byte{'|'}), 1)
			lines[i] = bytes.ReplaceAll(bytes.ReplaceAll(lines[i], []byte("**"), nil), []byte("`"), nil) // bold, code
		}
	}
	return bytes.Join(lines, nil)
}

// next returns the next row and the line where it begins; io.EOF after the last.
func (t *table) next() (row []string, line int, err error) {
	row, err = t.more.Read()
	var p *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil, 0, err
	case errors.As(err, &p) && errors.Is(p.Err, csv.ErrFieldCount):
		return nil, 0, t.l.errorAt(p.Line, "%w: %d, and the first row has %d. Decimal commas split a field: write points, or separate fields by semicolons", p.Err, len(row), t.more.FieldsPerRecord)
	case err != nil: // data is in memory, so that only parsing fails
		return nil, 0, t.l.errorAt(p.Line, "%w", p.Err)
	}
	line, _ = t.more.FieldPos(0)
	if len(row) > 1 && slices.Equal(row, t.header) {
		return nil, 0, t.l.errorAt(line, "the header again: a second table was appended. One file is one table: split it")
	}
	return row, line, nil
}

// value returns the number in a cell. ok is false if the cell is empty or holds a word for a
// missing value (NA, nan, none, null).
func (t *table) value(row int, column string) (v Value, ok bool) {
	i, has := t.at[column]
	if !has || column == "" { // "" means that there is no such column; pandas writes an index without a name
		return v, false
	}
	return t.number(row, column, strings.TrimSpace(t.rows[row][i]))
}

// number returns the number that a cell states as text, like value.
func (t *table) number(row int, column, text string) (v Value, ok bool) {
	switch strings.ToLower(text) {
	case "", "na", "nan", "none", "null", "n/a", "-", "–", "—", "--":
		return v, false
	}
	plain := text
	if d := t.l.o.Decimal; d != "" {
		if number, is := d.plain(text); is {
			plain = number
		} else {
			plain = "none"
		}
	}
	x, is := parsed(plain)
	if !is {
		why := unreadable(text) + cellHint(text)
		if how := separated(text); how != "" && t.l.o.Decimal == "" {
			why = clip(text) + " has separators: " + how
		}
		t.l.fail(t.line[row], "column %s: %s", column, why)
	}
	return Value{Number: x, Line: t.line[row]}, true
}

// column returns the name of the column for our key: the one that the user mapped to it, else the
// first of usual that the file has, else "".
func (t *table) column(ours string, usual ...string) string {
	if theirs, ok := t.l.o.Columns[ours]; ok {
		if _, ok := t.at[theirs]; !ok {
			t.l.fail(0, "no column %q; the file has %s", theirs, t.names())
		}
		return theirs
	}
	usual = slices.DeleteFunc(slices.Clone(usual), func(name string) bool { _, has := t.at[name]; return !has })
	if len(usual) == 0 {
		return ""
	}
	if len(usual) > 1 {
		t.l.note("%s is read from column %s; %s may be it too: for that write %s", ours, clip(usual[0]), listed(slices.Clone(usual[1:])), mapping(ours, usual[1], ""))
	}
	return usual[0]
}

// maxNamed is the largest number of columns or tags that a message lists.
const maxNamed = 100

// names returns a list of the columns, in the order of the file, for messages.
func (t *table) names() string {
	if len(t.at) == 0 {
		return "none"
	}
	if len(t.at) == 1 {
		return listed(t.ordered()) + ", which is one column: separate columns by commas, semicolons, tabs or | (sacct --parsable2 does), and delete lines above the names of the columns"
	}
	return listed(t.ordered())
}

// ordered returns the names of the columns in the order of the file.
func (t *table) ordered() []string {
	return slices.SortedFunc(maps.Keys(t.at), func(a, b string) int { return cmp.Compare(t.at[a], t.at[b]) })
}

// listed returns a list of columns or tags for a message, shortened to the first maxNamed.
func listed(names []string) string {
	more := len(names) - maxNamed
	names = names[:min(len(names), maxNamed)]
	for i := range names {
		names[i] = clip(names[i])
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
