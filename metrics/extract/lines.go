package extract

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// longestLine is the length of the longest accepted line, in bytes. A longer line is an error,
// because the file is then probably not text.
const longestLine = 4 << 20

const inUTF16 = "encoded in UTF-16; save it in UTF-8 (iconv -f UTF-16 -t UTF-8)"

// line is a line of a log without its newline, its launcher's prefix, and terminal colours. A
// carriage return also ends a line, because progress bars overwrite themselves, but it does not
// increase the line number.
type line struct {
	number int    // 1-based
	source string // rank that wrote it, from the launcher's prefix: "0"; "" without a prefix
	stamp  string // prefix that a log collector added, with the time of day; "" without one
	text   string
	before string      // for a member of a JSON object, the two lines before it; else ""
	after  string      // the two lines after it
	head   *columnHead // for patterns, the latest line that names columns
}

// scanner splits a log into lines. It drops a last line without a newline, because its last
// number may be cut off.
type scanner struct {
	l      *log
	s      *bufio.Scanner
	number int
	whole  bool // keep the prefixes of log collectors
	before line // the previous line
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

// each calls f with every line.
func (l *log) each(r io.Reader, f func(line)) { l.scan(r).each(f) }

func (s *scanner) each(f func(line)) {
	for s.s.Scan() {
		token := s.s.Bytes()
		text, n := token[:len(token)-1], s.number
		switch token[len(token)-1] {
		case '\n':
			s.number++
		case '\r':
		default:
			s.l.note("line %d has no line end and was left out: it may be cut off", n)
			return
		}
		if n == 1 {
			if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
				s.l.fail(0, inUTF16)
			}
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(text) > 0 {
			f(s.line(n, text))
		}
	}
	switch err := s.s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		s.l.fail(s.number, "a line of more than %d bytes; this is not a log of text", longestLine)
	case err != nil:
		s.l.fail(s.number, "%w", err)
	}
}

// line returns a line without prefixes and colours.
func (s *scanner) line(n int, text []byte) line {
	if bytes.IndexByte(text, '\x1b') >= 0 {
		text = colours.ReplaceAll(text, nil)
	}
	ln := line{number: n, text: string(text)}
	if !s.whole {
		ln.collected()
	}
	source, rest := stripPrefix(ln.text)
	ln.source, ln.text = strings.Trim(ln.source+"/"+source, "/"), rest
	if n == s.before.number { // the previous line ended with a carriage return
		ln.source, ln.stamp = cmp.Or(ln.source, s.before.source), cmp.Or(ln.stamp, s.before.stamp)
	}
	s.before = ln
	return ln
}

// A rule is a kind of line in a log, with what to do with the groups that its expression matches.
type rule struct {
	re   *regexp.Regexp
	take func(ln line, m []string)
}

// rules applies the first rule that matches to each line.
func (l *log) rules(r io.Reader, list ...rule) {
	l.each(r, func(ln line) {
		for _, one := range list {
			if m := one.re.FindStringSubmatch(ln.text); m != nil {
				one.take(ln, m)
				return
			}
		}
	})
}

var (
	// stamps matches the prefixes that log collectors and loggers add: kubectl and containerd,
	// syslog and journald, mpirun, and Python's logging.
	stamps = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?: std(?:out|err) [FP])?(?: +(?:[-|] +)?(?:[\w.-]+ *[-:|] *)?\[? *(?:DEBUG|INFO|WARNING)(?: *\])?(?: *[-|:])?| \S+ [^\s:\[]+\[\d+\]:)? |` +
		`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:\S+ [^\s:\[]+\[\d+\]: )?|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(\[)|` +
		`\[\d\d/\d\d \d\d:\d\d:\d\d [\w.-]+\]: )`)
	// processes matches the process names that kubectl and Ray add.
	processes = regexp.MustCompile(`^(?:\[(pod/[^\]\s]+)\]|\((?:\w+ )?(pid=\d+(?:, ip=[\d.:]+)?)\)) `)
	// prefixes matches the rank prefixes of `srun -l` ("12: "), mpirun and horovodrun
	// ("[1,0]<stdout>:"), and torchrun ("[default0]:", "[0] ").
	prefixes = regexp.MustCompile(`^(?: {0,5}(\d{1,6}): |\[(?:\d+,)?(\d{1,6})\]<std(?:out|err)>: ?|\[[A-Za-z_]*(\d{1,6})\]: ?|\[(\d{1,6})\] )`)
	// colours matches the control sequences that programs send to a terminal: colours, cursor
	// movements, titles.
	colours = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\))")
)

// collected moves the prefixes of log collectors from the text to stamp and source.
func (ln *line) collected() {
	for again := true; again; {
		again = false
		if m := stamps.FindStringSubmatch(ln.text); m != nil && ln.stamp == "" {
			rest := m[1] + ln.text[len(m[0]):]
			ln.stamp, ln.text, again = ln.text[:len(ln.text)-len(rest)], rest, true
		}
		if m := processes.FindStringSubmatch(ln.text); m != nil && ln.source == "" {
			ln.source, ln.text, again = m[1]+m[2], ln.text[len(m[0]):], true
		}
	}
}

// stripPrefix splits off up to two launchers' prefixes, as torchrun under srun adds. It returns
// the ranks that they name, and the rest of the line.
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

// first selects the lines of one process: the first process that writes a matching line. The
// launcher's prefix distinguishes processes.
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

// decimal matches a number as programs print it. Go's number syntax is not used, because it also
// allows hexadecimal floats and underscores.
var decimal = regexp.MustCompile(`^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$`)

// largestNumber is the largest accepted number in a log. Larger ones could overflow in sums and
// unit conversions.
const largestNumber = 1e100

// parse returns the number that a pattern has matched in a line.
func (l *log) parse(ln int, text string) Value {
	x, ok := parsed(text)
	if !ok {
		l.fail(ln, "%s", unreadable(text))
	}
	return Value{Number: x, Line: ln}
}

// parseAll returns several numbers of a line.
func (l *log) parseAll(ln int, texts ...string) (values []Value) {
	for _, t := range texts {
		values = append(values, l.parse(ln, t))
	}
	return values
}

// once fails if the log states a second time what one run states once. before are the values that
// it stated before; Line 0: none.
func (l *log) once(ln int, what string, before ...Value) {
	if len(before) > 0 && before[0].Line > 0 {
		l.fail(ln, "a second %s; the first is on line %d. One log is one run: split it", what, before[0].Line)
	}
}

// parsed returns a number that a log states; ok is false for other text.
func parsed(text string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && decimal.MatchString(text) && math.Abs(x) <= largestNumber
}

// unreadable says why parse rejected a number.
func unreadable(text string) string {
	switch {
	case decimal.MatchString(text):
		return fmt.Sprintf("%s is larger than %g, the limit", clip(text), largestNumber)
	case (strings.ContainsAny(text, ",'_") || strings.Count(text, ".") > 1) && strings.ContainsAny(text, "0123456789"):
		return clip(text) + " is not a finite number; write it with a decimal point and without separators"
	}
	return clip(text) + " is not a finite number"
}

// digitsOf returns the digits of a text.
func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
}

// count parses an integer of at least 1; what names it in the error.
func (l *log) count(ln int, what, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 {
		l.fail(ln, "%s %s; want a whole number, 1 or more", what, clip(text))
	}
	return n
}

// clip quotes text of a log for an error, shortened to 60 bytes.
func clip(text string) string {
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return strconv.Quote(text)
}
