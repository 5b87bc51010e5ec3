package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Formats lists the file extensions that Save knows.
func Formats() []string { return []string{"html", "md"} }

// Format is the format that a file name asks for by its extension.
func Format(path string) (string, error) {
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if !slices.Contains(Formats(), ext) {
		return "", fmt.Errorf("%s: a report is written as .%s; give the file one of these extensions", path, strings.Join(Formats(), ", ."))
	}
	return ext, nil
}

// FigureFile is the name of a figure's file beside a Markdown report, prefix
// being the report's own name without its extension; DataFile that of its data.
func FigureFile(prefix string, f Drawing) string { return prefix + "-" + f.ID + ".svg" }

// DataFile is the name of a file of data beside a Markdown report.
func DataFile(prefix string, d Download) string { return prefix + "-" + d.Name }

// Save writes the report in the format of the path's extension and returns the
// files written: one for a page, for Markdown the figures and the data beside
// it too, the text last. put writes them.
func (r *Report) Save(path string, put func(path string, content []byte) error) ([]string, error) {
	format, err := Format(path)
	if err != nil {
		return nil, err
	}
	if format == "html" {
		var b bytes.Buffer
		if err := r.WriteHTML(&b); err != nil {
			return nil, err
		}
		return []string{path}, put(path, b.Bytes())
	}
	dir, prefix := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	text, err := r.Markdown(prefix)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range r.Figures {
		name := filepath.Join(dir, FigureFile(prefix, f))
		if err := f.Whole.Save(name, put); err != nil {
			return files, err
		}
		files = append(files, name)
	}
	for _, d := range r.Downloads {
		name := filepath.Join(dir, DataFile(prefix, d))
		if err := put(name, d.Data); err != nil {
			return files, err
		}
		files = append(files, name)
	}
	return append(files, path), put(path, []byte(text))
}
