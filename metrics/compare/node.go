package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// nodeLevel is the significance level of two tests: whether results depend on the node, and whether
// the sets' runs were distributed unevenly over nodes.
const nodeLevel = 0.05

// otherMachines reports whether the sets ran on different kinds of machine; different
// software versions do not count.
func otherMachines(a, b []scaling.Observation) bool {
	machine := []string{fingerprint.CPU, fingerprint.GPU, fingerprint.MIG, fingerprint.PowerCap, fingerprint.Interface}
	return slices.ContainsFunc(fingerprint.Differ(fingerprint.Common(fingerprints(a)), fingerprint.Common(fingerprints(b))),
		func(d fingerprint.Difference) bool { return slices.Contains(machine, d.Field) })
}

// nodesMatter reports whether the results of runs with the same parameters depend on their node.
func nodesMatter(places ...place) bool {
	var runs []scaling.TimedRun
	for point, p := range places {
		for i, x := range p.values {
			if x > 0 && !math.IsInf(x, 1) {
				runs = append(runs, scaling.TimedRun{Point: point, Value: x, Nodes: p.nodes[i]})
			}
		}
	}
	found := scaling.FindDrifts(runs, nodeLevel)
	return slices.ContainsFunc(found, func(f scaling.Drift) bool { return f.Link == scaling.DriftNode })
}

// nodes holds facts about the nodes of two sets.
type nodes struct {
	matter bool // results depend on the node
	differ bool // the nodes differ in kind (another CPU), so nodes are what is compared
}

// alike reports whether a point's runs on the same node must count as one. They must if results
// depend on the node, or if the sets used such different nodes that a difference between nodes
// would look like one between the sets. They need not if all runs used the same nodes, or if some
// nodes are unknown.
func (n nodes) alike(a, b place) bool {
	all := slices.Concat(a.nodes, b.nodes)
	same := true
	for _, list := range all {
		if len(list) == 0 {
			return false
		}
		same = same && slices.Equal(list, all[0])
	}
	return !same && (n.matter || !n.differ && uneven(all, len(a.nodes)))
}

// uneven reports whether the first runs used other nodes than the rest, more than expected by
// chance. It is a permutation test on the sum over nodes of the squared difference in the share of
// runs.
func uneven(nodes [][]string, first int) bool {
	number := map[string]int{}
	runs := make([][]int, len(nodes))
	for i, list := range nodes {
		for _, node := range list {
			n, known := number[node]
			if !known {
				n = len(number)
				number[node] = n
			}
			runs[i] = append(runs[i], n)
		}
	}
	share := make([]float64, len(number))
	apart := func() (sum float64) {
		clear(share)
		for i, list := range runs {
			part := 1 / float64(first)
			if i >= first {
				part = -1 / float64(len(runs)-first)
			}
			for _, n := range list {
				share[n] += part
			}
		}
		for _, x := range share {
			sum += x * x
		}
		return sum
	}
	const orders = 199
	observed, as := apart(), 1
	r := rand.New(rand.NewPCG(2026, uint64(len(runs)))) // fixed seed: deterministic result
	for range orders {
		r.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		if apart() >= observed-1e-9 {
			as++
		}
	}
	return float64(as)/(orders+1) <= nodeLevel
}
