//go:build slurm && serving

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestServingOnSlurm compares real model servers as a user does: one study, each server
// in the environment of its lock, one and two replicas on separate nodes, and the load
// generator on one more. Every request gets a right answer, and no process is left. Rates are
// logged; on a busy machine they may be missing.
func TestServingOnSlurm(t *testing.T) {
	servers := map[string]string{"triton": "nvidia-pytriton", "mlserver": "mlserver", "kserve": "kserve"}
	b := newBench(t, startCluster(t, slurmtest.Options{Conf: "Licenses=turn:1"}))
	site := "[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\noptions = { licenses = \"turn\" }\n[pythons]\n"
	for server := range servers {
		python, err := interpreter(server)
		if err != nil {
			t.Fatal(err)
		}
		site += fmt.Sprintf("%s = %q\n", server, python)
	}
	b.write("site.toml", site)
	model, err := exec.Command("../../launcher/framework/locks/onnx-model.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	for target, study := range map[string]string{
		"http": "batch = [1, 8]\nthreads = [2]\n[sweep]\nreplicas = [1, 2]\n",
		"grpc": "batch = [1]\nthreads = [2]\n[sweep]\nreplicas = [1]\n",
	} {
		name := "servers-" + target
		b.write(name+".toml", fmt.Sprintf(`[resources]
time = "1h"
memory = "1500M"
workers_per_node = 1
[study]
name = %q
[workload]
kind = "serve"
target = %q
model = %q
shape = { x = [3, 48, 192] }
startup = "10m"
timeout = "1m"
duration = "4s"
`, name, target, strings.TrimSpace(string(model)))+study+"framework = [\"triton\", \"mlserver\", \"kserve\"]\n")
		b.must(0, nil, "submit", name+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
		type row struct {
			Series  string
			Workers int
			Errors  *float64
			Rate    *float64 `json:"requests_per_second"`
		}
		read := func(measure string) (rows []row) {
			b.must(0, &rows, "scaling", name, "-m", measure, "--format", "json")
			return rows
		}
		attempts := b.attempts(name)
		seen := map[string]bool{}
		for _, a := range attempts {
			seen[fmt.Sprint(a.Point.Framework, a.Point.Workers)] = true
		}
		rows := read("errors")
		loads := len(attempts)
		if target == "http" {
			loads *= 2 // batches
		}
		if len(seen) != len(attempts) || len(rows) != loads {
			t.Errorf("%s: runs %v, errors %+v", name, seen, rows)
		}
		for _, r := range rows {
			if r.Errors == nil || *r.Errors != 0 {
				t.Errorf("%s: %s, %d replicas: errors %v", name, r.Series, r.Workers, r.Errors)
			}
		}
		for _, r := range read("requests_per_second") {
			if r.Rate != nil {
				t.Logf("%s: %s, %d replicas: %.3g requests/s", name, r.Series, r.Workers, *r.Rate)
			}
		}
		t.Log(b.versions(name, []string{servers[attempts[0].Point.Framework], "onnxruntime"}))
	}
	left := func() []int {
		return processes(func(environment, line string) bool {
			return strings.Contains(environment, "\x00SCALEBENCH_RUN="+b.dir)
		})
	}
	for deadline := time.Now().Add(2 * time.Minute); len(left()) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("processes are left: %v", left())
		}
	}
}
