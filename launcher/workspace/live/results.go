package live

import (
	"cmp"
	"context"
	"html/template"

	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report"
)

// results is what the database says about a study, ready for the page. All text is plain text.
type results struct {
	Lead         string
	Reasons      []string
	Energy       string
	Candidates   *report.Table
	Decision     []string
	Looks        *report.Table
	Figures      []drawing
	NotDrawn     []report.Fact
	Tables       []report.Table
	Warnings     []string
	History      *report.Table
	HistoryNotes []string
}

// A drawing is a figure as parts of the page.
type drawing struct {
	ID, Title, Caption string
	Wide, Narrow       template.HTML
}

// mostRowsOfTable is the largest table that a live page shows; the report has all rows.
const mostRowsOfTable = 200

// mostAnswered is the largest number of stored runs of which the server computes answers. They need
// about 10 KB of memory per run, and time whenever a run is stored.
const mostAnswered = 5_000

// tooMany returns what the page of a study says instead of results if it has too many runs, else nil.
func (s *Site) tooMany(ctx context.Context, e entry) *results {
	db, err := s.reader(func(string) {}).Open()
	if err != nil {
		return nil
	}
	defer db.Close()
	runs, _, _, err := db.Extent(ctx, e.name)
	if err != nil || runs <= mostAnswered {
		return nil
	}
	return &results{Lead: "No answer here: the study has " + number.Count(runs, "stored run") + ".",
		Reasons: []string{"This page computes answers of up to " + number.Count(mostAnswered, "run") + ". `scalebench report " + clean.Line(e.name) + "` answers, and `scalebench serve --once DIR` writes this page with answers."}}
}

// results reads everything about a study that its runs' states do not say.
func (s *Site) results(ctx context.Context, e entry) *results {
	r := &results{}
	warn := func(text string) { r.Warnings = append(r.Warnings, clean.Line(text)) }
	reader := s.reader(warn)
	metric := r.report(ctx, reader, s.wish(e))
	r.decision(ctx, s, e)
	r.history(ctx, s.reader(func(string) {}), e, metric)
	return r
}

// report adds the content of the report page. It returns the name of the measure whose history is
// of interest.
func (r *results) report(ctx context.Context, reader *query.Reader, w query.Wish) (metric string) {
	page, a, err := reader.Report(ctx, w, "")
	if metric = measure.Throughput; a != nil && a.Answer != nil && !a.Kind.Trains {
		metric = cmp.Or(a.Kind.Advises, metric)
	}
	switch {
	case err != nil:
		r.Lead = "No answer yet."
		r.Reasons = []string{explained(err)}
		return metric
	case page == nil:
		r.Lead = "No answer yet: no run has a result."
		if a != nil && a.BaseError != nil {
			r.Reasons = []string{explained(a.BaseError)}
		}
		return metric
	}
	r.Lead, r.Reasons, r.Candidates = page.Answer.Lead, page.Answer.Reasons, page.Answer.Table
	r.NotDrawn, r.Energy = page.NotDrawn, a.EnergyText()
	r.Warnings = append(page.Warnings, r.Warnings...)
	for _, f := range page.Figures {
		one := drawing{ID: "figure-" + f.ID, Title: f.Title, Caption: clean.Line(f.Whole.Caption())}
		one.Wide, err = inline(f.Wide)
		if err == nil && f.Narrow != nil {
			one.Narrow, err = inline(f.Narrow)
		}
		if err != nil {
			r.NotDrawn = append(r.NotDrawn, report.Fact{Name: f.Title, Values: []string{clean.Line(err.Error())}})
			continue
		}
		r.Figures = append(r.Figures, one)
	}
	for _, t := range page.Tables {
		if !t.Folded { // the list of all runs, which the grid replaces
			r.Tables = append(r.Tables, shortened(t))
		}
	}
	return metric
}

// inline returns a figure as part of the page. Package figure has escaped its text.
func inline(f *figure.Drawing) (template.HTML, error) {
	svg, err := f.Inline()
	return template.HTML(clean.Lines(svg)), err
}

// shortened returns the table with at most mostRowsOfTable rows.
func shortened(t report.Table) report.Table {
	if n := len(t.Rows); n > mostRowsOfTable {
		t.Rows = t.Rows[:mostRowsOfTable]
		t.Notes = append(t.Notes, number.Count(n-mostRowsOfTable, "more row")+"; `scalebench report` has all.")
	}
	return t
}

// decision adds what `decide` prints.
func (r *results) decision(ctx context.Context, s *Site, e entry) {
	reader := s.reader(func(string) {})
	outcome, looks, err := s.look(ctx, reader, e)
	if err != nil {
		r.Decision = []string{explained(err)}
		return
	}
	for _, v := range outcome.Views {
		text := v.Sentence()
		if len(outcome.Views) > 1 {
			text = v.Series + ": " + text
		}
		r.Decision = append(r.Decision, clean.Line(text))
	}
	if outcome.Scatter != "" {
		r.Decision = append(r.Decision, clean.Line(outcome.Scatter))
	}
	if len(looks) > 0 {
		r.Looks = tableOf("looks", "Looks at the results so far", query.Looks(looks).Text())
	}
}

// look checks the question that the study's looks asked.
func (s *Site) look(ctx context.Context, reader *query.Reader, e entry) (*decide.Outcome, []metrics.Look, error) {
	record, err := reader.Looks(ctx, e.arg)
	if err != nil {
		return nil, nil, err
	}
	w := s.wish(e)
	if len(record.Question) > 0 && s.options.Ask != nil {
		if w, err = s.options.Ask(record.Question); err != nil {
			return nil, nil, err
		}
		w.Study, w.Site, w.Market = e.arg, cmp.Or(s.options.Site, w.Site), cost.OnDemand
	}
	outcome, err := reader.Look(ctx, w, record, 0)
	return outcome, record.Looks, err
}

// history adds what `history` prints.
func (r *results) history(ctx context.Context, reader *query.Reader, e entry, metric string) {
	past, err := reader.History(ctx, query.History{Selection: query.Selection{Study: e.name}, Metric: metric})
	if err != nil {
		r.HistoryNotes = []string{explained(err)}
		return
	}
	r.HistoryNotes = past.Warnings
	if past.Runs == 0 {
		r.HistoryNotes = append(r.HistoryNotes, "No good run has "+past.Measure.Title+".")
		return
	}
	r.History = tableOf("history-table", "History of "+past.Measure.Title, report.History(past.Traces, past.Marks, past.Measure).Text())
}
