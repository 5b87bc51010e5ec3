package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
)

// Every example is a valid study, on the site that it names or that is next to
// it, and on one of which nothing is known.
func TestExamplesPlan(t *testing.T) {
	for _, file := range studies(t) {
		s, err := study.Load(file, framework.ForStudy())
		if err != nil {
			t.Error(err)
			continue
		}
		sites := []*study.Site{study.DefaultSite()}
		if beside := filepath.Join(filepath.Dir(file), "site.toml"); s.Site == "" {
			if _, err := os.Stat(beside); err == nil {
				s.Site = beside
			}
		}
		if s.Site != "" {
			site, err := study.LoadSite(s.Site)
			if err != nil {
				t.Error(err)
				continue
			}
			sites = append(sites, site)
		}
		for _, site := range sites {
			if _, err := s.Plan(site); err != nil {
				t.Error(err)
			}
		}
	}
}

// studies are the study files: what has a table [study].
func studies(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("*/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(strings.Split(string(text), "\n"), "[study]") {
			list = append(list, file)
		}
	}
	if !slices.Contains(list, "first/study.toml") || !slices.Contains(list, "dog/small.toml") {
		t.Fatalf("studies %v", list)
	}
	return list
}

// examples/dog is the experiment as it was asked: 1 to 12 GPUs, four to a node,
// the batch per GPU fixed and the learning rate scaled with the batch, 40 epochs,
// Keras's own strategy within one node.
func TestDogExample(t *testing.T) {
	s, err := study.Load("dog/study.toml", framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	site, err := study.LoadSite(s.Site)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(site)
	if err != nil {
		t.Fatal(err)
	}
	node := []string{"1×1 128 0.1", "1×2 256 0.2", "1×4 512 0.4"}
	cluster := append(slices.Clip(node), "2×4 1024 0.8", "3×4 1536 1.2")
	want := map[string][]string{"pytorch-ddp": cluster, "tensorflow-horovod": cluster, "keras-horovod": cluster, "keras-mirrored": node}
	got := map[string][]string{}
	for _, p := range plan.Points {
		if p.Point.Repeat != 1 {
			continue
		}
		w := p.Point.Workload.Train
		if w.Model != "resnet44" || w.Epochs != 40 || p.Point.Resources.Device != "gpu" {
			t.Errorf("%+v", p.Point)
		}
		got[p.Point.Framework] = append(got[p.Point.Framework], fmt.Sprintf("%d×%d %d %.3g", p.Point.Nodes, p.Point.WorkersPerNode, p.Point.GlobalBatch, p.Point.LearningRate))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
