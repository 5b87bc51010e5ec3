package clean

import (
	"bytes"
	"io"
	"regexp"
	"unicode/utf8"
)

// colours are sequences that set a colour or move the cursor.
var colours = regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`)

// Writer makes what a program has printed harmless for a terminal, as it comes:
// without colours, each state of a progress bar on a line of its own, all else
// that would steer the terminal as Lines has it.
type Writer struct {
	to   io.Writer
	rest []byte // of a character or a sequence that is not whole yet
}

// NewWriter is a Writer to another one. Flush writes what is left at the end.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write takes any part of the text. What may go on in the next part, at most some
// bytes, waits for it.
func (w *Writer) Write(part []byte) (int, error) {
	text := append(w.rest, part...)
	if len(text) == 0 {
		return 0, nil
	}
	keep := len(text)
	if i := bytes.LastIndexByte(text, 0x1b); i >= 0 && len(text)-i < 32 && !colours.Match(text[i:]) {
		keep = i
	} else if text[len(text)-1] == '\r' { // the first half of a line break, or not
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

// Flush writes what waits for more.
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
