package extract

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// largest is the most that is read of a file that must be read as a whole.
const largest = 256 << 20

// wholeFile reads a file that means nothing in part.
func (l *log) wholeFile(r io.Reader) ([]byte, error) {
	tooLarge := fmt.Errorf("%s: larger than %d MiB, the limit for a file of this format", l.o.File, largest>>20)
	if l.o.Bytes > largest {
		return nil, tooLarge
	}
	data := bytes.NewBuffer(make([]byte, 0, l.o.Bytes+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(r, largest+1)); err != nil {
		return nil, fmt.Errorf("%s: %w", l.o.File, err)
	}
	if data.Len() > largest {
		return nil, tooLarge
	}
	return data.Bytes(), nil
}

// table is a CSV file with a line of names.
type table struct {
	l    *log
	at   map[string]int // column by name
	rows [][]string
	line []int       // of each row
	more *csv.Reader // of the rows that were not read yet
	// header is the first row; a row that is equal is that of a second table.
	header []string
	// reads are how the columns of a table of runs become figures, by our names.
	reads map[string]reading
	data  []byte // the whole file
	weak  bool   // the work of runs grows with their workers
}

// table reads a CSV file. A last line without its end is an error: what is cut
// off there may be half a number.
func (l *log) table(r io.Reader, separators string) (*table, error) {
	t, err := l.names(r, separators)
	if err != nil {
		return nil, err
	}
	for {
		row, line, err := t.next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		t.rows, t.line = append(t.rows, row), append(t.line, line)
	}
}

// names is table of the names alone, for next to read the rows.
func (l *log) names(r io.Reader, separators string) (*table, error) {
	data, err := l.wholeFile(r)
	if err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	t := &table{l: l, at: map[string]int{}, more: csv.NewReader(bytes.NewReader(data)), data: data}
	if len(data) == 0 {
		return t, nil
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, fmt.Errorf("%s: encoded in UTF-16; save it in UTF-8 (iconv -f UTF-16 -t UTF-8)", l.o.File)
	}
	if data[len(data)-1] != '\n' {
		lines := bytes.Count(data, []byte{'\n'})
		return nil, l.errorAt(lines+1, "the last line has no line end: the file may be cut off. If it is whole, end it with a newline")
	}
	head, _, _ := bytes.Cut(data, []byte{'\n'})
	if i := bytes.IndexAny(head, separators); i >= 0 {
		t.more.Comma = rune(head[i])
	}
	names, line, err := t.next()
	if errors.Is(err, io.EOF) { // blank lines
		return t, nil
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		if _, twice := t.at[name]; twice {
			return nil, l.errorAt(line, "two columns are named %s", clip(name))
		}
		t.at[name] = i
	}
	t.header = slices.Clone(names)
	return t, err
}

// next reads a row and says in which line it begins; io.EOF after the last.
func (t *table) next() (row []string, line int, err error) {
	row, err = t.more.Read()
	var p *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil, 0, err
	case errors.As(err, &p) && errors.Is(p.Err, csv.ErrFieldCount):
		return nil, 0, t.l.errorAt(p.Line, "%w: %d, and the first row has %d. Decimal commas split a field: write points, or separate fields by semicolons", p.Err, len(row), t.more.FieldsPerRecord)
	case errors.As(err, &p):
		return nil, 0, t.l.errorAt(p.Line, "%w", p.Err)
	case err != nil:
		return nil, 0, fmt.Errorf("%s: %w", t.l.o.File, err)
	}
	line, _ = t.more.FieldPos(0)
	if len(row) > 1 && slices.Equal(row, t.header) {
		return nil, 0, t.l.errorAt(line, "the header again: a second table was appended. One file is one table: split it")
	}
	return row, line, nil
}

// value is a cell's number; ok is false where the cell is empty, or says NA or
// nan: not had.
func (t *table) value(row int, column string) (v Value, ok bool, err error) {
	i, has := t.at[column]
	if !has {
		return v, false, nil
	}
	text := strings.TrimSpace(t.rows[row][i])
	switch strings.ToLower(text) {
	case "", "na", "nan", "none", "null":
		return v, false, nil
	}
	plain := text
	if d := t.l.o.Decimal; d != "" {
		if number, is := d.plain(text); is {
			plain = number
		} else {
			plain = "none"
		}
	}
	v, err = t.l.parse(t.line[row], plain)
	if err != nil {
		why := unreadable(text) + cellHint(text)
		if how := separated(text); how != "" && t.l.o.Decimal == "" {
			why = clip(text) + " has separators: " + how
		}
		err = t.l.errorAt(t.line[row], "column %s: %s", column, why)
	}
	return v, err == nil, err
}

// column finds what stands for ours: what the user says, else the first of
// usual that is there; "" if none is.
func (t *table) column(ours string, usual ...string) (string, error) {
	if theirs, ok := t.l.o.Columns[ours]; ok {
		if _, ok := t.at[theirs]; !ok {
			return "", fmt.Errorf("%s: no column %q; the file has %s", t.l.o.File, theirs, t.names())
		}
		return theirs, nil
	}
	for _, name := range usual {
		if _, ok := t.at[name]; ok {
			return name, nil
		}
	}
	return "", nil
}

// maxNamed is how many columns or tags a message names.
const maxNamed = 100

// names lists the columns in their order, for messages.
func (t *table) names() string {
	if len(t.at) == 0 {
		return "none"
	}
	return listed(t.ordered())
}

// ordered are the columns in their order.
func (t *table) ordered() []string {
	return slices.SortedFunc(maps.Keys(t.at), func(a, b string) int { return cmp.Compare(t.at[a], t.at[b]) })
}

// listed names columns or tags in a message: not more than can be read.
func listed(names []string) string {
	more := len(names) - maxNamed
	names = names[:min(len(names), maxNamed)]
	for i := range names {
		names[i] = clip(names[i])
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// kerasCSVLogger reads what Keras' CSVLogger callback writes: a row an epoch,
// epochs from 0.
var kerasCSVLogger = Extractor{
	Name:  "keras-csvlogger",
	Kind:  "train",
	Apart: true,
	Reads: "a CSV file with the columns epoch and val_accuracy",
	read:  readKeras,
}

// validation are the usual names of the accuracy on the validation set.
var validation = []string{"val_accuracy", "val_acc", "val_sparse_categorical_accuracy", "val_categorical_accuracy", "val_binary_accuracy",
	"val/accuracy", "val/acc", "valid_acc", "valid_accuracy", "validation_accuracy", "test_acc", "test_accuracy"}

func readKeras(l *log, r io.Reader) error {
	t, err := l.table(r, ",;\t|")
	if err != nil {
		return err
	}
	if _, ok := t.at["epoch"]; !ok && len(t.at) > 0 {
		return l.errorAt(1, "no column epoch; CSVLogger writes it first. The file has %s", t.names())
	}
	accuracy, err := t.column("accuracy", validation...)
	if err != nil {
		return err
	}
	if accuracy == "" && len(t.at) > 0 {
		l.note("no column with the validation accuracy; the file has %s", t.names())
	}
	before := -1
	for row := range t.rows {
		text := t.rows[row][t.at["epoch"]]
		number, err := l.whole(t.line[row], text)
		if err != nil {
			return err
		}
		if before >= 0 && number != before+1 {
			return l.errorAt(t.line[row], "epoch %d follows epoch %d: rows are missing, or a second run was appended. One file is one run", number, before)
		}
		before = number
		if err := t.evaluation(row, accuracy, metrics.Evaluation{Epoch: l.epoch(number, 0)}); err != nil {
			return err
		}
		if err := t.loss(row, "val_loss", float64(l.epoch(number, 0))); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) evaluation(row int, accuracy string, e metrics.Evaluation) error {
	v, ok, err := t.value(row, accuracy)
	if err != nil || !ok {
		return err
	}
	return t.l.namedAccuracy(metrics.Event{Evaluation: &e}, v, accuracy)
}

func (t *table) loss(row int, column string, epoch float64) error {
	v, ok, err := t.value(row, column)
	if ok {
		t.l.figure(column, "", map[string]any{"epoch": epoch}, v, "")
	}
	return err
}

// lightningCSV reads metrics.csv of Lightning's CSVLogger, in which every log
// call is a row and most cells are empty, with the rates of ThroughputMonitor
// where that was used: rank 0's over a window, and that times the world size.
var lightningCSV = Extractor{
	Name:  "lightning-csv",
	Kind:  "train",
	Apart: true,
	Reads: "a CSV file with the columns epoch, step and val_acc, or ThroughputMonitor's",
	read:  readLightning,
}

func readLightning(l *log, r io.Reader) error {
	t, err := l.table(r, ",")
	if err != nil || len(t.at) == 0 {
		return err
	}
	accuracy, err := t.column("accuracy", append(validation, "val_Accuracy")...)
	if err != nil {
		return err
	}
	rate, err := t.column("throughput", "train/samples_per_sec", "train|samples_per_sec", "train/device/samples_per_sec", "train|device/samples_per_sec")
	if err != nil {
		return err
	}
	seconds, err := t.column("elapsed", "train/time", "train|time")
	if err != nil {
		return err
	}
	if accuracy == "" && rate == "" {
		l.note("neither an accuracy nor a rate among the columns %s; name them with accuracy= and throughput=", t.names())
	}
	var rates []Value
	var last Value
	var counted []ownCount
	for row := range t.rows {
		e := metrics.Evaluation{}
		for name, into := range map[string]*int{"epoch": &e.Epoch, "step": &e.Step} {
			v, ok, err := t.value(row, name)
			switch {
			case err != nil:
				return err
			case !ok:
			case v.Number < 0 || v.Number != float64(int(v.Number)) || v.Number > 1<<40:
				return l.errorAt(t.line[row], "column %s: %g is not a count", name, v.Number)
			case name == "epoch":
				*into = l.epoch(int(v.Number), 0)
			default:
				*into = int(v.Number) + 1 // Lightning counts steps from 0
			}
		}
		if err := t.evaluation(row, accuracy, e); err != nil {
			return err
		}
		v, ok, err := t.value(row, rate)
		if err != nil {
			return err
		}
		if ok {
			rates = append(rates, v)
		}
		if v, ok, err = t.value(row, seconds); err != nil {
			return err
		} else if ok {
			if v.Number < last.Number {
				return l.errorAt(v.Line, "column %s: the time goes back from %g s to %g s. One file is one run: split it", seconds, v.Number, last.Number)
			}
			last = v
			for _, name := range []string{"train/samples", "train|samples"} {
				samples, ok, err := t.value(row, name)
				if err != nil {
					return err
				}
				if ok {
					counted = append(counted, ownCount{samples.Number, v.Number})
				}
			}
		}
	}
	if last.Line > 0 {
		l.figure("train_seconds", "s", nil, last, "from the first training batch of rank 0 to the last that ThroughputMonitor logged")
	}
	if len(rates) == 0 {
		return nil
	}
	return l.lightningRate(rate, rates, counted)
}

// ownCount is how many samples a log says it had trained on after how long.
type ownCount struct{ samples, seconds float64 }

// ownOf is the rate from the first count to the last, and from the start, times
// the ranks that each are the counts of.
func ownOf(counted []ownCount, ranks float64) ownRate {
	if len(counted) == 0 {
		return ownRate{}
	}
	first, last := counted[0], counted[len(counted)-1]
	own := ownRate{whole: ranks * last.samples / last.seconds, training: ranks * (last.samples - first.samples) / (last.seconds - first.seconds)}
	if !(own.training > 0) || !finite(own.training) {
		own.training = own.whole
	}
	if !(own.whole > 0) || !finite(own.whole) {
		return ownRate{}
	}
	return own
}

// lightningRate makes the run's throughput of window rates. The device's is
// rank 0's.
func (l *log) lightningRate(column string, rates []Value, counted []ownCount) error {
	scale, note := 1.0, "rank 0's rate times the world size, as ThroughputMonitor computes it; the median of its windows"
	if strings.HasSuffix(column, "device/samples_per_sec") {
		n := l.o.Workers
		if n == 0 {
			return fmt.Errorf("%s: column %s is the rate of one device; give the number of workers", l.o.File, column)
		}
		scale, note = float64(n), fmt.Sprintf("rank 0's rate times %d, not a measured aggregate; the median of ThroughputMonitor's windows", n)
	} else if _, mapped := l.o.Columns["throughput"]; mapped {
		note = "the median of the rows of column " + column
	}
	for _, v := range rates {
		if v.Number < metrics.MinRate {
			return l.errorAt(v.Line, "column %s: a throughput of %g samples/s; want more than 0", column, v.Number)
		}
	}
	own := ownOf(counted, float64(l.o.Workers))
	return l.rate("median", scale, rates, note, own, "rank 0's samples over its time, times the number of workers")
}
