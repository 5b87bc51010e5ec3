package launcher

import (
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
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
