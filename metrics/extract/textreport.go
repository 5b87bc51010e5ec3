package extract

import (
	"io"
	"regexp"
	"slices"
	"strings"
)

// A textReport declares the format of a report that a program prints: its first and last line,
// and the lines between them that state numbers.
type textReport struct {
	begin, end *regexp.Regexp // end nil: the report ends with the log
	sections   *regexp.Regexp // matches the line that starts a section; nil: every line that ends with a colon does
	lines      []textLine
	again      string // error if a report begins before the previous one ended; "%d" is the line of the previous one
	several    bool   // a log may have several reports, each with its last line
	cut        string // error if a report has no last line
}

// A textLine declares a line by an expression. Each named group gives a value with that name. The
// group "unit" is the time unit of the group before it. The text that the group "key" matches is
// appended to the names, as in "latency 99".
type textLine struct {
	in string // section in which the line is; "": any; eachSection: any, and the names are followed by the section's
	re *regexp.Regexp
}

const eachSection = "*"

// textLines returns declarations of lines in one section.
func textLines(section string, expressions ...string) (list []textLine) {
	for _, e := range expressions {
		list = append(list, textLine{section, regexp.MustCompile(e)})
	}
	return list
}

var afterColon = regexp.MustCompile(`^\S.*:\s*$`)

// A textResult holds the values of one report.
type textResult struct {
	l        *log
	line     int      // number of its first line
	sections []string // names of the sections, in order
	of       map[string]statedText
}

// A statedText is a value as a report writes it.
type statedText struct {
	name, text, unit string
	line             int
}

// section returns the name of the section in which the latest line is.
func (t *textResult) section() string {
	if len(t.sections) == 0 {
		return ""
	}
	return t.sections[len(t.sections)-1]
}

// take stores the values of a line if the expression matches it. taken reports whether it does. The
// section, if any, is appended to their names.
func (t *textResult) take(ln line, re *regexp.Regexp, section string) (taken bool) {
	m := re.FindStringSubmatch(ln.text)
	if m == nil {
		return false
	}
	key, timed := "", re.SubexpIndex("unit")
	if i := re.SubexpIndex("key"); i >= 0 {
		if key = strings.TrimSpace(m[i]); decimal.MatchString(key) && strings.Contains(key, ".") {
			key = strings.TrimSuffix(strings.TrimRight(key, "0"), ".") // for example "99.000"
		}
		key = " " + key
	}
	if section != "" {
		key += " " + section
	}
	for i, name := range re.SubexpNames() {
		if name == "" || name == "key" || name == "unit" || m[i] == "" {
			continue
		}
		if before, twice := t.of[name+key]; twice {
			t.l.fail(ln.number, "this is on line %d too: a line is damaged, or there are two reports. One file is one report: split it", before.line)
		}
		said := statedText{name: name, text: m[i], line: ln.number}
		if i+1 == timed {
			said.unit = m[timed]
		}
		t.of[name+key] = said
	}
	return true
}

// number returns a value as a number. scale is the length of its time unit in seconds, or 1
// without a unit. It is the source function that served.fields calls.
func (t *textResult) number(name string) (v Value, scale float64, ok bool) {
	s, ok := t.of[name]
	if !ok {
		return v, 1, false
	}
	scale = 1
	if s.unit != "" {
		scale = t.l.unit(s.line, s.unit)
	}
	return t.l.parse(s.line, s.text), scale, true
}

// numbers returns several values by name. A missing one is 0.
func (t *textResult) numbers(names ...string) map[string]Value {
	list := map[string]Value{}
	for _, name := range names {
		v, scale, ok := t.number(name)
		if ok {
			v.Number *= scale
			list[name] = v
		}
	}
	return list
}

// has reports whether the report states all of these values.
func (t *textResult) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return t.of[name].line == 0 })
}

// A textReader is the parser's state while it reads the reports in a log.
type textReader struct {
	textReport
	l     *log
	f     func(*textResult) // called with each complete report
	from  first
	one   *textResult // the current report
	began int         // line of the start of the latest report
}

func (d textReport) reader(l *log, f func(*textResult)) *textReader {
	if d.sections == nil {
		d.sections = afterColon
	}
	return &textReader{textReport: d, l: l, f: f}
}

// read reads a log that contains only reports, and calls f with each.
func (d textReport) read(l *log, r io.Reader, f func(*textResult)) {
	t := d.reader(l, f)
	l.each(r, t.line)
	t.finish()
}

func (t *textReader) line(ln line) {
	if t.begin.MatchString(ln.text) && t.from.takes(ln) {
		if t.one != nil || t.began > 0 && !t.several {
			t.l.fail(ln.number, t.again, t.began)
		}
		t.began, t.one = ln.number, &textResult{l: t.l, line: ln.number, of: map[string]statedText{}}
		t.one.take(ln, t.begin, "")
		return
	}
	if t.one == nil || ln.source != t.from.source {
		return
	}
	if t.sections.MatchString(ln.text) {
		t.one.sections = append(t.one.sections, strings.TrimSpace(ln.text))
	}
	if t.end != nil && t.end.MatchString(ln.text) {
		if t.one.take(ln, t.end, ""); !t.several {
			return
		}
		one := t.one
		t.one = nil
		t.f(one)
		return
	}
	for _, d := range t.lines {
		section := ""
		switch {
		case d.in == eachSection:
			section = t.one.section()
		case d.in != "" && d.in != t.one.section():
			continue
		}
		if t.one.take(ln, d.re, section) {
			return
		}
	}
}

func (t *textReader) finish() {
	switch {
	case t.one == nil:
		t.from.note(t.l)
		return
	case t.several:
		t.l.fail(t.began, "%s", t.cut)
	}
	t.from.note(t.l)
	t.f(t.one)
}
