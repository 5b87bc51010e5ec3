// Package world describes the place of a process in a run: its rank, the number of ranks, and how they reach
// each other. A process reads it from its environment: from scalebench's variables, which the local launcher
// and the supervisor set, or from Slurm's inside a step. cgroup.go handles limits on CPUs and memory. Dial and
// Door connect processes of the same run, which prove to each other that they know its nonce (handshake.go).
package world

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/slurm/notation"
)

// A World is one process's place in a run.
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

// Variables that pass a World from a launcher to a program. The first six are PyTorch's names; the others are
// scalebench's.
const (
	varRank      = "RANK"
	varSize      = "WORLD_SIZE"
	varLocalRank = "LOCAL_RANK"
	varLocalSize = "LOCAL_WORLD_SIZE"
	varAddress   = "MASTER_ADDR"
	varPort      = "MASTER_PORT"
	varNode      = "SCALEBENCH_NODE"
	varNodes     = "SCALEBENCH_NODES"
	varHosts     = "SCALEBENCH_HOSTS"
	varInterface = "SCALEBENCH_INTERFACE"
	varRestart   = "SCALEBENCH_RESTART"
	varJob       = "SCALEBENCH_JOB"
)

// NodeVariable has the number of the node that a program is on.
const NodeVariable = varNode

// Environ returns the World as environment variables for FromEnviron.
func (w World) Environ() []string {
	n := strconv.Itoa
	return []string{
		varRank + "=" + n(w.Rank), varSize + "=" + n(w.Size),
		varLocalRank + "=" + n(w.LocalRank), varLocalSize + "=" + n(w.LocalSize),
		varAddress + "=" + w.Address, varPort + "=" + n(w.Port),
		varNode + "=" + n(w.Node), varNodes + "=" + n(w.Nodes),
		varHosts + "=" + strings.Join(w.Hosts, ","), varInterface + "=" + w.Interface,
		varRestart + "=" + n(w.Restart), varJob + "=" + w.JobID,
	}
}

// FromEnviron reads the variables that Environ writes. The error names every
// variable that is missing or makes no sense.
func FromEnviron(getenv func(string) string) (World, error) {
	v := variables{getenv: getenv}
	w := World{
		Rank: v.count(varRank), Size: v.count(varSize),
		LocalRank: v.count(varLocalRank), LocalSize: v.count(varLocalSize),
		Node: v.count(varNode), Nodes: v.count(varNodes),
		Address: v.address(), Port: v.port(),
		Interface: getenv(varInterface), Restart: v.count(varRestart), JobID: getenv(varJob),
	}
	if hosts := getenv(varHosts); hosts != "" {
		w.Hosts = strings.Split(hosts, ",")
	}
	return w, v.result(w)
}

// FromSlurm reads a task's place from the variables that srun sets, and the
// rendezvous from those that the batch script exports. Every node must have
// the same number of tasks, as the batch script asks for.
func FromSlurm(getenv func(string) string) (World, error) {
	return fromSlurm(getenv, true)
}

// NodeFromSlurm is FromSlurm for a task that represents its node before a rendezvous exists: Address and Port
// stay empty.
func NodeFromSlurm(getenv func(string) string) (World, error) {
	return fromSlurm(getenv, false)
}

func fromSlurm(getenv func(string) string, rendezvous bool) (World, error) {
	v := variables{getenv: getenv}
	w := World{
		Rank: v.count("SLURM_PROCID"), Size: v.count("SLURM_STEP_NUM_TASKS"),
		LocalRank: v.count("SLURM_LOCALID"),
		Node:      v.count("SLURM_NODEID"), Nodes: v.count("SLURM_STEP_NUM_NODES"),
		Interface: getenv(varInterface), JobID: getenv("SLURM_JOB_ID"),
	}
	if rendezvous {
		w.Address, w.Port = v.address(), v.port()
	}
	if getenv("SLURM_RESTART_COUNT") != "" { // set from the first requeue on
		w.Restart = v.count("SLURM_RESTART_COUNT")
	}
	hosts, err := notation.ExpandHosts(getenv("SLURM_STEP_NODELIST"))
	if err != nil {
		v.wrong = append(v.wrong, "SLURM_STEP_NODELIST: "+err.Error())
	}
	w.Hosts = hosts
	if w.Nodes > 0 {
		if w.Size%w.Nodes != 0 {
			v.wrong = append(v.wrong, fmt.Sprintf("%d tasks on %d nodes: not the same number on each", w.Size, w.Nodes))
		}
		w.LocalSize = w.Size / w.Nodes
	}
	return w, v.result(w)
}

// PerNode returns the World of a process that is started once per node and starts the ranks there: the place of
// the node's first rank. A launcher such as torchrun tells its ranks their places.
func (w World) PerNode(ranksPerNode int) World {
	w.Rank, w.LocalRank = w.Node*ranksPerNode, 0
	w.Size, w.LocalSize = w.Nodes*ranksPerNode, ranksPerNode
	return w
}

// WithoutRank returns the environment for such a process: ranks that it starts would otherwise inherit its
// rank.
func WithoutRank(environ []string) []string {
	return slices.DeleteFunc(environ, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == varRank || name == varLocalRank
	})
}

// variables reads environment variables and collects errors.
type variables struct {
	getenv func(string) string
	wrong  []string
}

func (v *variables) count(name string) int {
	text := v.getenv(name)
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		v.wrong = append(v.wrong, name+" is not set")
	case err != nil || n < 0:
		v.wrong = append(v.wrong, fmt.Sprintf("%s = %q is not a count", name, text))
		return 0
	}
	return n
}

func (v *variables) address() string {
	text := v.getenv(varAddress)
	if net.ParseIP(text) == nil {
		v.wrong = append(v.wrong, fmt.Sprintf("%s = %q is not an IP address", varAddress, text))
	}
	return text
}

func (v *variables) port() int {
	n := v.count(varPort)
	if v.getenv(varPort) != "" && (n < 1 || n > 65535) {
		v.wrong = append(v.wrong, fmt.Sprintf("%s = %s is not a port", varPort, v.getenv(varPort)))
	}
	return n
}

func (v *variables) result(w World) error {
	if len(v.wrong) == 0 {
		for _, c := range []struct {
			what     string
			got, max int
		}{{"rank", w.Rank, w.Size}, {"local rank", w.LocalRank, w.LocalSize}, {"node", w.Node, w.Nodes}} {
			if c.got >= c.max {
				v.wrong = append(v.wrong, fmt.Sprintf("%s %d is outside 0 to %d", c.what, c.got, c.max-1))
			}
		}
	}
	if len(v.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("this process's place in the run is not known: %s; start it with scalebench run or submit", strings.Join(v.wrong, "; "))
}
