package extract

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// Tables that people write have units in a second line, in cells, and in many other forms. These
// functions recognise them, so that errors say what to write.

var (
	latexTable = regexp.MustCompile(`(?m)^\\begin\{tabular|&[^\n]*\\\\[ \t]*\r?$`)
	cellRange  = regexp.MustCompile(`^[-+]?\d[\d.,]*\s*(?:-|–|—|\.\.|to)\s*\d[\d.,]*`)
	hasLetter  = regexp.MustCompile(`\pL`)
	startsWord = regexp.MustCompile(`^\s*\pL`)
	cellNumber = regexp.MustCompile(`^([^\d]*?)([-+]?\d[\d.,]*)(.*)$`)
)

// unitsRow fails if the first row after the header holds the units of the columns.
func (t *table) unitsRow() {
	again := t.again()
	row, err := again.Read()
	if err != nil {
		return // the reader of the rows reports it
	}
	line, _ := again.FieldPos(0)
	example := ""
	for i, name := range t.header {
		cell := strings.Trim(strings.TrimSpace(row[min(i, len(row)-1)]), "()[]{}")
		if cellNumber.MatchString(cell) {
			return
		}
		if u, known := number.ParseUnit(cell); known && !u.Bare && example == "" && strings.TrimSpace(name) != "" {
			example = fmt.Sprintf("%s (%s)", strings.TrimSpace(name), cell)
		}
	}
	if _, err := again.Read(); example != "" && !errors.Is(err, io.EOF) {
		t.l.fail(line, "this line has the units of the columns: delete it, and write the units into the names, such as %s", clip(example))
	}
}

// percentages fails if all percentages of a column are below 1: they seem to be fractions.
func (s *survey) percentages() {
	for _, ours := range s.figures {
		r := s.reads[ours]
		if r.scale != 0.01 || r.sure || ours != "accuracy" {
			continue
		}
		most := 0.0
		for _, x := range s.figure(s.rows, ours) {
			if !math.IsNaN(x) {
				most = max(most, x/r.scale)
			}
		}
		if most > 0 && most < 1 {
			s.refuse("column %s is in %%, judging by its name, and its largest number is %g: write %s, or %s if it is less than 1 %%", clip(r.Name), most, mapping(ours, r.Name, "fraction"), mapping(ours, r.Name, "%"))
		}
	}
}

// cellHint returns a hint what to write instead of a cell that is not a number.
func cellHint(text string) string {
	m := cellNumber.FindStringSubmatch(text)
	switch {
	case strings.HasPrefix(text, "#"):
		return ": it is a spreadsheet's error; leave the cell empty"
	case strings.HasPrefix(text, "<"), strings.HasPrefix(text, ">"), strings.HasPrefix(text, "≤"), strings.HasPrefix(text, "≥"):
		return ": it is a limit and not a value; leave the cell empty"
	case m == nil:
		return "; write a number, or leave the cell empty"
	case m[1] == "" && strings.TrimSpace(m[3]) == "":
		return ""
	case strings.TrimSpace(m[3]) == "m":
		return ": m may be minutes or metres; for minutes write " + m[2] + "min"
	case cellRange.MatchString(text):
		return ": it is a range; write one number, or leave the cell empty"
	}
	if hasLetter.MatchString(m[1]) || strings.TrimSpace(m[1]) == "" && startsWord.MatchString(m[3]) {
		return "; write a number in the column's unit, or leave the cell empty"
	}
	return fmt.Sprintf("; write %s alone, or leave the cell empty", strings.TrimRight(m[2], ".,"))
}
