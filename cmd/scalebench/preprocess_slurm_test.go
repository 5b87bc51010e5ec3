//go:build slurm

package main

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmPreprocess runs one job in which two workers generate and prepare samples. The
// results are stored, the stages add up, and the written files are removed.
func TestSlurmPreprocess(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	b.write("site.toml", "")
	b.write("prepare.toml", `
[study]
name = "prepare"
[workload]
kind = "preprocess"
format = "csv"
source = "tables"
target = "out"
generate = 4000
cache = "cold"
[resources]
time = "1h"
workers_per_node = 2
[sweep]
workers = [2]
`)
	b.must(0, nil, "submit", "prepare.toml", "--site", "site.toml", "--wait", "--interval", "1s")
	var shown struct {
		Figures []struct {
			Figure string
			Value  float64
			Note   string
		}
		ByStage []struct {
			Stage      string
			StageShare float64 `json:"stage_share"`
		} `json:"by_stage"`
	}
	b.must(0, &shown, "show", "prepare/", "--format", "json")
	figures, notes := map[string]float64{}, map[string]string{}
	for _, f := range shown.Figures {
		figures[f.Figure], notes[f.Figure] = f.Value, f.Note
	}
	if !(figures["throughput"] > 0) || !(figures["source_rate"] > 0) || !(figures["target_rate"] > 0) || !strings.Contains(notes["throughput"], "ceiling") {
		t.Errorf("%+v", shown)
	}
	if cached, ok := figures["source_cached"]; !ok || cached > 0.01 {
		t.Errorf("source_cached is %v, %v; want 1 %% at most, cold", cached, ok)
	}
	sum := 0.0
	for _, s := range shown.ByStage {
		sum += s.StageShare
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the stages' shares add up to %v: %+v", sum, shown.ByStage)
	}
	if out, _, _ := b.run("scaling", "prepare", "--format", "csv"); !strings.Contains(out, "native,2,1,") {
		t.Errorf("scaling prints\n%s", out)
	}
}
