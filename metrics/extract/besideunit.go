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
	keyOf    = regexp.MustCompile(`([\pL_][\w./-]*)["']?\s*[=:]?\s*(?:\[[^\[\]{}]*)?["']?$`)
	unitName = regexp.MustCompile(`(?i)^(.*?)[_.-]?units?$`)
	inner    = regexp.MustCompile(`\{[^{}]*\}`)
	unitsOfs = regexp.MustCompile(`(?i)units?["']?\s*[=:]\s*(\{[^{}]*\})`)
	aValue   = regexp.MustCompile(`(?i)^(?:value|val|result|measurement|reading|mean|median|avg|average|min|max|p\d+|\d+th|samples|values)$`)
	// member matches a line of a JSON object that is written over several lines.
	member = regexp.MustCompile(`^\s*"[^"]*"\s*:\s*[^{\[]*$`)
)

// besideUnit sets the unit of a number that has none next to it, if another field of the same
// object states it. It fails if it is unclear whether that field is of this number.
func (w *numberAt) besideUnit() {
	m := keyOf.FindStringSubmatch(w.before())
	if m == nil || !strings.Contains(strings.ToLower(w.ln.before+w.ln.text+w.ln.after), "unit") {
		return
	}
	key := m[1]
	object, at := objectAround(w.ln.before+w.ln.text+w.ln.after, len(w.ln.before)+w.from)
	for _, list := range unitsOfs.FindAllStringSubmatch(object, -1) {
		for _, f := range fieldOf.FindAllStringSubmatch(list[1], -1) {
			if strings.EqualFold(f[1], key) {
				w.takeUnit(unquoted(f[2]))
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
			w.takeUnit(unquoted(text))
			return
		}
		fields = append(fields, text)
	}
	if bare < 0 {
		return
	}
	u, known := number.ParseUnit(unquoted(fields[bare]))
	switch {
	case aValue.MatchString(key) || own >= 0 && (bare == own+1 || bare == own-1):
		w.takeUnit(unquoted(fields[bare]))
	case known && u.Base == w.c.declared.Base && u.Scale != w.c.declared.Scale:
		fail("the line states the unit %s, which may be that of %s, in %q; let a group (?P<unit>…) match the unit of the number", fields[bare], w.Number, w.shown())
	}
}

func unquoted(text string) string { return strings.Trim(text, `"'`) }

// opens matches a line of JSON that opens an object, and closes one that closes it.
var (
	opens    = regexp.MustCompile(`^\s*"([^"]*)"\s*:\s*[{\[]\s*$`)
	closes   = regexp.MustCompile(`^\s*[}\]]+,?\s*$`)
	openKey  = regexp.MustCompile(`["']([\pL_][\w./-]*)["']\s*:\s*\{[^{}]*$`)
	mostKeys = 64
)

// see records the objects of JSON, written over several lines, in which the following lines are.
func (k *enclosing) see(text string) {
	if m := opens.FindStringSubmatch(text); m != nil && len(*k) < mostKeys {
		*k = append(*k, m[1])
	} else if closes.MatchString(text) && len(*k) > 0 {
		*k = (*k)[:len(*k)-1]
	} else if text == "{" || text == "[" {
		*k = nil
	}
}

// enclosing holds the names of the objects around a line, the innermost last.
type enclosing []string

// enclosingUnit returns the unit in the name of the object that a number of JSON is in:
// "lat_ns": {"mean": 250000.0}.
func (w *numberAt) enclosingUnit() (u number.Unit, text string, ok bool) {
	c, ln := w.c, w.ln
	if !jsonMember.MatchString(w.before()) || c.declared.Base == "" {
		return u, "", false
	}
	name := ""
	if m := openKey.FindStringSubmatch(w.before()); m != nil {
		name = m[1]
	} else if len(ln.head.keys) > 0 && member.MatchString(ln.text) {
		name = ln.head.keys[len(ln.head.keys)-1]
	}
	u, text, ok = number.KeyUnit(name+": ", c.declared)
	return u, text, ok && u.Base == c.declared.Base
}

// contradicted fails if another member of the same object has the same name with a unit, and another
// value: "bw": 123456 in KiB/s beside "bw_bytes": 126418944.
func (w *numberAt) contradicted(x float64) {
	c := w.c
	m := keyOf.FindStringSubmatch(w.before())
	if m == nil || c.declared.Base == "" || !strings.Contains(w.ln.before+w.ln.text+w.ln.after, `"`+m[1]+"_") {
		return
	}
	object, _ := objectAround(w.ln.before+w.ln.text+w.ln.after, len(w.ln.before)+w.from)
	for _, f := range fieldOf.FindAllStringSubmatch(object, -1) {
		unit, same := strings.CutPrefix(f[1], m[1]+"_")
		u, known := number.ParseUnit(unit)
		other, is := parsed(unquoted(f[2]))
		if !same || !known || !is || other <= 0 || strings.TrimSuffix(u.Base, "/s") != strings.TrimSuffix(c.declared.Base, "/s") {
			continue
		}
		if own := x * c.declared.Scale; own > 0 && !within(other*u.Scale, own, sameValue) {
			fail("%s is %s here, and %s is %s: its unit is not %s; let the pattern match %[3]s", m[1], w.Number, f[1], f[2], c.Unit)
		}
	}
}

// objectAround returns the innermost object in braces around a position, or all text without
// one, and the position in it.
func objectAround(text string, at int) (object string, within int) {
	from, to := brace(text, at-1, -1)+1, brace(text, at, 1)
	return text[from:to], at - from
}

// brace returns the index of the brace that ends the innermost object around a position, in the
// direction of step, 1 or -1; the end of the text in that direction if it has none.
func brace(text string, at, step int) int {
	for depth := 0; at >= 0 && at < len(text); at += step {
		switch text[at] {
		case '{':
			depth += step
		case '}':
			depth -= step
		}
		if depth < 0 {
			break
		}
	}
	return at
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
