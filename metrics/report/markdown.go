package report

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/scalebench/scalebench/metrics/clean"
)

// WriteMarkdown writes the report as Markdown. It links to figures and data by the names
// under which Save writes them next to it.
func (r *Report) WriteMarkdown(w io.Writer, prefix string) error {
	if err := r.check(); err != nil {
		return err
	}
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "\n## %s\n\n", clean.Markdown(title)) }
	list := func(facts []Fact) {
		for _, f := range facts {
			values := make([]string, len(f.Values))
			for i, v := range f.Values {
				values[i] = clean.Markdown(v)
			}
			fmt.Fprintf(&b, "- **%s**: %s\n", clean.Markdown(f.Name), strings.Join(values, "; "))
		}
	}
	fmt.Fprintf(&b, "# %s\n", clean.Markdown(r.Title))
	for _, s := range r.About {
		fmt.Fprintf(&b, "\n%s\n", clean.Markdown(s))
	}
	section("Answer")
	fmt.Fprintf(&b, "**%s**\n", clean.Markdown(r.Answer.Lead))
	for _, s := range r.Answer.Reasons {
		fmt.Fprintf(&b, "\n%s\n", clean.Markdown(s))
	}
	if r.Answer.Table != nil {
		b.WriteString("\n" + r.Answer.Table.Markdown())
	}
	if len(r.Warnings) > 0 {
		section("Warnings")
		for _, s := range r.Warnings {
			fmt.Fprintf(&b, "- %s\n", clean.Markdown(s))
		}
	}
	section("Figures")
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "### %s\n\n![%s](%s)\n\n%s\n\n", clean.Markdown(f.Title), clean.Markdown(f.Title), url.PathEscape(figureFile(prefix, f)), clean.Markdown(f.Whole.Caption()))
	}
	if len(r.NotDrawn) > 0 {
		b.WriteString("Not drawn:\n\n")
		list(r.NotDrawn)
	}
	for _, t := range r.Tables {
		section(t.Title)
		b.WriteString(t.Markdown())
	}
	section("How the numbers are made")
	list(r.Method)
	section("Where they come from")
	list(r.Provenance)
	if len(r.Downloads) > 0 {
		section("Data")
		for _, d := range r.Downloads {
			fmt.Fprintf(&b, "- [%s](%s): %s\n", clean.Markdown(d.Name), url.PathEscape(dataFile(prefix, d)), clean.Markdown(d.About))
		}
	}
	if r.Made != "" {
		fmt.Fprintf(&b, "\n%s\n", clean.Markdown(r.Made))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
