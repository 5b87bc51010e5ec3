package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/cost/tradeoff"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

type reportOptions struct {
	adviseOptions
	output, title string
}

func reportCommand(s *session) *cli.Command {
	var o reportOptions
	return &cli.Command{
		Name:      "report",
		Usage:     "write a page: the answer, figures, tables, method, provenance, data",
		ArgsUsage: "STUDY",
		Description: "STUDY is a study's name or the path of its file. A page (.html) is one file that\n" +
			"needs no network; Markdown (.md) has its figures and data as files beside it.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Destination: &o.output,
				Usage: "write `FILE`, whose extension says the format: " + strings.Join(report.Formats(), ", ")},
			siteFlag(&o.site),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` on top", DefaultText: "the study's name", Destination: &o.title},
		}, append(o.flags(), o.wishFlags()...)...),
		Action: func(c *cli.Context) error {
			o.study, o.market = c.Args().First(), cost.OnDemand
			if err := wished(c); err != nil {
				return err
			}
			return runReport(c.Context, s, o)
		},
	}
}

func runReport(ctx context.Context, s *session, o reportOptions) error {
	if _, err := report.Format(o.output); err != nil {
		return &usageError{err: err}
	}
	adviser, err := o.adviser()
	if err != nil {
		return err
	}
	a, err := s.trainings(ctx, o.curveOptions)
	if err != nil {
		return err
	}
	if len(a.observations) == 0 { // planned, and nothing measured
		a.warn(s)
		return a.noBase
	}
	db, err := s.openStore()
	if err != nil {
		return err
	}
	defer db.Close()
	f := evidence{analysis: a, study: a.observations[0].Study}
	if f.advised, err = adviser.advise(a); err != nil {
		return err
	}
	if err := f.read(ctx, db); err != nil {
		return err
	}
	if f.bill, f.unpriced = priced(a, o.curveOptions, o.site, 0); f.unpriced != nil && o.site != "" {
		return f.unpriced // prices were asked for
	}
	r, err := f.page(o.title)
	if err != nil {
		return err
	}
	files, err := r.Save(o.output)
	if err != nil {
		return err
	}
	s.note("%s: %s", strings.Join(files, ", "), r.Answer.Lead)
	a.warn(s)
	return nil
}

// evidence is what a report is made of.
type evidence struct {
	*analysis
	study    string
	rows     []store.RunRow // every attempt
	from     *store.Provenance
	ranks    []figure.RankSteps
	advised  []*advice.Advice     // of each curve
	bill     *tradeoff.Comparison // nil without prices, and unpriced says why
	unpriced error
}

// read takes from the database what the curves do not have.
func (f *evidence) read(ctx context.Context, db *store.Store) error {
	var err error
	if f.rows, err = db.Runs(ctx, store.Filter{Study: f.study}, runMeasures...); err != nil {
		return storeError(err)
	}
	ids := make([]string, len(f.observations))
	for i, run := range f.observations {
		ids[i] = run.Run
	}
	if f.from, err = db.Provenance(ctx, ids); err != nil {
		return err
	}
	f.ranks, err = rankSteps(ctx, db, f.curves)
	return err
}

// page puts the report together.
func (f *evidence) page(title string) (*report.Report, error) {
	r := &report.Report{
		Title:      cmp.Or(clean.Line(title), "Scaling of "+clean.Line(f.study)),
		About:      f.about(),
		Answer:     answer(f.advised, f.curves),
		Doubts:     visibleAll(append(f.doubts(), adviceDoubts(f.advised)...)),
		Method:     method,
		Provenance: provenance(f.analysis, f.from),
		Made:       "Made by scalebench " + version.String() + ".",
	}
	if f.noBase != nil {
		r.Doubts = append(r.Doubts, visibleAll(strings.Split(f.noBase.Error(), "\n"))...)
	}
	f.figures(r)
	var costs *table.Table
	if f.bill != nil {
		costs = costTable(f.bill.Rows, f.bill.Currency, f.bill.Options)
	} else {
		r.NotDrawn = append(r.NotDrawn, report.Fact{Name: figureTitle("cost"), Values: []string{clean.Line(f.unpriced.Error())}})
	}
	if len(f.advised) > 1 {
		for i, one := range f.advised {
			r.Tables = append(r.Tables, report.Table{ID: fmt.Sprintf("advice-%d", i+1), Title: "Candidates of " + clean.Line(one.Series), Text: adviceTable(one, false).Text()})
		}
	}
	for _, part := range []struct {
		id, title string
		table     *table.Table
		folded    bool
	}{
		{"scaling", "Scaling", scalingTable(f.curves), false},
		{"cost", "Time and cost", costs, false},
		{"parts", "Where the time of a step goes", partsTable(f.analysis), false},
		{"runs", "Every run", runsTable(f.rows, runMeasures), true},
	} {
		if part.table == nil || len(part.table.Rows) == 0 {
			continue
		}
		r.Tables = append(r.Tables, report.Table{ID: part.id + "-table", Title: part.title, Text: part.table.Text(), Folded: part.folded})
	}
	var err error
	r.Downloads, err = f.downloads()
	return r, err
}

// figures draws all there are, and says which cannot be drawn and why.
func (f *evidence) figures(r *report.Report) {
	add := func(id string, draw func(figure.Options) (*figure.Figure, error)) {
		one, err := report.Draw(id, draw)
		if err != nil {
			why := strings.TrimPrefix(err.Error(), id+" figure: ")
			r.NotDrawn = append(r.NotDrawn, report.Fact{Name: figureTitle(id), Values: []string{clean.Line(why)}})
			return
		}
		r.Figures = append(r.Figures, one)
	}
	frameworks := map[string]bool{}
	for _, c := range f.curves {
		frameworks[c.Framework] = true
	}
	for _, k := range figure.Kinds() {
		if !k.OfCurves() {
			continue
		}
		kind := k.Name
		add(kind, func(o figure.Options) (*figure.Figure, error) {
			if len(f.curves) > manySeries && len(frameworks) > 1 {
				return figure.DrawBy("framework", kind, f.curves, f.observations, o)
			}
			return figure.Draw(kind, f.curves, f.observations, o)
		})
	}
	if len(f.ranks) > 0 {
		most := min(len(f.ranks), manySeries)
		add("ranks", func(o figure.Options) (*figure.Figure, error) { return figure.DrawRanks(f.ranks[:most], o) })
	}
	if f.bill != nil {
		add("cost", func(o figure.Options) (*figure.Figure, error) { return figure.DrawCost(*f.bill, "", o) })
		add("normalised", func(o figure.Options) (*figure.Figure, error) { return figure.DrawNormalised(*f.bill, "", o) })
	}
}

func figureTitle(name string) string {
	k, _ := figure.Find(name)
	return k.Title
}

// manySeries are more than one plot shows well: with several frameworks, each
// then gets a panel.
const manySeries = 4

// about says of how many runs the report is, and of when.
func (f *evidence) about() []string {
	first, last := f.rows[0].Created, f.rows[0].Created
	for _, row := range f.rows {
		if row.Created.Before(first) {
			first = row.Created
		}
		if row.Created.After(last) {
			last = row.Created
		}
	}
	when := first.UTC().Format(time.DateOnly)
	if day := last.UTC().Format(time.DateOnly); day != when {
		when += " to " + day
	}
	return []string{fmt.Sprintf("%s of %s count, recorded %s (UTC).", number.Count(len(f.observations), "run"), number.Count(len(f.rows), "attempt"), when)}
}

// downloads are the data behind the page, for programs: base units, every
// digit.
func (f *evidence) downloads() ([]report.Download, error) {
	curves := scaling.Rows(f.curves)
	costs := &table.Table{}
	if f.bill != nil {
		costs = costData(f.bill.Rows, f.bill.Currency, f.bill.Options.Work)
	}
	var list []report.Download
	for _, d := range []struct {
		name, about, format string
		table               *table.Table
	}{
		{"scaling.csv", "a line a point: throughput in samples/s, times in seconds, efficiencies as fractions", table.FormatCSV, scalingData(curves)},
		{"advice.csv", "a line a candidate: samples/s, seconds, fractions, with intervals", table.FormatCSV, adviceData(f.advised)},
		{"runs.csv", "a line a run", table.FormatCSV, runsTable(f.rows, runMeasures)},
		{"runs.json", "the same, exactly", table.FormatJSON, runsTable(f.rows, runMeasures)},
		{"cost.csv", "time in seconds and cost of each point, as `cost` prints them", table.FormatCSV, costs},
		{"evaluations.csv", "a line an evaluation: seconds and samples trained on since the start of training", table.FormatCSV, evaluationsTable(f.observations)},
	} {
		if len(d.table.Rows) == 0 {
			continue
		}
		var b bytes.Buffer
		if err := d.table.Write(&b, d.format, table.Screen{}); err != nil {
			return nil, err
		}
		kind := "text/csv"
		if d.format == table.FormatJSON {
			kind = "application/json"
		}
		list = append(list, report.Download{Name: d.name, About: d.about, Type: kind + ";charset=utf-8", Data: b.Bytes()})
	}
	text, err := rowsJSON(curves)
	if err != nil {
		return nil, err
	}
	return slices.Insert(list, 1, report.Download{Name: "scaling.json", About: "the same, exactly, with every warning", Type: "application/json;charset=utf-8", Data: []byte(text)}), nil
}

func evaluationsTable(obs []scaling.Observation) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "run"}, {Key: "epoch"}, {Key: "seconds"}, {Key: "samples"}, {Key: "accuracy"}}}
	for _, o := range obs {
		for _, e := range o.Evaluations {
			t.Add(o.Run, e.Epoch, e.Seconds, e.Samples, e.Accuracy)
		}
	}
	return t
}
