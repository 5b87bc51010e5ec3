package local

import (
	"github.com/scalebench/scalebench/launcher"
	_ "github.com/scalebench/scalebench/launcher/backend/slurm" // TestCancelSignalsOnlyOwnDriver cancels jobs, too
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// tried returns the state of an attempt at repeat r of the point "p" in a Slurm job.
func tried(repeat, number int, status metrics.Status) launcher.State {
	p := study.Point{ID: "p", Repeat: repeat}
	a := &launcher.Attempt{Run: rundir.OpenStudy("runs", "s").Run(p.ID, repeat, number), Number: number, Point: p,
		Record: launcher.Record{Backend: "slurm"}, Submission: &launcher.Submission{JobID: "1"}}
	return launcher.State{Attempt: a, Status: status}
}
