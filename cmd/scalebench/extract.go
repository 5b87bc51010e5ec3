package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/table"
)

type extractOptions struct {
	logOptions
	study, site string
	dry         bool
}

// logOptions are what a log does not say of itself.
type logOptions struct {
	from           string
	workers, batch int
	firstEpoch     int
	firstIsSet     bool
	model          string
	maps, at       cli.StringSlice
}

func (o *logOptions) flags(also ...string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Destination: &o.from, Usage: "`FORMAT` of the logs: " + strings.Join(slices.Concat(also, extract.Names()), ", ")},
		&cli.IntFlag{Name: "workers", Destination: &o.workers, DefaultText: "what the log says", Usage: "the run had `N` workers"},
		&cli.IntFlag{Name: "worker-batch", Destination: &o.batch, DefaultText: "unknown", Usage: "each worker had `N` samples per step; converts steps/s to samples/s"},
		&cli.StringFlag{Name: "mfu", Destination: &o.model, Usage: "for logs with tokens/s: add the MFU by each convention, for the model and device described in `FILE`"},
		&cli.IntFlag{Name: "first-epoch", Destination: &o.firstEpoch, DefaultText: "as in the format", Usage: "the log calls the first epoch `N`"},
		&cli.StringSliceFlag{Name: "map", Destination: &o.maps, Usage: "`OURS=THEIRS`, such as accuracy=val_acc or throughput=img_s: use the log's column or tag THEIRS; may be repeated"},
		&cli.StringSliceFlag{Name: "at", Destination: &o.at, Usage: "`KEY=VALUE` of a load that the log does not state: threads (requests in flight), rate or batch; may be repeated"},
	}
}

// formatIsFrom lets --format name the format of the logs where --from does not:
// no table format has the name of an extractor, but for csv.
func (o *logOptions) formatIsFrom(s *session, alsoCSV bool) cli.BeforeFunc {
	return func(c *cli.Context) error {
		o.firstIsSet = c.IsSet("first-epoch")
		if o.from != "" {
			return nil
		}
		if _, err := extract.Find(s.format); err == nil || alsoCSV && s.format == table.FormatCSV {
			o.from, s.format = s.format, table.FormatTable
		}
		return nil
	}
}

// extractor is what reads the format.
func (o *logOptions) extractor() (extract.Extractor, error) {
	e, err := extract.Find(o.from)
	if err != nil {
		return e, &usageError{err: fmt.Errorf("--from: %w", err), hint: study.SpellingHint(o.from, append(extract.Names(), table.FormatCSV))}
	}
	return e, nil
}

// columns are the mappings by our names, which are among known.
func (o *logOptions) columns(known []string) (map[string]extract.Column, error) {
	columns := map[string]extract.Column{}
	for _, text := range o.maps.Value() {
		ours, c, err := extract.ParseColumn(text)
		if err != nil {
			return nil, usagef("--map %v", err)
		}
		if _, twice := columns[ours]; twice {
			return nil, usagef("--map names %s twice", ours)
		}
		if !slices.Contains(known, ours) {
			hint := study.SpellingHint(ours, known)
			if o.from == table.FormatCSV && hint == "" {
				hint = fmt.Sprintf("For a label with a value in each row: --label %s=%s.", ours, c.Name)
			}
			return nil, &usageError{err: fmt.Errorf("--map %s=%s: %s cannot be mapped; valid: %s", ours, c.Name, ours, strings.Join(known, ", ")), hint: hint}
		}
		columns[ours] = c
	}
	return columns, nil
}

// options are those of extractors for one file.
func (o *logOptions) options(file string) (extract.Options, error) {
	e := extract.Options{File: file, Workers: o.workers, WorkerBatch: o.batch, Columns: map[string]string{}}
	if o.workers < 0 || o.batch < 0 {
		return e, usagef("--workers and --worker-batch are counts; want 1 or more")
	}
	if o.firstIsSet {
		e.FirstEpoch = &o.firstEpoch
	}
	var err error
	if e.Model, err = o.described(); err != nil {
		return e, err
	}
	if e.At, err = o.load(); err != nil {
		return e, err
	}
	columns, err := o.columns(extract.LogFigures)
	if err != nil {
		return e, err
	}
	for ours, c := range columns {
		switch {
		case c.Unit == "%" && ours == "accuracy":
			e.AccuracyUnit = c.Unit
		case c.Unit != "":
			return e, usagef("--map %s=%s:%s: only CSV columns take a unit, and a log's accuracy %%; remove :%[3]s", ours, c.Name, c.Unit)
		}
		e.Columns[ours] = c.Name
	}
	return e, nil
}

// described reads --mfu; nil without it.
func (o *logOptions) described() (*measure.Transformer, error) {
	if o.model == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.model)
	if err != nil {
		return nil, &usageError{err: err}
	}
	m, err := measure.ReadTransformer(string(text))
	if err != nil {
		return nil, usagef("--mfu %s: %v", o.model, err)
	}
	return &m, nil
}

// load reads --at.
func (o *logOptions) load() (map[string]float64, error) {
	at := map[string]float64{}
	for _, text := range o.at.Value() {
		key, value, _ := strings.Cut(text, "=")
		x, err := strconv.ParseFloat(value, 64)
		_, twice := at[key]
		switch {
		case !slices.Contains(extract.Coordinates, key):
			return nil, &usageError{err: fmt.Errorf("--at %q: want a coordinate of the load, like threads=4; there are %s", text, strings.Join(extract.Coordinates, ", ")), hint: study.SpellingHint(key, extract.Coordinates)}
		case err != nil:
			return nil, usagef("--at %s: %q is not a number", key, value)
		case twice:
			return nil, usagef("--at gives %s twice", key)
		}
		at[key] = x
	}
	return at, nil
}

func extractCommand(s *session) *cli.Command {
	var o extractOptions
	return &cli.Command{
		Name:      "extract",
		Usage:     "read figures from another program's log, without storing them",
		ArgsUsage: "LOG",
		Description: "--from gives the format, or --study a study with extractors and [[extract]]\n" +
			"patterns. With --dry-run it prints a table of the figures found, with unit, line and\n" +
			"meaning; otherwise the events of a run, as JSON lines. Nothing is stored; `import`\n" +
			"stores runs.",
		Flags: append(o.flags(),
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dry, DisableDefaultText: true, Usage: "print a table of the figures found"},
			&cli.StringFlag{Name: "study", Destination: &o.study, Usage: "use the extractors of the study `FILE`"},
			siteFlag(&o.site)),
		Before: o.formatIsFrom(s, false),
		Action: func(c *cli.Context) error {
			return runExtract(c.Context, s, o, c.Args().First())
		},
	}
}

func runExtract(ctx context.Context, s *session, o extractOptions, file string) error {
	list, err := o.extractors(ctx, s)
	if err != nil {
		return err
	}
	options, err := o.options(file)
	if err != nil {
		return err
	}
	var contents []extract.Content
	var notes []string
	for _, e := range list {
		r, err := extractFile(e, file, options)
		if err != nil {
			return err
		}
		contents, notes = append(contents, r), append(notes, r.Notes...)
	}
	if o.dry {
		shown := shownRows
		if s.format == table.FormatJSON || s.format == table.FormatCSV {
			shown = math.MaxInt
		}
		return s.print(findingsTable(contents, notes, shown))
	}
	w := bufio.NewWriter(s.stdout)
	for i := range contents {
		for e := range contents[i].Events() {
			line, err := table.EncodeJSON(e)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, line) // Flush says if it failed
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	for _, n := range notes {
		s.note("%s", n)
	}
	return nil
}

// extractors are those that the options name.
func (o extractOptions) extractors(ctx context.Context, s *session) ([]extract.Extractor, error) {
	switch {
	case (o.from == "") == (o.study == ""):
		return nil, usagef("give either --from FORMAT or --study FILE; formats: %s", strings.Join(extract.Names(), ", "))
	case o.from != "":
		e, err := o.extractor()
		if err != nil {
			return nil, err
		}
		return []extract.Extractor{e}, nil
	}
	w, err := s.load(ctx, asked{study: o.study, site: o.site}, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range w.Plan.Points {
		list, err := framework.Extractors(p.Point)
		if err != nil {
			return nil, &usageError{err: err}
		}
		if len(list) > 0 {
			return list, nil
		}
	}
	return nil, usagef("%s has neither command.extract nor [[extract]]", o.study)
}

// extractFile reads one file. What is wrong with it is the user's to put right.
func extractFile(e extract.Extractor, path string, o extract.Options) (extract.Content, error) {
	f, err := os.Open(path)
	if err != nil {
		return extract.Content{}, &usageError{err: err}
	}
	defer f.Close()
	text := io.Reader(f)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		o.Bytes = info.Size()
		text = io.LimitReader(f, info.Size()) // a program may append faster than this reads
	}
	spareMemory()
	r, err := e.Extract(text, o)
	if err != nil {
		hint := ""
		if errors.Is(err, extract.ErrNothing) {
			hint = "Is it the right file, complete, and in that format? `scalebench extract LOG --from FORMAT --dry-run` tries another."
		}
		return r, &usageError{err: err, hint: hint}
	}
	return r, nil
}

// findingsTable shows what was found, no more than so much of it.
func findingsTable(contents []extract.Content, notes []string, most int) *table.Table {
	var list []extract.Finding
	found := 0
	for i := range contents {
		found += contents[i].Found()
		for f := range contents[i].Findings() {
			if len(list) == most {
				break
			}
			list = append(list, f)
		}
	}
	t := &table.Table{Columns: []table.Column{
		{Key: "figure"}, {Key: "value", Show: number.Exact}, {Key: "unit"}, {Key: "plus_minus", Head: "±", Show: number.Exact}, {Key: "at"},
		{Key: "time", Show: number.Seconds}, {Key: "line", Show: number.Exact}, {Key: "reduction"}, {Key: "values", Show: number.Exact}, {Key: "note"}, {Key: "plus_minus_is", Data: true},
	}, Notes: notes}
	for _, f := range list {
		var at any
		if f.Event.Time > 0 {
			at = f.Event.Time
		}
		line := table.NonZero(f.Line)
		switch e := f.Event; {
		case e.Train != nil:
			t.Add("start of training", nil, nil, nil, nil, at, line, nil, nil, nil, nil)
		case e.Evaluation != nil:
			t.Add("accuracy", e.Evaluation.Accuracy, "fraction", nil, evaluatedAt(e.Evaluation), at, line, nil, len(f.Values), nil, nil)
		case e.Figure != nil:
			g := e.Figure
			t.Add(g.Name, g.Value, table.NonZero(tables.UnitOf(*g)), g.PlusMinus, table.NonZero(tables.Where(g.At)), at, line, table.NonZero(g.Reduce), len(f.Values), table.NonZero(g.Note), table.NonZero(g.PlusMinusIs))
		}
	}
	for _, f := range list {
		if g := f.Event.Figure; g != nil && g.PlusMinusIs != "" {
			t.Notes = append(t.Notes, fmt.Sprintf("± of %s: %s", g.Name, g.PlusMinusIs))
		}
	}
	if more := found - len(list); more > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("and %d more; --format csv or json prints all", more))
	}
	return t
}

func evaluatedAt(e *metrics.Evaluation) any {
	var parts []string
	if e.Epoch > 0 {
		parts = append(parts, fmt.Sprintf("epoch %d", e.Epoch))
	}
	if e.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", e.Step))
	}
	return table.NonZero(strings.Join(parts, ", "))
}
