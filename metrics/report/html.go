package report

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"sync"

	"github.com/scalebench/scalebench/templates"
)

var pageTemplate = sync.OnceValues(func() (*template.Template, error) {
	return template.New(templates.Report).Funcs(template.FuncMap{
		"drawing": drawing,
		"data":    data,
	}).ParseFS(templates.Files, templates.Report)
})

// WriteHTML writes the report as one page.
func (r *Report) WriteHTML(w io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	t, err := pageTemplate()
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// drawing is a figure as part of the page. Package figure has escaped all text
// in it.
func drawing(f interface{ SVG() (string, error) }) (template.HTML, error) {
	svg, err := f.SVG()
	return template.HTML(svg), err
}

// data is a download as a link's address.
func data(d Download) template.URL {
	return template.URL(fmt.Sprintf("data:%s;base64,%s", d.Type, base64.StdEncoding.EncodeToString(d.Data)))
}
