package table

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
)

// unsafe lists characters that have an effect on a terminal, a page or a spreadsheet.
var unsafe = []string{"\x00", "\a", "\b", "\r", "\x1b", "\x7f", "\u0085", "\u009b", "\u061c", "\u200b", "\u200d", "\u200e", "\u2028", "\u2029",
	"\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff", "\U000e0041"}

// Text of unknown origin has no control characters in any format, and
// JSON keeps it to the letter.
func TestUnsafeText(t *testing.T) {
	for _, bad := range unsafe {
		text := "a" + bad + "b"
		list := &Table{Columns: Keys("name", "more"), Notes: []string{text}}
		list.Add(text, map[string]string{text: text})
		for _, format := range Formats {
			got := printed(t, list, format, Screen{})
			if strings.Contains(got, bad) {
				t.Errorf("%s prints %q as it is: %q", format, bad, got)
			}
			var rows []map[string]any
			if format != FormatJSON {
				continue
			}
			if err := json.Unmarshal([]byte(got), &rows); err != nil || rows[0]["name"] != text {
				t.Errorf("%q came back as %q, %v", text, rows, err)
			}
		}
	}
}

// A text never begins a formula in a spreadsheet; a number stays a number.
func TestNoFormulas(t *testing.T) {
	list := &Table{Columns: Keys("cell")}
	texts := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "\r=1", "＝1", "＋1", "－1", "＠1"}
	for _, text := range texts {
		list.Add(text)
	}
	list.Add(-1.5)
	list.Add(-3)
	rows, err := csv.NewReader(strings.NewReader(printed(t, list, FormatCSV, Screen{}))).ReadAll()
	if err != nil || len(rows) != len(texts)+3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, text := range texts {
		if cell := rows[i+1][0]; strings.ContainsAny(string([]rune(cell)[:1]), "=+-@\t\n\r＝＋－＠") {
			t.Errorf("%q is the cell %q", text, cell)
		}
	}
	if a, b := rows[len(texts)+1][0], rows[len(texts)+2][0]; a != "-1.5" || b != "-3" {
		t.Errorf("numbers are %q and %q", a, b)
	}
}
