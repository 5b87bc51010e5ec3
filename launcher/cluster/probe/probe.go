// Package probe is the part of doctor that runs on compute nodes, inside a short job. It collects
// what a training would find there and writes it to the job's folder. It judges nothing. A fact
// that could not be determined is nil or has an error, never zero. It needs only the worker binary:
// no database, no scheduler commands.
package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics/clean"
)

// A Question says what the tasks of a probe job should find out.
type Question struct {
	Token     string   `json:"token"`     // the nonce by which nodes prove to each other that a connection belongs to this job
	Interface string   `json:"interface"` // of the collectives; "": the one of the node's own name
	Python    string   `json:"python"`    // interpreter; "": do not try one
	Imports   []string `json:"imports"`   // modules to import with it
}

// An Answer holds what one task found out. It is rewritten after every phase, so that the last
// phase of a hanging task is known.
type Answer struct {
	Facts
	Rank      int   `json:"rank"`
	Node      int   `json:"node"` // 0-based
	LocalRank int   `json:"local_rank"`
	Phase     Phase `json:"phase"` // the last one that is over

	Link     Link      `json:"link"`
	Files    *Files    `json:"files"`    // of the first task of each node
	Exchange *Exchange `json:"exchange"` // of the first task of each node but node 0
	Python   *Trial    `json:"python"`   // of the first task of each node, where an interpreter is asked about
	Imports  []Trial   `json:"imports"`
}

// A Phase is how far a task has come.
type Phase string

const (
	FactsKnown Phase = "facts"   // what the task sees of its node
	FilesDone  Phase = "files"   // the exchange of files with the login node
	Networked  Phase = "network" // the exchange between the nodes
	Done       Phase = "done"    // interpreter and imports
)

// Facts describe the environment of a process.
type Facts struct {
	Host    string `json:"host"`
	Version string `json:"version"` // of the worker binary
	CPUs    []int  `json:"cpus"`    // numbers of the CPUs that it may run on
	GPUs    GPUs   `json:"gpus"`
	NCCL    *NCCL  `json:"nccl,omitempty"` // nil: this worker is not the GPU variant and cannot load it
}

// Files is the exchange of files with the login node, as the node saw it.
type Files struct {
	Rounds int    `json:"rounds"` // that it answered
	Error  string `json:"error,omitempty"`
}

// Pong is a node's answer in a file to a file of the login node's.
type Pong struct {
	Word string  `json:"word"` // what it read
	Seen float64 `json:"seen"` // the node's clock when it had read it, seconds since 1970
	Sent float64 `json:"sent"` // and just before it wrote this
}

// Limits of the exchange of files. The login node has Rounds files for each
// node, and as long to answer as the node waits.
const (
	Rounds   = 5
	FileWait = 90 * time.Second // a network file system may hide a new file for a minute
)

// Look finds out what this process, of a binary of that version, sees.
func Look(ctx context.Context, version string) Facts {
	f := Facts{Version: version, CPUs: allowedCPUs(), GPUs: lookForGPUs(ctx)}
	f.Host, _ = os.Hostname()
	return f
}

// Run answers the question in dir for the task that w says this is, of which f
// is known.
func Run(ctx context.Context, dir rundir.Probe, w world.World, f Facts) error {
	var q Question
	// A node that sees the folder late may; and one that never does leaves the
	// others, whom Slurm ends with the first task that fails, time to say what
	// they see.
	text, err := AwaitFile(ctx, dir.Question(), FileWait)
	if err != nil {
		host, _ := os.Hostname()
		return fmt.Errorf("the folder of this job is not visible on %s: %w", host, err)
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return fmt.Errorf("%s: %w", dir.Question(), err)
	}
	a := Answer{Facts: f, Rank: w.Rank, Node: w.Node, LocalRank: w.LocalRank, Link: link(q.Interface)}
	over := func(p Phase) error {
		a.Phase = p
		return writeJSON(dir.Answer(w.Rank), a)
	}
	if err := over(FactsKnown); err != nil {
		return err
	}
	if w.LocalRank == 0 {
		a.Files = exchangeFiles(ctx, dir, w.Node)
		if err := over(FilesDone); err != nil {
			return err
		}
		switch {
		case w.Nodes < 2:
		case w.Node == 0:
			if err := serve(ctx, dir, q.Token, a.Link, w.Nodes-1); err != nil {
				fmt.Fprintln(os.Stderr, "scalebench-worker probe:", clean.Lines(err.Error())) // the other node tells of it
			}
		default:
			a.Exchange = exchange(ctx, dir, q.Token, a.Link)
		}
		if err := over(Networked); err != nil {
			return err
		}
		if q.Python != "" {
			a.Python = startPython(ctx, q.Python)
			for _, module := range q.Imports {
				a.Imports = append(a.Imports, importModule(ctx, q.Python, module))
			}
		}
	}
	return over(Done)
}

// exchangeFiles answers the login node's files, as NTP answers packets.
func exchangeFiles(ctx context.Context, dir rundir.Probe, node int) *Files {
	f := &Files{}
	if err := rundir.WriteFile(dir.Ready(node), nil, 0o600); err != nil {
		f.Error = err.Error()
		return f
	}
	for ; f.Rounds < Rounds; f.Rounds++ {
		word, err := AwaitFile(ctx, dir.Ping(node, f.Rounds), FileWait)
		seen := clock()
		if err != nil {
			f.Error = err.Error()
			break
		}
		if err := writeJSON(dir.Pong(node, f.Rounds), Pong{string(word), seen, clock()}); err != nil {
			f.Error = err.Error()
			break
		}
	}
	return f
}

// AwaitFile reads a file as soon as it is there.
func AwaitFile(ctx context.Context, path string, limit time.Duration) ([]byte, error) {
	pause := time.Millisecond
	for end := time.Now().Add(limit); ; pause = min(2*pause, 20*time.Millisecond) {
		text, err := rundir.ReadFile(path)
		if err == nil {
			return text, nil
		}
		if time.Now().After(end) {
			host, _ := os.Hostname()
			return nil, fmt.Errorf("%s did not appear on %s within %v: %w", path, host, limit, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// clock is the wall clock in seconds since 1970. Of its 53 bits, 0.2 µs are
// left.
func clock() float64 { return float64(time.Now().UnixNano()) / 1e9 }

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return rundir.WriteFile(path, append(text, '\n'), 0o600)
}

// allowedCPUs are the CPUs that this process may run on; nil when the kernel
// does not say.
func allowedCPUs() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var list []int
	for i := range 8 * len(set) * int(cpuWord) {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list
}
