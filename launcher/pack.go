package launcher

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/study"
)

// A pack is one batch script for several attempts, as a job array or within one allocation. Each attempt keeps
// a separate folder, claim, log and exit record; the pack adds a folder with the script, the list of run
// folders and sbatch's answer. First the attempts are recorded, each with the pack's name and its index; then
// the pack's folder appears complete; then sbatch is called. After any interruption the records show which
// attempts belong together, and the pack is looked up, or submitted again, as a whole.

// A Member is an attempt's place in a pack.
type Member struct {
	Name    string `json:"name"`    // name of the pack's folder, next to the run folder
	Packing string `json:"packing"` // study.PackArray or study.PackAllocation
	Index   int    `json:"index"`   // line of the list, from 0; the array's task
}

// SharesJob reports whether a job serves other attempts too, one after the other.
func (r Record) SharesJob() bool {
	return r.Pack != nil && r.Pack.Packing == study.PackAllocation
}

// ArrayTask returns the number of the attempt's task in a job array, -1 outside of one.
func (r Record) ArrayTask() int {
	if r.Pack != nil && r.Pack.Packing == study.PackArray {
		return r.Pack.Index
	}
	return -1
}

// Script returns the path of the batch script that serves the attempt.
func (a *Attempt) Script() string {
	if m := a.Record.Pack; m != nil {
		return a.Run.Pack(m.Name).Script()
	}
	return a.Run.Script()
}

// Submission returns the member's own part of the scheduler's answer to its pack.
func (m Member) Submission(answer Submission) *Submission {
	if m.Packing == study.PackArray {
		answer.JobID = fmt.Sprintf("%s_%d", answer.JobID, m.Index)
	}
	return &answer
}
