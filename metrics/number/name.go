package number

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Name is the parsed name of a number, of a column or a field: the unit, with its SI prefix, quantity, time
// and scope, as in "tokens per sec per GPU", "kimg/s", "step time (ms)", "step_time_ms".
type Name struct {
	Units []Unit // possible units, the most likely first; empty if the name has no known one
	Said  string // the part of the name that looks like a unit; "" if none does
	Total bool   // whether the name says "total" of all devices
	Of    string // "steps" or "epochs" if the name has the word
	// Factor multiplies the numbers if the name states one apart from the unit, as in
	// "tokens/s (k)"; else 1. The units include it.
	Factor float64
}

// totals are words of names that mean all devices.
var totals = strings.Fields("total aggregate aggregated global overall cluster cumulative combined all sum system")

// multiplied matches a factor: "k" and "x1000" in brackets, and "x1000" elsewhere.
var (
	multiplied = regexp.MustCompile(`, ?(?:in )?((?i:thousands?|millions?|billions?))$|[(\[{] ?(?:in )?(?:[x×*] ?)?([kKMGB]|(?i:thousands?|millions?|billions?|tsd|mio|mrd)|1[, ]?000(?:[, ]?000)*|1[eE][369]|10\^?[369³⁶⁹]) ?[)\]}]|(?:^|[ _])in ((?i:thousands?|millions?|billions?))(?:[ _]|$)|(?:^|[ _])[x×*] ?(1[, ]?000(?:[, ]?000)*|1[eE][369]|10\^?[369³⁶⁹])(?:[ _]|$)`)
	brackets   = regexp.MustCompile(`[(\[{]([^()\[\]{}]*)[)\]}]`)
)

// ParseName parses the name of a number.
func ParseName(name string) Name {
	inside, factor := "", 1.0
	name, factor = factored(name)
	rest := brackets.ReplaceAllStringFunc(name, func(part string) string {
		inside += " " + part[1:len(part)-1]
		return " "
	})
	outer, inner := parsePart(rest), parsePart(inside)
	n, other := inner, outer
	if len(inner.Units) == 0 && (len(outer.Units) > 0 || inner.Said == "") || len(inner.Units) > 0 && inner.Units[0].Base == AnyQuantity && len(outer.Units) > 0 {
		n, other = outer, inner // "tokens/s (per GPU)", "img/s (batch 32)"
	}
	if len(other.Units) > 0 { // "Throughput per GPU (img/s)"
		for i := range n.Units {
			n.Units[i].Per = cmp.Or(n.Units[i].Per, other.Units[0].Per)
		}
	}
	if u, is := ParseUnit(inside); n.Said == "" && is && !u.Bare && u.Base != "" {
		n.Said = strings.TrimSpace(inside) // "(W)": a unit of no figure
	}
	n.Total, n.Of, n.Factor = outer.Total || inner.Total, cmp.Or(outer.Of, inner.Of), factor
	for i := range n.Units {
		n.Units[i].Scale *= factor
	}
	return n
}

// parsePart parses the part of a name outside brackets, or the part inside.
func parsePart(text string) Name {
	n := Name{}
	list := Words(text)
	for _, word := range list {
		n.Total = n.Total || slices.Contains(totals, strings.ToLower(word))
		if kind := Kind(word); kind == "steps" || kind == "epochs" {
			n.Of = kind
		}
	}
	// The name of a metric may be a path: "train/device/samples_per_sec". So try the part after
	// each slash.
	over, per := Divided(list), ""
	for from := range over {
		tail := over[from:]
		if from > 0 && len(tail[0]) == 1 && TimeUnit(tail[0][0]) > 0 {
			break // "Bilder/s" is not a time
		}
		if n.Units = meanings(tail, true); n.Units != nil {
			break
		}
		for _, word := range tail[0] {
			if isScope(word) {
				per = Kind(word)
			}
		}
	}
	if ofEach(list) {
		per = cmp.Or(per, PerDevice)
	}
	for i := range n.Units {
		n.Units[i].Per = cmp.Or(n.Units[i].Per, per)
	}
	// "tokens/step" is a quantity over something else than a time.
	counted := len(over) > 1 && IsCount(strings.Join(over[0], " "))
	rated := counted || slices.ContainsFunc(over[1:], func(part []string) bool {
		return len(part) > 0 && (TimeUnit(part[0]) > 0 || isScope(part[0]))
	})
	if n.Units != nil || rated {
		n.Said = strings.TrimSpace(text)
	}
	return n
}

// ofEach reports whether a name says that its numbers are of each device: "img/s each", "rank mean
// img/s".
func ofEach(list []string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(list, func(word string) bool { return slices.Contains(words, strings.ToLower(word)) })
	}
	devices := func(word string) bool { return Kind(word) == PerDevice }
	return has("each") || has("mean", "avg", "average") && slices.ContainsFunc(list[:min(2, len(list))], devices)
}

// rateWord matches words that say that a name is of a rate though it has no time.
var rateWord = regexp.MustCompile(`(?i)rate|speed|throughput|perf|/|per|ips|fps`)

// IsCount reports whether a name is that of a number of samples, tokens or requests: "images",
// "num_tokens".
func IsCount(name string) bool {
	list := Words(name)
	return len(list) > 0 && !rateWord.MatchString(name) && slices.Contains([]string{"samples", "tokens", "requests"}, counted(list[len(list)-1]).base)
}

// factored removes a factor such as "(k)" or "x1000" from the name of a column, and returns it; 1
// if the name states no factor.
func factored(name string) (rest string, factor float64) {
	m := multiplied.FindStringSubmatchIndex(name)
	if m == nil {
		return name, 1
	}
	at := m[2:4]
	for at[0] < 0 {
		m = slices.Delete(m, 2, 4)
		at = m[2:4]
	}
	text := strings.NewReplacer(",", "", " ", "", "^", "", "³", "3", "⁶", "6", "⁹", "9").Replace(name[at[0]:at[1]])
	switch power, is := strings.CutPrefix(text, "10"); {
	case text == "B":
		factor = 1e9
	case Prefix(text) > 0:
		factor = Prefix(text)
	case is && len(power) == 1 && power != "0":
		factor, _ = strconv.ParseFloat("1e"+power, 64) // the expression allows digits only
	default:
		factor, _ = strconv.ParseFloat(text, 64)
	}
	return name[:m[0]] + " " + name[m[1]:], factor
}

var (
	bracket = regexp.MustCompile(`[\[(]\s*([^\[\]()]{1,24}?)\s*[\])]\s*[=:]?\s*$`)
	// ofList matches a unit before a list of fields, as in "lat (usec): min=82, avg=304.8".
	ofList = regexp.MustCompile(`[(\[]\s*([^()\[\]]{1,16}?)\s*[)\]]\s*:\s*(?:[\pL\d_.%]+\s*=\s*[^=,;\s]*[,;\s]\s*)*[\pL\d_.%]+\s*=\s*$`)
	key    = regexp.MustCompile(`([A-Za-zµμ%][A-Za-zµμ%0-9_./ -]*?)["']?\s*[=:]\s*["']?$`)
	spaced = regexp.MustCompile(`(?:^|[\s,;|{])([A-Za-zµμ%]+_[A-Za-zµμ%0-9_./]*)\s+$`)
	size   = regexp.MustCompile(`(?i)[_ (\[]([kmgt])(i?)b[)\]]?["']?\s*[=:]?\s*$`)
	phrase = regexp.MustCompile(`(?:[\pL%/()\[\] ._-]|[(\[][^()\[\]]*[)\]])*[=:]?\s*["']?$`)
	// lastWords matches the name before a number: the text after the last digit, ; or |, or the unit of the
	// previous number, without the clauses before the last comma.
	lastWords = regexp.MustCompile(`(?:^|[;|,\t]|\d[)\]]?(?: ?[\pLµ%/]+)?)([^\d;|,\t]*)$`)
	// timeWord matches a unit of time that is no other word, in a name. It is between other marks than
	// blanks, or the last word, or has no other meaning.
	timeWord = regexp.MustCompile(`(?:^|[^\pL])(ms|msecs?|millis(?:ec)?|milliseconds?|usecs?|microseconds?|nsecs?|nanoseconds?|minutes|hours)(?:[^\pL]|$)|(?:^|[_.(\[/<"-])([uµn]s)(?:[^\pL]|$)`)
)

// KeyUnit returns the unit in the name before a number that is wanted in a unit, whose base may be "": time_ms=,
// time (ms):, tokens_per_sec:, sec/kimg. ok is false if the name has none; a rate in another unit than the wanted
// one is returned, so that the caller can refuse it.
func KeyUnit(before string, want Unit) (u Unit, text string, ok bool) {
	u, text, ok = nameUnit(before)
	if ok && (u.Base == want.Base || u.IsRate() || u.Base == "s" && want.Inverse) {
		return u, text, true
	}
	if m := ofList.FindStringSubmatch(before); m != nil && want.Base != "" {
		if u, ok := ParseUnit(m[1]); ok && u.Base == want.Base {
			return u, m[1], true
		}
	}
	if m := size.FindStringSubmatch(before); m != nil && want.Base == "B" {
		name := strings.ToUpper(m[1]) + strings.ToLower(m[2]) + "B"
		u, ok := ParseUnit(name)
		return u, name, ok
	}
	name := strings.TrimSpace(strings.TrimRight(phrase.FindString(before), " =:\"'"))
	if list := ParseName(name).Units; len(list) > 0 && (len(list) == 1 || list[0].Inverse) && list[0].Base == want.Base && want.IsRate() && want.Base != "steps/s" {
		return list[0], name, true
	}
	if m := lastWords.FindStringSubmatch(before); !ok && m != nil && (want.Base == "s" || want.Inverse) {
		if m := timeWord.FindStringSubmatch(camelUnit.ReplaceAllStringFunc(camelFirst.ReplaceAllString(m[1], "${1}_$2"), strings.ToLower)); m != nil {
			u, ok := ParseUnit(m[1] + m[2])
			return u, m[1] + m[2], ok
		}
	}
	return u, text, ok
}

// nameUnit returns the unit in the brackets before a number, or at the end of its name.
func nameUnit(before string) (u Unit, text string, ok bool) {
	if m := bracket.FindStringSubmatch(before); m != nil {
		u, ok = ParseUnit(m[1])
		return u, m[1], ok && !(u.Bare && u.Base == "")
	}
	m := key.FindStringSubmatch(before)
	if m == nil {
		m = spaced.FindStringSubmatch(before)
	}
	if m == nil {
		return u, "", false
	}
	name, words := camelUnit.ReplaceAllString(strings.TrimSpace(m[1]), "${1}_$2"), Words(m[1])
	for _, u := range ParseName(name).Units {
		if u.IsRate() || len(words) > 1 && !ambiguous(words[len(words)-1], u) {
			return u, unitIn(name, u), true
		}
	}
	// Sizes and powers are units of fields, but of no column that is read.
	last := name[strings.LastIndexAny(name, "_ .-")+1:]
	if u, ok = ParseUnit(last); !ok || last == name || ambiguous(last, u) {
		return Unit{}, "", false
	}
	return u, last, true
}

// unitIn returns the shortest end of a name that has the unit.
func unitIn(name string, u Unit) string {
	for {
		i := strings.IndexAny(name, "_ .-")
		if i < 0 {
			return name
		}
		rest := strings.TrimLeft(name[i:], "_ .-")
		if list := ParseName(rest).Units; !slices.Contains(list, u) {
			return name
		}
		name = rest
	}
}
