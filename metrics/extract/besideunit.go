package extract

import (
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// Some programs state the unit of a number in a field of its own: {"value": 12, "unit": "ms"},
// {"throughput": 12, "throughput_unit": "ktok/s"}, {"tps": 12, "units": {"tps": "ktok/s"}}.

var (
	fieldOf  = regexp.MustCompile(`["']?([\pL_][\w./-]*)["']?\s*[=:]\s*("[^"]*"|'[^']*'|[^\s,;{}"']+)`)
	keyOf    = regexp.MustCompile(`([\pL_][\w./-]*)["']?\s*[=:]?\s*["']?$`)
	unitName = regexp.MustCompile(`(?i)^(.*?)[_.-]?units?$`)
	inner    = regexp.MustCompile(`\{[^{}]*\}`)
	unitsOfs = regexp.MustCompile(`(?i)units?["']?\s*[=:]\s*(\{[^{}]*\})`)
	aValue   = regexp.MustCompile(`(?i)^(?:value|val|result|measurement|reading|mean|median|avg|average|min|max)$`)
	// member matches a line of a JSON object that is written over several lines.
	member = regexp.MustCompile(`^\s*"[^"]*"\s*:\s*[^{\[]*$`)
)

// besideUnit sets the unit of a number that has none next to it, if another field of the same
// object states it. It fails if it is unclear whether that field is of this number.
func (c *compiled) besideUnit(w *numberAt) {
	m := keyOf.FindStringSubmatch(w.before())
	if m == nil || !strings.Contains(strings.ToLower(w.ln.before+w.ln.text+w.ln.after), "unit") {
		return
	}
	key := m[1]
	object, at := objectAround(w.ln.before+w.ln.text+w.ln.after, len(w.ln.before)+w.from)
	for _, list := range unitsOfs.FindAllStringSubmatch(object, -1) {
		for _, f := range fieldOf.FindAllStringSubmatch(list[1], -1) {
			if strings.EqualFold(f[1], key) {
				c.takeUnit(w, f[2])
				return
			}
		}
	}
	own, fields, bare := -1, []string{}, -1
	flat := inner.ReplaceAllStringFunc(object, func(text string) string { return strings.Repeat(" ", len(text)) })
	for i, f := range fieldOf.FindAllStringSubmatchIndex(flat, -1) {
		name, text := flat[f[2]:f[3]], flat[f[4]:f[5]]
		if f[0] <= at && at < f[1] {
			own = i
		}
		u := unitName.FindStringSubmatch(name)
		switch {
		case u == nil:
		case u[1] == "":
			bare = i
		case strings.HasPrefix(strings.ToLower(key), strings.ToLower(u[1])):
			c.takeUnit(w, text)
			return
		}
		fields = append(fields, text)
	}
	if bare < 0 {
		return
	}
	u, known := number.ParseUnit(strings.Trim(fields[bare], `"'`))
	switch {
	case aValue.MatchString(key) || own >= 0 && (bare == own+1 || bare == own-1):
		c.takeUnit(w, fields[bare])
	case known && u.Base == c.declared.Base && u.Scale != c.declared.Scale:
		fail("the line states the unit %s, which may be that of %s, in %q; let a group (?P<unit>…) match the unit of the number", fields[bare], w.Number, w.shown())
	}
}

// takeUnit sets the unit of a number. It ignores text that is not a unit.
func (c *compiled) takeUnit(w *numberAt, text string) {
	text = strings.Trim(text, `"'`)
	if u, known := number.ParseUnit(text); known {
		w.Unit, w.Parsed, w.Known, w.Attached = text, u, true, true
	}
}

// objectAround returns the innermost object in braces around a position, or all text without
// one, and the position in it.
func objectAround(text string, at int) (object string, within int) {
	from, to := 0, len(text)
	for i, depth := at-1, 0; i >= 0; i-- {
		if text[i] == '}' {
			depth++
		} else if text[i] == '{' {
			if depth--; depth < 0 {
				from = i + 1
				break
			}
		}
	}
	for i, depth := at, 0; i < len(text); i++ {
		if text[i] == '{' {
			depth++
		} else if text[i] == '}' {
			if depth--; depth < 0 {
				to = i
				break
			}
		}
	}
	return text[from:to], at - from
}

// joined sets the text before and after each member of a JSON object that is written over several
// lines, and calls f with each line. The function that it returns takes the lines.
func joined(f func(line)) func(line) {
	window := make([]line, 5)
	return func(ln line) {
		window = append(window[1:], ln)
		middle := window[2]
		if middle.number == 0 {
			return
		}
		if member.MatchString(middle.text) {
			middle.before, middle.after = window[0].text+"\n"+window[1].text+"\n", "\n"+window[3].text+"\n"+window[4].text
		}
		f(middle)
	}
}
