package extract

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// longestLine is the longest line that is read, in bytes; a longer one is an
// error, since what is not text has no lines.
const longestLine = 4 << 20

// line is a line of a log without its end, the prefix that a launcher put in
// front, and terminal colours. A carriage return ends a line too (progress bars
// write over themselves), without counting as one.
type line struct {
	number int    // 1-based
	source string // "0": the launcher's name for the rank that wrote it; "" without a prefix
	text   string
}

// scanner reads a log line by line. What stands behind the last line end is not
// read: a number there may be cut off.
type scanner struct {
	l      *log
	s      *bufio.Scanner
	number int
}

func (l *log) scan(r io.Reader) *scanner {
	s := &scanner{l: l, s: bufio.NewScanner(r), number: 1}
	s.s.Buffer(make([]byte, 0, 64<<10), longestLine)
	s.s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
			return i + 1, data[:i+1], nil
		}
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	return s
}

// next returns the next line; io.EOF behind the last.
func (s *scanner) next() (line, error) {
	for s.s.Scan() {
		token := s.s.Bytes()
		text, end := token[:len(token)-1], token[len(token)-1]
		n := s.number
		switch end {
		case '\n':
			s.number++
		case '\r':
		default:
			s.l.note("line %d has no line end and was left out: it may be cut off", n)
			return line{}, io.EOF
		}
		if len(text) == 0 {
			continue
		}
		if bytes.IndexByte(text, '\x1b') >= 0 {
			text = colours.ReplaceAll(text, nil)
		}
		source, rest := stripPrefix(string(text))
		return line{number: n, source: source, text: rest}, nil
	}
	switch err := s.s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return line{}, s.l.errorAt(s.number, "a line of more than %d bytes; this is not a log of text", longestLine)
	case err != nil:
		return line{}, s.l.errorAt(s.number, "%w", err)
	}
	return line{}, io.EOF
}

// each calls f with every line.
func (l *log) each(r io.Reader, f func(line) error) error {
	for s := l.scan(r); ; {
		ln, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(ln); err != nil {
			return err
		}
	}
}

var (
	// prefixes are those of `srun -l` ("12: "), mpirun and horovodrun
	// ("[1,0]<stdout>:") and torchrun ("[default0]:", "[0] ").
	prefixes = regexp.MustCompile(`^(?: {0,5}(\d{1,6}): |\[(?:\d+,)?(\d{1,6})\]<std(?:out|err)>: ?|\[[A-Za-z_]*(\d{1,6})\]: ?|\[(\d{1,6})\] )`)
	colours  = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
)

// stripPrefix takes the launchers' prefixes off: at most two, as of a torchrun
// under srun.
func stripPrefix(text string) (source, rest string) {
	for range 2 {
		m := prefixes.FindStringSubmatch(text)
		if m == nil {
			break
		}
		source = strings.TrimPrefix(source+"/"+strings.Join(m[1:], ""), "/")
		text = text[len(m[0]):]
	}
	return source, text
}

// first keeps to the lines of one process, the first that writes what is looked
// for, where a launcher's prefixes tell processes apart.
type first struct {
	source string
	taken  bool
	others bool
}

func (f *first) takes(ln line) bool {
	if !f.taken {
		f.source, f.taken = ln.source, true
	}
	if ln.source != f.source {
		f.others = true
		return false
	}
	return true
}

func (f *first) note(l *log) {
	if f.others {
		l.note("several ranks write the same; only rank %s is read", f.source)
	}
}

// decimal is a number as programs print it. Go's own syntax has more: hexadecimal
// floats, and digits apart by underscores.
var decimal = regexp.MustCompile(`^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$`)

// largestNumber is the most that a number in a log may be: beyond it sums and
// changes of unit could overflow.
const largestNumber = 1e100

// parse reads a number that a pattern has matched.
func (l *log) parse(ln int, text string) (Value, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !decimal.MatchString(text) || !(math.Abs(x) <= largestNumber) {
		return Value{}, l.errorAt(ln, "%s", unreadable(text))
	}
	return Value{Number: x, Line: ln}, nil
}

// unreadable says what is wrong with a number that parse refuses.
func unreadable(text string) string {
	switch {
	case decimal.MatchString(text):
		return fmt.Sprintf("%s is beyond %g, the most that is read", clip(text), largestNumber)
	case strings.ContainsAny(text, ",'_") && strings.ContainsAny(text, "0123456789"):
		return clip(text) + " is not a finite number; write it with a decimal point and without separators"
	}
	return clip(text) + " is not a finite number"
}

// count reads a whole number from 1 on.
func (l *log) count(ln int, what, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 {
		return 0, l.errorAt(ln, "%s %s; want a whole number, 1 or more", what, clip(text))
	}
	return n, nil
}

// clip shows text of a log in an error.
func clip(text string) string {
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return strconv.Quote(text)
}
