package extract

import (
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// ncclTests reads the table that nccl-tests and rccl-tests print. Bus bandwidth is the
// algorithmic bandwidth multiplied by a factor that depends on the collective and the number of
// ranks (see their doc/PERFORMANCE.md). Times are means over the iterations, of the slowest
// thread.
var ncclTests = Extractor{
	Name:  "nccl-tests",
	Kind:  "collective",
	Reads: "the table of all_reduce_perf and similar: size count type redop root time algbw busbw #wrong …",
	read:  readNCCL,
}

var (
	ncclRank   = regexp.MustCompile(`^#\s+Rank\s+(\d+) (?:Group\s+(\d+) )?Pid\s+\d+ on `)
	ncclMean   = regexp.MustCompile(`^# Avg bus bandwidth\s+: (\S+)(?:\s+(OK|FAILED))?\s*$`)
	ncclUnits  = regexp.MustCompile(`^#\s+\(B\)\s+\(elements\)\s`)
	ncclBounds = regexp.MustCompile(`^# (Out of bounds values : \S+ (?:OK|FAILED))\s*$`)
	ncclStart  = regexp.MustCompile(`^#\s+size\s+count\s`)
	// The row of a size. Other lines between rows, such as NCCL's messages, do not begin with two
	// numbers.
	ncclNumbers = regexp.MustCompile(`^\s*\d+\s+\d+(?:\s|$)`)
	ncclTest    = regexp.MustCompile(`^# Collective test starting: (\w+)\s*$`)
)

type ncclTable struct {
	l       *log
	from    first
	ranks   map[string]string // the group of each rank
	ended   bool              // whether the line with the average was read
	columns []string
	places  [2]int // columns in which the results begin, out of place and in place
	op      string // the collective, if the log names it
	rows    []ncclRow
	empty   int // number of rows of 0 bytes
	results ncclResults
	stated  string // what it says of wrong results
}

// ncclRow is a row of the table. kind holds the columns that distinguish it from rows of the same
// size.
type ncclRow struct {
	line  int
	size  Value
	kind  [3]string // the values of ncclKinds
	cells []string
}

// ncclKinds are the columns in which rows of the same size may differ (-o all, -d all, -r all).
var ncclKinds = [3]string{"type", "redop", "root"}

func readNCCL(l *log, r io.Reader) {
	t := &ncclTable{l: l, ranks: map[string]string{}, results: ncclResults{l: l}}
	l.rules(r,
		rule{ncclRank, func(_ line, m []string) { t.ranks[m[1]] = m[2] }},
		rule{ncclStart, t.header},
		rule{ncclTest, func(ln line, m []string) {
			if t.from.takes(ln) {
				t.op = strings.TrimSuffix(m[1], "_perf")
			}
		}},
		rule{ncclBounds, t.own(func(_ line, m []string) { t.stated = m[1] })},
		rule{ncclMean, t.own(t.end)},
		rule{ncclUnits, t.own(t.units)},
		rule{ncclNumbers, t.own(t.row)})
	if t.columns == nil {
		return
	}
	t.from.note(l)
	if !t.ended {
		t.results.ranks(slices.Collect(maps.Values(t.ranks)))
		l.note("the line with the average is missing: the benchmark did not end, or the log was cut off")
		t.figures()
	}
	t.results.judge(t.stated)
}

// own limits a rule to the lines of the process that printed the table's header.
func (t *ncclTable) own(take func(ln line, m []string)) func(line, []string) {
	return func(ln line, m []string) {
		if t.columns != nil && ln.source == t.from.source {
			take(ln, m)
		}
	}
}

func (t *ncclTable) header(ln line, _ []string) {
	if !t.from.takes(ln) {
		return
	}
	if t.columns != nil {
		t.l.fail(ln.number, "a second table; one log is one benchmark (without MPI, every process runs its own): split it")
	}
	t.columns = strings.Fields(ln.text)[1:]
	found := 0
	for i, name := range t.columns {
		if strings.HasSuffix(name, "time") && i+3 < len(t.columns) && t.columns[i+1] == "algbw" && t.columns[i+2] == "busbw" && found < 2 {
			if name != "time" {
				t.l.fail(ln.number, "column %s: the times are those of the CPU (-C 1), which returns before the collective ends; run it without -C", name)
			}
			t.places[found] = i
			found++
		}
	}
	if found < 2 {
		t.l.fail(ln.number, "columns %s; want time, algbw, busbw and errors, out of place and in place", strings.Join(t.columns, " "))
	}
}

// units checks that the table has the expected units of times and bandwidths.
func (t *ncclTable) units(ln line, _ []string) {
	var have []string
	for _, unit := range strings.Fields(ln.text) {
		if unit == "(us)" || unit == "(GB/s)" || unit == "(%)" || unit == "#" || unit == "(B)" || unit == "(elements)" || !strings.HasPrefix(unit, "(") {
			continue
		}
		have = append(have, unit)
	}
	if len(have) > 0 {
		t.l.fail(ln.number, "units %s; nccl-tests has (us) and (GB/s)", strings.Join(have, " "))
	}
}

// end records the line with the average bandwidth, which follows the table.
func (t *ncclTable) end(ln line, m []string) {
	v := t.l.parse(ln.number, m[1])
	if m[2] == "FAILED" {
		t.l.note("the average bus bandwidth is under nine tenths of what NCCL_TESTS_MIN_BW asked for")
	}
	t.ended = true
	t.results.ranks(slices.Collect(maps.Values(t.ranks)))
	t.figures()
	if mean, n := t.mean(); n > 0 && math.Abs(v.Number-mean) > 0.1*mean+0.01 {
		t.l.note("the average bus bandwidth is stated as %g GB/s (line %d), and the rows have %.4g on average: rows are missing, or a number is damaged", v.Number, ln.number, mean)
	}
	t.results.average(v)
}

// mean returns the mean of the bus bandwidths of all rows in GB/s, and their number. nccl-tests
// counts rows of 0 bytes too.
func (t *ncclTable) mean() (mean float64, n int) {
	sum := 0.0
	for _, r := range t.results.list {
		sum += r.bus.Number
	}
	if n = len(t.results.list); n > 0 {
		mean = sum / float64(n+2*t.empty)
	}
	return mean, n
}

func (t *ncclTable) row(ln line, _ []string) {
	if t.ended {
		return
	}
	cells := strings.Fields(ln.text)
	n := len(t.columns)
	if stamped := t.columns[n-1] == "timestamp"; stamped && len(cells) == n+1 { // a date and a time
		cells = cells[:n]
	}
	if len(cells) != n {
		t.l.fail(ln.number, "%d fields in a table of %d columns: a damaged row", len(cells), n)
	}
	size := t.l.parse(ln.number, cells[0])
	if size.Number == 0 {
		t.empty++
		return
	}
	row := ncclRow{line: ln.number, size: size, cells: cells}
	for i, name := range ncclKinds {
		if at := slices.Index(t.columns[:t.places[0]], name); at >= 0 {
			row.kind[i] = cells[at]
		}
	}
	t.rows = append(t.rows, row)
}

// figures adds the figures of all rows. If rows differ in data type, reduction or root, these
// become part of the operation's name.
func (t *ncclTable) figures() {
	l := t.l
	if t.empty > 0 {
		l.note("%s of 0 bytes left out: they move no data", number.Count(t.empty, "row"))
	}
	var differ []int
	for i := range ncclKinds {
		if slices.ContainsFunc(t.rows, func(r ncclRow) bool { return r.kind[i] != t.rows[0].kind[i] }) {
			differ = append(differ, i)
			l.note("rows differ in %s: the coordinate op says which", ncclKinds[i])
		}
	}
	for _, row := range t.rows {
		op := t.op
		for _, i := range differ {
			if ncclKinds[i] == "root" {
				op += " root"
			}
			op = strings.TrimSpace(op + " " + row.kind[i])
		}
		for i, inPlace := range []bool{false, true} {
			t.result(row, op, t.places[i], inPlace)
		}
	}
	t.results.figures(t.op)
}

// result records the results of a row, either those out of place or those in place. from is the
// column in which they begin.
func (t *ncclTable) result(row ncclRow, op string, from int, inPlace bool) {
	cells := row.cells[from : from+4]
	if cells[0] == "N/A" {
		return
	}
	of := t.l.parseAll(row.line, cells[:3]...)
	var wrong Value
	if cells[3] != "N/A" {
		if v := t.l.parse(row.line, cells[3]); t.columns[from+3] == "#wrong" {
			wrong = v
		}
	}
	t.results.add(ncclResult{op, row.size.Number, inPlace, of[0], of[1], of[2]}, wrong)
}
