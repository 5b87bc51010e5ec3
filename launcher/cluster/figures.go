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
	var cpus, memory, gpus, threads []int
	var types []string
	several := false // GPU types in one node
	least := map[string]int{}
	for _, n := range nodes {
		several = several || len(n.GPUs) > 1
		if n.Usable() {
			f.usable++
		} else if f.reason == "" {
			f.reason = fmt.Sprintf(" (%s is %s%s)", n.Name, n.State, because(n.Reason))
		}
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
		cpus, memory, gpus, threads = append(cpus, n.CPUs), append(memory, n.MemoryMB), append(gpus, total), append(threads, n.Threads)
	}
	f.cpus, f.memoryMB, f.gpus = slices.Min(cpus), slices.Min(memory), slices.Min(gpus)
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
	if p.MaxNodes != nil && *p.MaxNodes < f.maxNodes {
		f.maxNodes, f.nodesRemark = *p.MaxNodes, fmt.Sprintf("in one job; the partition has %d", f.nodes)
	}
	if most := slices.Max(threads); most > 1 {
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

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
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
