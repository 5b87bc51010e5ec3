package slurm

import (
	"os"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
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

func variedSite(t *testing.T) *study.Site {
	t.Helper()
	s, err := study.ParseSite("site.toml", []byte(`python = "/site/python"
modules = ["gcc/12", "openmpi"]
setup = ["export TOKEN=hunter2"]
[environment]
TOKEN = "hunter3"
[container]
runtime = "apptainer"
image = "/image.sif"
mounts = ["/a:/b"]
[[variant]]
name = "bare"
python = "/bare/python"
modules = []
container = { runtime = "none" }
[[variant]]
name = "debug"
environment = { LEVEL = "1" }
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func none(string, int) bool { return false }
