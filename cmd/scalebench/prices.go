package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
)

// sitePrices are a site file's prices as package cost takes them.
func sitePrices(site *study.Site) ([]cost.Price, error) {
	var list []cost.Price
	for i, p := range site.Prices {
		c := cost.Price{Per: p.Per, Hour: p.Hour, Currency: p.Currency, Market: p.Market, Where: maps.Clone(p.Where),
			Granularity: p.Granularity.Seconds(), Minimum: p.Minimum.Seconds(), AsOf: p.AsOf, Source: p.Source}
		if p.Partition != "" {
			if c.Where == nil {
				c.Where = map[string]any{}
			}
			c.Where["partition"] = p.Partition
		}
		if p.TRESBillingWeights != "" {
			var err error
			if c.Weights, err = cost.ParseWeights(p.TRESBillingWeights, p.MaxTRES); err != nil {
				return nil, &usageError{err: fmt.Errorf("%s: prices[%d].tres_billing_weights: %w", site.File, i, err)}
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// useOf is what a run with these labels holds: its parameters by TOML path,
// and whatever an import has said of it. GPUs and CPUs are those that the
// workers asked for; where jobs get whole nodes, the node is what is priced.
// An import may say gpus, cpus and gpu_type itself.
func useOf(workers, nodes int, labels map[string]any) cost.Use {
	u := cost.Use{Labels: labels}
	if nodes > 0 {
		u.Nodes = &nodes
	}
	count := func(label string) *int {
		if n, ok := labels[label].(int64); ok && n >= 0 && n <= 1<<40 {
			n := int(n)
			return &n
		}
		return nil
	}
	u.GPUs, u.CPUs = count("gpus"), count("cpus")
	if u.GPUs == nil {
		switch labels["resources.device"] {
		case "gpu":
			u.GPUs = &workers
		case "cpu":
			u.GPUs = new(int)
		}
	}
	if n := count("resources.cpus_per_worker"); u.CPUs == nil && n != nil {
		*n *= workers
		u.CPUs = n
	}
	if text, ok := labels["resources.memory"].(string); ok {
		var each study.Bytes
		if each.UnmarshalText([]byte(text)) == nil && each > 0 {
			all := int64(each) * int64(workers)
			u.MemoryBytes = &all
		}
	}
	u.GPUType, _ = labels["gpu_type"].(string)
	return u
}

// sitePartition adds what the site file says of a run's partition.
func sitePartition(labels map[string]any, site *study.Site, partition string) {
	labels["partition"] = partition
	i := slices.IndexFunc(site.Partitions, func(p study.Partition) bool { return p.Name == partition })
	if _, said := labels["gpu_type"]; !said && i >= 0 && site.Partitions[i].GPUType != "" {
		labels["gpu_type"] = site.Partitions[i].GPUType
	}
}

// plannedCosts are the most that the plan can cost, a line a currency and
// market: what each job holds for its whole time limit. A job without a price
// is said.
func plannedCosts(plan *study.Plan, site *study.Site) ([]string, error) {
	prices, err := sitePrices(site)
	if err != nil {
		return nil, err
	}
	var lines, seen []string
	for _, price := range prices {
		if key := price.Currency + "\x00" + price.Market; slices.Contains(seen, key) {
			continue
		} else {
			seen = append(seen, key)
		}
		table, err := cost.NewTable(prices, price.Currency, price.Market)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", site.File, err)}
		}
		total, bases, why := 0.0, map[string]bool{}, map[string]int{}
		for _, p := range plan.Points {
			labels := p.Point.Parameters()
			sitePartition(labels, site, p.Partition)
			rate, err := table.Rate(useOf(p.Point.Workers, p.Point.Nodes, labels))
			if err != nil {
				why[err.Error()]++
				continue
			}
			total += rate.Cost(p.Point.Resources.Time.Seconds())
			for _, part := range rate.Parts {
				bases[part.Price.String()] = true
			}
		}
		line := fmt.Sprintf("%.2f %s: %s", total, table.Currency, strings.Join(slices.Sorted(maps.Keys(bases)), "; "))
		if len(bases) == 0 {
			line = "– " + table.Currency
		}
		for _, reason := range slices.Sorted(maps.Keys(why)) {
			line += fmt.Sprintf(" (%d of %d runs not in it: %s)", why[reason], len(plan.Points), reason)
		}
		lines = append(lines, line)
	}
	return lines, nil
}
