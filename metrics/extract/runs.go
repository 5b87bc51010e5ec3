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

func eachRun(r io.Reader, o Options, columns map[string]Column, yield func(TableRun) bool) error {
	if o.File == "" {
		o.File = "csv"
	}
	l := newLog(o)
	t, err := l.names(r, ",;\t")
	if err != nil {
		return err
	}
	columns = t.named(columns)
	if err := errors.Join(checkAt(o.At), t.mapped(columns)); err != nil {
		return err
	}
	sum, err := t.summing(columns)
	if err != nil {
		return err
	}
	s, err := t.survey(columns)
	if err != nil {
		return err
	}
	t.weak = s.weak
	_, epochs := columns["epoch"]
	names := t.names() + "\x00"
	known := blocks{}
	equal := map[uint64]int32{} // rows by the beginning of their digest
	var groups []tableGroup
	at := map[string]int{}
	for number := 1; ; number++ {
		row, line, err := t.next()
		if errors.Is(err, io.EOF) {
			if number == 1 {
				return fmt.Errorf("%s: %w: it has no rows", o.File, ErrNothing)
			}
			break
		}
		if err != nil {
			return err
		}
		if _, left := s.left[number]; left {
			continue
		}
		labels := t.labels(row, columns)
		if epochs {
			key, err := json.Marshal(labels)
			if err != nil {
				return l.errorAt(line, "%w", err)
			}
			if i, known := at[string(key)]; known {
				groups[i].rows, groups[i].line = append(groups[i].rows, row), append(groups[i].line, line)
				continue
			}
			at[string(key)] = len(groups)
		}
		if sum != nil {
			if i, known := sum.takes(t.placed(row, labels, columns), row, len(groups)); known {
				groups[i].rows, groups[i].line = append(groups[i].rows, row), append(groups[i].line, line)
				continue
			}
		}
		digest := sha256.Sum256([]byte(names + strings.Join(row, "\x00")))
		beginning := binary.BigEndian.Uint64(digest[:])
		equal[beginning]++
		run := TableRun{Part: "row " + strconv.Itoa(number), Labels: labels,
			Rows: string(binary.AppendUvarint(digest[:16:16], uint64(equal[beginning])))}
		one := tableGroup{run, [][]string{row}, []int{line}, s.doubts, known}
		if epochs || sum != nil {
			groups = append(groups, one)
			continue
		}
		if more, err := one.yield(t, columns, yield); err != nil || !more {
			return err
		}
	}
	for i := range groups {
		if sum != nil {
			if err := sum.add(t, &groups[i]); err != nil {
				return err
			}
		}
		more, err := groups[i].yield(t, columns, yield)
		if err != nil || !more {
			return err
		}
		groups[i] = tableGroup{}
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

// run makes events of the rows, which are one run's.
func (t *table) run(columns map[string]Column) error {
	l := t.l
	cell := func(row int, ours string) (Value, float64, bool, error) {
		v, scale, ok, err := t.cell(row, ours)
		if err == nil && ok && v.Number < 0 && ours != "loss" {
			err = l.errorAt(v.Line, "%s is %g; want 0 or more", ours, v.Number)
		}
		return v, scale, ok, err
	}
	_, timed := columns["elapsed"]
	_, summed := columns["epoch_seconds"]
	if timed || summed {
		l.add(metrics.Event{Train: &metrics.Train{}}, 1)
	}
	var rates []Value
	var rateScale, secondsScale float64
	var elapsed Value
	var epochSeconds []Value
	before := -1.0
	for row := range t.rows {
		epoch, _, _, err := cell(row, "epoch")
		if err != nil {
			return err
		}
		step, _, _, err := cell(row, "step")
		if err != nil {
			return err
		}
		for _, v := range []Value{epoch, step} {
			if v.Number != float64(int(v.Number)) || v.Number > 1<<40 {
				return l.errorAt(t.line[row], "%g is not the number of an epoch or a step; want a whole number", v.Number)
			}
		}
		if _, mapped := columns["epoch"]; mapped {
			if epoch.Line == 0 {
				return l.errorAt(t.line[row], "no number in column %s, the epoch", columns["epoch"].Name)
			}
			if epoch.Number <= before {
				return l.errorAt(t.line[row], "epoch %g follows epoch %g of the same run; tell the runs apart by a column that differs between them: --label seed for repeats, any other label for runs of another series", epoch.Number, before)
			}
			// A time that adds up has no gaps: what an epoch that is not there took is
			// not known.
			if want := before + 1; summed && before >= 0 && epoch.Number != want {
				return l.errorAt(t.line[row], "epoch %g follows epoch %g; epoch_seconds needs a row for every epoch", epoch.Number, before)
			}
			if n := l.epoch(int(epoch.Number), 1); summed && before < 0 && n > 1 {
				return l.errorAt(t.line[row], "the first epoch is %g; epoch_seconds needs a row for every epoch (--first-epoch, if the log counts from another number)", epoch.Number)
			}
			before = epoch.Number
		}
		e := metrics.Event{Evaluation: &metrics.Evaluation{Step: int(step.Number)}}
		if epoch.Line > 0 {
			e.Evaluation.Epoch = l.epoch(int(epoch.Number), 1)
		}
		if timed {
			v, scale, ok, err := cell(row, "elapsed")
			if err != nil {
				return err
			}
			if !ok {
				return l.errorAt(t.line[row], "no number in column %s, the time elapsed", columns["elapsed"].Name)
			}
			if v.Number < elapsed.Number {
				return l.errorAt(v.Line, "elapsed goes back from %g to %g; it counts from the start of training", elapsed.Number, v.Number)
			}
			elapsed, secondsScale = v, scale
			e.Time = scaled(v.Number, scale)
		}
		if summed {
			v, scale, ok, err := cell(row, "epoch_seconds")
			if err != nil {
				return err
			}
			if !ok {
				return l.errorAt(t.line[row], "no number in column %s, the seconds of the epoch", columns["epoch_seconds"].Name)
			}
			epochSeconds, secondsScale = append(epochSeconds, v), scale
			elapsed.Number += v.Number
			e.Time = scaled(elapsed.Number, scale)
		}
		v, scale, ok, err := cell(row, "accuracy")
		if err != nil {
			return err
		}
		if ok {
			if err := l.accuracy(e, scale, v); err != nil && scale == 1 {
				return fmt.Errorf("%w; for percent write %s", err, mapping("accuracy", columns["accuracy"].Name, "%"))
			} else if err != nil {
				return err
			}
		}
		if v, _, ok, err = cell(row, "loss"); err != nil {
			return err
		} else if ok {
			var at map[string]any
			if before >= 0 {
				at = map[string]any{"epoch": epoch.Number}
			}
			l.figure("loss", "", at, v, "")
		}
		if v, scale, ok, err = cell(row, "throughput"); err != nil {
			return err
		} else if ok {
			rates, rateScale = append(rates, v), scale
		}
		for _, name := range []string{"end_to_end", "train_seconds"} {
			v, scale, ok, err := cell(row, name)
			if err != nil {
				return err
			}
			if ok && row == len(t.rows)-1 {
				f := &metrics.Figure{Name: name, Value: t.reads[name].times(v.Number, scale), Note: t.from(name)}
				f.Unit, _ = baseUnit(name)
				if name == "train_seconds" && t.weak {
					f.Name = weakSeconds
				}
				l.add(metrics.Event{Time: e.Time, Figure: f}, scale, v)
			}
		}
	}
	seconds := metrics.FigureTrainSeconds
	if t.weak {
		seconds = weakSeconds
	}
	if _, mapped := columns["train_seconds"]; timed && !mapped && elapsed.Line > 0 {
		f := &metrics.Figure{Name: seconds, Value: scaled(elapsed.Number, secondsScale), Unit: "s", Note: "the last of column " + columns["elapsed"].Name}
		l.add(metrics.Event{Time: scaled(elapsed.Number, secondsScale), Figure: f}, secondsScale, elapsed)
	}
	if _, mapped := columns["train_seconds"]; summed && !mapped {
		if err := l.reduced(seconds, "s", "sum", secondsScale, epochSeconds, "the sum of column "+columns["epoch_seconds"].Name); err != nil {
			return err
		}
	}
	if err := t.models(columns, cell); err != nil {
		return err
	}
	return t.rates(rates, rateScale, columns)
}

func (t *table) rates(rates []Value, scale float64, columns map[string]Column) error {
	if len(rates) == 0 {
		return nil
	}
	note := t.from("throughput")
	if _, epochs := columns["epoch"]; epochs {
		rates, note = steadyEpochs(rates, note)
	}
	for _, v := range rates {
		if v.Number < metrics.MinRate {
			return t.l.errorAt(v.Line, "a throughput of %g; want %g or more", v.Number, metrics.MinRate)
		}
	}
	x, err := reduceValues("median", rates, t.reads["throughput"].each)
	if err != nil {
		return err
	}
	f := metrics.Figure{Name: metrics.FigureThroughput, Value: scaled(x, scale), Unit: "samples/s", Note: note}
	if len(rates) > 1 {
		f.Reduce = "median"
	}
	if !finite(f.Value) {
		return t.l.errorAt(rates[0].Line, "the throughput is not a finite number")
	}
	t.l.add(metrics.Event{Figure: &f}, scale, rates...)
	return nil
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
