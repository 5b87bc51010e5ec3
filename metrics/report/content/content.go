// Package content says what the report of a study is: the answer in words, the
// figures, tables and sentences about doubts, method and origin, from what the
// study's runs, curves, advice and prices are. Package report lays it out.
package content

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost/tradeoff"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// Study is what a report is made of.
type Study struct {
	Name         string
	Observations []scaling.Observation // one at least
	Curves       []scaling.Curve
	Warnings     []string             // on the study as a whole
	NoBase       error                // some series have no base, and what to run; nil
	Advised      []*advice.Advice     // of each curve
	Bill         *tradeoff.Comparison // nil without prices, and Unpriced says why
	Unpriced     error
	Program      string // that made the report, and its version

	// What read reads.
	rows  []store.RunRow // every attempt
	from  *store.Provenance
	ranks []figure.RankSteps
}

// read takes from the database what the curves do not have.
func (s *Study) read(ctx context.Context, db *store.Store) error {
	var err error
	if s.rows, err = db.Runs(ctx, store.Filter{Study: s.Name}, tables.RunMeasures...); err != nil {
		return err
	}
	ids := make([]string, len(s.Observations))
	for i, run := range s.Observations {
		ids[i] = run.Run
	}
	if s.from, err = db.Provenance(ctx, ids); err != nil {
		return err
	}
	s.ranks, err = RankSteps(ctx, db, s.Curves)
	return err
}

// RankSteps are the step times of the ranks of one run of each series: the one
// with the median throughput at the most workers.
func RankSteps(ctx context.Context, db *store.Store, curves []scaling.Curve) ([]figure.RankSteps, error) {
	var list []figure.RankSteps
	for _, c := range curves {
		for _, p := range slices.Backward(c.Points) {
			run := p.MedianRun()
			if run == nil {
				continue
			}
			ranks, err := db.StepTimes(ctx, run.ID)
			if err != nil {
				return nil, err
			}
			if ranks != nil {
				list = append(list, figure.RankSteps{Run: run.ID, Series: c.Series, Workers: p.Workers, Ranks: ranks})
			}
			break
		}
	}
	return list, nil
}

// Report puts the report together; title is "" for one with the study's name. The
// error may be the database's.
func (s *Study) Report(ctx context.Context, db *store.Store, title string) (*report.Report, error) {
	if err := s.read(ctx, db); err != nil {
		return nil, err
	}
	r := &report.Report{
		Title:      cmp.Or(clean.Line(title), "Scaling of "+clean.Line(s.Name)),
		About:      s.about(),
		Answer:     answer(s.Advised, s.Curves),
		Doubts:     visibleAll(s.doubts()),
		Method:     method,
		Provenance: s.provenance(),
		Made:       "Made by " + s.Program + ".",
	}
	if s.NoBase != nil {
		r.Doubts = append(r.Doubts, visibleAll(strings.Split(s.NoBase.Error(), "\n"))...)
	}
	s.figures(r)
	var costs *table.Table
	if s.Bill != nil {
		costs = tables.Cost(s.Bill.Rows, s.Bill.Currency, s.Bill.Options)
	} else {
		r.NotDrawn = append(r.NotDrawn, report.Fact{Name: figureTitle("cost"), Values: []string{clean.Line(s.Unpriced.Error())}})
	}
	if len(s.Advised) > 1 {
		for i, one := range s.Advised {
			r.Tables = append(r.Tables, report.Table{ID: fmt.Sprintf("advice-%d", i+1), Title: "Candidates of " + clean.Line(one.Series), Text: tables.Advice(one, false).Text()})
		}
	}
	for _, part := range []struct {
		id, title string
		table     *table.Table
		folded    bool
	}{
		{"scaling", "Scaling", tables.Scaling(s.Curves), false},
		{"cost", "Time and cost", costs, false},
		{"parts", "Where the time of a step goes", tables.Parts(s.Curves), false},
		{"runs", "Every run", tables.Runs(s.rows, tables.RunMeasures), true},
	} {
		if part.table == nil || len(part.table.Rows) == 0 {
			continue
		}
		r.Tables = append(r.Tables, report.Table{ID: part.id + "-table", Title: part.title, Text: part.table.Text(), Folded: part.folded})
	}
	var err error
	r.Downloads, err = s.downloads()
	return r, err
}

// figures draws all there are, and says which cannot be drawn and why.
func (s *Study) figures(r *report.Report) {
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
	for _, c := range s.Curves {
		frameworks[c.Framework] = true
	}
	for _, k := range figure.Kinds() {
		if !k.OfCurves() {
			continue
		}
		kind := k.Name
		add(kind, func(o figure.Options) (*figure.Figure, error) {
			if len(s.Curves) > manySeries && len(frameworks) > 1 {
				return figure.DrawBy("framework", kind, s.Curves, s.Observations, o)
			}
			return figure.Draw(kind, s.Curves, s.Observations, o)
		})
	}
	if len(s.ranks) > 0 {
		most := min(len(s.ranks), manySeries)
		add("ranks", func(o figure.Options) (*figure.Figure, error) { return figure.DrawRanks(s.ranks[:most], o) })
	}
	if s.Bill != nil {
		add("cost", func(o figure.Options) (*figure.Figure, error) { return figure.DrawCost(*s.Bill, "", o) })
		add("normalised", func(o figure.Options) (*figure.Figure, error) { return figure.DrawNormalised(*s.Bill, "", o) })
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
func (s *Study) about() []string {
	first, last := s.rows[0].Created, s.rows[0].Created
	for _, row := range s.rows {
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
	return []string{fmt.Sprintf("%s of %s count, recorded %s (UTC).", number.Count(len(s.Observations), "run"), number.Count(len(s.rows), "attempt"), when)}
}

// downloads are the data behind the page, for programs: base units, every
// digit.
func (s *Study) downloads() ([]report.Download, error) {
	curves := scaling.Rows(s.Curves)
	costs := &table.Table{}
	if s.Bill != nil {
		costs = tables.CostData(s.Bill.Rows, s.Bill.Currency, s.Bill.Options)
	}
	var list []report.Download
	for _, d := range []struct {
		name, about, format string
		table               *table.Table
	}{
		{"scaling.csv", "a line a point: throughput in samples/s, times in seconds, efficiencies as fractions", table.FormatCSV, tables.ScalingData(curves)},
		{"advice.csv", "a line a candidate: samples/s, seconds, fractions, with intervals", table.FormatCSV, tables.AdviceData(s.Advised)},
		{"runs.csv", "a line a run", table.FormatCSV, tables.Runs(s.rows, tables.RunMeasures)},
		{"runs.json", "the same, exactly", table.FormatJSON, tables.Runs(s.rows, tables.RunMeasures)},
		{"cost.csv", "time in seconds and cost of each point, as `cost` prints them", table.FormatCSV, costs},
		{"evaluations.csv", "a line an evaluation: seconds and samples trained on since the start of training", table.FormatCSV, tables.Evaluations(s.Observations)},
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
	text, err := tables.ScalingJSON(curves)
	if err != nil {
		return nil, err
	}
	return slices.Insert(list, 1, report.Download{Name: "scaling.json", About: "the same, exactly, with every warning", Type: "application/json;charset=utf-8", Data: []byte(text)}), nil
}

// doubts are those about the study, its series and points, and about the advice.
func (s *Study) doubts() []string {
	list := slices.Concat(s.Warnings, scaling.Doubts(s.Curves))
	for _, doubt := range advice.Doubts(s.Advised) {
		list = append(list, "advice: "+doubt)
	}
	return list
}
