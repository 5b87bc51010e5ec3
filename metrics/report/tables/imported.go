package tables

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

// ShownRows is how many imported runs, or figures of a log, people are shown: a table is
// held until its widths are known, and nobody reads a million lines.
const ShownRows = 1000

// Imported is the list of what an import stored.
type Imported struct {
	t    *table.Table
	all  bool           // programs get a row for every run
	more map[string]int // outcome: runs that are not shown
}

// NewImported returns an empty list, of at most ShownRows runs unless all is set.
func NewImported(all bool) *Imported {
	return &Imported{
		t: &table.Table{Columns: []table.Column{{Key: "file"}, {Key: "part"}, {Key: "run"}, {Key: "workers"}, {Key: "throughput", Unit: "samples/s", Optional: true},
			{Key: measure.TokensPerSecond, Unit: "tokens/s", Optional: true}, {Key: measure.RequestsPerSecond, Unit: "requests/s", Optional: true},
			{Key: "accuracy", Show: number.Percent, Optional: true}, {Key: "evaluations"}, {Key: "figures"}, {Key: "outcome"}}},
		all:  all,
		more: map[string]int{},
	}
}

// Add adds a run with its id, "" if it was not stored, and what became of it.
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
				requests = &g.Value // the largest of its loads
			}
		}
	}
	if c.Failed != "" {
		outcome += ", failed"
	}
	l.t.Add(filepath.Base(r.From.Path), table.NonZero(r.From.Part), table.NonZero(id), r.Run.Workers, throughput, tokens, requests, accuracy, evaluations, figures, outcome)
}

// Table returns the list, with a note on the runs that are not in it.
func (l *Imported) Table() *table.Table {
	for _, outcome := range slices.Sorted(maps.Keys(l.more)) {
		l.t.Notes = append(l.t.Notes, fmt.Sprintf("and %d more: %s", l.more[outcome], outcome))
	}
	return l.t
}
