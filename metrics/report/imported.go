package report

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// ShownRows limits the number of imported runs or figures that are shown to people, because the
// whole table is in memory until the widths of its columns are known.
const ShownRows = 1000

// Imported builds the table of imported runs.
type Imported struct {
	t    *table.Table
	all  bool           // for programs: show every run
	more map[string]int // number of runs that are not shown, by outcome
}

// NewImported returns an empty table. It shows at most ShownRows runs unless all is true.
func NewImported(all bool) *Imported {
	return &Imported{
		t: &table.Table{Columns: []table.Column{{Key: "file"}, {Key: "part"}, {Key: "run", ID: true}, {Key: "workers"}, {Key: "throughput", Unit: "samples/s", Optional: true},
			{Key: measure.TokensPerSecond, Unit: "tokens/s", Optional: true}, {Key: measure.RequestsPerSecond, Unit: "requests/s", Optional: true},
			{Key: "accuracy", Show: number.Percent, Optional: true}, {Key: "evaluations", Optional: true}, {Key: "figures", Optional: true}, {Key: "outcome"}}},
		all:  all,
		more: map[string]int{},
	}
}

// Add adds a run to the table. id is "" if the run was not stored; outcome says what happened to
// it.
func (l *Imported) Add(r store.Imported, c *extract.Content, id, outcome string) {
	if !l.all && len(l.t.Rows) == ShownRows {
		l.more[outcome]++
		return
	}
	var throughput, tokens, requests, accuracy *float64
	evaluations, figures := 0, 0
	for f := range c.Findings() {
		if e := f.Event.Evaluation; e != nil {
			evaluations++
			accuracy = &e.Accuracy
		}
		if g := f.Event.Figure; g != nil {
			figures++
			switch {
			case g.Name == metrics.FigureThroughput && len(g.At) == 0:
				throughput = &g.Value
			case g.Name == measure.TokensPerSecond && len(g.At) == 0:
				tokens = &g.Value
			case g.Name == measure.RequestsPerSecond && (requests == nil || g.Value > *requests):
				requests = &g.Value // the largest over the run's loads
			}
		}
	}
	if c.Failed != "" {
		outcome += ", failed"
	}
	l.t.Add(filepath.Base(r.From.Path), table.NonZero(r.From.Part), table.NonZero(id), r.Run.Workers, throughput, tokens, requests, accuracy, evaluations, figures, outcome)
}

// Table returns the table, with notes on the runs that are not shown.
func (l *Imported) Table() *table.Table {
	for _, outcome := range slices.Sorted(maps.Keys(l.more)) {
		l.t.Notes = append(l.t.Notes, fmt.Sprintf("and %d more: %s", l.more[outcome], outcome))
	}
	return l.t
}
