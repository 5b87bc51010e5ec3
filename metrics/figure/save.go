package figure

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image/color"
	"image/png"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// pixelsPerInch is the resolution of a PNG: sharp in a paper column and on a dense screen.
const pixelsPerInch = 160

// Formats lists the file extensions that Save supports.
func Formats() []string { return []string{"png", "svg", "pdf"} }

// textElement matches a text element of vgsvg: its attributes, its size, its text.
var textElement = regexp.MustCompile(`(<text x="[^"]*" y="[^"]*"[^>]*font-size:([0-9.]+)px;[^>]*)>([^<]+)</text>`)

// fixLength sets the text's length to the one that the layout measured, so that a viewer's
// wider font does not run into its neighbours.
func fixLength(element string) string {
	m := textElement.FindStringSubmatch(element)
	size, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return element
	}
	return fmt.Sprintf(`%s textLength="%.5g" lengthAdjust="spacingAndGlyphs">%s</text>`, m[1], textStyle(size).Width(html.UnescapeString(m[3])).Points(), m[3])
}

// Format returns the figure format for a file name.
func Format(path string) (string, error) {
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if !slices.Contains(Formats(), ext) {
		return "", fmt.Errorf("%s: a figure is written as .%s; give the file one of these extensions", path, strings.Join(Formats(), ", ."))
	}
	return ext, nil
}

// Save draws the figure in the format of the path's extension; put writes the file.
func (f *Drawing) Save(path string, put func(path string, content []byte) error) error {
	format, err := Format(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := f.Write(&b, format); err != nil {
		return err
	}
	return put(path, b.Bytes())
}

// Write writes the figure as "png", "svg" or "pdf".
func (f *Drawing) Write(w io.Writer, format string) error {
	width, height := f.size.X, f.size.Y
	switch format {
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pixelsPerInch), vgimg.UseBackgroundColor(color.White))
		f.paint(draw.New(c))
		return png.Encode(w, c.Image())
	case "svg":
		prologue, drawing, err := f.svg()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.5gpt\" height=\"%.5gpt\"%s", prologue, width.Points(), height.Points(), drawing)
		return err
	case "pdf":
		c := vgpdf.New(width, height)
		f.paint(draw.New(pdfCanvas{c}))
		_, err := c.WriteTo(w)
		return err
	}
	return fmt.Errorf("unknown figure format %q; choose one of %s", format, strings.Join(Formats(), ", "))
}

// SVG returns the figure as an HTML element that fills the available width, up to its own.
func (f *Drawing) SVG() (string, error) {
	_, drawing, err := f.svg()
	return fmt.Sprintf(`<svg style="width:100%%;max-width:%.5gpt;height:auto"%s`, f.size.X.Points(), drawing), err
}

// svg returns the figure's prologue, and its element from the view box on. For screen
// readers, it has its name and its caption as a description.
func (f *Drawing) svg() (prologue, drawing string, err error) {
	c := vgsvg.New(f.size.X, f.size.Y)
	f.paint(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", "", err
	}
	prologue, body, found := strings.Cut(b.String(), "<svg")
	_, body, also := strings.Cut(body, ">\n")
	if !found || !also {
		return "", "", errors.New("the drawing has no <svg> element")
	}
	// A viewer without this font uses one with the same widths instead of its default. Text
	// from users cannot contain the quote, since it is escaped.
	body = strings.ReplaceAll(body, `style="font-family:Liberation Sans;`, `style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`)
	body = joinRims(textElement.ReplaceAllStringFunc(body, fixLength))
	return prologue, fmt.Sprintf(" viewBox=\"0 0 %.5g %.5g\" role=\"img\" aria-label=\"%s\">\n<title>%s</title>\n<desc>%s</desc>\n%s",
		f.size.X.Points(), f.size.Y.Points(), html.EscapeString(f.name), html.EscapeString(f.name), html.EscapeString(f.Caption()), body), nil
}

// fullCircle matches the path that vgsvg writes for a circle: two arcs between opposite points.
var fullCircle = regexp.MustCompile(`^<path d="M([0-9.]+),([0-9.]+)A([0-9.]+),[0-9.]+ 0 1 1 ([0-9.]+),[0-9.]+A[^A]*Z$`)

// joinRims makes one circle element of each filled circle and its rim, which vgsvg writes as two paths of three times
// the size. A figure may have thousands of dots.
func joinRims(body string) string {
	var b strings.Builder
	filled, path := "", "" // the line before, not written yet, and its part up to the style
	for line := range strings.Lines(body) {
		of, rim, _ := strings.Cut(line, `" style="fill:none;`)
		if m := fullCircle.FindStringSubmatch(of); m != nil && of == path {
			right, err := strconv.ParseFloat(m[1], 64)
			left, err2 := strconv.ParseFloat(m[4], 64)
			if err == nil && err2 == nil {
				fill := strings.TrimSuffix(filled[len(path):], "\" />\n")
				line = fmt.Sprintf("<circle cx=\"%.5g\" cy=\"%s\" r=\"%s%s;%s", (left+right)/2, m[2], m[3], fill, rim)
				filled = ""
			}
		}
		b.WriteString(filled)
		filled = line
		path, _, _ = strings.Cut(line, `" style="`)
	}
	return b.String() + filled
}
