package extract

import (
	"regexp"
	"strings"
)

// A columnHead is the latest line of a log that names the columns of a table with spaces, such as
// the tables of OSU's benchmarks, IOR, HPL and STREAM. Only such a line states the units.
type columnHead struct{ text, stated string }

// unit returns the unit that a line of its own states, as in "# unit: ktok/s"; "" without one.
func (h *columnHead) unit() string {
	if h == nil {
		return ""
	}
	return h.stated
}

var (
	unitLine = regexp.MustCompile(`(?i)^[^\pL]*(?:all )?units?[^\pL:=]*[:=]\s*([\pLµ%/_ ]+)$`)
	withUnit = regexp.MustCompile(`(?i)[(\[][^()\[\]]{1,12}[)\]]|[a-z]/s(?:ec)?\b|flops?\b`)
	numeric  = regexp.MustCompile(`^[-+]?\.?\d`)
	// splits separate columns.
	splits = []*regexp.Regexp{regexp.MustCompile(`\s*[|]\s*`), regexp.MustCompile(`\s*[,;]\s*`), regexp.MustCompile(`\s+`), regexp.MustCompile(`\s{2,}`)}
)

// see records a line if it names columns with units.
func (h *columnHead) see(text string) {
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

// of returns the name of the column in which the number at a position of a row stands; "" if the row
// has another number of columns, or a name of its own stands before the number.
func (h *columnHead) of(row string, at int) string {
	if h == nil || h.text == "" || strings.Contains(row, "=") {
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
