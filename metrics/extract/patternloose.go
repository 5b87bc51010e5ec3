package extract

import (
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/number"
)

// names reports whether the expression itself matches the character after the number. If so, the
// user has decided what may follow the number.
func (c *compiled) names(next byte) bool {
	_, behind, ok := c.split()
	if !ok || next == '.' {
		return ok && strings.HasPrefix(behind, `\.`)
	}
	behind = strings.TrimPrefix(behind, `\`)
	return behind != "" && behind[0] == next
}

// required matches the end of a group that must match, and commaClass a class with a comma.
var (
	required   = regexp.MustCompile(`\)(?:\+|\{[1-9]\d*\})?$`)
	commaClass = regexp.MustCompile(`\[[^\]]*,[^\]]*\]\+?$`)
)

// spells reports whether the expression has the last character of the text before a group as a
// literal directly before that group.
func (c *compiled) spells(group int, before string) bool {
	up, _, found := strings.Cut(c.re.String(), "<"+c.re.SubexpNames()[group]+">")
	up = strings.TrimSuffix(strings.TrimSuffix(up, "P"), "(?")
	if m := required.FindString(up); m != "" {
		up = strings.TrimSuffix(up, m)
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	return found && (strings.HasSuffix(up, regexp.QuoteMeta(string(last))) || last == '-' && strings.HasSuffix(up, `\-`) || last == ',' && commaClass.MatchString(up))
}

// split returns the part of the expression up to the end of the group that matches the value, and
// the rest.
func (c *compiled) split() (up, behind string, ok bool) {
	text := c.re.String()
	name := c.re.SubexpNames()[c.value]
	at := strings.Index(text, "(?P<"+name+">")
	if at < 0 {
		at = strings.Index(text, "(?<"+name+">")
	}
	if at < 0 {
		return "", "", false
	}
	depth, class := 0, false
	for i := at; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '\\':
			i++
		case class:
			class = ch != ']'
		case ch == '[':
			class = true
			if i+1 < len(text) && text[i+1] == ']' {
				i++
			}
		case ch == '(':
			depth++
		case ch == ')':
			if depth--; depth == 0 {
				return text[:i+1], text[i+1:], true
			}
		}
	}
	return "", "", false
}

// loose is a copy of an expression that accepts any unit after the number. Some programs change
// the unit with the size of the number: a progress bar switches from s/it to it/s.
type loose struct {
	re          *regexp.Regexp
	value, unit int
	named       string // the unit in the original expression
	base        string // its base
	anchored    bool   // the expression has text before the number
}

var (
	// syntaxOnly matches parts of an expression that name no text, and literalBracket a bracket that it matches.
	syntaxOnly     = regexp.MustCompile(`\\.|\[[^\]]*\]|\(\?.*?[>:]|[\s^.*+?(){}|]`)
	literalBracket = regexp.MustCompile(`\\[\[\](|)]`)
	namedUnit      = regexp.MustCompile(`^((?: |\\s|\[ \\t\])[?*+]?)?((?:%|[A-Za-zµ]+)(?: ?/ ?[A-Za-zµ]+)*)`)
)

func (c *compiled) loosened() *loose {
	up, behind, ok := c.split()
	if !ok || c.unitAt >= 0 || c.Unit == "" || !c.known {
		return nil
	}
	m := namedUnit.FindStringSubmatch(behind)
	if m == nil {
		return nil
	}
	rest := behind[len(m[0]):]
	u, known := number.ParseUnit(m[2])
	if !known || u.Bare && u.Base == "" || c.timeOf(u).Base != c.declared.Base || rest != "" && strings.ContainsAny(rest[:1], "?*+{|") {
		return nil
	}
	if tree, err := syntax.Parse(c.re.String(), syntax.Perl); err != nil || tree.Op == syntax.OpAlternate {
		return nil
	}
	re, err := regexp.Compile(up + `[ \t]?(?P<looseunit>%|[A-Za-zµ]+(?: ?/ ?[A-Za-zµ]+)*)` + rest)
	if err != nil {
		return nil
	}
	o := &loose{re: re, value: c.value, unit: re.SubexpIndex("looseunit"), named: m[2], base: u.Base}
	before := up[:strings.LastIndex(up, "(?")]
	o.anchored = syntaxOnly.ReplaceAllString(before, "") != "" || literalBracket.MatchString(before)
	return o
}

// timeOf returns the unit s for s/step, if the figure is a time.
func (c *compiled) timeOf(u number.Unit) number.Unit {
	if u.Inverse && c.declared.Base == "s" {
		return number.Unit{Base: "s", Scale: u.Scale, Per: u.Per}
	}
	return u
}

// find searches a line for the number with another known unit and stores it in one. It reports
// whether it found one.
func (o *loose) find(c *compiled, text string, one *match) bool {
	for _, m := range o.re.FindAllStringSubmatchIndex(text, -1) {
		from, to, unit := m[2*o.value], m[2*o.value+1], text[m[2*o.unit]:m[2*o.unit+1]]
		r, ok := number.Read(text[from:])
		u, known := number.ParseUnit(unit)
		if !ok || !known || r.Clock || len(r.Number) != to-from || c.whole(text, m, o.value) != nil {
			continue
		}
		x, ok := c.timeOf(u).In(c.declared, r.Value)
		if !ok || u.Bare && u.Base == "" || !finite(x) || u.Per != c.declared.Per || u.Base != o.base || math.Abs(x) > largestNumber {
			continue
		}
		one.v.Number, one.other, one.named, one.place = x, unit, unit, place(text[:from])
		one.surroundings(text, from)
		return true
	}
	return false
}

// place returns the text directly before a number, without digits and other parts that may change
// from line to line. Matches with equal texts are at the same place of the program's output.
func place(before string) string {
	kept := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == ' ' {
			return -1
		}
		return r
	}, before[max(0, len(before)-around):])
	return kept[max(0, len(kept)-2):]
}

// otherUnits drops matches whose unit is not the one in the expression. It keeps them if the same
// text precedes them as the matches with the right unit, or if the expression has text before the
// number.
func (l *log) otherUnits(c *compiled, all []match) []match {
	if c.loose == nil {
		return all
	}
	places, named, others := map[string]bool{}, 0, 0
	for _, m := range all {
		if m.other == "" {
			named++
			places[m.place] = true
		}
	}
	kept, example := all[:0], match{}
	for _, m := range all {
		if m.other != "" {
			if named > 0 && !places[m.place] || named == 0 && !c.loose.anchored {
				continue
			}
			others++
			example = m
		}
		kept = append(kept, m)
	}
	if others > 0 {
		l.note("%d of %s have %s in %s (as line %d), where the pattern has %s: they are converted", others, number.Count(len(kept), "line"), c.Name, example.other, example.v.Line, c.loose.named)
	}
	return kept
}
