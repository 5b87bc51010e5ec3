package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/number"
)

// A Spending is what the ended attempts of a study have used, failed ones included.
type Spending struct {
	NodeHours float64 `json:"node_hours"`
	Money     float64 `json:"cost,omitempty"` // of attempts with a price; on demand
	Currency  string  `json:"currency,omitempty"`
	Unpriced  int     `json:"unpriced,omitempty"` // attempts without a price

	tariff *workspace.Tariff
	why    string // why an attempt, or all of them, have no price
}

// Spending returns the Spending of no attempts yet, by the prices of `cost`.
func (r *Reader) Spending(ctx context.Context, studyArg, siteFile string) Spending {
	return spending(r.Prices(ctx, studyArg, siteFile))
}

func spending(tariff *workspace.Tariff, err error) Spending {
	if err != nil {
		return Spending{why: clean.Line(err.Error())}
	}
	return Spending{tariff: tariff, Currency: tariff.Currency}
}

// Add adds an attempt if it has ended.
func (s *Spending) Add(state *launcher.State) {
	e := state.Traces.Exit
	if e == nil || e.StartUnix <= 0 || e.EndUnix <= e.StartUnix {
		return
	}
	seconds := e.EndUnix - e.StartUnix
	s.NodeHours += float64(state.Point.Nodes+state.Point.AuxNodes) * seconds / 3600
	if s.tariff == nil {
		return
	}
	paid, err := s.tariff.Paid(&state.Point, state.Job, seconds)
	if err != nil {
		s.Unpriced++
		s.why = clean.Line(err.Error())
		return
	}
	s.Money += paid
}

// Text returns the amounts: "12.3 node-hours, 45.6 EUR".
func (s Spending) Text() string {
	text := number.Significant(s.NodeHours) + " node-hours"
	switch {
	case s.tariff == nil && s.why != "":
		text += "; no cost in money: " + s.why
	case s.tariff != nil:
		text += fmt.Sprintf(", %s %s on demand", number.Significant(s.Money), s.Currency)
	}
	if s.Unpriced > 0 {
		text += fmt.Sprintf("; %s without a price: %s", number.Count(s.Unpriced, "attempt"), s.why)
	}
	return text
}

// Spent returns what all ended attempts of a study have used.
func (r *Reader) Spent(ctx context.Context, w *workspace.Work) (Spending, error) {
	attempts, err := launcher.Attempts(w.Folder)
	if err != nil {
		return Spending{}, err
	}
	states, _, err := r.Survey(ctx, attempts)
	s := spending(workspace.NewTariff(w.Site, "", cost.OnDemand))
	for i := range states {
		s.Add(&states[i])
	}
	return s, err
}

// EnergyText returns a sentence on the energy of the runs that an analysis uses; "" if it is known of
// none.
func (a *Analysis) EnergyText() string {
	var sum float64
	known, why := 0, errors.New("")
	for i := range a.Observations {
		joules, err := workspace.Energy(&a.Observations[i])
		if err != nil {
			why = err
			continue
		}
		known++
		sum += joules
	}
	if known == 0 {
		return ""
	}
	text := fmt.Sprintf("%s used %s kWh: whole jobs by Slurm's accounting, otherwise training only", number.Count(known, "good run"), number.Significant(sum/3.6e6))
	if n := len(a.Observations) - known; n > 0 {
		text += fmt.Sprintf("; not known of %d: %v", n, why)
	}
	return text + "."
}
