package workspace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

// machineLabel is the label that names the machine of the price list on which a run took place.
const machineLabel = "machine"

// Machines returns the price per hour of machines: those that price entries name, and nodes of partitions whose
// size the site file gives, if nodes have a price. The warnings name machines without a price.
func (t *Tariff) Machines() (list []sensitivity.Machine, warnings []string) {
	add := func(m sensitivity.Machine, labels map[string]any) {
		one, cpus, gpus, bytes := 1, int(m.VCPUs), int(m.GPUs), int64(m.Bytes)
		rate, err := t.prices.Rate(cost.Use{Nodes: &one, CPUs: &cpus, GPUs: &gpus, MemoryBytes: &bytes, Labels: labels})
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %v", m.Name, err))
			return
		}
		m.Hour = rate.PerHour()
		list = append(list, m)
	}
	var seen []study.Price
	for _, p := range t.site.Prices {
		same := func(other study.Price) bool {
			return other.Machine == p.Machine && other.Partition == p.Partition && maps.EqualFunc(other.Where, p.Where, cost.Equal)
		}
		if p.Per != cost.PerNode || p.Currency != t.Currency || market(p) != t.prices.Market || slices.ContainsFunc(seen, same) {
			continue // only the latest price of a machine is valid, which Rate finds
		}
		seen = append(seen, p)
		labels := maps.Clone(p.Where)
		if labels == nil {
			labels = map[string]any{}
		}
		m := sensitivity.Machine{Name: p.Machine, VCPUs: float64(p.VCPUs), Bytes: float64(p.Memory), GPUs: float64(p.GPUs), Only: maps.Clone(p.Where)}
		if p.Partition != "" {
			labels["partition"] = p.Partition
		}
		if p.Machine != "" {
			labels[machineLabel] = p.Machine
			add(m, labels)
			continue
		}
		for _, part := range t.site.Partitions {
			if (p.Partition == "" || part.Name == p.Partition) && part.CPUsPerNode > 0 && part.MemoryPerNode > 0 {
				m.Name, m.VCPUs, m.Bytes, m.GPUs = "a node of "+part.Name, float64(part.CPUsPerNode), float64(part.MemoryPerNode), float64(part.GPUsPerNode)
				labels["partition"] = part.Name
				add(m, maps.Clone(labels))
			}
		}
	}
	return list, warnings
}

func market(p study.Price) string {
	if p.Market == "" {
		return cost.OnDemand
	}
	return p.Market
}
