package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// pixelsPerInch of a PNG: sharp in a paper column and on a dense screen.
const pixelsPerInch = 160

// Formats lists the file extensions that Save knows.
func Formats() []string { return []string{"png", "svg", "pdf"} }

// Format is the format that a file name asks for by its extension.
func Format(path string) (string, error) {
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if !slices.Contains(Formats(), ext) {
		return "", fmt.Errorf("%s: a figure is written as .%s; give the file one of these extensions", path, strings.Join(Formats(), ", ."))
	}
	return ext, nil
}

// Save writes the figure in the format of the path's extension. The file is
// complete or not there: it is written beside its place and renamed.
func (f *Figure) Save(path string) (err error) {
	format, err := Format(path)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".figure-*")
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
	if err := f.Write(temp, format); err != nil {
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

// Write writes the figure as "png", "svg" or "pdf".
func (f *Figure) Write(w io.Writer, format string) error {
	width, height := f.layout.size.X, f.layout.size.Y
	switch format {
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pixelsPerInch), vgimg.UseBackgroundColor(color.White))
		f.paint(draw.New(c))
		return png.Encode(w, c.Image())
	case "svg":
		c := vgsvg.New(width, height)
		f.paint(draw.New(c))
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil {
			return err
		}
		// A viewer without this font takes one of the same widths instead of
		// its default. Text from users cannot hold the quote: it is escaped.
		_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte(`style="font-family:Liberation Sans;`), []byte(`style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`)))
		return err
	case "pdf":
		c := vgpdf.New(width, height)
		f.paint(draw.New(pdfCanvas{c}))
		_, err := c.WriteTo(w)
		return err
	}
	return fmt.Errorf("%q is no format of a figure; choose one of %s", format, strings.Join(Formats(), ", "))
}
