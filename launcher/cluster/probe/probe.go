// Package probe is the part of doctor that runs on compute nodes, inside a short job. It collects what a
// training would find there and writes it to the job's folder, without judging it. A fact that could not be
// determined is nil or has an error, never zero. The package needs only the worker binary: no database and no
// scheduler commands.
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

// A Question configures what the tasks of a probe job find out.
type Question struct {
	Token     string   `json:"token"`     // nonce with which nodes prove to each other that a connection belongs to this job
	Interface string   `json:"interface"` // for the collectives; "" means the one that the node's name resolves to
	Python    string   `json:"python"`    // interpreter; "" means none
	Imports   []string `json:"imports"`   // modules to import with it
}

// An Answer holds the facts that one task found. The task rewrites it after every phase, so that the last phase of a
// hanging task is known.
type Answer struct {
	Facts
	Rank      int   `json:"rank"`
	Node      int   `json:"node"` // 0-based
	LocalRank int   `json:"local_rank"`
	Phase     Phase `json:"phase"` // last completed phase

	Link     Link      `json:"link"`
	Files    *Files    `json:"files"`    // of the first task of each node
	Exchange *Exchange `json:"exchange"` // of the first task of each node except node 0
	Python   *Trial    `json:"python"`   // of the first task of each node, if the question names an interpreter
	Imports  []Trial   `json:"imports"`
}

// A Phase is the progress of a task.
type Phase string

const (
	FactsKnown Phase = "facts"   // the task has examined its node
	FilesDone  Phase = "files"   // files were exchanged with the login node
	Networked  Phase = "network" // data was exchanged between the nodes
	Done       Phase = "done"    // the interpreter and the imports were tried
)

// Facts describe the environment of a process.
type Facts struct {
	Host    string `json:"host"`
	Version string `json:"version"` // of the worker binary
	CPUs    []int  `json:"cpus"`    // CPUs that the process may run on
	GPUs    GPUs   `json:"gpus"`
	NCCL    *NCCL  `json:"nccl,omitempty"` // nil if this worker is not the GPU variant
}

// Files is the exchange of files with the login node, seen from the node.
type Files struct {
	Rounds int    `json:"rounds"` // number of files that it answered
	Error  string `json:"error,omitempty"`
}

// A Pong is a node's answer to a file from the login node.
type Pong struct {
	Word string  `json:"word"` // content of the file
	Seen float64 `json:"seen"` // the node's clock after reading it, in seconds since 1970
	Sent float64 `json:"sent"` // the node's clock before writing the answer
}

// Limits of the exchange of files. The login node sends each node Rounds files; both sides wait equally long.
const (
	Rounds   = 5
	FileWait = 90 * time.Second // a network file system may hide a new file for a minute
)

// Look returns what this process sees; version is the version of its binary.
func Look(ctx context.Context, version string) Facts {
	f := Facts{Version: version, CPUs: allowedCPUs(), GPUs: lookForGPUs(ctx)}
	f.Host, _ = os.Hostname()
	return f
}

// Run answers the question in dir for the task that w describes; f holds its facts.
func Run(ctx context.Context, dir rundir.Probe, w world.World, f Facts) error {
	var q Question
	// Wait, since a node may see the folder late. If it never does, the wait gives the other tasks time to
	// answer: Slurm ends them with the first task that fails.
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
				fmt.Fprintln(os.Stderr, "scalebench-worker probe:", clean.Lines(err.Error())) // the other node's answer contains it
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

// exchangeFiles answers the login node's files like NTP.
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

// AwaitFile waits for a file and reads it.
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

// clock returns the wall clock in seconds since 1970, with a resolution of 0.2 µs.
func clock() float64 { return float64(time.Now().UnixNano()) / 1e9 }

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return rundir.WriteFile(path, append(text, '\n'), 0o600)
}

// allowedCPUs returns the CPUs that this process may run on; nil if the kernel does not report them.
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
