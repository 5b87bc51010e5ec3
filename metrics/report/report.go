// Package report lays a study out for reading: the answer first, then the
// figures, the tables behind them, how the numbers were made and where they
// come from, as one HTML page or as Markdown with its figures in files next to it.
//
// The page is a single file that asks for nothing: no script, no font, no
// image from elsewhere, and a content security policy that would refuse them.
// So it can be mailed, kept beside a paper and opened on a machine without a
// network, and a hostile string out of somebody's log has nothing to act on.
// What is in the report is the caller's; nothing here computes.
package report

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/table"
)

// A Report has the contents of a page. All text in it is plain text.
type Report struct {
	Title   string
	About   []string // the lines below the title
	Answer  Answer
	Figures []Drawing
	// NotDrawn are the figures that could not be, with the reason.
	NotDrawn   []Fact
	Tables     []Table
	Doubts     []string // on the study as a whole
	Method     []Fact   // a figure or a way of measuring, and how it is made
	Provenance []Fact
	Downloads  []Download
	Made       string // by what: program and version
}

// Answer is the box at the top of the page.
type Answer struct {
	Lead    string   // one sentence
	Reasons []string // sentences
	Table   *Table   // that it rests on; nil for none
}

// Table is a table of the page.
type Table struct {
	ID, Title string
	table.Text
	Folded bool // long: shown only when asked for
}

// Drawing is a figure in its forms: text does not shrink with the screen, and a
// page writes the caption itself.
type Drawing struct {
	ID           string // letters, digits and hyphens: part of names of files
	Title        string
	Wide, Narrow *figure.Drawing // without captions; Narrow may be nil
	Whole        *figure.Drawing // with its caption, to stand alone
}

// A Fact is a name with its description.
type Fact struct {
	Name   string
	Values []string
}

// Download is data of the report: part of the page, or a file next to it.
type Download struct {
	Name  string // of the file
	About string
	Type  string // MIME type
	Data  []byte
	File  string // next to the page, where the data is written; "": it is part of the page
}

// embedded is the most bytes of one Download that are part of a page.
const embedded = 1 << 20

// narrowRatio is the width, in inches, of a figure for a telephone.
const narrowRatio = 3.6

// Draw draws a figure in its forms. One that has no narrow form is scaled down
// on a narrow page.
func Draw(id string, draw func(figure.Options) (*figure.Drawing, error)) (Drawing, error) {
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

// check refuses what would make a page with broken links or overwritten files.
func (r *Report) check() error {
	if r.Title == "" {
		return errors.New("a report without a title")
	}
	seen := map[string]bool{}
	for _, f := range r.Figures {
		for _, c := range f.ID {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return fmt.Errorf("figure %q: an id is made of a to z, 0 to 9 and hyphens", f.ID)
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
