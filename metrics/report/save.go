package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Formats lists the file extensions that Save supports.
func Formats() []string { return []string{"html", "md"} }

// Format returns the report format for a file name.
func Format(path string) (string, error) {
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if !slices.Contains(Formats(), ext) {
		return "", fmt.Errorf("%s: a report is written as .%s; give the file one of these extensions", path, strings.Join(Formats(), ", ."))
	}
	return ext, nil
}

// figureFile returns the name of a figure's file next to a Markdown report. prefix is the
// report's name without its extension.
func figureFile(prefix string, f Drawing) string { return prefix + "-" + f.ID + ".svg" }

// dataFile returns the name of a data file next to a report.
func dataFile(prefix string, d Download) string { return prefix + "-" + d.Name }

// Save writes the report in the format of the path's extension, and returns the files
// written, the report last. Data over 1 MiB go next to an HTML page; all figures and data
// go next to Markdown. put writes a file.
func (r *Report) Save(path string, put func(path string, content []byte) error) ([]string, error) {
	format, err := Format(path)
	if err != nil {
		return nil, err
	}
	dir, prefix := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	for i, d := range r.Downloads {
		if format != "html" || len(d.Data) > embedded {
			r.Downloads[i].File = dataFile(prefix, d)
		}
	}
	var text bytes.Buffer
	var files []string
	if format == "html" {
		err = r.WriteHTML(&text)
	} else {
		err = r.WriteMarkdown(&text, prefix)
	}
	if err != nil {
		return nil, err
	}
	if format != "html" {
		for _, f := range r.Figures {
			name := filepath.Join(dir, figureFile(prefix, f))
			if err := f.Whole.Save(name, put); err != nil {
				return files, err
			}
			files = append(files, name)
		}
	}
	for _, d := range r.Downloads {
		if d.File == "" {
			continue
		}
		name := filepath.Join(dir, d.File)
		if err := put(name, d.Data); err != nil {
			return files, err
		}
		files = append(files, name)
	}
	return append(files, path), put(path, text.Bytes())
}
