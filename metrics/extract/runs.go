package extract

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// A Column is a column of a user's CSV file, mapped to one of our keys.
type Column struct {
	Name string
	Unit string // unit of its numbers, one of Units; "": the unit in its name, or else the figure's base unit
	// Label marks a column as a label although its key is also a coordinate, such as the batch of
	// trainings.
	Label bool
}

// TrainFigures are the keys, other than labels, to which columns of a table of trainings can be
// mapped.
var TrainFigures = append([]string{"throughput", "end_to_end", "train_seconds", "accuracy", "loss", "elapsed", "epoch_seconds", "epoch", "step"},
	tokensPerSecond, tokensPerGPU, stepSeconds, reportedMFU)

// TableFigures are TrainFigures and the keys to which columns of a table of loads can be mapped.
var TableFigures = slices.Concat(TrainFigures, loadFigures, Coordinates)

// LogFigures are the keys to which columns or tags of a log can be mapped.
var LogFigures = []string{"throughput", "accuracy", "elapsed"}

// ParseColumn parses OURS=THEIRS, or OURS=THEIRS:UNIT if UNIT is a known unit.
func ParseColumn(text string) (ours string, c Column, err error) {
	ours, c.Name, _ = strings.Cut(text, "=")
	if ours == "" || c.Name == "" {
		return "", c, fmt.Errorf("%q is not a mapping; write OURS=THEIRS, like throughput=img_s, or with a unit, elapsed=ms:ms", text)
	}
	if i := strings.LastIndexByte(c.Name, ':'); i > 0 {
		if unit := c.Name[i+1:]; unit != "" && unitsNamed(unit) != nil {
			c.Name, c.Unit = c.Name[:i], unit
		}
	}
	return ours, c, nil
}

// A TableRun is one run of a CSV file.
type TableRun struct {
	Part   string         // name that distinguishes it from the other runs in the file
	Rows   string         // first characters of a digest of its first row, made unique among equal rows
	Labels map[string]any // values of the label columns, by our names: string, int64, float64, bool or []any
	Result Content
}

// Runs yields the runs in a CSV file. columns maps our names to its columns. A mapped column that
// is not one of TableFigures is a label. If no column is mapped to epoch, every row is a run.
// Otherwise, rows with equal labels are the epochs of one run, in order. elapsed is then the time
// since the start of training, and epoch_seconds are durations that add up to it.
//
// Runs are yielded one by one, so that a table of a million runs needs little memory. An error
// ends the sequence. Epochs of one run may be anywhere in the table, so tables with epochs are
// read into memory first.
func Runs(r io.Reader, o Options, columns map[string]Column) iter.Seq2[TableRun, error] {
	return func(yield func(TableRun, error) bool) {
		if err := try(func() { eachRun(r, o, columns, func(run TableRun) bool { return yield(run, nil) }) }); err != nil {
			yield(TableRun{}, err)
		}
	}
}

// A tableReader turns the rows of a table into runs.
type tableReader struct {
	*table
	columns map[string]Column
	survey  *survey
	sums    []string // columns whose numbers are added up over the rows of a run
	joins   bool     // a run may have several rows, so runs are built only after the last row
	head    string   // the names of all columns, joined
	known   blocks
	equal   map[uint64]int32 // number of equal rows so far, by the start of their digest
	groups  []tableGroup     // runs that are not yet complete
}

func eachRun(r io.Reader, o Options, columns map[string]Column, yield func(TableRun) bool) {
	if o.File == "" {
		o.File = "csv"
	}
	t := newLog(o).runsOf(r, columns)
	for number := 1; ; number++ {
		row, line, err := t.next()
		if errors.Is(err, io.EOF) {
			if number == 1 {
				fail("%s: %w: it has no rows", o.File, ErrNothing)
			}
			t.held(yield)
			return
		}
		failIf(err)
		if t.survey.left[number] != "" {
			continue
		}
		if one := t.group(number, line, row); one != nil && !one.yield(t.table, t.columns, yield) {
			return
		}
	}
}

// tableSeparators are the separators between the columns of a table of runs.
const tableSeparators = ",;\t|"

// runsOf opens a table, checks all of its rows, and returns a reader of its runs.
func (l *log) runsOf(r io.Reader, columns map[string]Column) *tableReader {
	t := l.names(r, tableSeparators)
	columns = t.named(columns)
	failIf(checkAt(l.o.At))
	t.mapped(columns)
	sums := t.sums(columns)
	s := t.survey(columns)
	t.weak = s.weak
	_, epochs := columns["epoch"]
	return &tableReader{table: t, columns: columns, survey: s, sums: sums, joins: epochs || l.o.Sum != "", head: t.names() + "\x00", known: blocks{}, equal: map[uint64]int32{}}
}

// group returns the run of a row. It returns nil and stores the row in groups if later rows may
// belong to the same run.
func (t *tableReader) group(number, line int, row []string) *tableGroup {
	if run := t.survey.rows[number-1].run; t.joins && run < len(t.groups) {
		g := &t.groups[run]
		g.rows, g.line = append(g.rows, row), append(g.line, line)
		return nil
	}
	digest := sha256.Sum256([]byte(t.head + strings.Join(row, "\x00")))
	beginning := binary.BigEndian.Uint64(digest[:])
	t.equal[beginning]++
	run := TableRun{Part: "row " + strconv.Itoa(number), Labels: t.labels(row, t.columns),
		Rows: string(binary.AppendUvarint(digest[:16:16], uint64(t.equal[beginning])))}
	one := tableGroup{run, [][]string{row}, []int{line}, t.survey.doubts, t.known}
	if t.joins {
		t.groups = append(t.groups, one)
		return nil
	}
	return &one
}

// held yields the runs in groups, which can be built only after the last row was read.
func (t *tableReader) held(yield func(TableRun) bool) {
	for i := range t.groups {
		if t.l.o.Sum != "" {
			t.addUp(&t.groups[i])
		}
		if !t.groups[i].yield(t.table, t.columns, yield) {
			return
		}
		t.groups[i] = tableGroup{}
	}
}

// A tableGroup is a run and its rows.
type tableGroup struct {
	TableRun
	rows [][]string
	line []int // line number of each row
	// doubts are doubts about the whole table. Each of its runs carries them.
	doubts []string
	blocks blocks
}

// yield builds the run's result and yields it. more is false if the caller wants no further runs.
func (g *tableGroup) yield(t *table, columns map[string]Column, yield func(TableRun) bool) (more bool) {
	one := newLog(t.l.o)
	sub := &table{l: one, at: t.at, reads: t.reads, weak: t.weak, rows: g.rows, line: g.line}
	kind, read := "train", sub.run
	if ofLoads(columns) {
		kind, read = "serve", sub.load
	}
	read(columns)
	sub.when(&one.res, columns, g.blocks)
	if g.Result = one.res; g.Result.Found() == 0 {
		one.fail(g.line[0], "no figure in any of the mapped columns: delete the row, or fill in a number")
	}
	g.Result.Kind, g.Result.Lines = kind, one.lines.n
	g.Result.Notes = append(g.Result.Notes, g.doubts...)
	return yield(g.TableRun)
}

// labels returns the values that a row has in the label columns, by our names.
func (t *table) labels(row []string, columns map[string]Column) map[string]any {
	labels := map[string]any{}
	for ours, c := range columns {
		if (slices.Contains(TableFigures, ours) || slices.Contains(WhenColumns, ours)) && !c.Label {
			continue
		}
		if text := strings.TrimSpace(row[t.at[c.Name]]); text != "" {
			labels[ours] = ParseLabel(text)
		}
	}
	return labels
}

// weakSeconds is the name of the training time of a run whose work grows with its workers. No
// speedup is computed from it.
const weakSeconds = statedPrefix + metrics.FigureTrainSeconds

// ParseLabel parses the value of a label: an integer, a number, true or false, a JSON list
// of these, or else a string.
func ParseLabel(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && finite(x) {
		return x
	}
	switch text {
	case "true":
		return true
	case "false":
		return false
	}
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		var items []json.RawMessage
		if json.Unmarshal([]byte(text), &items) == nil {
			list := []any{}
			for _, item := range items {
				var s string
				if json.Unmarshal(item, &s) == nil {
					list = append(list, s)
				} else {
					list = append(list, ParseLabel(string(item)))
				}
			}
			return list
		}
	}
	return text
}
