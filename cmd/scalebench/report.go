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
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

type reportOptions struct {
	study, output, title, site string
	base                       int
	mix                        bool
}

func reportCommand(s *session) *cli.Command {
	var o reportOptions
	return &cli.Command{
		Name:      "report",
		Usage:     "write a page: the answer, figures, tables, method, provenance, data",
		ArgsUsage: "STUDY",
		Description: "STUDY is a study's name or the path of its file. A page (.html) is one file that\n" +
			"needs no network; Markdown (.md) has its figures and data as files beside it.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Destination: &o.output,
				Usage: "write `FILE`, whose extension says the format: " + strings.Join(report.Formats(), ", ")},
			baseFlag(&o.base), mixFlag(&o.mix), siteFlag(&o.site),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` on top", DefaultText: "the study's name", Destination: &o.title},
		},
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runReport(c.Context, s, o)
		},
	}
}

func runReport(ctx context.Context, s *session, o reportOptions) error {
	if _, err := report.Format(o.output); err != nil {
		return &usageError{err: err}
	}
	a, err := s.analyse(ctx, o.study, o.base, o.mix)
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
	name := a.observations[0].Study
	rows, err := db.Runs(ctx, store.Filter{Study: name})
	if err != nil {
		return storeError(err)
	}
	ids := make([]string, len(a.observations))
	for i, run := range a.observations {
		ids[i] = run.Run
	}
	from, err := db.Provenance(ctx, ids)
	if err != nil {
		return err
	}
	ranks, err := rankSteps(ctx, db, a.curves)
	if err != nil {
		return err
	}
	bill, unpriced := s.priced(a, o.study, o.site, o.mix)
	if unpriced != nil && o.site != "" {
		return unpriced // prices were asked for
	}
	r, err := page(name, o.title, a, rows, from, ranks, bill, unpriced)
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

// page puts the report of a study together.
func page(study, title string, a *analysis, rows []store.RunRow, from *store.Provenance, ranks []figure.RankSteps, bill *priced, unpriced error) (*report.Report, error) {
	r := &report.Report{
		Title:      cmp.Or(visible(title), "Scaling of "+visible(study)),
		About:      aboutRuns(a, rows),
		Answer:     bestMeasured(a.curves),
		Doubts:     visibleAll(a.doubts()),
		Method:     method,
		Provenance: provenance(a, from),
		Made:       "Made by scalebench " + version.String() + ".",
	}
	if a.noBase != nil {
		r.Doubts = append(r.Doubts, visibleAll(strings.Split(a.noBase.Error(), "\n"))...)
	}
	figures(r, a, ranks, bill)
	var costs *table
	if bill != nil {
		costs = costTable(bill.rows, bill.currency, bill.options)
	} else {
		r.NotDrawn = append(r.NotDrawn, report.Fact{Name: figure.Name("cost"), Values: []string{visible(unpriced.Error())}})
	}
	for _, part := range []struct {
		id, title string
		table     *table
		folded    bool
	}{
		{"scaling", "Scaling", scalingTable(a.curves), false},
		{"cost", "Time and cost", costs, false},
		{"parts", "Where the time of a step goes", partsTable(a), false},
		{"runs", "Every run", runsTable(rows), true},
	} {
		if part.table == nil || len(part.table.rows) == 0 {
			continue
		}
		t := part.table.forPeople().page(part.id+"-table", part.title)
		t.Folded = part.folded
		r.Tables = append(r.Tables, *t)
	}
	var err error
	r.Downloads, err = downloads(a, rows, bill)
	return r, err
}

// figures draws all there are, and says which cannot be drawn and why.
func figures(r *report.Report, a *analysis, ranks []figure.RankSteps, bill *priced) {
	add := func(id string, draw func(figure.Options) (*figure.Figure, error)) {
		f, err := report.Draw(id, draw)
		if err != nil {
			why := strings.TrimPrefix(err.Error(), id+" figure: ")
			r.NotDrawn = append(r.NotDrawn, report.Fact{Name: figure.Name(id), Values: []string{visible(why)}})
			return
		}
		r.Figures = append(r.Figures, f)
	}
	frameworks := map[string]bool{}
	for _, c := range a.curves {
		frameworks[c.Framework] = true
	}
	// In the order of the question: does it scale, does that help, why not.
	for _, kind := range []string{"speedup", "efficiency", "throughput", "tta", "accuracy", "samples", "breakdown"} {
		add(kind, func(o figure.Options) (*figure.Figure, error) {
			if len(a.curves) > manySeries && len(frameworks) > 1 {
				return figure.DrawPer(kind, a.curves, a.observations, o)
			}
			return figure.Draw(kind, a.curves, a.observations, o)
		})
	}
	if len(ranks) > 0 {
		most := min(len(ranks), manySeries)
		add("ranks", func(o figure.Options) (*figure.Figure, error) { return figure.DrawRanks(ranks[:most], o) })
	}
	if bill != nil {
		add("cost", bill.against)
		add("normalised", bill.normalised)
	}
}

// manySeries are more than one plot shows well: with several frameworks, each
// then gets a panel.
const manySeries = 4

// aboutRuns says of how many runs the report is, and of when.
func aboutRuns(a *analysis, rows []store.RunRow) []string {
	first, last := rows[0].Created, rows[0].Created
	for _, row := range rows {
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
	return []string{fmt.Sprintf("%s of %s count, recorded %s (UTC).", countText(len(a.observations), "run"), countText(len(rows), "attempt"), when)}
}

// downloads are the data behind the page, for programs: base units, every
// digit.
func downloads(a *analysis, rows []store.RunRow, bill *priced) ([]report.Download, error) {
	curves := scaling.Rows(a.curves)
	costs := &table{}
	if bill != nil {
		costs = costData(bill.rows, bill.currency, bill.options.Work)
	}
	var list []report.Download
	for _, d := range []struct {
		name, about, format string
		table               *table
	}{
		{"scaling.csv", "a line a point: throughput in samples/s, times in seconds, efficiencies as fractions", formatCSV, scalingData(curves)},
		{"runs.csv", "a line a run", formatCSV, runsTable(rows)},
		{"runs.json", "the same, exactly", formatJSON, runsTable(rows)},
		{"cost.csv", "time in seconds and cost of each point, as `cost` prints them", formatCSV, costs},
		{"evaluations.csv", "a line an evaluation: seconds and samples trained on since the start of training", formatCSV, evaluationsTable(a.observations)},
	} {
		if len(d.table.rows) == 0 {
			continue
		}
		var b bytes.Buffer
		if err := d.table.write(&b, d.format, screen{}); err != nil {
			return nil, err
		}
		kind := "text/csv"
		if d.format == formatJSON {
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

func evaluationsTable(obs []scaling.Observation) *table {
	t := &table{columns: []column{{key: "run"}, {key: "epoch"}, {key: "seconds"}, {key: "samples"}, {key: "accuracy"}}}
	for _, o := range obs {
		for _, e := range o.Evaluations {
			t.add(o.Run, e.Epoch, e.Seconds, e.Samples, e.Accuracy)
		}
	}
	return t
}
