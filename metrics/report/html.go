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

var pageTemplate = sync.OnceValues(func() (*template.Template, error) {
	return template.New(templates.Report).Funcs(template.FuncMap{
		"drawing": drawing,
		"data":    data,
	}).ParseFS(templates.Files, templates.Report)
})

// WriteHTML writes the report as one page. The template escapes what HTML would act
// on; what would steer the reader's eye, such as a change of direction in the name of
// a figure, is made readable in the whole page.
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

// drawing is a figure as part of the page. Package figure has escaped all text
// in it.
func drawing(f interface{ SVG() (string, error) }) (template.HTML, error) {
	svg, err := f.SVG()
	return template.HTML(svg), err
}

// data returns the address of a download: a file next to the page, or its content.
func data(d Download) template.URL {
	if d.File != "" {
		return template.URL("./" + url.PathEscape(d.File))
	}
	return template.URL(fmt.Sprintf("data:%s;base64,%s", d.Type, base64.StdEncoding.EncodeToString(d.Data)))
}
