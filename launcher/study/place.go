package study

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// place returns the name of the first partition of the site that the point fits into. It
// also distributes the point's workers evenly over nodes. ok is false if the point fits
// into none.
func (x *expansion) place(p *Point) (partition string, ok bool) {
	site := x.as(p.Variant)
	if len(site.Partitions) == 0 {
		return "", x.spread(p, Partition{}) == ""
	}
	var why []string
	for _, candidate := range site.Partitions {
		trial := *p
		if wrong := x.fits(&trial, candidate); wrong != "" {
			why = append(why, candidate.Name+": "+wrong)
			continue
		}
		*p = trial
		return candidate.Name, true
	}
	of := ""
	if x.site.File != "" {
		of = " of " + x.site.File
	}
	if limits := tooShort(site.Partitions, p.Resources.Time); limits != "" {
		x.problem("resources.time", fmt.Sprintf("%v is longer than any partition%s allows (max_time: %s)", p.Resources.Time, of, limits))
		return "", false
	}
	x.problem("workers", fmt.Sprintf("no partition%s has room for %s (%s)", of, number.Count(p.Workers, "worker"), strings.Join(why, "; ")))
	return "", false
}

// tooShort returns a list of the partitions' time limits, "main 24h, short 5m", if all of
// them are below the given time; "" otherwise.
func tooShort(partitions []Partition, time Duration) string {
	var limits []string
	for _, q := range partitions {
		if q.MaxTime == 0 || time <= q.MaxTime {
			return ""
		}
		limits = append(limits, fmt.Sprintf("%s %v", q.Name, q.MaxTime))
	}
	return strings.Join(limits, ", ")
}

// fits returns why the point cannot run in the partition; "" if it can.
func (x *expansion) fits(p *Point, q Partition) string {
	switch {
	case p.Workers < q.MinWorkers:
		return fmt.Sprintf("min_workers is %d", q.MinWorkers)
	case q.MaxWorkers > 0 && p.Workers > q.MaxWorkers:
		return fmt.Sprintf("max_workers is %d", q.MaxWorkers)
	case p.Resources.Device == "gpu" && q.GPUsPerNode == 0:
		return "gpus_per_node is not set and device is \"gpu\""
	case q.MaxTime > 0 && p.Resources.Time > q.MaxTime:
		return fmt.Sprintf("max_time is %v and resources.time %v", q.MaxTime, p.Resources.Time)
	}
	if wrong := x.spread(p, q); wrong != "" {
		return wrong
	}
	nodes, ranks := p.Shape()
	beside := ""
	if p.AuxNodes > 0 {
		beside = fmt.Sprintf(", %d of them for the load generator", p.AuxNodes)
	}
	switch {
	case q.MaxNodes > 0 && nodes > q.MaxNodes:
		return fmt.Sprintf("max_nodes is %d, but the point takes %d%s", q.MaxNodes, nodes, beside)
	case p.Resources.Device == "gpu" && p.WorkersPerNode > q.GPUsPerNode:
		return fmt.Sprintf("%s a node, but %s", number.Count(p.WorkersPerNode, "worker"), number.Count(q.GPUsPerNode, "GPU"))
	case q.CPUsPerNode > 0 && ranks*p.Resources.CPUsPerWorker > q.CPUsPerNode:
		return fmt.Sprintf("%s a node with %s each, but a node has %d", number.Count(ranks, "rank"), number.Count(p.Resources.CPUsPerWorker, "CPU"), q.CPUsPerNode)
	case q.MemoryPerNode > 0 && Bytes(ranks)*p.Resources.Memory > q.MemoryPerNode:
		return fmt.Sprintf("%s a node with %v each, but a node has %v", number.Count(ranks, "rank"), p.Resources.Memory, q.MemoryPerNode)
	}
	return ""
}

// spread sets the point's Nodes and WorkersPerNode for the partition. It returns why that
// is impossible, or "". Nodes must be filled evenly, because points of a curve with partly
// filled nodes would not be comparable.
func (x *expansion) spread(p *Point, q Partition) string {
	room := p.Resources.WorkersPerNode
	if room == 0 {
		switch {
		case p.Resources.Device == "gpu" && q.GPUsPerNode > 0:
			room = q.GPUsPerNode
		case q.CPUsPerNode > 0:
			room = max(1, q.CPUsPerNode/p.Resources.CPUsPerWorker)
		default:
			room = p.Workers
		}
	}
	p.WorkersPerNode = min(p.Workers, room)
	if p.Workers%p.WorkersPerNode != 0 {
		wrong := fmt.Sprintf("%d workers do not divide into nodes of %d", p.Workers, p.WorkersPerNode)
		x.problem("workers", fmt.Sprintf("%s; use a multiple of %d, or set resources.workers_per_node to a divisor", wrong, p.WorkersPerNode))
		return wrong
	}
	p.Nodes = p.Workers / p.WorkersPerNode
	p.AuxRanks, p.AuxNodes = 0, 0
	if beside := kinds()[p.Workload.Kind].beside; beside != nil {
		p.AuxRanks, p.AuxNodes = beside(p)
		if p.AuxNodes == 0 && p.Nodes > 1 {
			wrong := fmt.Sprintf("%d workers take %d nodes of %d, but the load generator has its cores on one", p.Workers, p.Nodes, p.WorkersPerNode)
			x.problem("workload.client", wrong+"; set client = \"node\", or fewer workers", "workers")
			return wrong
		}
	}
	return ""
}
