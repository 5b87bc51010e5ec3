package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/table"
)

// Advice returns the candidates of an advice for people.
func Advice(a *advice.Advice, all bool) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Key: "workers"},
		{Key: "basis"},
		rateColumn(a),
		{Key: "efficiency", Right: true},
	}}
	timed, begun := a.Clock() != advice.Untimed, a.Clock() == advice.Job
	if timed {
		head := "training time"
		if a.Target != nil {
			head = "time to " + a.Target.Short()
		} else if a.Goal != "" {
			head = "time to target"
		}
		t.Columns = append(t.Columns, table.Column{Key: "train_seconds", Head: head, Right: true})
		if begun {
			t.Columns = append(t.Columns, table.Column{Key: "seconds", Head: "with initialisation", Right: true})
		}
	}
	if a.Currency != "" {
		t.Columns = append(t.Columns, table.Column{Key: "cost", Head: "cost (" + a.Currency + ")", Right: true})
	}
	limited := slices.ContainsFunc(a.Candidates, func(c advice.Candidate) bool { return c.Keeps != nil })
	if limited {
		head := "worth it"
		if a.Limited() {
			head = "within limits"
		}
		t.Columns = append(t.Columns, table.Column{Key: "keeps_limits", Head: head, Right: true})
	}
	left := 0
	for _, c := range a.Candidates {
		chosen := a.Workers != nil && c.Workers == *a.Workers
		farther := a.Beyond != nil && c.Workers == *a.Beyond
		if !all && !chosen && !farther && c.Basis != advice.Measured && !doubling(a, c.Workers) && (a.Next == nil || c.Workers != a.Next.Workers) {
			left++
			continue
		}
		name := string(c.Basis)
		if chosen {
			name += ", recommended"
		} else if farther {
			name += ", unproven"
		}
		atBase := a.Base != nil && c.Workers == a.Base.Workers
		cells := []any{c.Workers, name, figureText(rateOf(c), number.Significant, false), figureText(c.Efficiency, number.Percent, atBase)}
		if timed {
			cells = append(cells, figureText(c.Training, number.Seconds, false))
			if begun {
				cells = append(cells, figureText(c.Seconds, number.Seconds, false))
			}
		}
		if a.Currency != "" {
			cells = append(cells, figureText(c.Cost, number.Significant, false))
		}
		switch {
		case limited && c.Keeps != nil:
			cells = append(cells, advice.Likely(*c.Keeps))
		case limited:
			cells = append(cells, nil)
		}
		t.Add(cells...)
	}
	if a.Base != nil {
		t.Notes = append(t.Notes, "Base: "+baseText(a.Base)+"."+brackets(t, a.Confidence))
	}
	t.Notes = append(t.Notes, dashes(t)...)
	if begun {
		t.Notes = append(t.Notes, "Times are on the training clock, as in scaling; the choice is by the times with initialisation, which count from the start of the processes.")
	} else {
		t.Notes = append(t.Notes, clockNotes([]*advice.Advice{a})...)
	}
	if len(a.Law) > 0 && a.HoldOut != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("Law: %s; fitted to the smaller worker counts, it is %+.1f %% off at the largest.", strings.Join(a.Law, " + "), 100**a.HoldOut))
	}
	if a.Refused != "" {
		t.Notes = append(t.Notes, "Not extrapolated: "+a.Refused+".")
	}
	t.Notes = append(t.Notes, nextNotes(a)...)
	if left > 0 {
		t.Notes = append(t.Notes, number.Count(left, "more candidate")+" with -v, and in CSV and JSON.")
	}
	return t
}

// rateColumn returns the column of the figure that ranks candidates without times.
func rateColumn(a *advice.Advice) table.Column {
	if a.Measure != "" {
		return table.Column{Key: a.Measure, Unit: a.Unit(), Right: true}
	}
	return table.Column{Key: "throughput", Unit: measure.RateUnit(a.Sample), Right: true}
}

func rateOf(c advice.Candidate) *advice.Estimate { return cmp.Or(c.Throughput, c.Figure) }

// nextNotes say what to measure next, and how.
func nextNotes(a *advice.Advice) []string {
	n := a.Next
	switch {
	case n == nil && a.Workers != nil:
		return []string{"Measure next: nothing; no run is likely to change the answer."}
	case n == nil:
		return nil
	}
	text := fmt.Sprintf("Measure next: %s, %s", number.Count(n.Workers, "worker"), number.Count(n.Runs, "more run"))
	if len(n.Beside) > 0 {
		words := make([]string, len(n.Beside))
		for i, b := range n.Beside {
			words[i] = fmt.Sprint(b)
		}
		text += ", with as many of " + strings.Join(words, " and ") + " to compare with"
	}
	text += ": " + n.Why + "."
	if n.Command != "" {
		return []string{text, "`" + n.Command + "`"}
	}
	return []string{text}
}

// doubling reports whether repeated doubling of a measured worker count gives workers.
func doubling(a *advice.Advice, workers int) bool {
	for _, c := range a.Candidates {
		for n := c.Workers; c.Basis == advice.Measured && n <= workers; n *= 2 {
			if n == workers {
				return c.Workers&(c.Workers-1) == 0 || workers == 2*c.Workers
			}
		}
	}
	return false
}

// figureText formats an estimate: "12.3 [11.9, 12.8]", or "12.3 –" without an interval.
func figureText(f *advice.Estimate, show func(float64) string, exact bool) any {
	switch {
	case f == nil:
		return nil
	case exact:
		return show(f.Value)
	case f.Low == nil:
		return show(f.Value) + " " + number.Absent
	}
	show = number.Alike(show, f.Value, *f.Low, *f.High)
	return show(f.Value) + " [" + show(*f.Low) + ", " + show(*f.High) + "]"
}

// AdviceData returns every candidate of every series for programs.
func AdviceData(list []*advice.Advice) *table.Table {
	t := &table.Table{}
	for _, key := range []string{"series", "workers", "nodes", "recommended", "basis", "runs"} {
		t.Columns = append(t.Columns, table.Column{Key: key})
	}
	for _, key := range []string{"throughput", "efficiency", "train_seconds", "seconds", "samples", "miss", "cost"} {
		for _, end := range []string{"", "_low", "_high"} {
			t.Columns = append(t.Columns, table.Column{Key: key + end})
		}
	}
	t.Columns = append(t.Columns, table.Column{Key: "keeps_limits"}, table.Column{Key: "currency"}, table.Column{Key: "why"})
	asked := slices.ContainsFunc(list, func(a *advice.Advice) bool { return a.Measure != "" })
	if asked {
		t.Columns = append(t.Columns, table.Column{Key: "measure"}, table.Column{Key: "figure"}, table.Column{Key: "figure_low"}, table.Column{Key: "figure_high"})
	}
	for _, a := range list {
		for _, c := range a.Candidates {
			cells := []any{a.Series, c.Workers, c.Nodes, a.Workers != nil && *a.Workers == c.Workers, string(c.Basis), c.Runs}
			for _, f := range []*advice.Estimate{c.Throughput, c.Efficiency, c.Training, c.Seconds, c.Samples, c.Miss, c.Cost} {
				if f == nil {
					cells = append(cells, nil, nil, nil)
					continue
				}
				cells = append(cells, f.Value, f.Low, f.High)
			}
			cells = append(cells, c.Keeps, a.Currency, c.Why)
			if f := c.Figure; asked && f != nil {
				cells = append(cells, a.Measure, f.Value, f.Low, f.High)
			} else if asked {
				cells = append(cells, a.Measure, nil, nil, nil)
			}
			t.Add(cells...)
		}
	}
	return t
}
