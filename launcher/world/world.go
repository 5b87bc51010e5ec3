// Package world says which place a process has in a run: its rank, how many
// there are, and how they reach each other. A process learns it from its
// environment: scalebench's own variables, which the local launcher and the
// supervisor set, or Slurm's inside a step.
package world

import (
	"fmt"
	"net"
	"strconv"

	"github.com/scalebench/scalebench/slurm/nodelist"
)

// World is one process's place in a run.
type World struct {
	Rank      int // 0-based
	Size      int // ranks in the run
	LocalRank int // 0-based on this node
	LocalSize int // ranks on this node
	Node      int // 0-based index of this node
	Nodes     int

	Hosts []string // by node; empty outside Slurm

	// Address and Port are where rank 0 listens for the others, as an IP
	// address on the interface that carries the collectives.
	Address string
	Port    int
	// Interface is the configured network interface; "" leaves it to the route
	// to Address.
	Interface string

	Restart int    // 0 for the first incarnation of the attempt
	JobID   string // Slurm's; "" outside
}
