package clean

import (
	"bytes"
	"io"
	"regexp"
	"unicode/utf8"
)

// colours matches sequences that set a colour or move the cursor.
var colours = regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`)

// A Writer makes a program's output safe for a terminal as it arrives: it removes
// colours, puts each state of a progress bar on a separate line, and escapes the rest
// as Lines does.
type Writer struct {
	to   io.Writer
	rest []byte // an incomplete character or escape sequence
}

// NewWriter returns a Writer that writes to another writer. Call Flush at the end.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write accepts any part of the text. It keeps back a few bytes if a character or
// sequence may continue in the next part.
func (w *Writer) Write(part []byte) (int, error) {
	text := append(w.rest, part...)
	if len(text) == 0 {
		return 0, nil
	}
	keep := len(text)
	if i := bytes.LastIndexByte(text, 0x1b); i >= 0 && len(text)-i < 32 && !colours.Match(text[i:]) {
		keep = i
	} else if text[len(text)-1] == '\r' { // may be the first half of "\r\n"
		keep--
	} else {
		for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
			if utf8.RuneStart(text[i]) {
				if !utf8.FullRune(text[i:]) {
					keep = i
				}
				break
			}
		}
	}
	w.rest = append([]byte(nil), text[keep:]...)
	return len(part), w.write(text[:keep])
}

// Flush writes the bytes that Write kept back.
func (w *Writer) Flush() error {
	rest := w.rest
	w.rest = nil
	return w.write(rest)
}

func (w *Writer) write(text []byte) error {
	text = colours.ReplaceAll(text, nil)
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	_, err := io.WriteString(w.to, Lines(string(text)))
	return err
}
