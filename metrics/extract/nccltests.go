package extract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/collective"
)

// ncclTests reads the table that nccl-tests (and rccl-tests) print. Bus
// bandwidth is algorithmic bandwidth times a factor of the collective and the
// number of ranks (its doc/PERFORMANCE.md); the times are means over the
// iterations of the slowest thread.
var ncclTests = Extractor{
	Name:  "nccl-tests",
	Reads: "the table of all_reduce_perf and its like: size count type redop root time algbw busbw #wrong …",
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
				l.note("%g wrong results at %g bytes", v.Number, size.Number)
			}
		}
	}
	return nil
}

// collective adds time (µs), algbw and busbw (GB/s) of one size and placement.
func (l *log) collective(op string, bytes float64, inPlace bool, cell func(int) (Value, error)) error {
	for j, f := range []struct {
		name, unit string
		scale      float64
	}{{collective.Time, "s", 1e-6}, {collective.AlgBW, "B/s", 1e9}, {collective.BusBW, "B/s", 1e9}} {
		v, err := cell(j)
		if err != nil {
			return err
		}
		if v.Number < 0 {
			return l.errorAt(v.Line, "%s of %g", f.name, v.Number)
		}
		at := collective.At(op, bytes, inPlace)
		if place := (collectivePlace{op, f.name, bytes, inPlace}); l.places[place] {
			return l.errorAt(v.Line, "%g bytes for the second time", bytes)
		} else if l.places == nil {
			l.places = map[collectivePlace]bool{place: true}
		} else {
			l.places[place] = true
		}
		l.add(metrics.Event{Figure: &metrics.Figure{Name: f.name, Value: scaled(v.Number, f.scale), Unit: f.unit, At: at}}, f.scale, v)
	}
	return nil
}

// collectivePlace is what a benchmark states one number of each figure for.
type collectivePlace struct {
	op, figure string
	bytes      float64
	inPlace    bool
}

func digits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// ncclTestsJSON reads the file that nccl-tests writes with -J.
var ncclTestsJSON = Extractor{
	Name:  "nccl-tests-json",
	Reads: "the JSON file of nccl-tests -J: results with size, out_of_place and in_place",
	read:  readNCCLJSON,
}

type ncclPlace struct {
	Time   *json.Number `json:"time"` // µs
	AlgBW  *json.Number `json:"alg_bw"`
	BusBW  *json.Number `json:"bus_bw"`
	NWrong *float64     `json:"nwrong"`
}

func readNCCLJSON(l *log, r io.Reader) error {
	doc, err := l.json(r)
	if err != nil {
		return err
	}
	var file struct {
		Devices []struct{} `json:"devices"`
		Average *struct {
			Bandwidth *json.Number `json:"bandwidth"`
		} `json:"average_bus_bandwidth"`
	}
	err = json.Unmarshal(doc.data, &file)
	l.res.Workers = len(file.Devices)
	if err == nil {
		err = doc.each("results", l.ncclResult)
	}
	var notOne *json.UnmarshalTypeError
	if errors.As(err, &notOne) {
		return fmt.Errorf("%s: no results of nccl-tests: %w", l.o.File, err)
	}
	if err != nil {
		return err
	}
	if a := file.Average; a != nil && a.Bandwidth != nil {
		whole := object{doc.data, 1}
		v, err := l.parse(whole.line("average_bus_bandwidth", "bandwidth"), a.Bandwidth.String())
		if err != nil {
			return err
		}
		l.add(metrics.Event{Figure: &metrics.Figure{Name: "avg_busbw", Value: v.Number * 1e9, Unit: "B/s",
			Note: "nccl-tests' mean over all sizes, small ones too"}}, 1e9, v)
	}
	return nil
}

// ncclResult takes one size's numbers.
func (l *log) ncclResult(at object) error {
	var row struct {
		Size       *float64   `json:"size"`
		OutOfPlace *ncclPlace `json:"out_of_place"`
		InPlace    *ncclPlace `json:"in_place"`
	}
	if err := json.Unmarshal(at.text, &row); err != nil {
		return err
	}
	if row.Size == nil || *row.Size < 0 {
		return l.errorAt(at.first, "a result without its size")
	}
	for i, p := range []*ncclPlace{row.OutOfPlace, row.InPlace} {
		if p == nil {
			continue
		}
		place := []string{"out_of_place", "in_place"}[i]
		err := l.collective("", *row.Size, i == 1, func(j int) (Value, error) {
			name := []string{"time", "alg_bw", "bus_bw"}[j]
			text, line := []*json.Number{p.Time, p.AlgBW, p.BusBW}[j], at.line(place, name)
			if text == nil {
				return Value{}, l.errorAt(line, "a result without its %s", name)
			}
			return l.parse(line, text.String())
		})
		if err != nil {
			return err
		}
		if p.NWrong != nil && *p.NWrong != 0 {
			l.note("%g wrong results at %g bytes", *p.NWrong, *row.Size)
		}
	}
	return nil
}
