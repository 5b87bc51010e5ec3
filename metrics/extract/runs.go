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

// Column is where one of ours stands in somebody's CSV file.
type Column struct {
	Name string
	Unit string // of its numbers, one of Units; "" is the base unit
	// Label: it is a label, though it goes by a coordinate's name, as the batch of
	// trainings.
	Label bool
}

// TrainFigures are what a column of a table of trainings can be mapped to, besides
// labels.
var TrainFigures = append([]string{"throughput", "end_to_end", "train_seconds", "accuracy", "loss", "elapsed", "epoch_seconds", "epoch", "step"},
	tokensPerSecond, tokensPerGPU, stepSeconds, reportedMFU)

// TableFigures are those, and what a column of a table of loads can be mapped to.
var TableFigures = slices.Concat(TrainFigures, LoadFigures, Coordinates)

// LogFigures are what a column or tag of a log can be mapped to.
var LogFigures = []string{"throughput", "accuracy", "elapsed"}

// ParseColumn reads OURS=THEIRS, or OURS=THEIRS:UNIT where UNIT is known.
func ParseColumn(text string) (ours string, c Column, err error) {
	ours, c.Name, _ = strings.Cut(text, "=")
	if ours == "" || c.Name == "" {
		return "", c, fmt.Errorf("%q is not a mapping; write OURS=THEIRS, like throughput=img_s, or with a unit, elapsed=ms:ms", text)
	}
	if i := strings.LastIndexByte(c.Name, ':'); i > 0 {
		if unit := c.Name[i+1:]; unit != "" && unitDimensions(unit) != nil {
			c.Name, c.Unit = c.Name[:i], unit
		}
	}
	return ours, c, nil
}

// TableRun is one run of a CSV file.
type TableRun struct {
	Part   string         // tells it from the other runs of the file
	Rows   string         // bytes of a digest of its first row; rows that are equal have different ones
	Labels map[string]any // by our names, from the mapped columns: string, int64, float64, bool or []any
	Result Content
}

// Runs reads a CSV file of runs, with columns mapped by our names. A column that
// is mapped to none of TableFigures is a label. With epoch mapped, rows with
// equal labels are the epochs of one run, in order; without, every row is a run.
// elapsed counts from the start of training; epoch_seconds are what each epoch
// took, and add up to it.
//
// The runs come one by one, so that a table of a million needs no memory for all
// of them; the first error is the last that comes. Epochs of one run can be
// anywhere in the table, whose rows are then held.
func Runs(r io.Reader, o Options, columns map[string]Column) iter.Seq2[TableRun, error] {
	return func(yield func(TableRun, error) bool) {
		if err := eachRun(r, o, columns, func(run TableRun) bool { return yield(run, nil) }); err != nil {
			yield(TableRun{}, err)
		}
	}
}

// A tableReader makes runs of a table's rows.
type tableReader struct {
	*table
	columns map[string]Column
	survey  *survey
	sum     *summing
	epochs  bool   // rows are the epochs of runs, and are held
	head    string // the names of all columns
	known   blocks
	equal   map[uint64]int32 // rows by the beginning of their digest
	groups  []tableGroup     // that are held
	by      map[string]int   // group by its labels
}

func eachRun(r io.Reader, o Options, columns map[string]Column, yield func(TableRun) bool) error {
	if o.File == "" {
		o.File = "csv"
	}
	t, err := newLog(o).runsOf(r, columns)
	if err != nil {
		return err
	}
	for number := 1; ; number++ {
		row, line, err := t.next()
		if errors.Is(err, io.EOF) {
			if number == 1 {
				return fmt.Errorf("%s: %w: it has no rows", o.File, ErrNothing)
			}
			return t.held(yield)
		}
		if err != nil {
			return err
		}
		if _, left := t.survey.left[number]; left {
			continue
		}
		one, err := t.group(number, line, row)
		if err != nil {
			return err
		}
		if one == nil {
			continue
		}
		if more, err := one.yield(t.table, t.columns, yield); err != nil || !more {
			return err
		}
	}
}

// runsOf begins to read a table, and checks all of it.
func (l *log) runsOf(r io.Reader, columns map[string]Column) (*tableReader, error) {
	t, err := l.names(r, ",;\t")
	if err != nil {
		return nil, err
	}
	columns = t.named(columns)
	if err := errors.Join(checkAt(l.o.At), t.mapped(columns)); err != nil {
		return nil, err
	}
	sum, err := t.summing(columns)
	if err != nil {
		return nil, err
	}
	s, err := t.survey(columns)
	if err != nil {
		return nil, err
	}
	t.weak = s.weak
	_, epochs := columns["epoch"]
	return &tableReader{table: t, columns: columns, survey: s, sum: sum, epochs: epochs, head: t.names() + "\x00", known: blocks{}, equal: map[uint64]int32{}, by: map[string]int{}}, nil
}

// group returns the run of a row; nil if it is held, since other rows may be of it.
func (t *tableReader) group(number, line int, row []string) (*tableGroup, error) {
	labels := t.labels(row, t.columns)
	if t.epochs {
		key, err := json.Marshal(labels)
		if err != nil {
			return nil, t.l.errorAt(line, "%w", err)
		}
		if i, known := t.by[string(key)]; known {
			t.groups[i].take(row, line)
			return nil, nil
		}
		t.by[string(key)] = len(t.groups)
	}
	if t.sum != nil {
		if i, known := t.sum.takes(t.placed(row, labels, t.columns), row, len(t.groups)); known {
			t.groups[i].take(row, line)
			return nil, nil
		}
	}
	digest := sha256.Sum256([]byte(t.head + strings.Join(row, "\x00")))
	beginning := binary.BigEndian.Uint64(digest[:])
	t.equal[beginning]++
	run := TableRun{Part: "row " + strconv.Itoa(number), Labels: labels,
		Rows: string(binary.AppendUvarint(digest[:16:16], uint64(t.equal[beginning])))}
	one := tableGroup{run, [][]string{row}, []int{line}, t.survey.doubts, t.known}
	if t.epochs || t.sum != nil {
		t.groups = append(t.groups, one)
		return nil, nil
	}
	return &one, nil
}

// held hands over the runs that were held.
func (t *tableReader) held(yield func(TableRun) bool) error {
	for i := range t.groups {
		if t.sum != nil {
			if err := t.sum.add(t.table, &t.groups[i]); err != nil {
				return err
			}
		}
		more, err := t.groups[i].yield(t.table, t.columns, yield)
		if err != nil || !more {
			return err
		}
		t.groups[i] = tableGroup{}
	}
	return nil
}

// tableGroup is a run and its rows.
type tableGroup struct {
	TableRun
	rows [][]string
	line []int // of each row
	// doubts are those of the table, which go with each of its runs.
	doubts []string
	blocks blocks
}

// take adds a row.
func (g *tableGroup) take(row []string, line int) {
	g.rows, g.line = append(g.rows, row), append(g.line, line)
}

// yield makes the run's result and hands it over.
func (g *tableGroup) yield(t *table, columns map[string]Column, yield func(TableRun) bool) (more bool, err error) {
	one := newLog(t.l.o)
	sub := &table{l: one, at: t.at, reads: t.reads, weak: t.weak, rows: g.rows, line: g.line}
	kind, read := "train", sub.run
	if ofLoads(columns) {
		kind, read = "serve", sub.load
	}
	if err := errors.Join(read(columns), one.invalid, sub.when(&one.res, columns, g.blocks)); err != nil {
		return false, err
	}
	if g.Result = one.res; g.Result.Found() == 0 {
		return false, one.errorAt(g.line[0], "no figure in any of the mapped columns")
	}
	g.Result.Kind, g.Result.Lines = kind, one.lines.n
	g.Result.Notes = append(g.Result.Notes, g.doubts...)
	return yield(g.TableRun), nil
}

// labels are what a row has in the columns that are mapped to no figure.
func (t *table) labels(row []string, columns map[string]Column) map[string]any {
	labels := map[string]any{}
	for ours, c := range columns {
		if (slices.Contains(TableFigures, ours) || isWhen(ours)) && !c.Label {
			continue
		}
		if text := strings.TrimSpace(row[t.at[c.Name]]); text != "" {
			labels[ours] = ParseLabel(text)
		}
	}
	return labels
}

// weakSeconds is the training time of a run whose work grows with its workers. It makes
// no speedup.
const weakSeconds = statedPrefix + metrics.FigureTrainSeconds

// ParseLabel reads a label's value: a whole number, a number, true or false, a
// JSON list of these, or else a text.
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
