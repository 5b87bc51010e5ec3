package extract

import (
	"io"
	"regexp"
	"slices"
)

// A stepFormat declares the log format of a program that prints a line every step or every few
// steps.
type stepFormat struct {
	program    string // name of the program in notes: "torchtitan"
	starting   int    // number of lines after each start that rates leave out
	convention string // name of the program's MFU convention; "" for none

	// line matches the line of a step. Its group "step" is the step number. The groups "fields"
	// and "before" (before the step number) contain named fields. Without a group "fields",
	// every named group is a field.
	line      *regexp.Regexp
	separator string         // separator between fields of the form "name: value"
	pair      *regexp.Regexp // matches a name and a value, if no separator is between fields
	needs     []string       // fields that a complete line has; other lines were cut off or are another program's
	step      string         // field with the step number, if the number in the line restarts every epoch
	batch     string         // field with the global batch
	consumed  string         // field with the samples of all steps up to this one
	losses    []string       // fields with the loss; the first one that a line has counts
	fields    []stepField
	ignored   *regexp.Regexp // names of fields that are not measures; nil: do not note unread fields
	others    []stepLine     // tried before line

	// more handles what fields cannot declare. It is called before them for each accepted line.
	more func(s *stepLog, ln line, step int, fields parts)
}

// A stepField maps a field of a line to our figure; scale is the factor to the figure's unit. If
// number is set, its first group matches the number. A field that number does not match is
// ignored.
type stepField struct {
	theirs, ours string
	scale        float64
	number       *regexp.Regexp
}

// text returns the number that a line states in the field; ok is false if it states none.
func (d stepField) text(fields parts) (text string, ok bool) {
	text, ok = fields[d.theirs]
	if ok && d.number != nil {
		m := d.number.FindStringSubmatch(text)
		if m == nil {
			return "", false
		}
		text = m[1]
	}
	return ungrouped(text), ok
}

// A stepLine is another kind of line in a log of steps, with the function that handles it.
type stepLine struct {
	re   *regexp.Regexp
	take func(s *stepLog, ln line, m []string)
}

// evaluationLine declares a line with the loss of an evaluation. The first two groups of re are
// the step and the loss.
func evaluationLine(re *regexp.Regexp) stepLine {
	return stepLine{re, func(s *stepLog, ln line, m []string) { s.evaluationAt(ln, m[1], m[2]) }}
}

func (f *stepFormat) read(l *log, r io.Reader) {
	s := newStepLog(l, f)
	l.each(r, s.read)
	s.finish()
}

func (s *stepLog) read(ln line) {
	f := s.format
	for _, other := range f.others {
		if m := other.re.FindStringSubmatch(ln.text); m != nil {
			other.take(s, ln, m)
			return
		}
	}
	m := f.line.FindStringSubmatch(ln.text)
	if m == nil {
		return
	}
	if s.from.taken && ln.source != s.from.source {
		s.otherRank(ln, m)
		return
	}
	if len(f.needs) == 0 && f.step == "" { // check other ranks' lines only if the format needs their fields
		if step, ok := s.takesText(ln, m[f.line.SubexpIndex("step")]); ok {
			s.declared(ln, step, f.split(s.l, ln.number, m))
		}
		return
	}
	fields := f.split(s.l, ln.number, m)
	if slices.ContainsFunc(f.needs, func(name string) bool { _, has := fields[name]; return !has }) {
		return
	}
	text, own := fields[f.step]
	if !own {
		text = m[f.line.SubexpIndex("step")]
	}
	if step, ok := s.takesText(ln, text); ok {
		s.declared(ln, step, fields)
	}
}

// takesText is like takes, for a step number in text form, which it also returns.
func (s *stepLog) takesText(ln line, text string) (step int, ok bool) {
	step = s.l.whole(ln.number, text)
	return step, s.takes(ln, step)
}

// split returns the fields of a line that the expression line has matched as m.
func (f *stepFormat) split(l *log, ln int, m []string) parts {
	at := f.line.SubexpIndex("fields")
	switch {
	case at >= 0 && f.pair == nil:
		text := m[at]
		if i := f.line.SubexpIndex("before"); i >= 0 {
			text = m[i] + text
		}
		return l.fieldsOf(ln, text, f.separator)
	case at >= 0:
		fields := parts{}
		for _, pair := range f.pair.FindAllStringSubmatch(m[at], -1) {
			fields.put(l, ln, pair[1], pair[2])
		}
		return fields
	}
	fields := parts{}
	for i, name := range f.line.SubexpNames() {
		if name != "" && name != "step" && m[i] != "" {
			fields[name] = m[i]
		}
	}
	return fields
}

// declared adds the declared fields of an accepted line.
func (s *stepLog) declared(ln line, step int, fields parts) {
	f := s.format
	if x, ok := fields[f.batch]; ok {
		s.batchOf(s.l.parse(ln.number, x))
	}
	if x, ok := fields[f.consumed]; ok {
		s.consumedOf(ln.number, x)
	}
	if f.more != nil {
		f.more(s, ln, step, fields)
	}
	for _, field := range f.fields {
		if x, ok := field.text(fields); ok {
			s.number(ln.number, field.ours, x, field.scale)
		}
	}
	if f.ignored != nil {
		s.unread(ln.number, fields, f.reads)
	}
	for _, name := range f.losses {
		if x, ok := fields[name]; ok {
			s.lossOf(ln.number, "step", float64(step), x)
			return
		}
	}
}

// reads reports whether a field is read, or is known not to be a measure.
func (f *stepFormat) reads(name string) bool {
	return slices.ContainsFunc(f.fields, func(d stepField) bool { return d.theirs == name }) || f.ignored.MatchString(name)
}
