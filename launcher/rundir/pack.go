package rundir

import (
	"path/filepath"
)

// A Pack is the folder of a batch script that serves several attempts of a study. It is next to their folders:
//
//	RUNS/STUDY/array-3fa2c19b/     or allocation-3fa2c19b
//	    job.sh                     the batch script
//	    runs.list                  the run folders that it serves, one per line
//	    job.json                   the scheduler's answer
//	    job.log                    output outside of any run
//	    claim-0/  exit-0.json      of an allocation, as in a run folder
//
// Like a run folder it appears complete. None of its attempts is submitted before it exists.
type Pack string

// Pack names a pack's folder.
func (s Study) Pack(name string) Pack { return Pack(filepath.Join(string(s), name)) }

// Pack names the folder of a pack that serves the run.
func (r Folder) Pack(name string) Pack { return Pack(filepath.Join(filepath.Dir(string(r)), name)) }

func (p Pack) Path() string   { return string(p) }
func (p Pack) Script() string { return filepath.Join(string(p), "job.sh") }
func (p Pack) Job() string    { return filepath.Join(string(p), "job.json") }
func (p Pack) JobLog() string { return filepath.Join(string(p), "job.log") }

// File returns the path of a file in the pack, by the name that the batch script uses.
func (p Pack) File(name string) string { return filepath.Join(string(p), name) }

// Create makes the folder appear whole, as Run.Create does.
func (p Pack) Create(fill func(Pack) error) error {
	return Folder(p).Create(func(r Folder) error { return fill(Pack(r)) })
}
