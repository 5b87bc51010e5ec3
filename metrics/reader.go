package metrics

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// LineError reports a line that could not be read. The reader can continue with the next line.
type LineError struct {
	File string
	Line int // 1-based
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// MaxLine is the maximum length of a line in bytes; a longer line is a LineError. A batch of 100
// steps has about 3 KB.
const MaxLine = 4 << 20

// farTooLong is the line length in bytes at which the reader gives up: the file is not a text file.
// A sparse file of zeros is an example.
const farTooLong = 64 * MaxLine

// errNoLines reports a line longer than farTooLong.
var errNoLines = fmt.Errorf("a line of more than %d MiB: this is not an event file; remove it or move it away", farTooLong>>20)

// maxMessage is the maximum length of the message about a bad line, in bytes. The message may quote
// the line.
const maxMessage = 300

// A Reader reads events from a file that may still be growing. An incomplete last line is left for
// a later Reader, which starts at Offset and Line.
type Reader struct {
	r    *bufio.Reader
	name string
	// Offset is the position after the last complete line, in bytes from the start of the file.
	Offset int64
	// Line is the number of lines before Offset.
	Line int
}

// NewReader returns a Reader of the events in r. name is the file's name in errors. If r continues
// where an earlier Reader stopped, offset and line are its Offset and Line, otherwise zero.
func NewReader(r io.Reader, name string, offset int64, line int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), name: name, Offset: offset, Line: line}
}

// Next returns the next event. The error is io.EOF after the last complete line. It is a *LineError
// for an invalid line; call Next again to continue. Any other error comes from reading the file.
func (r *Reader) Next() (Event, error) {
	for {
		line, tooLong, err := r.line()
		if err != nil {
			return Event{}, err
		}
		r.Line++
		if tooLong {
			return Event{}, &LineError{r.name, r.Line, fmt.Errorf("longer than %d bytes", MaxLine)}
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		e, err := parse(line)
		if err != nil {
			if text := err.Error(); len(text) > maxMessage {
				err = errors.New(strings.ToValidUTF8(text[:maxMessage], "") + "…")
			}
			return Event{}, &LineError{r.name, r.Line, err}
		}
		return e, nil
	}
}

// parse parses a line and validates the event.
func parse(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("not a JSON event: %w", err)
	}
	if !utf8.Valid(line) {
		return e, errors.New("not UTF-8")
	}
	if name := duplicate(line); name != "" {
		return e, fmt.Errorf("%q appears twice in one object", name)
	}
	return e, e.Validate()
}

// line returns the next complete line without its newline, and advances Offset past it. At an
// incomplete last line it returns io.EOF.
func (r *Reader) line() (line []byte, tooLong bool, err error) {
	var n int64
	for {
		part, err := r.r.ReadSlice('\n')
		n += int64(len(part))
		switch {
		case err == nil && line == nil && !tooLong:
			r.Offset += n
			return part[:len(part)-1], false, nil
		case err == nil:
			r.Offset += n
			if tooLong || n > MaxLine {
				return nil, true, nil
			}
			return append(line, part[:len(part)-1]...), false, nil
		case errors.Is(err, bufio.ErrBufferFull):
			if n > farTooLong {
				return nil, false, fmt.Errorf("%s:%d: %w", r.name, r.Line+1, errNoLines)
			}
			if n > MaxLine {
				line, tooLong = nil, true
			} else {
				line = append(line, part...)
			}
		default:
			return nil, false, err
		}
	}
}
