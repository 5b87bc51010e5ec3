package extract

import (
	"regexp"
	"strings"
)

// A columnHead is the latest line of a log that names the columns of a table with spaces, such as
// the tables of OSU's benchmarks, IOR, HPL and STREAM. Only such a line states the units.
//
// Such a line may also state the unit of all columns that are times: "Name (time in ms)".
type columnHead struct {
	text    string
	stated  string    // the unit that a line of its own states, as in "# unit: ktok/s"; "" without one
	times   string    // the unit of all times in the table; "" without one
	keys    enclosing // objects of JSON around the line
	section string    // unit of the section; "" outside one
	indent  int       // blanks before its heading
}

var (
	// sectionHead matches "Latency (ms):", whose unit holds for the lines below that are indented more.
	sectionHead = regexp.MustCompile(`^([ \t]*)\pL[\pL ]* [(\[]([\pLµ/%]+)[)\]]:\s*$`)
	unitLine    = regexp.MustCompile(`(?i)^[^\pL]*(?:(?:all )?units?[^\pL:=]*[:=]|all (?:times|durations|latencies|rates|values) (?:are )?(?:given )?in)\s*([\pLµ%/_ ]+)$`)
	// inThousandsOf matches "Throughput in thousands of tokens per second".
	inThousandsOf = regexp.MustCompile(`(?i)^[^\d=:]*\bin (thousands|millions|billions) of ([\pL/ ]+?)[.:]?\s*$`)
	timesIn       = regexp.MustCompile(`(?i)\b(?:times?|durations?|latenc(?:y|ies)) (?:are )?(?:given )?in (m?s|[uµn]s|min|(?:milli|micro|nano)?sec(?:ond)?s?)\b`)
	someDigit     = regexp.MustCompile(`\d`)
	withUnit      = regexp.MustCompile(`(?i)[(\[][^()\[\]]{1,12}[)\]]|[a-z]/s(?:ec)?\b|flops?\b`)
	numeric       = regexp.MustCompile(`^[-+]?\.?\d`)
	// splits separate columns.
	splits = []*regexp.Regexp{regexp.MustCompile(`\s*[|]\s*`), regexp.MustCompile(`\s*[,;]\s*`), regexp.MustCompile(`\s+`), regexp.MustCompile(`\s{2,}`)}
)

// see records a line if it names columns with units.
func (h *columnHead) see(text string) {
	h.keys.see(text)
	if m := timesIn.FindStringSubmatch(text); m != nil && !someDigit.MatchString(text) {
		h.times = m[1]
	}
	if m := sectionHead.FindStringSubmatch(text); m != nil {
		h.section, h.indent = m[2], len(m[1])
	} else if h.section != "" && indentOf(text) <= h.indent {
		h.section = ""
	}
	if m := inThousandsOf.FindStringSubmatch(text); m != nil {
		h.stated = m[1] + " " + m[2]
	}
	if m := unitLine.FindStringSubmatch(text); m != nil {
		h.stated = strings.TrimSpace(m[1])
	}
	if text == "" || numeric.MatchString(text) || !withUnit.MatchString(text) || strings.Contains(text, "=") {
		return
	}
	list := strings.Fields(strings.TrimLeft(text, "# "))
	for _, word := range list {
		if numeric.MatchString(word) {
			return
		}
	}
	if len(list) > 1 {
		h.text = strings.TrimLeft(text, "# ")
	}
}

// indentOf returns the number of blanks at the start of a line; 0 for an empty one.
func indentOf(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// timesOf returns the unit of the times in a row of a table, which has no names of its own; "" without one.
func (h *columnHead) timesOf(row string) string {
	if strings.ContainsAny(row, "=:{") || len(numbersIn.FindAllString(row, 3)) < 3 {
		return ""
	}
	return h.times
}

var numbersIn = regexp.MustCompile(`(?:^|[\s(|])[-+]?\d[\d.,]*(?:$|[\s)|])`)

// of returns the name of the column in which the number at a position of a row stands; "" if the row
// has another number of columns, or a name of its own stands before the number.
func (h *columnHead) of(row string, at int) string {
	if h.text == "" || strings.Contains(row, "=") {
		return ""
	}
	for _, split := range splits {
		names := split.Split(strings.TrimSpace(h.text), -1)
		column := len(split.Split(strings.TrimLeft(row[:at], " \t"), -1)) - 1
		if n := len(split.Split(strings.TrimSpace(row), -1)); n == len(names) && n > 1 && column < n {
			return names[column]
		}
	}
	return ""
}
