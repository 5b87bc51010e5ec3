package report

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// This file assembles the report of a study from its runs, curves, advice and prices: the answer
// in words, the plots, the tables, the doubts, the method and the origin of the numbers. Package
// report formats it.

// A ReportedStudy holds everything from which a report is made.
type ReportedStudy struct {
	Name         string
	Observations []scaling.Observation // at least one
	Curves       []scaling.Curve
	Warnings     []string             // about the study as a whole
	Looks        int                  // number of times at which the study is tested while it grows; 0: it is not
	NoBase       *scaling.NoBaseError // the series that have no base; nil: all have one
	Kind         measure.Kind         // kind of workload; a training has advice, costs and more plots
	Frames       []ReportFrame        // measures in addition to those of a training
	Advised      []*advice.Advice     // advice for each curve of Answered
	Answered     []scaling.Curve      // curves of the measure on which the advice for this kind of workload is based
	Wish         advice.Options       // the question that the advice answers
	Bill         *cost.Comparison     // nil without prices; Unpriced then gives the reason
	Unpriced     error
	Demand       []capacity.Line // for a service: the cost of each demand for each series, in Currency
	Currency     string
	Program      string // name and version of the program that made the report

	// The following fields are set by the method read.
	rows        []store.RunRow // every attempt; nil if there are more than manyRuns
	attempts    int
	first, last time.Time // when the first and the last attempt were recorded

	from  *store.Provenance
	ranks []figure.RankSteps
}

// A ReportFrame is a further table of the report: a set of curves, and the measures shown for each.
// The runs' programs report these measures, or they belong to a workload other than training.
type ReportFrame struct {
	ID, Title string // of the table; ID has only letters, digits and hyphens
	Curves    []scaling.Curve
	Measures  []measure.Measure // at least one
}

// measuresOfRuns returns the measures that the list of runs shows.
func (s *ReportedStudy) measuresOfRuns() []measure.Measure {
	list := slices.Clone(RunMeasures)
	for _, f := range s.Frames {
		for _, m := range f.Measures {
			if m.At == "" && !slices.ContainsFunc(list, func(other measure.Measure) bool { return other.Name == m.Name }) {
				list = append(list, m)
			}
		}
	}
	return list
}

// read loads data from the database that the curves do not contain.
func (s *ReportedStudy) read(ctx context.Context, db *store.Store) error {
	var err error
	if s.attempts, s.first, s.last, err = db.Extent(ctx, s.Name); err != nil {
		return err
	}
	if s.attempts <= manyRuns {
		if s.rows, err = db.Runs(ctx, store.Filter{Study: s.Name}, s.measuresOfRuns()...); err != nil {
			return err
		}
		if err := db.Describe(ctx, s.rows); err != nil {
			return err
		}
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

// RankSteps returns, for each series, the step times of the ranks of one run: the run with the
// median throughput at the largest worker count.
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

// Report returns the report. If title is "", the title is the study's name. Errors come from
// the database.
func (s *ReportedStudy) Report(ctx context.Context, db *store.Store, title string) (*Report, error) {
	if err := s.read(ctx, db); err != nil {
		return nil, err
	}
	r := &Report{
		Title:      clean.Line(title),
		About:      s.about(),
		Answer:     s.answer(),
		Warnings:   visibleAll(s.warnings()),
		Method:     s.method(),
		Provenance: s.provenance(),
		Made:       "Made by " + s.Program + ".",
	}
	if r.Title == "" {
		r.Title = "Results of " + clean.Line(s.Name)
		if s.Kind.Trains {
			r.Title = "Scaling of " + clean.Line(s.Name)
		}
	}
	s.figures(r)
	var costs *table.Table
	if s.Bill != nil {
		costs = Cost(s.Bill.Rows, s.Bill.Currency, s.Bill.Options)
	} else if s.Unpriced != nil {
		r.NotDrawn = append(r.NotDrawn, Fact{Name: figureTitle("cost"), Values: []string{clean.Line(s.Unpriced.Error())}})
	}
	if len(s.Advised) > 1 {
		for i, one := range s.Advised {
			r.Tables = append(r.Tables, Table{ID: fmt.Sprintf("advice-%d", i+1), Title: "Candidates of " + clean.Line(one.Series), Text: Advice(one, false).Text()})
		}
	}
	type part struct {
		id, title string
		table     *table.Table
		folded    bool
	}
	parts := []part{{"cost", "Time and cost", costs, false}}
	if s.Kind.Trains {
		parts = []part{
			{"scaling", "Scaling", Scaling(s.Curves), false},
			parts[0],
			{"parts", "Where the time of a step goes", partsTable(s.Curves), false},
		}
	}
	for _, f := range s.Frames {
		parts = append(parts, part{f.ID, f.Title, Measures(f.Curves, f.Measures), false})
	}
	if s.rows != nil {
		parts = append(parts, part{"runs", "Every run", Runs(InOrder(s.rows), s.measuresOfRuns()), true})
	} else {
		r.NotDrawn = append(r.NotDrawn, Fact{Name: "Every run", Values: []string{fmt.Sprintf("a page lists at most %d runs; runs.csv, at the end, has all %d", manyRuns, s.attempts)}})
	}
	for _, part := range parts {
		if part.table == nil || len(part.table.Rows) == 0 {
			continue
		}
		r.Tables = append(r.Tables, Table{ID: part.id + "-table", Title: part.title, Text: part.table.Text(), Folded: part.folded})
	}
	var err error
	r.Downloads, err = s.downloads(ctx, db)
	return r, err
}

// notDrawn records why a plot is missing. Plots that are missing for the same reason share one
// entry.
func notDrawn(r *Report, title, why string) {
	title, why = clean.Line(title), clean.Line(why)
	for i, f := range r.NotDrawn {
		if slices.Equal(f.Values, []string{why}) {
			r.NotDrawn[i].Name += "; " + title
			return
		}
	}
	r.NotDrawn = append(r.NotDrawn, Fact{Name: title, Values: []string{why}})
}

// figures draws every plot for which the study has data, and records why others are missing.
func (s *ReportedStudy) figures(r *Report) {
	d := figure.Data{Observations: s.Observations, Ranks: s.ranks[:min(len(s.ranks), manySeries)], Bill: s.Bill, Demand: s.Demand, Currency: s.Currency}
	if s.Kind.Trains {
		d.Curves = s.Curves
	}
	by := s.panelsOf(s.Curves)
	for _, k := range figure.Presets() {
		if !k.Concerns(d) {
			continue
		}
		addFigure(r, k.Name, k.TitleOf(d), func(o figure.Options) (*figure.Drawing, error) {
			if k.Input == figure.OfCurves {
				o.By = by
			}
			return k.Draw(d, o)
		})
	}
	for _, f := range s.Frames {
		s.frame(r, f)
	}
}

// addFigure draws a figure and adds it to the report; if it cannot be drawn, it records why.
func addFigure(r *Report, id, title string, draw func(figure.Options) (*figure.Drawing, error)) {
	one, err := drawFigure(id, draw)
	if err == nil {
		r.Figures = append(r.Figures, one)
		return
	}
	why := err.Error()
	if _, after, found := strings.Cut(why, " figure: "); found {
		why = after
	}
	notDrawn(r, title, strings.TrimPrefix(why, "nothing to draw: "))
}

// panelsOf returns the parameter whose values get a panel each, because a single plot would be
// too full; "" if one plot is enough.
func (s *ReportedStudy) panelsOf(curves []scaling.Curve) string {
	several := slices.ContainsFunc(s.Curves, func(c scaling.Curve) bool { return c.Framework != s.Curves[0].Framework })
	if len(curves) > manySeries && several {
		return "framework"
	}
	return ""
}

// frame draws plots of the measures of a frame.
func (s *ReportedStudy) frame(r *Report, f ReportFrame) {
	d := figure.Data{Curves: f.Curves, Observations: s.Observations}
	if y, x, ok := f.tradeoff(); ok {
		addFigure(r, f.ID+"-tradeoff", y.Title+" against "+x.Title, func(o figure.Options) (*figure.Drawing, error) {
			o.Against = x
			return figure.Draw(y.Name, d, o)
		})
	}
	by := s.panelsOf(f.Curves)
	for i, m := range f.Measures {
		if i == manyMeasures {
			r.NotDrawn = append(r.NotDrawn, Fact{Name: f.Title, Values: []string{fmt.Sprintf("%s more; `plot MEASURE` draws each", number.Count(len(f.Measures)-i, "measure"))}})
			return
		}
		if m.Better == measure.Neither && !s.Kind.Trains {
			continue // the measure only describes others; the table has it
		}
		addFigure(r, fmt.Sprintf("%s-%d", f.ID, i+1), m.Title, func(o figure.Options) (*figure.Drawing, error) {
			if at := onlyPlace(f.Curves); at != "" {
				return nil, fmt.Errorf("all runs have the same position on the axis, %s; see the table for their values", at)
			}
			o.By = by
			return figure.DrawMeasure(m, d, o)
		})
	}
}

// tradeoff returns a latency and the throughput of a service, which are plotted against each
// other. ok is false if the frame lacks one of them, or the curves are not over a load.
func (f ReportFrame) tradeoff() (latency, throughput measure.Measure, ok bool) {
	find := func(name string) measure.Measure {
		for _, m := range f.Measures {
			if m.Name == name {
				return m
			}
		}
		return measure.Measure{}
	}
	latency, throughput = find(measure.LatencyP95), find(measure.RequestsPerSecond)
	return latency, throughput, latency.Name != "" && throughput.Name != "" && measure.DescribesLoad(f.Curves[0].Axis) && onlyPlace(f.Curves) == ""
}

// onlyPlace returns the position of all points if they have the same, numeric one; "" otherwise.
// Nothing can be plotted over an axis with only one position.
func onlyPlace(curves []scaling.Curve) string {
	var at []scaling.Value
	for _, c := range curves {
		for _, p := range c.Points {
			if !slices.Contains(at, p.At) {
				at = append(at, p.At)
			}
		}
	}
	if len(at) != 1 || !at[0].Numeric() {
		return ""
	}
	return curves[0].Places(at...)
}

// manyMeasures limits how many measures of a frame are plotted.
const manyMeasures = 12

func figureTitle(name string) string {
	k, _ := figure.Find(name)
	return k.Title
}

// manySeries is the number of series above which a single plot is too full. If the series are of
// several frameworks, each framework then gets a panel.
const manySeries = 4

// manyRuns limits the number of runs that a page lists.
const manyRuns = 1000

// about returns lines that say how many runs the report covers, and when they were made.
func (s *ReportedStudy) about() []string {
	when := s.first.UTC().Format(time.DateOnly)
	if day := s.last.UTC().Format(time.DateOnly); day != when {
		when += " to " + day
	}
	return []string{fmt.Sprintf("%s, from %s, recorded %s (UTC).", number.Count(len(s.Observations), "run"), number.Count(s.attempts, "attempt"), when)}
}

// downloads returns the data of the page for programs, unrounded and in base units.
func (s *ReportedStudy) downloads(ctx context.Context, db *store.Store) (list []Download, err error) {
	add := func(name, about string, write func(*bytes.Buffer) error) {
		var b bytes.Buffer
		if err != nil {
			return
		}
		kind := "text/csv"
		if strings.HasSuffix(name, ".json") {
			kind = "application/json"
		}
		err = write(&b)
		list = append(list, Download{Name: name, About: about, Type: kind + ";charset=utf-8", Data: b.Bytes()})
	}
	of := func(name, about string, t *table.Table) {
		if format := strings.TrimPrefix(path.Ext(name), "."); len(t.Rows) > 0 {
			add(name, about, func(w *bytes.Buffer) error { return t.Write(w, format, table.Screen{}) })
		}
	}
	if s.Kind.Trains {
		curves := scaling.Rows(s.Curves)
		of("scaling.csv", "one line per point: throughput in samples/s, times in seconds, efficiencies as fractions", ScalingData(curves))
		add("scaling.json", "the same as JSON, with every warning", func(w *bytes.Buffer) error {
			text, err := ScalingJSON(curves)
			w.WriteString(text)
			return err
		})
	}
	of("advice.csv", "one line per candidate: samples/s, seconds, fractions, with intervals", AdviceData(s.Advised))
	add("runs.csv", "one line per run", func(w *bytes.Buffer) error {
		w.Grow(500 * s.attempts) // about what they need: doubling would hold a large table three times
		return writeRuns(ctx, db, s.Name, s.measuresOfRuns(), w)
	})
	if s.rows != nil {
		of("runs.json", "the same as JSON", Runs(s.rows, s.measuresOfRuns()))
	}
	if s.Bill != nil {
		of("cost.csv", "time in seconds and cost of each point, as `cost` prints them", CostData(s.Bill.Rows, s.Bill.Currency, s.Bill.Options))
	}
	of("evaluations.csv", "one line per evaluation: seconds and samples trained on since the start of training", evaluationsTable(s.Observations))
	for _, f := range s.Frames {
		of(f.ID+".csv", "one line per point of the table "+f.Title+": base units, with intervals and ratios to the base", Measures(f.Curves, f.Measures))
	}
	return list, err
}

// warnings returns the doubts about the study: alarms, and warnings about the study, its series and
// points, and the advice. Doubts of one kind share a line.
func (s *ReportedStudy) warnings() []string {
	var list []scaling.Remark
	for _, w := range s.Warnings {
		list = append(list, scaling.Remark{Text: w})
	}
	list = append(list, scaling.Remarks(s.Curves)...)
	for _, r := range advice.Warnings(s.Advised) {
		r.Text = "advice: " + r.Text
		list = append(list, r)
	}
	if s.NoBase != nil {
		list = append(list, s.NoBase.Remarks()...)
	}
	return append(s.alarms(), scaling.Lines(list, len(s.Curves))...)
}
