package local

import (
	"os"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	_ "github.com/scalebench/scalebench/launcher/backend/slurm" // TestCancelSpares cancels jobs, too
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// smallPlan is that of a small native training over worker counts, "[1, 2]".
func smallPlan(t testing.TB, workers string) *study.Plan {
	t.Helper()
	s, err := study.Parse("study.toml", []byte("[study]\nname = \"s\"\n[workload]\nmodel = \"mlp\"\nepochs = 1\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = "+workers+"\n"), framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func claim(t *testing.T, run rundir.Folder, restart int) {
	t.Helper()
	if err := os.MkdirAll(run.Claim(restart), 0o755); err != nil {
		t.Fatal(err)
	}
}

// tried is the state of an attempt at repeat r of the point "p" in a Slurm job.
func tried(repeat, number int, status metrics.Status) launcher.State {
	p := study.Point{ID: "p", Repeat: repeat}
	a := &launcher.Attempt{Run: rundir.OpenStudy("runs", "s").Run(p.ID, repeat, number), Number: number, Point: p,
		Record: launcher.Record{Backend: "slurm"}, Submission: &launcher.Submission{JobID: "1"}}
	return launcher.State{Attempt: a, Status: status}
}
