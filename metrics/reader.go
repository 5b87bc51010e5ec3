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

// LineError is a line that could not be read. It is a record, not an abort:
// the reader goes on with the next line.
type LineError struct {
	File string
	Line int // 1-based
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// MaxLine is the longest line the reader takes, in bytes. A longer one is a
// LineError; a batch of 100 steps is about 3 KB.
const MaxLine = 4 << 20

// farTooLong is the length of a line behind which nothing is read any more, in
// bytes: the file holds no lines, like one that is all holes.
const farTooLong = 64 * MaxLine

// errNoLines: a file of events has a line that does not end.
var errNoLines = fmt.Errorf("a line of more than %d MiB: this is not an event file; remove it or move it away", farTooLong>>20)

// maxMessage is how much is said of a bad line, in bytes: the text may quote the
// line.
const maxMessage = 300

// A Reader reads events from a file that may still be growing. A last line
// without its newline is left for a later Reader, which starts from Offset and
// Line.
type Reader struct {
	r    *bufio.Reader
	name string
	// Offset is the position behind the last whole line, in bytes from where
	// the file begins.
	Offset int64
	// Line is how many lines lie before Offset.
	Line int
}

// NewReader reads events from r. name stands in LineErrors; offset and line
// are those of an earlier Reader that r continues, or zero.
func NewReader(r io.Reader, name string, offset int64, line int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), name: name, Offset: offset, Line: line}
}

// Next returns the next event. The error is io.EOF at the end of the last
// whole line, a *LineError for a line that is no event (call Next again to go
// on), or what reading the file failed with.
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

// parse makes an event of a line, if it is one whose numbers can be used.
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

// line returns one whole line without its newline and advances Offset past it.
// An unfinished last line is io.EOF.
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
