package report

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/table"
)

// printFile returns the name of a figure's file for LaTeX.
func (f Drawing) printFile() string { return f.ID + ".pdf" }

// Save writes the proposal into a folder: as LaTeX with PDF figures and as Markdown with SVG ones. It returns the
// files written, those to open last. put writes a file.
func (p *Proposal) Save(dir string, put func(path string, content []byte) error) ([]string, error) {
	var files []string
	save := func(name, content string) error {
		files = append(files, filepath.Join(dir, name))
		return put(files[len(files)-1], []byte(content))
	}
	for _, part := range p.Parts {
		for _, f := range part.Figures {
			for _, name := range []string{f.printFile(), f.ID + ".svg"} {
				files = append(files, filepath.Join(dir, name))
				if err := f.Whole.Save(files[len(files)-1], put); err != nil {
					return files, err
				}
			}
		}
	}
	for _, file := range []struct{ name, content string }{
		{"scaling.tex", p.latexSections()}, {"proposal.md", p.markdown()}, {"proposal.tex", fmt.Sprintf(latexDocument, latexText(p.Title))},
	} {
		if err := save(file.name, file.content); err != nil {
			return files, err
		}
	}
	return files, nil
}

// markdown returns the proposal as Markdown.
func (p *Proposal) markdown() string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n\n", a...) }
	facts := func(list []Fact, between string) {
		for _, f := range list {
			line("**%s.** %s", clean.Markdown(f.Name), clean.Markdown(strings.Join(f.Values, between)))
		}
	}
	line("# %s\n\n%s", clean.Markdown(p.Title), clean.Markdown(strings.Join(p.About, " ")))
	for _, part := range p.Parts {
		line("## %s\n\n%s", clean.Markdown(part.Title), clean.Markdown(part.About))
		if part.Lead != "" {
			line("%s", clean.Markdown(part.Lead))
		}
		for i := range part.Tables {
			t := &part.Tables[i]
			line("**%s**\n\n%s", clean.Markdown(t.Caption), strings.TrimSpace(t.text().Markdown()))
		}
		for _, f := range part.Figures {
			line("![%s](%s.svg)\n\n%s", clean.Markdown(f.Title), f.ID, clean.Markdown(f.Title+". "+f.Whole.Caption()))
		}
		facts(part.NotDrawn, "; ")
	}
	line("## Method")
	facts(p.Method, " ")
	line("## Hardware and software")
	facts(p.Machine, "; ")
	return b.String() + clean.Markdown(p.Made) + "\n"
}

// text returns the table with each value and its interval in one cell.
func (t *ProposalTable) text() table.Text {
	text := table.Text{Notes: []string{strings.Join(t.Notes, " ")}}
	for _, head := range t.Heads {
		text.Columns = append(text.Columns, table.Title{Title: head, Right: true})
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = c.String()
		}
		text.Rows = append(text.Rows, cells)
	}
	return text
}
