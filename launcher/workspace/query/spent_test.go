package query

import (
	"math"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A failed attempt counts, one that runs does not: 1800 s on 1 node and 900 s on 3 and an auxiliary one are 0.5 and 1
// node-hours. At 1.5 EUR a node-hour they cost 0.75 and 1.5 EUR; of another partition, nobody knows.
func TestSpending(t *testing.T) {
	small, large, other := attempt("w1", 1, 1, metrics.Done, 1000, 1800), attempt("w4", 1, 1, metrics.Failed, 1000, 900), attempt("w1", 3, 1, metrics.Done, 1000, 3600)
	small.Point.Nodes, large.Point.Nodes, large.Point.AuxNodes, other.Point.Nodes = 1, 3, 1, 1
	small.Job, large.Job, other.Job = &metrics.Job{Partition: "cpu"}, &metrics.Job{Partition: "cpu"}, &metrics.Job{Partition: "gpu"}
	prices := &study.Site{File: "site.toml", Prices: []study.Price{{Per: cost.PerNode, Hour: 1.5, Currency: "EUR", Partition: "cpu"}}}
	check := func(s Spending, states []launcher.State, hours, money float64, text string) {
		t.Helper()
		for i := range states {
			s.Add(&states[i])
		}
		if math.Abs(s.NodeHours-hours) > 1e-12 || math.Abs(s.Money-money) > 1e-12 || s.Text() != text {
			t.Errorf("%g node-hours, %g, %q; want %g, %g, %q", s.NodeHours, s.Money, s.Text(), hours, money, text)
		}
	}
	two := []launcher.State{small, large, attempt("w1", 2, 1, metrics.Running, 1000, 0)}
	check(spending(workspace.NewTariff(prices, "", cost.OnDemand)), two, 1.5, 2.25, "1.50 node-hours, 2.25 EUR on demand")
	check(spending(workspace.NewTariff(prices, "", cost.OnDemand)), append(two, other), 2.5, 2.25,
		"2.50 node-hours, 2.25 EUR on demand; 1 attempt without a price: no price in EUR (on-demand) applies; prices depend on partition (here: gpu)")
	check(spending(workspace.NewTariff(study.DefaultSite(), "", cost.OnDemand)), two, 1.5, 0, "1.50 node-hours; no cost in money: no prices are given")
	// The scheduler charges its job, of 3600 s, not the 1800 s of the programs.
	small.Job.StartUnix, small.Job.EndUnix = 900, 4500
	check(spending(workspace.NewTariff(prices, "", cost.OnDemand)), []launcher.State{small}, 0.5, 1.5, "0.500 node-hours, 1.50 EUR on demand")
}

// 7.2 MJ by Slurm are 2 kWh; 1000 W over an hour of training are 1 kWh.
func TestEnergyText(t *testing.T) {
	seconds := 4000.0
	a := &Analysis{Answer: &scaling.Answer{Observations: []scaling.Observation{
		{Kind: "train", JobSeconds: &seconds, Values: map[string]float64{measure.SlurmJoules: 7.2e6, measure.Watts: 1000, measure.TrainSeconds: 3600}},
		{Kind: "train", JobSeconds: &seconds, Values: map[string]float64{measure.Watts: 1000, measure.TrainSeconds: 3600}},
		{Kind: "train", Values: map[string]float64{measure.TrainSeconds: 3600}},
	}}}
	want := "2 good runs used 3.00 kWh: whole jobs by Slurm's accounting, otherwise training only; not known of 1: its power was not read."
	if got := a.EnergyText(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.Observations = a.Observations[2:]
	if got := a.EnergyText(); got != "" {
		t.Errorf("without any energy: %q", got)
	}
}
