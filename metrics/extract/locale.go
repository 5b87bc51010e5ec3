package extract

import (
	"fmt"
	"regexp"
	"strings"
)

// A Decimal is the number format of a table: which sign is the decimal separator.
type Decimal string

// The two formats. With the zero value, numbers with separators are refused.
const (
	DecimalPoint Decimal = "point" // 1,598.5 and 1'598.5 and 1 598.5
	DecimalComma Decimal = "comma" // 1.598,5 and 1'598,5 and 1 598,5
)

// ParseDecimal parses the value of --decimal.
func ParseDecimal(text string) (Decimal, error) {
	switch text {
	case "":
		return "", nil
	case "point", ".":
		return DecimalPoint, nil
	case "comma", ",":
		return DecimalComma, nil
	}
	return "", fmt.Errorf("unknown decimal sign %q; valid: comma (1.598,5), point (1,598.5)", text)
}

// A locale collects evidence for the number format of a table.
type locale struct {
	comma, point string // a cell with a decimal comma, and a cell with a decimal point
	ambiguous    string // first cell of a figure that has two possible values; line and column say where it is
	line         int
	column       string
}

var (
	withComma = regexp.MustCompile(`^[-+]?(?:\d+,(?:\d{1,2}|\d{4,})|0,\d+|\d{1,3}(?:[.'’\x{a0}\x{202f}\x{2009} ]\d{3})+,\d+)\s*%?$`)
	withPoint = regexp.MustCompile(`^[-+]?(?:\d*\.(?:\d{1,2}|\d{4,})|0?\.\d+|\d{4,}\.\d+|\d{1,3}(?:[,'’\x{a0}\x{202f}\x{2009} ]\d{3})+\.\d+|\d+\.\d+[eE][-+]?\d+)\s*%?$`)
	either    = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}\.\d{3}$`)
	pointed   = regexp.MustCompile(`^[-+]?[1-9]\d{0,2}(?:\.\d{3}){2,}$`)
	gaps      = "'’\u00a0\u202f\u2009 "
)

// hint records the evidence that any cell of the table gives.
func (d *locale) hint(cell string) {
	switch {
	case cell == "" || cell[0] > '9' || d.comma != "" && d.point != "":
	case d.comma == "" && (withComma.MatchString(cell) || pointed.MatchString(cell)):
		d.comma = cell
	case d.point == "" && withPoint.MatchString(cell):
		d.point = cell
	}
}

// see records a cell of a figure if it is ambiguous.
func (d *locale) see(cell string, line int, column string) {
	if d.ambiguous == "" && either.MatchString(cell) {
		d.ambiguous, d.line, d.column = cell, line, column
	}
}

// check fails if a number is ambiguous: 1.598 may mean 1598.
func (d *locale) check(t *table) {
	if t.l.o.Decimal != "" || d.ambiguous == "" {
		return
	}
	whole := strings.ReplaceAll(d.ambiguous, ".", "")
	switch {
	case d.comma != "":
		t.l.fail(d.line, "column %s: %s is %s if %s has a decimal comma: write --decimal comma", clip(d.column), d.ambiguous, whole, clip(d.comma))
	case t.more.Comma == ';' && d.point == "":
		t.l.fail(d.line, "column %s: %s may be %s, since files with semicolons often have decimal commas: write --decimal comma for %[3]s, or --decimal point for %[2]s", clip(d.column), d.ambiguous, whole)
	}
}

// withGaps matches numbers with thousands separators, for each decimal separator.
var withGaps = map[Decimal]*regexp.Regexp{
	DecimalPoint: regexp.MustCompile(`^([-+]?)(\d+|\d{1,3}(?:,\d{3})+|\d{1,3}(?:['’\x{a0}\x{202f}\x{2009} ]\d{3})+)?((?:\.\d*)?)((?:[eE][-+]?\d+)?)$`),
	DecimalComma: regexp.MustCompile(`^([-+]?)(\d+|\d{1,3}(?:\.\d{3})+|\d{1,3}(?:['’\x{a0}\x{202f}\x{2009} ]\d{3})+)?((?:,\d*)?)((?:[eE][-+]?\d+)?)$`),
}

// plain rewrites a number with a decimal point and without thousands separators. ok is false if
// it is not a number in this format.
func (d Decimal) plain(text string) (plain string, ok bool) {
	m := withGaps[d].FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1] + digitsOf(m[2]) + strings.Replace(m[3], ",", ".", 1) + m[4], true
}

// separated returns a hint which value of --decimal gives a number with separators which value.
func separated(text string) string {
	var ways []string
	for _, d := range []Decimal{DecimalPoint, DecimalComma} {
		if plain, ok := d.plain(text); ok {
			ways = append(ways, fmt.Sprintf("--decimal %s for %s", d, plain))
		}
	}
	if ways == nil || !strings.ContainsAny(text, gaps+",.") {
		return ""
	}
	return "write " + strings.Join(ways, ", or ")
}
