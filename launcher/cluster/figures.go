package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/slurm"
)

// figures holds the limits of a partition's nodes. If nodes differ, they are the smallest node's, so that a
// point within them fits on every node.
type figures struct {
	nodes, usable int
	reason        string // why the first unusable node cannot take jobs, " (…)"

	maxNodes    int // per job
	nodesRemark string
	cpus        int
	cpusRemark  string
	memoryMB    int
	gpus        int          // per node; 0 if a node has GPUs of several types
	gpuType     string       // "" unless all GPUs have the same type
	kinds       []slurm.GPUs // types of nodes with several, and the fewest GPUs of each
	doubts      []string
}

// slice matches the types of MIG slices: "a100_1g.5gb".
var slice = regexp.MustCompile(`(?:^|[^0-9a-z])\d+g\.\d+gb`)

func figuresOf(p *slurm.Partition, nodes []slurm.Node) figures {
	f := figures{nodes: len(nodes), maxNodes: len(nodes)}
	if len(nodes) == 0 {
		return f
	}
	if f.usable, f.reason = usableOf(nodes); f.reason != "" {
		f.reason = " (" + f.reason + ")"
	}
	f.cpus = slices.MinFunc(nodes, func(a, b slurm.Node) int { return a.CPUs - b.CPUs }).CPUs
	f.memoryMB = slices.MinFunc(nodes, func(a, b slurm.Node) int { return a.MemoryMB - b.MemoryMB }).MemoryMB
	types := f.countGPUs(nodes)
	if p.MaxNodes != nil && *p.MaxNodes < f.maxNodes {
		f.maxNodes, f.nodesRemark = *p.MaxNodes, fmt.Sprintf("in one job; the partition has %d", f.nodes)
	}
	if most := slices.MaxFunc(nodes, func(a, b slurm.Node) int { return a.Threads - b.Threads }).Threads; most > 1 {
		f.cpusRemark = fmt.Sprintf("hardware threads, up to %d a core", most)
	}
	if p.MaxCPUsPerNode != nil && *p.MaxCPUsPerNode < f.cpus {
		f.cpus, f.cpusRemark = *p.MaxCPUsPerNode, "MaxCPUsPerNode"
	}
	if p.MaxMemPerNodeMB != nil && *p.MaxMemPerNodeMB < f.memoryMB {
		f.memoryMB = *p.MaxMemPerNodeMB
	}
	if f.usable > 0 && f.usable < f.nodes {
		f.doubts = append(f.doubts, fmt.Sprintf("At present %d of its %s cannot take jobs%s.", f.nodes-f.usable, number.Count(f.nodes, "node"), f.reason))
	}
	f.doubts = append(f.doubts, differences(nodes, types)...)
	return f
}

// countGPUs sets the figures of the nodes' GPUs, and returns their types.
func (f *figures) countGPUs(nodes []slurm.Node) (types []string) {
	several := false // types in one node
	least := map[string]int{}
	for i, n := range nodes {
		several = several || len(n.GPUs) > 1
		total := 0
		for _, g := range n.GPUs {
			total += g.Count
			if before, known := least[g.Type]; !known || g.Count < before {
				least[g.Type] = g.Count
			}
			if !slices.Contains(types, g.Type) {
				types = append(types, g.Type)
			}
		}
		if i == 0 || total < f.gpus {
			f.gpus = total
		}
	}
	switch {
	case several:
		f.gpus = 0
		for _, t := range types {
			f.kinds = append(f.kinds, slurm.GPUs{Type: t, Count: least[t]})
		}
	case len(types) == 1:
		f.gpuType = types[0]
	}
	for _, t := range types {
		if slice.MatchString(strings.ToLower(t)) {
			f.doubts = append(f.doubts, t+" are slices of a GPU (MIG): one worker each, and not a whole GPU.")
		}
	}
	return types
}

// usableOf returns how many nodes can take jobs, and why the first of the others cannot: "n1 is DOWN: memory".
func usableOf(nodes []slurm.Node) (usable int, reason string) {
	for _, n := range nodes {
		switch {
		case n.Usable():
			usable++
		case reason == "":
			reason = strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", n.Name, n.State, n.Reason), ": ")
		}
	}
	return usable, reason
}

// differences describes the kinds of node in a partition; nil if all are alike.
func differences(nodes []slurm.Node, types []string) []string {
	var kinds []string
	members := map[string][]slurm.Node{}
	for _, n := range nodes {
		var gpus []string
		for _, g := range n.GPUs {
			gpus = append(gpus, strings.TrimSpace(number.Count(g.Count, "GPU")+" "+g.Type))
		}
		kind := fmt.Sprintf("%s, %d MiB, %s", number.Count(n.CPUs, "CPU"), n.MemoryMB, strings.Join(append(gpus, ""), ", "))
		kind = strings.TrimSuffix(strings.TrimSuffix(kind, ", "), ", ")
		if members[kind] == nil {
			kinds = append(kinds, kind)
		}
		members[kind] = append(members[kind], n)
	}
	if len(kinds) < 2 {
		return nil
	}
	lines := []string{"Its nodes differ; these are the figures of the smallest. To use one kind only, add",
		"options = { constraint = \"…\" } with one of their features and its figures:"}
	for _, kind := range kinds {
		list := members[kind]
		line := fmt.Sprintf("  %d × %s (%s", len(list), kind, list[0].Name)
		if len(list) > 1 {
			line += ", …"
		}
		line += ")"
		if features := commonOf(list); len(features) > 0 {
			line += ", features " + strings.Join(features, ", ")
		}
		lines = append(lines, line)
	}
	if len(types) > 1 {
		lines = append(lines, "Its GPUs are of several types; gpu_type chooses one: "+strings.Join(slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "" }), ", "))
	}
	return lines
}

// commonOf returns the features that all nodes have.
func commonOf(nodes []slurm.Node) []string {
	features := slices.Clone(nodes[0].Features)
	for _, n := range nodes[1:] {
		features = slices.DeleteFunc(features, func(f string) bool { return !slices.Contains(n.Features, f) })
	}
	return features
}
