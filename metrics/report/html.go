package report

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/templates"
)

var pageTemplate = sync.OnceValues(PageTemplates)

// PageTemplates parses the templates of the report page, of which "table" and "facts" suit other
// pages.
func PageTemplates() (*template.Template, error) {
	return template.New(templates.Report).Funcs(template.FuncMap{
		"drawing": drawing,
		"data":    data,
		"style":   style,
	}).ParseFS(templates.Files, templates.Report)
}

// WriteHTML writes the report as one page. The template escapes HTML. Characters that could
// mislead the reader, such as a change of text direction in a figure's name, are made
// visible in the whole page.
func (r *Report) WriteHTML(w io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	t, err := pageTemplate()
	if err != nil {
		return err
	}
	var page strings.Builder
	if err := t.Execute(&page, r); err != nil {
		return err
	}
	_, err = io.WriteString(w, clean.Lines(page.String()))
	return err
}

// style returns the style of the page, which is our own text.
func style() (template.CSS, error) {
	text, err := templates.Files.ReadFile(templates.Style)
	return template.CSS(text), err
}

// drawing returns a figure as part of the page. Package figure has escaped its text.
func drawing(f interface{ SVG() (string, error) }) (template.HTML, error) {
	svg, err := f.SVG()
	return template.HTML(svg), err
}

// data returns the URL of a download: a file next to the page, or a data URL with the
// content.
func data(d Download) template.URL {
	if d.File != "" {
		return template.URL("./" + url.PathEscape(d.File))
	}
	return template.URL(fmt.Sprintf("data:%s;base64,%s", d.Type, base64.StdEncoding.EncodeToString(d.Data)))
}
