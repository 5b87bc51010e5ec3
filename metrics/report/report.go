// Package report says in tables and on a page what was found: curves, costs, advice, comparisons, histories, runs.
//
// Each kind of result has a function that returns a table for people, with units, intervals and
// notes. Where programs need another one, a function with the suffix Data returns it, with
// unrounded values in base units. Package metrics/table prints tables.
//
// A Report is a study for reading: first the answer, then the figures, their tables, how the
// numbers were computed, and where they come from. ReportedStudy assembles it (study.go). The
// output is one HTML page, or Markdown with its figures in files next to it. The page is a single
// file that loads nothing: no script, font or image from elsewhere, and a content security policy
// that forbids them. So it can be mailed, archived with a paper, and opened offline, and a hostile
// string from a log can do no harm.
package report

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/table"
)

// A Report holds the contents of a page. All its text is plain text.
type Report struct {
	Title   string
	About   []string // lines below the title
	Answer  Answer
	Figures []Drawing
	// NotDrawn lists figures that could not be drawn, with the reason.
	NotDrawn   []Fact
	Tables     []Table
	Warnings   []string // warnings about the whole study
	Method     []Fact   // how each figure is computed
	Provenance []Fact
	Downloads  []Download
	Made       string // program and version that made the report
}

// An Answer is the box at the top of the page.
type Answer struct {
	Lead    string   // one sentence
	Reasons []string // sentences
	Table   *Table   // the table it rests on; nil for none
}

// A Table is a table of the page.
type Table struct {
	ID, Title string
	table.Text
	Folded bool // a long table, folded until the reader opens it
}

// A Drawing is a figure in several forms, since text does not shrink with the screen and
// the page writes captions itself.
type Drawing struct {
	ID           string // letters, digits and hyphens; used in file names
	Title        string
	Wide, Narrow *figure.Drawing // without captions; Narrow may be nil
	Whole        *figure.Drawing // with its caption, as a separate file
}

// A Fact is a name with its description.
type Fact struct {
	Name   string
	Values []string
}

// A Download is data of the report: part of the page, or a file next to it.
type Download struct {
	Name  string // file name
	About string
	Type  string // MIME type
	Data  []byte
	File  string // name of the file next to the page; "": part of the page
}

// embedded is the largest Download, in bytes, that becomes part of a page.
const embedded = 1 << 20

// narrowRatio is the width in inches of a figure for a phone.
const narrowRatio = 3.6

// drawFigure draws a figure in all forms. A figure without a narrow form is scaled down on a
// narrow page.
func drawFigure(id string, draw func(figure.Options) (*figure.Drawing, error)) (Drawing, error) {
	whole, err := draw(figure.Options{})
	if err != nil {
		return Drawing{}, err
	}
	f := Drawing{ID: id, Title: whole.Name(), Whole: whole}
	if f.Wide, err = draw(figure.Options{NoCaption: true}); err != nil {
		return Drawing{}, err
	}
	if narrow, err := draw(figure.Options{Width: narrowRatio, NoCaption: true}); err == nil {
		f.Narrow = narrow
	}
	return f, nil
}

// check returns an error for a report with broken links or overwritten files.
func (r *Report) check() error {
	if r.Title == "" {
		return errors.New("the report has no title")
	}
	seen := map[string]bool{}
	for _, f := range r.Figures {
		for _, c := range f.ID {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return fmt.Errorf("figure %q: an id may have only a to z, 0 to 9 and hyphens", f.ID)
			}
		}
		if f.ID == "" || seen[f.ID] {
			return fmt.Errorf("two figures, or a figure and a table, have the id %q", f.ID)
		}
		seen[f.ID] = true
		if f.Wide == nil || f.Whole == nil {
			return fmt.Errorf("figure %q is missing", f.ID)
		}
	}
	for _, t := range r.Tables {
		if t.ID == "" || seen[t.ID] {
			return fmt.Errorf("two tables, or a figure and a table, have the id %q", t.ID)
		}
		seen[t.ID] = true
	}
	return nil
}
