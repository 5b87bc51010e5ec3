package number

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// This file has the grammar of units, for units and for names that contain one. A unit
// is a quantity or a time, divided by a time, a quantity, a device or a node:
//
//	[prefix] quantity [/ time] [/ device]
//	time [/ [prefix] quantity]

var (
	joinedPer  = regexp.MustCompile(`([a-z])Per([A-Z])`)
	lowerPer   = regexp.MustCompile(`(?i)([a-z])per(sec|secs|second|min|minute|hour|step|iter|gpu|device|node|worker|rank)s?\b`)
	perPower   = regexp.MustCompile(`([\p{L}µ]+) ?(?:⁻¹|\^\{?-1\}?)`)
	camelUnit  = regexp.MustCompile(`([a-z\d])(Ns|Us|Ms|Nanos(?:econds)?|Micros(?:econds)?|Millis(?:econds)?|Secs?|Seconds?|Minutes|Hours?|Bytes|[KMGT]i?B(?:ps)?|[KMGT]bps)\b`)
	camelFirst = regexp.MustCompile(`(^|[^\pL])(ms|us|ns)(?:Per|[A-Z])`)
	wordOrDiv  = regexp.MustCompile(`[\p{L}µ]+|%|/`)
	unitText   = regexp.MustCompile(`^[\p{L}µ%/\s_-]+$`)
)

// Words returns the words and division signs of a unit or a name. "img_per_sec" gives
// the same as "img/sec".
func Words(text string) []string {
	text = perPower.ReplaceAllString(text, "/$1") // img s⁻¹
	text = joinedPer.ReplaceAllString(text, "$1 per $2")
	text = lowerPer.ReplaceAllString(text, "$1 per $2")
	text = camelUnit.ReplaceAllString(text, "${1}_$2")
	var list []string
	for _, word := range wordOrDiv.FindAllString(text, -1) {
		by, short := initials[strings.ToLower(word)]
		switch {
		case short:
			of, rest, _ := strings.Cut(by, "/")
			list = append(append(list, of), Words("/"+rest)...)
		case strings.EqualFold(word, "per"):
			list = append(list, "/")
		default:
			list = append(list, word)
		}
	}
	return list
}

// Divided returns words in groups that divide one another.
func Divided(words []string) [][]string {
	over := [][]string{nil}
	for _, word := range words {
		if word == "/" {
			over = append(over, nil)
		} else {
			over[len(over)-1] = append(over[len(over)-1], word)
		}
	}
	return over
}

// ParseUnit reads a unit as programs write it: ms, GiB, ktok/s, img/sec/GPU,
// tokens_per_second, s/it, %, K. ok is false if the text is not a unit.
func ParseUnit(text string) (u Unit, ok bool) {
	list := ParseUnits(text)
	if len(list) == 0 {
		return u, false
	}
	return list[0], true
}

// ParseUnits returns the possible meanings of a unit, the most likely first: s/it is a
// rate of steps or a time. It returns nil if the text is not a unit.
func ParseUnits(text string) []Unit {
	text = strings.ReplaceAll(strings.TrimSpace(text), "μ", "µ")
	for _, pair := range []string{"()", "[]"} {
		if strings.HasPrefix(text, pair[:1]) && strings.HasSuffix(text, pair[1:]) && len(text) > 2 {
			text = strings.TrimSpace(text[1 : len(text)-1])
		}
	}
	if !unitText.MatchString(text) {
		return nil
	}
	over := Divided(Words(text))
	for i, part := range over {
		prefixed := len(part) == 2 && (Prefix(part[0]) > 0 || part[0] == "B") && counted(part[1]).base != ""
		if len(part) != 1 && !prefixed && (i > 0 || len(part) > 0 || len(over) == 1) {
			return nil
		}
	}
	if first := over[0]; len(first) == 0 || len(first) == 1 && counted(first[0]).bare {
		return bareUnit(first, over[1:])
	}
	list := meanings(over, false)
	if len(list) > 0 && list[0].Inverse && list[0].Base == "epochs/s" {
		list = list[1:]
	}
	return list
}

// bareUnit returns the unit of a prefix without a quantity, or of neither: K, M/s, /s,
// K/s/GPU.
func bareUnit(prefix []string, over [][]string) []Unit {
	u := Unit{Scale: 1, Bare: true}
	if len(prefix) > 0 {
		u.Scale = prefixes[prefix[0]]
	}
	for _, part := range over {
		switch by := TimeUnit(part[0]); {
		case by > 0 && u.Base == "":
			u.Base = "/s"
			u.Scale /= by
		case isScope(part[0]) && u.Per == "":
			u.Per = Kind(part[0])
		default:
			return nil
		}
	}
	if len(prefix) == 0 && u.Base == "" {
		return nil
	}
	return []Unit{u}
}

// AnyQuantity is the base of a rate whose name states no quantity, as in "throughput
// per GPU".
const AnyQuantity = "?"

// meanings returns the possible units of groups of words that divide one another, nil
// if they state no known one. In a name, other words may precede the unit ("train img / s"), and one-letter words may have a meaning that they
// do not have in a unit.
func meanings(over [][]string, inName bool) []Unit {
	n := numeratorOf(over[0], inName)
	d, ok := denominatorOf(over[1:], n, inName)
	if !ok {
		return nil
	}
	one := func(base string, scale float64) Unit { return Unit{Base: base, Scale: scale, Per: d.per} }
	switch {
	case n.times != "": // GPU-hours
		return []Unit{one(n.times+"-seconds", n.seconds)}
	case n.seconds > 0 && d.time == 0 && d.each.base != "":
		inverse := one(d.each.base+"/s", n.seconds/d.each.scale)
		inverse.Inverse = true
		return []Unit{inverse, one("s", n.seconds)}
	case n.seconds == 1 && n.base == "steps" && len(over) == 1: // "iter_s": a time, or iterations/s
		return []Unit{one("s", 1), one("steps/s", 1)}
	case n.seconds > 0 && d.time == 0:
		return []Unit{one("s", n.seconds)}
	case n.seconds > 0 || d.each.base != "":
		return nil
	case n.share && d.time == 0:
		return []Unit{one("", n.scale)}
	case inName && n.base == "" && d.time == 0 && d.per != "": // "throughput per GPU"
		return []Unit{one(AnyQuantity, 1)}
	}
	base, scale, ok := n.dividedBy(d.time)
	if n.wrongCase && base == "B" {
		return nil
	}
	if !ok || inName && !strings.HasSuffix(base, "/s") { // a column of items says nothing about a rate
		return nil
	}
	u := one(base, scale)
	u.Unclear = n.unclear
	return []Unit{u}
}

// A denominator is the unit that divides a numerator.
type denominator struct {
	time float64  // seconds; 0 without a time
	each wordUnit // a quantity
	per  string   // PerDevice or PerNode
}

// denominatorOf parses the groups of words after the first division sign. ok is false
// if one has no meaning there.
func denominatorOf(over [][]string, n numerator, inName bool) (d denominator, ok bool) {
	d = denominator{time: n.over, per: n.per}
	for _, part := range over {
		if len(part) == 0 {
			return d, false
		}
		item := counted(part[len(part)-1])
		if inName {
			item = counted(part[0])
		}
		switch by := TimeUnit(part[0]); {
		case by > 0 && d.time == 0:
			d.time = by
		case isScope(part[0]) && (inName || d.per == ""):
			d.per = Kind(part[0])
		case quantity(item.base) != "" && d.each.base == "":
			d.each = item
		default:
			return d, false
		}
		if len(part) > 1 && Kind(part[1]) == PerDevice { // "img/sec GPU"
			d.per = PerDevice
		}
	}
	return d, true
}

// A numerator is the meaning of the words before a division sign.
type numerator struct {
	base    string  // "samples", …, "B/s"; "" if unknown
	share   bool    // a fraction or a percentage
	scale   float64 // factor of its prefix
	seconds float64 // length of the unit of time that the words end with; 0 without one
	over    float64 // length of a unit of time that follows without a division sign, as in img_s
	times   string  // quantity that a time is multiplied by: PerDevice for GPU-hours
	per     string  // scope, as in img_s_gpu
	// wrongCase is true for units of data such as mb and gib, which are units only in rates;
	// unclear if they may be bits.
	wrongCase, unclear bool
}

// dividedBy returns the unit of a numerator divided by a time in seconds; 0 means no time.
func (n numerator) dividedBy(time float64) (base string, scale float64, ok bool) {
	switch {
	case n.base == "FLOP/s" && time == 1: // TFLOPs/s
		return n.base, n.scale, true
	case n.base == "" || time > 0 && (strings.HasSuffix(n.base, "/s") || n.base == "J" || n.base == "W"):
		return "", 0, false
	case time > 0:
		return n.base + "/s", n.scale / time, true
	}
	return n.base, n.scale, true
}

// numeratorOf parses the words before a division sign. The last words state the unit.
func numeratorOf(list []string, inName bool) numerator {
	at := func(i int) string { return slices.Concat([]string{"", "", "", ""}, list)[len(list)+4-i] }
	per := ""
	if Kind(at(1)) == PerDevice && TimeUnit(at(2)) == 1 && countable(at(3), inName).base != "" {
		per, list = PerDevice, list[:len(list)-1]
	}
	by, before := TimeUnit(at(1)), countable(at(2), inName)
	switch kind := Kind(at(2)); {
	case by == 3600 && (kind == PerDevice || kind == PerNode):
		return numerator{seconds: by, times: kind}
	case by == 1 && slices.Contains([]string{"samples", "tokens", "requests"}, before.base):
		return numerator{base: before.base, scale: before.scale, over: by, per: per}
	case by > 0:
		return numerator{base: before.base, seconds: by}
	}
	n := countable(at(1), inName)
	prefix := Prefix(at(2))
	if at(2) == "B" && Kind(at(1)) != "" {
		prefix = 1e9 // "B tokens/day"
	}
	if prefix > 0 && n.base != "" {
		n.scale *= prefix // "k img"
	}
	return n
}

// countable parses a word that may begin with a prefix: "kimg", "MB", "%".
func countable(word string, inName bool) numerator {
	if kinds[strings.ToLower(word)] == share {
		scale := 1.0
		if word == "%" || strings.HasPrefix(strings.ToLower(word), "p") {
			scale = 0.01
		}
		return numerator{share: !inName || word != "x", scale: scale}
	}
	if in, known := inNames[word]; known && inName {
		return numerator{base: in, scale: 1}
	}
	if p := Prefix(word[:min(1, len(word))]); inName && p > 0 && len(word) == 2 && word[1] == 'T' {
		return numerator{base: "tokens", scale: p} // KT/s
	}
	w := counted(word)
	if inName && (w.base == "J" || w.base == "W") {
		w = wordUnit{}
	}
	return numerator{base: w.base, scale: cmp.Or(w.scale, 1), unclear: w.unclear, wrongCase: w.wrongCase}
}

// inNames are abbreviations in names of columns: llm-foundry writes T/s and S/s.
var inNames = map[string]string{"T": "tokens", "S": "samples"}
