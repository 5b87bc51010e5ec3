package report

import (
	"bytes"
	"fmt"
	"os"
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
func FigureFile(prefix string, f Figure) string { return prefix + "-" + f.ID + ".svg" }

// DataFile is the name of a file of data beside a Markdown report.
func DataFile(prefix string, d Download) string { return prefix + "-" + d.Name }

// Save writes the report in the format of the path's extension and returns the
// files written: one for a page, for Markdown the figures and the data beside
// it too, the text last. Each file is complete or not there.
func (r *Report) Save(path string) ([]string, error) {
	format, err := Format(path)
	if err != nil {
		return nil, err
	}
	if format == "html" {
		var b bytes.Buffer
		if err := r.WriteHTML(&b); err != nil {
			return nil, err
		}
		return []string{path}, replace(path, b.Bytes())
	}
	dir, prefix := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	text, err := r.Markdown(prefix)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range r.Figures {
		file := filepath.Join(dir, FigureFile(prefix, f))
		if err := f.Whole.Save(file); err != nil {
			return files, err
		}
		files = append(files, file)
	}
	for _, d := range r.Downloads {
		file := filepath.Join(dir, DataFile(prefix, d))
		if err := replace(file, d.Data); err != nil {
			return files, err
		}
		files = append(files, file)
	}
	return append(files, path), replace(path, []byte(text))
}

// replace writes a file beside its place and renames it.
func replace(path string, data []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = temp.Close() // closed already, or the first error counts
			_ = os.Remove(temp.Name())
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if err := temp.Chmod(0o644); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
