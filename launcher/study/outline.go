package study

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a file. They are needed because the toml package uses stack for each nesting
// level and memory for each value. A file that lists every value of the largest possible
// plan has about a megabyte.
const (
	maxFile   = 8 << 20 // bytes
	maxNested = 32      // nesting depth of tables, lists and dotted keys
	maxLoose  = 1 << 14 // brackets in a file that outline cannot parse
)

// outline returns the line number of every key and list entry of a TOML file, by path:
// "prices[1].where", "sweep.workers[2]". The toml package does not report all of these.
// outline returns an error for a file that is nested too deeply, since the recursion of the
// toml package has no limit. It ignores invalid TOML, which the parser reports.
func outline(source []byte) (lines, error) {
	o := outliner{text: string(source), line: 1, lines: lines{}, count: map[string]int{}}
	err := o.file()
	if err == errLost {
		if n := strings.Count(o.text, "[") + strings.Count(o.text, "{"); n > maxLoose {
			return o.lines, fmt.Errorf("%d opening brackets in a file that is not a TOML", n)
		}
		err = nil
	}
	return o.lines, err
}

// errLost is returned if the text is not TOML.
var errLost = fmt.Errorf("not TOML")

type outliner struct {
	text  string
	at    int
	line  int
	lines lines
	count map[string]int // number of entries of each [[table]] so far

	// Byte offsets of keys and values; nil unless requested.
	spans   map[string]span // by key
	headers map[string]int  // end of each [table] header
	order   []string        // the keys of spans in file order
	tables  int             // number of table headers so far
	within  int             // number of enclosing inline tables and lists
}

// A span is the position of a key and its value.
type span struct {
	key, value, end int  // start of the key, start of the value, end of the value
	inline          bool // within { } or [ ]
	root            bool // before any table
}

// peek returns the next byte, 0 at the end.
func (o *outliner) peek() byte {
	if o.at < len(o.text) {
		return o.text[o.at]
	}
	return 0
}

func (o *outliner) take(c byte) bool {
	if o.peek() != c || o.at == len(o.text) {
		return false
	}
	o.at++
	return true
}

// space skips white space. If breaks is set, it also skips newlines and comments.
func (o *outliner) space(breaks bool) {
	for o.at < len(o.text) {
		switch c := o.text[o.at]; {
		case c == ' ' || c == '\t' || c == '\r':
		case c == '\n' && breaks:
			o.line++
		case c == '#' && breaks:
			for o.at+1 < len(o.text) && o.text[o.at+1] != '\n' {
				o.at++
			}
		default:
			return
		}
		o.at++
	}
}

func (o *outliner) file() error {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\ufeff"} { // skip at most one byte order mark, as the parser does
		if text, marked := strings.CutPrefix(o.text, mark); marked {
			o.text = text
			break
		}
	}
	table, depth := "", 0
	for {
		o.space(true)
		if o.at == len(o.text) {
			return nil
		}
		if !o.take('[') {
			if err := o.pair(table, depth); err != nil {
				return err
			}
			continue
		}
		list := o.take('[')
		line := o.line
		names, err := o.key()
		if err != nil {
			return err
		}
		if !o.take(']') || list && !o.take(']') {
			return errLost
		}
		o.tables++
		table, depth = o.header(names, list, line), len(names)
	}
}

// header records the header of a table, or of an entry in a list of tables, and returns the
// table's path.
func (o *outliner) header(names []string, list bool, line int) (table string) {
	for i, name := range names {
		table = join(table, name)
		if list && i == len(names)-1 {
			o.count[table]++
			o.mark(table, line)
		}
		if n := o.count[table]; n > 0 {
			table += "[" + strconv.Itoa(n-1) + "]"
		}
		o.mark(table, line)
	}
	if o.headers != nil && !list {
		o.headers[table] = o.at
	}
	return table
}

func (o *outliner) mark(path string, line int) {
	if o.lines[path] == 0 {
		o.lines[path] = line
	}
}

// pair parses "key = value" in a table.
func (o *outliner) pair(table string, depth int) error {
	line, from := o.line, o.at
	names, err := o.key()
	if err != nil {
		return err
	}
	for _, name := range names {
		table = join(table, name)
		o.mark(table, line)
	}
	if !o.take('=') {
		return errLost
	}
	o.space(false)
	at := o.at
	err = o.value(table, depth+len(names))
	if _, known := o.spans[table]; o.spans != nil && !known {
		end := at + len(strings.TrimRight(o.text[at:o.at], " \t\r"))
		o.spans[table] = span{from, at, end, o.within > 0, o.tables == 0}
		o.order = append(o.order, table)
	}
	return err
}

// key parses a dotted key and the space after it.
func (o *outliner) key() ([]string, error) {
	var names []string
	for {
		o.space(false)
		var name string
		if c := o.peek(); c == '"' || c == '\'' {
			text, err := o.quoted()
			if err != nil {
				return nil, err
			}
			name = text[1 : len(text)-1]
			if unquoted, err := strconv.Unquote(text); c == '"' && err == nil {
				name = unquoted
			}
		} else {
			from := o.at
			for o.at < len(o.text) && !strings.ContainsRune(" \t\r\n.=[]{}\"'#,", rune(o.text[o.at])) {
				o.at++
			}
			if name = o.text[from:o.at]; name == "" {
				return nil, errLost
			}
		}
		if names = append(names, name); len(names) > maxNested {
			return nil, o.tooDeep()
		}
		o.space(false)
		if !o.take('.') {
			return names, nil
		}
	}
}

func (o *outliner) tooDeep() error { return &nestedError{o.line} }

type nestedError struct{ line int }

func (e *nestedError) Error() string {
	return fmt.Sprintf("lists, tables and dotted keys go more than %d levels deep", maxNested)
}

func (o *outliner) value(path string, depth int) error {
	if depth > maxNested {
		return o.tooDeep()
	}
	switch o.peek() {
	case '[':
		return o.items(']', func(i int) error {
			entry := path + "[" + strconv.Itoa(i) + "]"
			o.mark(entry, o.line)
			return o.value(entry, depth+1)
		})
	case '{':
		return o.items('}', func(int) error { return o.pair(path, depth) })
	case '"', '\'':
		_, err := o.quoted()
		return err
	}
	from := o.at
	for o.at < len(o.text) && !strings.ContainsRune(",]}#\n", rune(o.text[o.at])) {
		o.at++
	}
	if strings.TrimSpace(o.text[from:o.at]) == "" {
		return errLost
	}
	return nil
}

// items parses items separated by commas, up to the closing bracket; item parses the i-th.
func (o *outliner) items(closing byte, item func(i int) error) error {
	o.within++
	defer func() { o.within-- }()
	o.at++
	for i := 0; ; i++ {
		o.space(true)
		if o.take(closing) {
			return nil
		}
		if err := item(i); err != nil {
			return err
		}
		o.space(true)
		if !o.take(',') && o.peek() != closing {
			return errLost
		}
	}
}

// quoted parses a string in any of the four forms, quotes included.
func (o *outliner) quoted() (string, error) {
	from, quote := o.at, o.text[o.at:o.at+1]
	if strings.HasPrefix(o.text[o.at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for o.at += len(quote); o.at < len(o.text); o.at++ {
		switch c := o.text[o.at]; {
		case c == '\\' && quote[0] == '"':
			if o.at++; o.at < len(o.text) && o.text[o.at] == '\n' {
				o.line++
			}
		case c == '\n' && len(quote) == 1:
			return "", errLost
		case c == '\n':
			o.line++
		case strings.HasPrefix(o.text[o.at:], quote):
			o.at += len(quote)
			for range 2 { // two more quotes may precede the closing three
				if len(quote) == 3 && o.peek() == quote[0] {
					o.at++
				}
			}
			return o.text[from:o.at], nil
		}
	}
	return "", errLost
}
