package rundir

import (
	"fmt"
	"path/filepath"
)

// Probe is the folder of one of doctor's jobs. It is laid out for the same
// batch script as a Run, and holds what the login node asks and each task
// answers:
//
//	question.json            what the tasks are to find out
//	ready-0                  a node's first word to the login node
//	ping-0-3  pong-0-3.json  round 3 of the exchange between the login node and node 0
//	listen.json              where node 0 takes connections
//	answer-00000.json        what a task found out so far
type Probe string

// ProbeFolder is where doctor's folders are, below the runs folder; it is not
// the name of a study.
func ProbeFolder(runs string) string { return filepath.Join(runs, ".doctor") }

func (p Probe) Path() string     { return string(p) }
func (p Probe) Question() string { return filepath.Join(string(p), "question.json") }
func (p Probe) Script() string   { return filepath.Join(string(p), "job.sh") }
func (p Probe) JobLog() string   { return filepath.Join(string(p), "job.log") }
func (p Probe) Listen() string   { return filepath.Join(string(p), "listen.json") }

// Draft is the script of a point that is only asked about.
func (p Probe) Draft(point string) string { return filepath.Join(string(p), point+".sh") }

// Begun is what the batch script makes first.
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
