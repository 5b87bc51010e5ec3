package extract

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A survey checks all rows of a table before any of them becomes a run. It finds problems that no
// single row shows: mixed units, one device's rate, rows pasted twice, means. It leaves out rows
// that are not runs, and returns an error if the user has to decide.
type survey struct {
	*table
	columns map[string]Column
	figures []string // mapped figures, sorted by name
	loads   bool     // each row is a load
	epochs  bool     // each row is an epoch

	joined  []surveyed // one row per run, if Options.Sum adds up rows that are parts of runs
	rows    []surveyed
	points  map[string]int // number of each point, by its labels and workers
	series  map[string]int // number of each series, by the labels that separate series
	others  []*other       // columns that the user did not map
	locale  locale
	labelAt map[int]bool             // indices of the columns that are labels
	failed  []func(cell string) bool // for each column, see failedIn
	plain   []string                 // figures of which a cell is a number without a unit
	summed  []surveyed               // rows with the name of a summary in a label, such as "average"

	left     map[int]string // why rows do not count as runs, by row number; "": they do
	weak     bool           // weak scaling: runs on more workers do more work
	problems []error        // what the user has to solve
	doubts   []string       // doubts about the table, which every run carries
}

// surveyed is a row of the table.
type surveyed struct {
	number, line  int
	point, series int
	run           int // number of the run that the row is a part or an epoch of
	workers       float64
	values        []float64 // figures in their base units; NaN: the cell is empty
	digits        int       // significant digits of all values together
	decimals      int       // decimals of the first value
	hash          string    // digest of the mapped cells
	whole         string    // digest of the whole row
	part          string    // name of the part, if Options.Sum adds up parts of runs
	mark          mark      // kind of summary; "" for a run
	empty         []bool    // for each column in others, whether the cell is empty
}

// survey reads all rows and checks them. It skips rows that it cannot parse, because the next
// reader reports them.
func (t *table) survey(columns map[string]Column) *survey {
	s := &survey{table: t, columns: columns, loads: ofLoads(columns), points: map[string]int{}, series: map[string]int{}, left: map[int]string{}, labelAt: map[int]bool{}}
	_, s.epochs = columns["epoch"]
	for _, ours := range slices.Sorted(maps.Keys(columns)) {
		if _, figure := tableUnits[ours]; (figure || ours == "loss") && !columns[ours].Label && ours != "rate" {
			s.figures = append(s.figures, ours)
		}
	}
	for ours, c := range columns {
		s.labelAt[t.at[c.Name]] = s.labelAt[t.at[c.Name]] || !slices.Contains([]string{"workers", "replicas", "nodes"}, ours) && !slices.Contains(s.figures, ours)
	}
	for _, name := range t.header {
		s.failed = append(s.failed, failedIn(name, s.loads))
	}
	s.others = t.others(columns)
	t.unitsRow()
	again := t.again()
	for number := 1; ; number++ {
		row, err := again.Read()
		if err != nil { // the end, or an error that the next reader reports
			break
		}
		line, _ := again.FieldPos(0)
		s.look(number, line, row)
	}
	s.locale.check(t)
	s.alike()
	s.untimed()
	s.stepTimes()
	s.jobSteps()
	s.summaries()
	s.copies()
	s.join()
	s.failures()
	for _, check := range []func(){s.parts, s.steps, s.settings, s.moments, s.unitColumns, s.contradictions, s.batches, s.shapes, s.devices, s.impossible, s.percentages} {
		if err := try(check); err != nil {
			s.problems = append(s.problems, err)
		}
	}
	failIf(errors.Join(s.problems...))
	return s
}

// stepTimes says how a table with step times and no rate gets a throughput.
func (s *survey) stepTimes() {
	r, has := s.reads[stepSeconds]
	rated := slices.ContainsFunc([]string{"throughput", "end_to_end", tokensPerSecond, tokensPerGPU}, func(name string) bool { return s.reads[name].Name != "" })
	if !has || rated || s.l.o.WorkerBatch > 0 {
		return
	}
	unit := cmp.Or(r.Unit, r.unit, "s")
	if len(number.Divided(number.Words(unit))) == 1 {
		unit += "/step"
	}
	s.say("the table has step times and no rate; with N samples per worker and step, %s --worker-batch N gives the throughput", mapping("throughput", r.Name, unit))
}

// untimed reports times whose column does not state a unit: they are read in seconds. It leaves out
// times of steps and epochs that are likely to be in seconds.
func (s *survey) untimed() {
	likely := func(ours string) bool {
		median, err := reduceBy("median", s.figure(s.rows, ours))
		return err != nil || ours == stepSeconds && median < 5 || ours == "epoch_seconds" && median > 2
	}
	stated := slices.ContainsFunc(s.others, func(o *other) bool { return o.role == roleUnit })
	for _, ours := range s.plain {
		if r := s.reads[ours]; tableUnits[ours] == "s" && r.Unit == "" && r.Name != ours && headingOf(r.Name).Said == "" && !stated && !likely(ours) {
			s.say("column %s does not state its unit and is read in seconds; if that is wrong, write the unit, like %s", clip(r.Name), mapping(ours, r.Name, "ms"))
			s.doubts = append(s.doubts, fmt.Sprintf("column %s does not state its unit and is read in seconds", clip(r.Name)))
		}
	}
}

// refuse records a problem of the table, which the user has to solve.
func (s *survey) refuse(format string, args ...any) {
	s.problems = append(s.problems, s.l.errorAt(0, format, args...))
}

// again returns a reader that starts at the first row after the header.
func (t *table) again() *csv.Reader {
	r := csv.NewReader(bytes.NewReader(t.data))
	r.Comma, r.ReuseRecord = t.more.Comma, true
	r.Read()
	return r
}

// look records a row.
func (s *survey) look(n, line int, row []string) {
	r := surveyed{number: n, line: line}
	labels := s.labels(row, s.columns)
	for _, ours := range []string{"workers", "replicas"} {
		switch n := labels[ours].(type) {
		case int64:
			r.workers = float64(n)
		case float64:
			r.workers = n
		}
	}
	if r.workers == 0 {
		r.workers = float64(s.l.o.Workers)
	}
	for _, key := range coordinatesOf(s.columns) {
		labels[key] = strings.TrimSpace(row[s.at[s.columns[key].Name]])
	}
	r.point = identify(s.points, labels)
	for _, key := range []string{"workers", "replicas", "nodes", "seed", "repeat", "run"} {
		delete(labels, key)
	}
	r.series = identify(s.series, labels)
	mapped := []string{strconv.Itoa(r.point)}
	one := &table{l: s.l, at: s.at, reads: s.reads, rows: [][]string{row}, line: []int{line}}
	for i, ours := range s.figures {
		text := strings.TrimSpace(row[s.at[s.columns[ours].Name]])
		s.locale.see(text, line, s.columns[ours].Name)
		if d, _ := number.Read(text); text != "" && !d.Known && !slices.Contains(s.plain, ours) {
			s.plain = append(s.plain, ours)
		}
		mapped = append(mapped, text)
		x := math.NaN()
		_ = try(func() { // the reader of the rows reports the error
			v, scale, ok := one.cell(0, ours)
			if !ok {
				return
			}
			x = s.reads[ours].times(v.Number, scale)
			r.digits += significantDigits(text)
			if i == 0 {
				digits, _ := one.split(0, s.columns[ours].Name)
				_, fraction, _ := strings.Cut(digits, ".")
				r.decimals = len(fraction)
			}
		})
		r.values = append(r.values, x)
	}
	for _, when := range []string{"started", "order", "block", "epoch", "step"} {
		if c, ok := s.columns[when]; ok {
			mapped = append(mapped, row[s.at[c.Name]])
		}
	}
	if at, sums := s.at[s.l.o.Sum]; sums {
		r.part = strings.TrimSpace(row[at])
		mapped = append(mapped, r.part)
	}
	r.hash = strings.Join(mapped, "\x00")
	digest := sha256.Sum256([]byte(strings.Join(row, "\x00")))
	r.whole = string(digest[:8])
	for _, cell := range row {
		s.locale.hint(strings.TrimSpace(cell))
	}
	r.empty = make([]bool, len(s.others))
	for i, o := range s.others {
		text := strings.TrimSpace(row[o.at])
		r.empty[i] = text == ""
		o.see(text, r)
	}
	r.mark = s.marked(row, line)
	s.rows = append(s.rows, r)
}

// coordinatesOf returns the coordinates of loads to which columns are mapped. Rows that differ in
// a coordinate are not repeats.
func coordinatesOf(columns map[string]Column) (list []string) {
	for _, key := range Coordinates {
		if c, mapped := columns[key]; mapped && !c.Label {
			list = append(list, key)
		}
	}
	return list
}

// identify returns a number for the labels: the same number for equal labels, and a new one for
// labels that known does not have.
func identify(known map[string]int, labels map[string]any) int {
	text := must(json.Marshal(labels))
	n, is := known[string(text)]
	if !is {
		n = len(known)
		known[string(text)] = n
	}
	return n
}

// significantDigits counts the significant digits of a number without trailing zeros.
func significantDigits(text string) int {
	text, _, _ = strings.Cut(strings.ToLower(text), "e")
	return len(strings.Trim(digitsOf(text), "0"))
}

// join assigns the rows to runs. Rows of one point are epochs of one run, or, if Options.Sum is
// set, parts of it, whose values it adds up.
func (s *survey) join() {
	sums := s.l.o.Sum != ""
	if !sums && !s.epochs {
		return
	}
	open := map[int]int{} // the latest run of each point
	var seen []map[string]bool
	for i := range s.rows {
		r := &s.rows[i]
		if s.left[r.number] != "" {
			continue
		}
		run, is := open[r.point]
		if is = is && !(sums && seen[run][r.part]); !is {
			run = len(seen)
			open[r.point], seen = run, append(seen, map[string]bool{})
		}
		r.run, seen[run][r.part] = run, true
		switch {
		case !sums:
		case is:
			for k, x := range r.values {
				s.joined[run].values[k] += x
			}
		default:
			s.joined = append(s.joined, *r)
			s.joined[run].values = slices.Clone(r.values)
		}
	}
}

// runs groups the rows that count as runs by the number that the function of returns.
func (s *survey) runs(of func(surveyed) int) [][]surveyed {
	rows := s.rows
	if s.joined != nil {
		rows = s.joined
	}
	return groupedBy(rows, func(r surveyed) (int, bool) { return of(r), s.left[r.number] == "" })
}

// groupedBy returns the rows by the key that the function of returns, in the keys' order. It leaves
// out rows for which of returns false.
func groupedBy[K cmp.Ordered](rows []surveyed, of func(surveyed) (K, bool)) (groups [][]surveyed) {
	sizes := map[K]int{}
	for _, r := range rows {
		if key, ok := of(r); ok {
			sizes[key]++
		}
	}
	at := map[K]int{} // index in groups
	for i, key := range slices.Sorted(maps.Keys(sizes)) {
		at[key], groups = i, append(groups, make([]surveyed, 0, sizes[key]))
	}
	for _, r := range rows {
		if key, ok := of(r); ok {
			groups[at[key]] = append(groups[at[key]], r)
		}
	}
	return groups
}

func bySeries(r surveyed) int { return r.series }
func byPoint(r surveyed) int  { return r.point }

// figure returns the values of the rows in one measure's column, without empty cells.
func (s *survey) figure(rows []surveyed, ours string) (list []float64) {
	i := slices.Index(s.figures, ours)
	for _, r := range rows {
		if !math.IsNaN(r.values[i]) {
			list = append(list, r.values[i])
		}
	}
	return list
}

// countedMedian is the median of a figure at one number of workers.
type countedMedian struct{ workers, value float64 }

// medians returns the medians of a figure, sorted by the number of workers.
func (s *survey) medians(rows []surveyed, ours string) (list []countedMedian) {
	for _, group := range groupedBy(rows, func(r surveyed) (float64, bool) { return r.workers, r.workers > 0 }) {
		if median, err := reduceBy("median", s.figure(group, ours)); err == nil {
			list = append(list, countedMedian{group[0].workers, median})
		}
	}
	return list
}

// say passes a remark on the table to Options.Say.
func (s *survey) say(format string, args ...any) {
	if s.l.o.Say != nil {
		s.l.o.Say(s.l.o.File + ": " + fmt.Sprintf(format, args...))
	}
}

// lines returns where rows are, for messages: "line 3", "lines 3–5, 9".
func lines(rows []surveyed) string {
	var list []string
	what := "lines "
	if len(rows) == 1 {
		what = "line "
	}
	for i := 0; i < len(rows); {
		j := i
		for j+1 < len(rows) && rows[j+1].line == rows[j].line+1 {
			j++
		}
		text := strconv.Itoa(rows[i].line)
		if j > i {
			text += "–" + strconv.Itoa(rows[j].line)
		}
		if list = append(list, text); len(list) == 5 && j+1 < len(rows) {
			return what + strings.Join(list, ", ") + ", …"
		}
		i = j + 1
	}
	return what + strings.Join(list, ", ")
}
