package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Proposal has the tables, figures and text about scaling, method, hardware and software for an application for
// computing time. Its text is plain text.
type Proposal struct {
	Title   string
	About   []string
	Parts   []ProposalPart
	Method  []Fact
	Machine []Fact // hardware and software
	Made    string // program and version that made the proposal
}

// A ProposalPart holds the series of one kind of scaling, because strong and weak scaling are never mixed.
type ProposalPart struct {
	Title   string
	About   string // what the kind of scaling means
	Lead    string // the answer on the number of workers; "" without one
	Tables  []ProposalTable
	Figures []Drawing
	// NotDrawn lists figures that could not be drawn, with the reason.
	NotDrawn []Fact
}

// A ProposalTable is the table of a series.
type ProposalTable struct {
	Caption string
	Heads   []string
	Rows    [][]proposalCell // one cell per head
	Notes   []string
}

// A proposalCell is a number and its interval, both without units.
type proposalCell struct {
	value    string
	interval string // "[11.9, 12.8]", a dash for a missing one; "" for a value without uncertainty
}

func (c proposalCell) String() string { return strings.TrimSuffix(c.value+" "+c.interval, " ") }

// Hours are the hours of a resource that runs occupy. Cost computes them, with a price of 1 per hour.
type Hours struct {
	Resource string // for headers: "GPUs"
	Unit     string // "GPU-h"
	Bill     *cost.Comparison
}

// of returns what a point of a series occupies; its Rate is nil if that is unknown.
func (h Hours) of(series string, workers int) cost.Row {
	for _, r := range h.Bill.Rows {
		if r.Series == series && r.Workers == workers {
			return r
		}
	}
	return cost.Row{}
}

// scalingKinds describes the values of Curve.Scaling, in the order of a proposal.
var scalingKinds = []struct{ scaling, id, title, about string }{
	{"strong", "strong", "Strong scaling", "The global batch is fixed, so each worker has less work the more there are."},
	{"weak", "weak", "Weak scaling", "The batch per worker is fixed, so the global batch grows with the number of workers."},
	{"", "scaling", "Scaling", "The runs do not record whether the batch per worker or the global batch is fixed."},
}

// printWidth is the width of a figure in inches: the text width of A4 and letter paper with usual margins.
const printWidth = 6.3

// Proposal returns the contents of a proposal. hours are the resources that the tables may show; the first that is
// known of a series is shown, and after it those of whole nodes.
func (s *ReportedStudy) Proposal(ctx context.Context, db *store.Store, title string, hours []Hours) (*Proposal, error) {
	if err := s.read(ctx, db); err != nil {
		return nil, err
	}
	p := &Proposal{Title: clean.Line(title), About: s.about(), Made: "Made by " + s.Program + "."}
	if p.Title == "" {
		p.Title = "Scaling of " + clean.Line(s.Name)
	}
	for _, kind := range scalingKinds {
		curves := slices.DeleteFunc(slices.Clone(s.Curves), func(c scaling.Curve) bool { return c.Scaling != kind.scaling })
		if len(curves) == 0 {
			continue
		}
		part := ProposalPart{Title: kind.title, About: kind.about, Lead: s.leadOf(curves)}
		for _, c := range curves {
			part.Tables = append(part.Tables, s.proposalTable(c, kind.title, hours))
		}
		s.proposalFigures(&part, kind.id, curves)
		p.Parts = append(p.Parts, part)
	}
	asked := []string{"Unit of replication", "Intervals"}
	if slices.ContainsFunc(s.Curves, func(c scaling.Curve) bool {
		main, _, _ := mainOf([]scaling.Curve{c})
		return main == measure.Throughput
	}) {
		asked = append(asked, "Throughput", "Speedup") // the report's words on speedup are about throughput
	}
	for _, f := range s.method() {
		if slices.Contains(asked, f.Name) {
			p.Method = append(p.Method, f)
		}
	}
	for _, f := range s.provenance() {
		if f.Values[0] != "not recorded" && !strings.HasSuffix(f.Name, "(SHA-256)") { // checksums help no reader of a proposal
			p.Machine = append(p.Machine, f)
		}
	}
	return p, nil
}

// leadOf returns the answer on the number of workers of some series.
func (s *ReportedStudy) leadOf(curves []scaling.Curve) string {
	advised := slices.DeleteFunc(slices.Clone(s.Advised), func(a *advice.Advice) bool {
		return !slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Series == a.Series })
	})
	if len(advised) == 0 || !trained(curves) {
		return ""
	}
	return answer(advised, curves, s.Wish, bestMeasured(curves)).Lead
}

// proposalFigures draws the speedup and the efficiency.
func (s *ReportedStudy) proposalFigures(part *ProposalPart, id string, curves []scaling.Curve) {
	data := figure.Data{Curves: curves, Observations: s.Observations}
	for _, name := range []string{"speedup", "efficiency"} {
		whole, err := figure.Draw(name, data, figure.Options{Width: printWidth, By: s.panelsOf(curves), NoCaption: true})
		if err != nil {
			part.NotDrawn = append(part.NotDrawn, Fact{Name: figureTitle(name), Values: []string{clean.Line(err.Error())}})
			continue
		}
		part.Figures = append(part.Figures, Drawing{ID: id + "-" + name, Title: whole.Name(), Whole: whole})
	}
}

// proposalTable returns the table of a series.
func (s *ReportedStudy) proposalTable(c scaling.Curve, kind string, hours []Hours) ProposalTable {
	one := []scaling.Curve{c}
	main, unit, _ := mainOf(one)
	t := ProposalTable{Caption: fmt.Sprintf("%s of %s.", kind, clean.Line(c.Series)), Rows: make([][]proposalCell, len(c.Points))}
	var why reasons
	add := func(head string, cell func(p *scaling.Point) proposalCell) {
		t.Heads = append(t.Heads, head)
		for i := range c.Points {
			t.Rows[i] = append(t.Rows[i], cell(&c.Points[i]))
		}
	}
	estimated := func(head string, by float64, of func(p *scaling.Point) *scaling.Estimate) {
		add(head, func(p *scaling.Point) proposalCell {
			e := of(p)
			why.add(e)
			return cellOf(e, by)
		})
	}
	shown := hoursOf(c, hours)
	add("nodes", func(p *scaling.Point) proposalCell { return proposalCell{value: nodesOf(c, p, s.Observations)} })
	add("workers", func(p *scaling.Point) proposalCell { return proposalCell{value: fmt.Sprint(p.Workers)} })
	if len(shown) > 0 && shown[0].Resource != wholeNodes {
		add(shown[0].Resource, func(p *scaling.Point) proposalCell { return unitsOf(shown[0].of(c.Series, p.Workers)) })
	}
	add("runs", func(p *scaling.Point) proposalCell { return proposalCell{value: fmt.Sprint(p.Of(main).Runs)} })
	if main == measure.RunSeconds {
		estimated("time (s)", 1, func(p *scaling.Point) *scaling.Estimate { return p.Of(main).Median })
	} else {
		estimated(title(main)+" ("+unit+")", 1, func(p *scaling.Point) *scaling.Estimate { return p.Of(main).Median })
		if len(shown) > 0 {
			estimated("time (s)", 1, func(p *scaling.Point) *scaling.Estimate { return shown[0].of(c.Series, p.Workers).Time })
		}
	}
	estimated("speedup", 1, func(p *scaling.Point) *scaling.Estimate { return p.Of(main).Gain() })
	estimated("efficiency (%)", 100, func(p *scaling.Point) *scaling.Estimate { return p.Of(main).Efficiency() })
	for _, h := range shown {
		estimated(h.Unit, 1, func(p *scaling.Point) *scaling.Estimate { return h.of(c.Series, p.Workers).Cost })
	}
	t.merge("workers", "GPUs")
	t.Notes = append(baseNotes(one), "Speedup and efficiency: of the "+title(main)+", over the base.")
	if len(shown) > 0 {
		t.Notes = append(t.Notes, workNote(shown))
	}
	t.Notes = append(t.Notes, "Medians over runs; in brackets their intervals of 95 % or more.")
	t.Notes = slices.Concat(t.Notes, driftNotes(one, main), why.notes(" for an interval"))
	for _, note := range decisiveNotes(one, s.Warnings...) {
		t.Notes = append(t.Notes, clean.Line(note))
	}
	return t
}

// merge removes the first column if the second has the same values.
func (t *ProposalTable) merge(first, second string) {
	i, k := slices.Index(t.Heads, first), slices.Index(t.Heads, second)
	if k < 0 || slices.ContainsFunc(t.Rows, func(row []proposalCell) bool { return row[i] != row[k] }) {
		return
	}
	t.Heads = slices.Delete(t.Heads, i, i+1)
	for n := range t.Rows {
		t.Rows[n] = slices.Delete(t.Rows[n], i, i+1)
	}
}

// wholeNodes is the Hours.Resource of whole nodes.
const wholeNodes = "nodes"

// hoursOf returns the hours to show of a series: of the first resource that is known, and of nodes.
func hoursOf(c scaling.Curve, hours []Hours) (list []Hours) {
	for _, h := range hours {
		known := slices.ContainsFunc(c.Points, func(p scaling.Point) bool { return h.of(c.Series, p.Workers).Rate != nil })
		if known && (len(list) == 0 || h.Resource == wholeNodes) {
			list = append(list, h)
		}
	}
	return list
}

// workNote says for which work the times and hours are.
func workNote(shown []Hours) string {
	units := make([]string, len(shown))
	for i, h := range shown {
		units[i] = h.Unit
	}
	what := number.List(append([]string{"time"}, units...), "and")
	if w := shown[0].Bill.Options.Work; w.Target != nil {
		return strings.ToUpper(what[:1]) + what[1:] + ": until " + w.String() + " is reached, from the start of training, of what the workers hold."
	}
	return strings.ToUpper(what[:1]) + what[1:] + ": of " + shown[0].Bill.Options.Work.String() + ", of what the workers hold; initialisation and waiting for the job are not included."
}

// nodesOf returns the number of nodes of a point's runs; a range if they differ, a dash if it is unknown.
func nodesOf(c scaling.Curve, p *scaling.Point, obs []scaling.Observation) string {
	one := c
	one.Points = []scaling.Point{*p}
	least, most := 0, 0
	for _, o := range one.Observed(obs) {
		if o.Nodes < 1 {
			continue
		}
		if least == 0 {
			least = o.Nodes
		}
		least, most = min(least, o.Nodes), max(most, o.Nodes)
	}
	switch {
	case least == 0:
		return number.Absent
	case least < most:
		return fmt.Sprintf("%d to %d", least, most)
	}
	return fmt.Sprint(least)
}

// unitsOf returns how many units of its resource a point holds.
func unitsOf(r cost.Row) proposalCell {
	if r.Rate == nil {
		return proposalCell{value: number.Absent}
	}
	return proposalCell{value: number.Exact(r.Rate.PerHour())}
}

// cellOf returns the cell of an estimate times a factor.
func cellOf(e *scaling.Estimate, by float64) proposalCell {
	switch {
	case e == nil:
		return proposalCell{value: number.Absent}
	case e.Why == scaling.AtBase: // no uncertainty by definition
		return proposalCell{value: number.Plain(e.Value * by)}
	case e.Interval == nil:
		return proposalCell{number.Plain(e.Value * by), number.Absent}
	}
	return proposalCell{number.Plain(e.Value * by), "[" + number.Plain(e.Interval.Low*by) + ", " + number.Plain(e.Interval.High*by) + "]"}
}
