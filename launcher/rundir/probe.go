package rundir

import (
	"fmt"
	"path/filepath"
)

// A Probe is the folder of one of doctor's jobs. It has the layout of a run folder for the batch script, and
// contains the login node's question and each task's answer:
//
//	question.json            what the tasks must find out
//	ready-0                  a node's first message to the login node
//	ping-0-3  pong-0-3.json  round 3 of the exchange between the login node and node 0
//	listen.json              address at which node 0 accepts connections
//	answer-00000.json        the facts that a task has found so far
type Probe string

// ProbeFolder returns the parent of doctor's folders in the runs folder. Its name cannot be the name of a
// study.
func ProbeFolder(runs string) string { return filepath.Join(runs, ".doctor") }

func (p Probe) Path() string     { return string(p) }
func (p Probe) Question() string { return filepath.Join(string(p), "question.json") }
func (p Probe) Script() string   { return filepath.Join(string(p), "job.sh") }
func (p Probe) JobLog() string   { return filepath.Join(string(p), "job.log") }
func (p Probe) Listen() string   { return filepath.Join(string(p), "listen.json") }

// Draft returns the script of a point that is only tested with sbatch.
func (p Probe) Draft(point string) string { return filepath.Join(string(p), point+".sh") }

// Begun returns what the batch script creates first.
func (p Probe) Begun() string { return Folder(p).Claim(0) }

func (p Probe) Ready(node int) string { return filepath.Join(string(p), fmt.Sprintf("ready-%d", node)) }
func (p Probe) Ping(node, round int) string {
	return filepath.Join(string(p), fmt.Sprintf("ping-%d-%d", node, round))
}
func (p Probe) Pong(node, round int) string {
	return filepath.Join(string(p), fmt.Sprintf("pong-%d-%d.json", node, round))
}
func (p Probe) Answer(rank int) string {
	return filepath.Join(string(p), fmt.Sprintf("answer-%05d.json", rank))
}
