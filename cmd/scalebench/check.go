package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
)

func checkCommand(s *session) *cli.Command {
	var site string
	return &cli.Command{
		Name:      "check",
		Usage:     "validate a study and print its plan",
		ArgsUsage: "STUDY",
		Description: "Node-hours are the most that the plan can take: nodes times the jobs' time\n" +
			"limit, over all repeats. Nothing is submitted.",
		Flags: []cli.Flag{siteFlag(&site)},
		Action: func(c *cli.Context) error {
			return runCheck(s, c.Args().First(), site)
		},
	}
}

func runCheck(s *session, path, site string) error {
	w, err := s.load(path, site)
	if err != nil {
		return err
	}
	t := &table{columns: []column{
		{key: "point"}, {key: "framework"}, {key: "model"}, {key: "workers"}, {key: "nodes"}, {key: "workers_per_node"},
		{key: "partition"}, {key: "exclusive"},
		{key: "worker_batch", unit: "samples"}, {key: "global_batch", unit: "samples"}, {key: "learning_rate"},
		{key: "runs"}, {key: "time_limit", show: seconds}, {key: "node_hours", head: "node-hours at most"},
	}}
	var hours float64
	for _, p := range w.plan.Points {
		hours += p.NodeHours()
		if q := p.Point; q.Repeat == 1 {
			partition := any(p.Partition)
			if p.Partition == "" {
				partition = nil // the cluster's default
			}
			t.add(q.ID, q.Framework, q.Workload.Model, q.Workers, q.Nodes, q.WorkersPerNode, partition, p.Exclusive,
				q.WorkerBatch, q.GlobalBatch, q.LearningRate, w.study.Repeats, q.Resources.Time.Seconds(),
				p.NodeHours()*float64(w.study.Repeats))
		}
	}
	t.notes = append(t.notes, fmt.Sprintf("study %s: %d points, %d runs, at most %s node-hours",
		w.study.Name, len(t.rows), len(w.plan.Points), significant(hours)))
	for _, total := range costs(w.plan, w.site) {
		t.notes = append(t.notes, "cost at most "+total)
	}
	return s.print(t)
}

// costs are the most that the plan can cost, a line a currency, from the
// unrounded hours: nodes, GPUs and vCPUs of each job for its whole time limit.
// A job without a price is said.
func costs(plan *study.Plan, site *study.Site) []string {
	if len(site.Prices) == 0 {
		return nil
	}
	totals, bases := map[string]float64{}, map[string]map[string]bool{}
	unpriced := 0
	for _, p := range plan.Points {
		priced := false
		for _, price := range site.Prices {
			if price.Partition != "" && price.Partition != p.Partition {
				continue
			}
			units := map[string]float64{
				"node": 1,
				"vcpu": float64(p.Point.WorkersPerNode * p.Point.Resources.CPUsPerWorker),
				"gpu":  0,
			}
			if p.Point.Resources.Device == "gpu" {
				units["gpu"] = float64(p.Point.WorkersPerNode)
			}
			priced = true
			totals[price.Currency] += p.NodeHours() * units[price.Per] * price.Hour
			if bases[price.Currency] == nil {
				bases[price.Currency] = map[string]bool{}
			}
			basis := fmt.Sprintf("%g %s per %s-hour", price.Hour, price.Currency, price.Per)
			if price.AsOf != "" {
				basis += " as of " + price.AsOf
			}
			bases[price.Currency][basis] = true
		}
		if !priced {
			unpriced++
		}
	}
	var lines []string
	for _, currency := range slices.Sorted(maps.Keys(totals)) {
		lines = append(lines, fmt.Sprintf("%.2f %s (%s)", totals[currency], currency,
			strings.Join(slices.Sorted(maps.Keys(bases[currency])), "; ")))
	}
	if unpriced > 0 {
		lines = append(lines, fmt.Sprintf("(%d of %d runs have no price in %s and are not in it)", unpriced, len(plan.Points), site.File))
	}
	return lines
}
