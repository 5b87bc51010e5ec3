// Package launchtest has the plans, sites, and run folders that tests of the launcher and
// its backends share.
package launchtest

import (
	"os"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// SmallPlan returns the plan of a small native training over worker counts, "[1, 2]".
func SmallPlan(t testing.TB, workers string) *study.Plan {
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

// Claim marks a run as started for a restart.
func Claim(t testing.TB, run rundir.Folder, restart int) {
	t.Helper()
	if err := os.MkdirAll(run.Claim(restart), 0o755); err != nil {
		t.Fatal(err)
	}
}

// VariedSite returns a site with a container, secrets in its environment, and two variants.
func VariedSite(t testing.TB) *study.Site {
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
