package launcher

import "github.com/scalebench/scalebench/launcher/study"

// An Allocation is the nodes that a scheduler has given to the job that this command
// runs in.
type Allocation struct {
	Backend     string // name of the backend whose scheduler made the allocation
	JobID       string
	Partition   string
	Nodes       int
	CPUsPerNode int // CPUs of the node with the fewest
	GPUsPerNode int // 0 also if the scheduler does not report it
}

// Site returns the site for a plan inside the allocation: its only partition is the
// allocation's nodes. Everything else stays the same.
func (a Allocation) Site(site *study.Site) *study.Site {
	inside := *site
	q := study.Partition{Name: a.Partition}
	for _, p := range site.Partitions {
		if p.Name == a.Partition {
			q.GPUType = p.GPUType
		}
	}
	q.MaxNodes, q.CPUsPerNode, q.GPUsPerNode = a.Nodes, a.CPUsPerNode, a.GPUsPerNode
	inside.Partitions = []study.Partition{q}
	return &inside
}
