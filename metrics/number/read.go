package number

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A Reading is a number read from text, with the unit next to it.
type Reading struct {
	Value  float64 // as written; a duration like 0:01:02.5 in seconds
	Number string  // the number's text
	Unit   string  // the unit's text; "" if no unit follows
	// Parsed is the parsed Unit; valid only if Known.
	Parsed Unit
	Known  bool
	// Attached reports that the unit follows without a space, so that it belongs to
	// the number even if it is unknown.
	Attached bool
	// Clock reports that the number is a duration in hours, minutes and seconds.
	Clock bool
	// Grouped reports that commas separate thousands.
	Grouped bool
}

var (
	plain = regexp.MustCompile(`^[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?`)
	group = regexp.MustCompile(`^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?:[eE][-+]?\d+)?`)
	// 1 day, 0:01:02 and 1-00:01:02 and 1d 00:01:02, 3:25, 0:01:02.5, 1:02.5
	clock = regexp.MustCompile(`^(?:(\d+)(?:-| ?d(?:ays?)?,? ))?(\d+):(\d\d(?:\.\d+)?)(?::(\d\d(?:\.\d+)?))?`)
	// 1h02m, 1w2d, 4m05s, 1d 2h 3m 4.5s, 00h:12m:34s, 1h02, 3 minutes and 20 seconds, 1 Std. 2 Min.
	spoken = regexp.MustCompile(`^(?:(\d+) ?(?:weeks?|wks?|w|semaines?|Wochen?)[,:]? ?(?:and )?)?(?:(\d+) ?(?:Tage?|jours?|days?|d)[,:]? ?(?:and )?)?(?:(\d+) ?(?:heures?|horas?|hours?|hrs?|h|Std\.?|Stunden?)[,:]? ?(?:and )?)?(?:(\d+) ?(?:minutes?|minutos?|mins?|m|Minuten|Min\.?)[,:]? ?(?:and )?)?(?:(\d+(?:\.\d+)?) ?(?:secondes?|seconds?|segundos?|secs?|s|Sekunden?|Sek\.?))?`)
	// 1h02
	hours = regexp.MustCompile(`^(\d+)h([0-5]\d)(?:[^\d\pL:.]|$)`)
	// 2w, 1.5 weeks
	weeks = regexp.MustCompile(`^((\d+(?:\.\d+)?)(?:w| ?wks?| ?weeks?))(?:[^\d\pL_/]|$)`)
	// PT1H2M3S, P1DT2H, PT90.5S: durations of ISO 8601
	iso     = regexp.MustCompile(`^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?`)
	after   = regexp.MustCompile(`^[ \t]{0,2}[\[(]?[ \t]?((?:[kKMGTPB] )?(?:%|/ ?[A-Za-zµμ]+|[A-Za-zµμ]+)(?:(?: ?/ ?| per )[A-Za-zµμ]+){0,2})`)
	keyed   = regexp.MustCompile(`^\s*[=:]\s*[-+]?\.?\d`)
	next    = regexp.MustCompile(`^\s+[-+]?\.?\d`)
	wordly  = regexp.MustCompile(`[A-Za-zµμ0-9_]$`)
	perTime = regexp.MustCompile(`^ ?/ ?[fpnuµm]?s\b`)
	// more matches a denominator that no unit has, such as "/tile"
	more = regexp.MustCompile(`^ ?(?:/|per )[ ]?\pL`)
)

// ambiguous reports whether a unit, separated from the number by a space, may also be
// the name of a figure or an ordinary word.
func ambiguous(text string, u Unit) bool {
	switch text {
	case "min", "h", "d", "day", "days", "x", "fraction", "percentage", "ratio", "share":
		return true
	}
	return u.Bare && u.Base == "" || !u.IsRate() && strings.HasSuffix(u.Base, "s") && u.Base != "s" || len(text) == 1 && text != "s" && text != "%"
}

// Read reads the number at the start of text and the unit next to it.
func Read(text string) (r Reading, ok bool) {
	if written, seconds := lengthOfTime(text); written != "" {
		return Reading{Value: seconds, Number: written, Unit: written, Parsed: Unit{Base: "s", Scale: 1}, Known: true, Attached: true, Clock: true}, finite(seconds)
	}
	r.Number = group.FindString(text)
	r.Grouped = r.Number != "" && !continues(text[len(r.Number):], ",")
	if !r.Grouped {
		r.Number = plain.FindString(text)
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(r.Number, ",", ""), 64)
	if err != nil || !finite(x) {
		return r, false
	}
	r.Value = x
	r.unit(text[len(r.Number):])
	return r, true
}

// lengthOfTime reads a length of time in several parts at the start of text. written is "" if there is
// none.
func lengthOfTime(text string) (written string, seconds float64) {
	if strings.Trim(text, "0123456789.") == "" { // most cells of a table; the patterns take ten times as long
		return "", 0
	}
	if m := clock.FindStringSubmatch(text); m != nil && !continues(text[len(m[0]):], ":") {
		if rest := text[len(m[0]):]; m[4] != "" && strings.HasPrefix(rest, "h") && !wordFollows(rest[1:]) {
			m[0] += "h" // 1:02:03h
		}
		if m[4] == "" { // minutes and seconds
			return m[0], inSeconds("", m[1], "", m[2], m[3])
		}
		return m[0], inSeconds("", m[1], m[2], m[3], m[4])
	}
	if m := iso.FindStringSubmatch(text); m != nil && strings.Join(m[1:], "") != "" && !wordFollows(text[len(m[0]):]) {
		return m[0], inSeconds(m[1:]...)
	}
	if m := hours.FindStringSubmatch(text); m != nil {
		return m[1] + "h" + m[2], inSeconds("", "", m[1], m[2], "")
	}
	// "1 week, 2 days, 3:04:05" ends with a clock.
	m := spoken.FindStringSubmatch(text)
	written = strings.TrimRight(m[0], " ,:")
	rest := text[len(m[0]):]
	if c := clock.FindStringSubmatch(rest); m[1] != "" && m[3]+m[4]+m[5] == "" && c != nil && c[1] == "" && c[4] != "" && !continues(rest[len(c[0]):], ":") {
		return m[0] + c[0], inSeconds(m[1], m[2], c[2], c[3], c[4])
	}
	if several(m[1:]) && !wordFollows(text[len(written):]) {
		return written, inSeconds(m[1:]...)
	}
	if m := weeks.FindStringSubmatch(text); m != nil {
		return m[1], inSeconds(m[2], "", "", "", "")
	}
	return "", 0
}

// inSeconds adds up weeks, days, hours, minutes and seconds, which may be "".
func inSeconds(parts ...string) (seconds float64) {
	for i, length := range []float64{7 * 86400, 86400, 3600, 60, 1} {
		seconds += part(parts[i]) * length
	}
	return seconds
}

// unit reads the unit that follows the number.
func (r *Reading) unit(rest string) {
	m := after.FindStringSubmatchIndex(rest)
	if m == nil {
		return
	}
	token := rest[m[2]:m[3]]
	r.Attached = m[2] == 0
	for short := token; short != ""; short = shorter(short) {
		u, known := ParseUnit(short)
		if !known {
			continue
		}
		following := rest[m[2]+len(short):]
		if wordFollows(following) { // 5s_total
			break
		}
		if u.Base == "s" && perTime.MatchString(following) || u.Base != "" && u.Base != "s" && more.MatchString(following) { // days/ns, img/epoch
			r.Attached = true
			break
		}
		if !r.Attached && (keyed.MatchString(following) || ambiguous(short, u) && next.MatchString(following)) {
			break // a name: it belongs to the next number
		}
		if !r.Attached && u.Bare && u.Base == "" && strings.HasPrefix(following, " ") && strings.TrimSpace(following) != "" && !strings.ContainsAny(strings.TrimSpace(following)[:1], "|,;)]") {
			break // an ordinary word
		}
		r.Unit, r.Parsed, r.Known = short, u, true
		return
	}
	if r.Attached {
		r.Unit = token
	}
}

// shorter returns a unit's text without its last part; "" if it has only one.
func shorter(text string) string {
	if i := strings.LastIndexAny(text, "/"); i > 0 {
		return strings.TrimRight(text[:i], " ")
	}
	if i := strings.LastIndex(text, " "); i > 0 {
		return strings.TrimRight(strings.TrimSuffix(text[:i], " per"), " ")
	}
	return ""
}

// continues reports whether the number continues after the separator.
func continues(rest, separator string) bool {
	return strings.HasPrefix(rest, separator) && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' || rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

func wordFollows(rest string) bool {
	return rest != "" && wordly.MatchString(rest[:1])
}

// several reports whether a duration has two or more parts.
func several(parts []string) bool {
	n := 0
	for _, p := range parts {
		if p != "" {
			n++
		}
	}
	return n > 1
}

// part returns the value of one part of a duration.
func part(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return x
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
