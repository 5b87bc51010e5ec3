package report

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

// Advice returns the table of an advice's candidates for people. If all is false, it has only
// those that matter (see matters).
func Advice(a *advice.Advice, all bool) *table.Table {
	columns := adviceColumns(a)
	t := &table.Table{}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	left := 0
	for _, c := range a.Candidates {
		if !all && !matters(a, c) {
			left++
			continue
		}
		cells := make([]any, len(columns))
		for i, column := range columns {
			cells[i] = column.cell(c)
		}
		t.Add(cells...)
	}
	if a.Base != nil {
		t.Notes = append(t.Notes, "Base: "+baseText(a.Base)+"."+brackets(t, a.Confidence))
	}
	t.Notes = append(t.Notes, onlyFigure(a)...)
	t.Notes = append(t.Notes, dashes(t)...)
	if a.Clock() == advice.Job {
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

// onlyFigure returns a note that says by what the runs are compared if the user did not.
func onlyFigure(a *advice.Advice) []string {
	if !a.OnlyFigure {
		return nil
	}
	if a.Measure == measure.TrainSeconds {
		return []string{"Compared by train_seconds, as if each run were a whole training: the runs state no throughput and no time to a target."}
	}
	return []string{"Compared by " + a.Measure + ", the runs' only figure with a better direction; -m names another."}
}

// An adviceColumn is a column of the table of candidates, with the function that fills its cells.
type adviceColumn struct {
	table.Column
	cell func(advice.Candidate) any
}

// adviceColumns returns the columns of the table of candidates. They depend on what the user
// asked.
func adviceColumns(a *advice.Advice) []adviceColumn {
	seconds := func(of func(advice.Candidate) *advice.Estimate) func(advice.Candidate) any {
		return func(c advice.Candidate) any { return figureText(of(c), number.Seconds, false) }
	}
	list := []adviceColumn{
		{table.Column{Key: "workers"}, func(c advice.Candidate) any { return c.Workers }},
		{table.Column{Key: "basis"}, func(c advice.Candidate) any { return basisText(a, c) }},
		{rateColumn(a), func(c advice.Candidate) any { return figureText(rateOf(c), number.Significant, false) }},
		{table.Column{Key: "efficiency", Right: true}, func(c advice.Candidate) any {
			return figureText(c.Efficiency, number.Percent, a.Base != nil && c.Workers == a.Base.Workers)
		}},
	}
	if a.Clock() != advice.Untimed {
		list = append(list, adviceColumn{table.Column{Key: "train_seconds", Head: timeHead(a), Right: true},
			seconds(func(c advice.Candidate) *advice.Estimate { return c.Training })})
	}
	if a.Clock() == advice.Job {
		list = append(list, adviceColumn{table.Column{Key: "seconds", Head: "with initialisation", Right: true},
			seconds(func(c advice.Candidate) *advice.Estimate { return c.Seconds })})
	}
	if a.Currency != "" && slices.ContainsFunc(a.Candidates, func(c advice.Candidate) bool { return c.Cost != nil }) {
		list = append(list, adviceColumn{table.Column{Key: "cost", Head: "cost (" + a.Currency + ")", Right: true},
			func(c advice.Candidate) any { return figureText(c.Cost, number.Significant, false) }})
	}
	if slices.ContainsFunc(a.Candidates, func(c advice.Candidate) bool { return c.Keeps != nil || c.KeepsOn != nil }) {
		head := "worth it"
		if a.Limited() {
			head = "within limits"
		}
		list = append(list, adviceColumn{table.Column{Key: "keeps_limits", Head: head, Right: true}, func(c advice.Candidate) any {
			switch {
			case c.KeepsOn != nil:
				return advice.Likely(*c.KeepsOn) + " if no new limit"
			case c.Keeps == nil:
				return nil
			}
			return advice.Likely(*c.Keeps)
		}})
	}
	return list
}

// timeHead returns the heading of the column with the times on the training clock.
func timeHead(a *advice.Advice) string {
	switch {
	case a.Target != nil:
		return "time to " + a.Target.Short()
	case a.Goal != "":
		return "time to target"
	}
	return "training time"
}

// matters reports whether a candidate is shown without -v. Shown are measured counts and their
// doublings, the recommended count, and the count to be measured next.
func matters(a *advice.Advice, c advice.Candidate) bool {
	return c.Basis == advice.Measured || isCount(a.Workers, c) || isCount(a.Beyond, c) || doubling(a, c.Workers) || a.Next != nil && c.Workers == a.Next.Workers
}

func isCount(workers *int, c advice.Candidate) bool { return workers != nil && c.Workers == *workers }

func basisText(a *advice.Advice, c advice.Candidate) string {
	switch {
	case isCount(a.Workers, c):
		return string(c.Basis) + ", recommended"
	case isCount(a.Beyond, c):
		return string(c.Basis) + ", unproven"
	}
	return string(c.Basis)
}

// rateColumn returns the column with the measure that ranks candidates if there are no times.
func rateColumn(a *advice.Advice) table.Column {
	if a.Measure != "" {
		return table.Column{Key: a.Measure, Unit: a.Unit(), Right: true}
	}
	return table.Column{Key: "throughput", Unit: measure.RateUnit(a.Sample), Right: true}
}

func rateOf(c advice.Candidate) *advice.Estimate { return cmp.Or(c.Throughput, c.Figure) }

// orNamed ends a note for those who can ask again.
const orNamed = "; -m names another."

// nextNotes returns lines that say what to measure next, and by which command.
func nextNotes(a *advice.Advice) []string {
	n := a.Next
	switch {
	case n == nil && a.Workers != nil && !a.Provisional:
		return []string{"Measure next: nothing; no run is likely to change the answer."}
	case n == nil:
		return nil
	}
	if n.Runs == 0 {
		return []string{fmt.Sprintf("Measure next: nothing more; %s queued or running: %s.", number.Are(n.Queued, "run"), n.Why)}
	}
	text := fmt.Sprintf("Measure next: %s, %s", number.Count(n.Workers, "worker"), number.Count(n.Runs, "more run"))
	if len(n.Neighbours) > 0 {
		words := make([]string, len(n.Neighbours))
		for i, b := range n.Neighbours {
			words[i] = fmt.Sprint(b)
		}
		text += ", with as many of " + number.List(words, "and") + " to compare with"
	}
	if n.Queued > 0 {
		text += " (" + number.Are(n.Queued, "run") + " queued or running already)"
	}
	lines := []string{text + ": " + n.Why + "."}
	if n.Command != "" {
		lines = append(lines, "`"+n.Command+"`")
	}
	return append(lines, expected(n)...)
}

// expected returns a line with what the suggested runs take, and the chance that they decide.
func expected(n *advice.Next) []string {
	switch {
	case n.NodeHours == nil:
		return nil
	case n.Chance == nil:
		return []string{fmt.Sprintf("They take about %s; whether they decide cannot be said before each count has an interval.", number.NodeHours(*n.NodeHours))}
	}
	return []string{fmt.Sprintf("They take about %s and are %s likely to decide.", number.NodeHours(*n.NodeHours), advice.Likely(*n.Chance))}
}

// doubling reports whether repeated doubling of a measured worker count gives the number workers.
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

// AdviceData returns the table of every candidate of every series for programs.
func AdviceData(list []*advice.Advice) *table.Table {
	t := &table.Table{Columns: table.Keys("series", "workers", "nodes", "recommended", "basis", "runs")}
	for _, key := range []string{"throughput", "efficiency", "train_seconds", "seconds", "samples", "miss", "cost"} {
		t.Columns = append(t.Columns, table.Keys(key, key+"_low", key+"_high")...)
	}
	t.Columns = append(t.Columns, table.Keys("keeps_limits", "keeps_limits_if_no_new_limit", "currency", "why")...)
	asked := slices.ContainsFunc(list, func(a *advice.Advice) bool { return a.Measure != "" })
	if asked {
		t.Columns = append(t.Columns, table.Keys("measure", "figure", "figure_low", "figure_high")...)
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
			cells = append(cells, c.Keeps, c.KeepsOn, a.Currency, c.Why)
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
