//go:build slurm

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmVariants runs one study over two variants of a cluster. Their runs have
// different nodes, variables and interpreters, share no job array, and differ in name and
// in the recorded start.
func TestSlurmVariants(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{Nodes: 2})
	b := newBench(t, c)
	b.slurm(c, "scontrol", "update", "NodeName=node2", "ActiveFeatures=icelake", "AvailableFeatures=icelake")
	b.write("train.sh", `echo "level $LEVEL common $COMMON node $SLURMD_NODENAME job $SLURM_ARRAY_JOB_ID"
exec python3 -c 'import scalebench, time
for _ in range(60): time.sleep(0.02); scalebench.step(samples=1)'
`)
	b.write("study.toml", `
[study]
name = "varied"
repeats = 2
[command]
run = ["{python}", "train.sh"]
[policy]
packing = "array"
[sweep]
framework = ["command"]
variant = ["plain", "fast"]
workers = [1]
`)
	b.write("site.toml", `
python = "/bin/sh"
[environment]
LEVEL = "site"
COMMON = "1"
[[variant]]
name = "plain"
[[variant]]
name = "fast"
constraint = "icelake"
python = "/bin/bash"
environment = { LEVEL = "fast" }
`)
	b.must(0, nil, "submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s")
	jobs := map[string]map[string]bool{}
	for _, a := range b.attempts("varied") {
		logs, err := filepath.Glob(filepath.Join(a.Run.Path(), "rank-*.log"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("%v, %v", logs, err)
		}
		text, want, variant := read(t, logs[0]), "level site common 1 node ", a.Point.Variant
		if variant == "fast" {
			want = "level fast common 1 node node2 "
		}
		if !strings.Contains(text, want) {
			t.Errorf("a run of %s has no %q:\n%s", variant, want, text)
		}
		if python := map[string]string{"plain": "/bin/sh", "fast": "/bin/bash"}[variant]; a.Record.Python != python || !strings.Contains(text, python+" train.sh") {
			t.Errorf("a run of %s was started with %s:\n%s", variant, a.Record.Python, text)
		}
		_, job, _ := strings.Cut(strings.Split(text, "\n")[1], " job ")
		if jobs[variant] == nil {
			jobs[variant] = map[string]bool{}
		}
		jobs[variant][job] = true
	}
	if len(jobs) != 2 || len(jobs["plain"]) != 1 || len(jobs["fast"]) != 1 {
		t.Errorf("arrays by variant: %v", jobs)
	}
	for job := range jobs["plain"] {
		if job == "" || jobs["fast"][job] {
			t.Errorf("arrays by variant: %v", jobs)
		}
	}
	var series []struct {
		Series      string
		Runs        int
		Fingerprint map[string]string
	}
	b.must(0, &series, "scaling", "varied", "--format", "json")
	for _, s := range series {
		python := map[string]string{"command variant=plain": "/bin/sh", "command variant=fast": "/bin/bash"}[s.Series]
		if s.Runs != 2 || s.Fingerprint["python"] != python || !strings.HasPrefix(s.Fingerprint["environment"], "COMMON=withheld:") || s.Fingerprint["modules"] != "none" {
			t.Errorf("%+v", s)
		}
	}
	if len(series) != 2 || series[0].Fingerprint["environment"] == series[1].Fingerprint["environment"] {
		t.Errorf("%+v", series)
	}
}
