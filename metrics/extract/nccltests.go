package extract

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/measure"
)

// ncclTests reads the table that nccl-tests (and rccl-tests) print. Bus
// bandwidth is algorithmic bandwidth times a factor of the collective and the
// number of ranks (its doc/PERFORMANCE.md); the times are means over the
// iterations of the slowest thread.
var ncclTests = Extractor{
	Name:  "nccl-tests",
	Kind:  "collective",
	Reads: "the table of all_reduce_perf and similar: size count type redop root time algbw busbw #wrong …",
	read:  readNCCL,
}

var (
	ncclRank  = regexp.MustCompile(`^#\s+Rank\s+(\d+) (?:Group\s+\d+ )?Pid\s+\d+ on `)
	ncclMean  = regexp.MustCompile(`^# Avg bus bandwidth\s+: (\S+)\s*$`)
	ncclStart = regexp.MustCompile(`^#\s+size\s+count\s`)
	ncclTest  = regexp.MustCompile(`^# Collective test starting: (\w+)\s*$`)
)

func readNCCL(l *log, r io.Reader) error {
	var from first
	var columns []string
	op := ""
	ranks, ended := map[string]bool{}, false
	err := l.each(r, func(ln line) error {
		if m := ncclRank.FindStringSubmatch(ln.text); m != nil {
			ranks[m[1]] = true
			return nil
		}
		switch {
		case ncclStart.MatchString(ln.text) && from.takes(ln):
			if columns != nil {
				return l.errorAt(ln.number, "a second table; one log is one benchmark (without MPI, every process runs its own)")
			}
			columns = strings.Fields(ln.text)[1:]
			if n := len(columns); n < 12 || columns[n-8] != "time" || columns[n-4] != "time" {
				return l.errorAt(ln.number, "columns %s; want time, algbw, busbw and errors, out of place and in place", strings.Join(columns, " "))
			}
		case ncclTest.MatchString(ln.text) && from.takes(ln):
			op = strings.TrimSuffix(ncclTest.FindStringSubmatch(ln.text)[1], "_perf")
		case columns == nil || ln.source != from.source:
		case ncclMean.MatchString(ln.text):
			v, err := l.parse(ln.number, ncclMean.FindStringSubmatch(ln.text)[1])
			if err != nil {
				return err
			}
			ended = true
			l.add(metrics.Event{Figure: &metrics.Figure{Name: "avg_busbw", Value: v.Number * 1e9, Unit: "B/s",
				Note: "nccl-tests' mean over all sizes, small ones too"}}, 1e9, v)
		case !ended && !strings.HasPrefix(ln.text, "#"):
			return l.ncclRow(ln, columns, op)
		}
		return nil
	})
	if err != nil || columns == nil {
		return err
	}
	from.note(l)
	l.res.Workers = len(ranks)
	if !ended {
		l.note("the line with the average is missing: the benchmark did not end, or the log was cut off")
	}
	return nil
}

// ncclRow takes a row of the table. Other lines between rows (NCCL's own
// messages) do not begin with as many numbers.
func (l *log) ncclRow(ln line, columns []string, op string) error {
	cells := strings.Fields(ln.text)
	if len(cells) < 2 || !digits(cells[0]) || !digits(cells[1]) {
		return nil
	}
	n := len(columns)
	if len(cells) != n {
		return l.errorAt(ln.number, "%d fields in a table of %d columns: a damaged row", len(cells), n)
	}
	size, err := l.parse(ln.number, cells[0])
	if err != nil {
		return err
	}
	for i, inPlace := range []bool{false, true} {
		at := n - 8 + 4*i
		if cells[at] == "N/A" {
			continue
		}
		if err := l.collective(op, size.Number, inPlace, func(j int) (Value, error) { return l.parse(ln.number, cells[at+j]) }); err != nil {
			return err
		}
		if w := cells[at+3]; w != "N/A" {
			v, err := l.parse(ln.number, w)
			if err != nil {
				return err
			}
			if columns[at+3] == "#wrong" && v.Number != 0 {
				l.note("wrong results at %g bytes: %g", size.Number, v.Number)
			}
		}
	}
	return nil
}

// collective adds time (µs), algbw and busbw (GB/s) of one size and placement.
func (l *log) collective(op string, bytes float64, inPlace bool, cell func(int) (Value, error)) error {
	at := collective.At(op, bytes, inPlace)
	for j, f := range []struct {
		name, unit string
		scale      float64
	}{{measure.Time, "s", 1e-6}, {measure.AlgBW, "B/s", 1e9}, {measure.BusBW, "B/s", 1e9}} {
		v, err := cell(j)
		if err != nil {
			return err
		}
		if v.Number < 0 {
			return l.errorAt(v.Line, "%s is %g; want 0 or more", f.name, v.Number)
		}
		if j == 0 && !l.isNew(op, bytes, inPlace) {
			return l.errorAt(v.Line, "a second row for %g bytes", bytes)
		}
		l.add(metrics.Event{Figure: &metrics.Figure{Name: f.name, Value: scaled(v.Number, f.scale), Unit: f.unit, At: at}}, f.scale, v)
	}
	return nil
}

// isNew notes that a benchmark has stated its numbers of one size and placement,
// and reports whether it had not before.
func (l *log) isNew(op string, bytes float64, inPlace bool) bool {
	if l.sizes[op] == nil {
		if l.sizes == nil {
			l.sizes = map[string]map[float64]uint8{}
		}
		l.sizes[op] = map[float64]uint8{}
	}
	bit := uint8(1)
	if inPlace {
		bit = 2
	}
	before := l.sizes[op][bytes]
	l.sizes[op][bytes] = before | bit
	return before&bit == 0
}

func digits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// ncclTestsJSON reads the file that nccl-tests writes with -J.
var ncclTestsJSON = Extractor{
	Name:  "nccl-tests-json",
	Kind:  "collective",
	Reads: "the JSON file of nccl-tests -J: results with size, out_of_place and in_place",
	read:  readNCCLJSON,
}

func readNCCLJSON(l *log, r io.Reader) error {
	doc, err := l.json(r)
	if err != nil {
		return err
	}
	file := map[string]value{}
	doc.members(file)
	results := file["results"]
	if !doc.is('{') || !results.is('[') && !results.null() {
		return fmt.Errorf("%s: not results of nccl-tests: want a JSON object with a list named results", l.o.File)
	}
	if err := file["devices"].entries(func(value) error { l.res.Workers++; return nil }); err != nil {
		return err
	}
	row, place := map[string]value{}, map[string]value{}
	if err := results.entries(func(at value) error { return l.ncclResult(at, row, place) }); err != nil {
		return err
	}
	average := map[string]value{}
	file["average_bus_bandwidth"].members(average)
	if b := average["bandwidth"]; !b.null() {
		v, err := l.parse(b.line, string(b.text))
		if err != nil {
			return err
		}
		l.add(metrics.Event{Figure: &metrics.Figure{Name: "avg_busbw", Value: v.Number * 1e9, Unit: "B/s",
			Note: "nccl-tests' mean over all sizes, small ones too"}}, 1e9, v)
	}
	return nil
}

// ncclResult takes one size's numbers. row and place are for its use.
func (l *log) ncclResult(at value, row, place map[string]value) error {
	at.members(row)
	number := func(of value, name string) (Value, error) {
		if of.null() {
			return Value{}, l.errorAt(max(of.line, at.line), "a result without its %s", name)
		}
		return l.parse(of.line, string(of.text))
	}
	size, err := number(row["size"], "size")
	if err != nil {
		return err
	}
	if size.Number < 0 {
		return l.errorAt(size.Line, "a result without its size")
	}
	for i, name := range []string{"out_of_place", "in_place"} {
		row[name].members(place)
		if row[name].null() {
			continue
		}
		err := l.collective("", size.Number, i == 1, func(j int) (Value, error) {
			key := []string{"time", "alg_bw", "bus_bw"}[j]
			return number(place[key], key)
		})
		if err != nil {
			return err
		}
		if w := place["nwrong"]; !w.null() {
			wrong, err := number(w, "nwrong")
			if err != nil {
				return err
			}
			if wrong.Number != 0 {
				l.note("wrong results at %g bytes: %g", size.Number, wrong.Number)
			}
		}
	}
	return nil
}
