package extract

import (
	"fmt"
	"strings"
	"testing"
)

// A variant is output that a program writes in another version or with other settings
// than those of testdata, and what must be read of it. Values are worked out by hand
// from the program's own definition of the figure.
type variant struct {
	name, format, text string
	o                  Options
	want               []string // parts of findings
	never              []string // likewise, which must not be there
	says               string   // part of a note
	refused            string   // part of the error; "": it is read
}

func (v variant) run(t *testing.T) {
	t.Helper()
	e, err := Find(v.format)
	if err != nil {
		t.Fatal(err)
	}
	if v.refused != "" {
		v.o.File = "log"
		r, err := e.Extract(strings.NewReader(v.text), v.o)
		if err == nil || !strings.Contains(err.Error(), v.refused) {
			var lines []string
			for f := range r.Findings() {
				lines = append(lines, written(f))
			}
			t.Errorf("error %v; want %q\n%s\n%s", err, v.refused, strings.Join(lines, "\n"), strings.Join(r.Notes, "\n"))
		}
		return
	}
	v.o.File = "log"
	r, err := e.Extract(strings.NewReader(v.text), v.o)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	var lines, wrong []string
	notes := strings.Join(r.Notes, "\n")
	for f := range r.Findings() {
		lines = append(lines, written(f)+" ")
		if f.Event.Figure != nil {
			notes += "\n" + f.Event.Figure.Note
		}
	}
	all := strings.Join(lines, "\n")
	for _, w := range v.want {
		if !strings.Contains(all, w) {
			wrong = append(wrong, fmt.Sprintf("%q is not there", w))
		}
	}
	for _, w := range v.never {
		if strings.Contains(all, w) {
			wrong = append(wrong, fmt.Sprintf("%q is there", w))
		}
	}
	if !strings.Contains(notes, v.says) {
		wrong = append(wrong, fmt.Sprintf("%q is not said", v.says))
	}
	if len(wrong) > 0 {
		t.Errorf("%s:\n%s\n%s", strings.Join(wrong, "; "), all, strings.Join(r.Notes, "\n"))
	}
}

func runVariants(t *testing.T, format string, list []variant) {
	t.Helper()
	for _, v := range list {
		if v.format == "" {
			v.format = format
		}
		t.Run(v.name, v.run)
	}
}
