//go:build slurm

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

type doctorRow struct {
	Check, Result, Found string
	Subject, Advice      *string
}

func (r doctorRow) String() string {
	subject := "-"
	if r.Subject != nil {
		subject = *r.Subject
	}
	return fmt.Sprintf("%s | %s | %s | %s", r.Check, subject, r.Result, r.Found)
}

// expectRows checks that each wanted line is a prefix of a row; an ellipsis replaces
// variable parts such as job IDs.
func expectRows(t *testing.T, rows []doctorRow, want ...string) {
	t.Helper()
	var all []string
	for _, r := range rows {
		all = append(all, r.String())
	}
	for _, w := range want {
		found := false
		for _, line := range all {
			start, rest, _ := strings.Cut(w, "…")
			after, ok := strings.CutPrefix(line, start)
			found = found || ok && strings.Contains(after, rest)
		}
		if !found {
			t.Errorf("no row %q in\n%s", w, strings.Join(all, "\n"))
		}
	}
}

const doctorStudy = `
[study]
name = "doctored"
[workload]
model = "mlp"
epochs = 1
[data]
kind = "synthetic"
[resources]
time = "5m"
workers_per_node = 2
[sweep]
workers = [1, 4]
`

// TestSlurmDoctor runs doctor on a real cluster with the site file that site init wrote, and
// then with every mistake that a site file can have.
func TestSlurmDoctor(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	if !c.Namespaces {
		t.Fatal("the nodes share this machine's network: what is between nodes would not be tested; run as root, where namespaces can be had")
	}
	b := newBench(t, c)
	b.write("study.toml", doctorStudy)
	python := filepath.Join(b.dir, "python")
	if err := os.WriteFile(python, []byte("#!/bin/sh\nsleep 0.1\necho 3.11.2\n"), 0o755); err != nil {
		t.Fatal(err)
	}

	b.must(0, nil, "site", "init", "-o", "made.toml")
	b.must(0, nil, "check", "study.toml", "--site", "made.toml")
	var rows []doctorRow
	b.must(0, &rows, "doctor", "--site", "made.toml", "study.toml", "--format", "json")
	expectRows(t, rows,
		"scheduler | - | ok | Slurm ",
		"partition | main | ok | UP, 4 of 4 nodes can take jobs",
		"limits | main | ok", "account | main | ok",
		"sbatch --test-only | native-w1-", "sbatch --test-only | native-w4-",
		"probe job | main | ok | job …: 4 tasks on 2 nodes answered",
		"run folder | main/node1 | ok | written here, read there, and back: ",
		"run folder | main/node2 | ok", "worker | main | ok", "interface | main/node1 | ok | eth0 10.213.0.11",
		"interface | main/node2 | ok | eth0 10.213.0.12", "clock | main/node1 | ok", "clock | main/node2 | ok",
		"network | main/node1–node2 | ok", "GPU | main | not tested | no GPU was asked for")
	if _, err := os.Stat(filepath.Join(b.dir, "runs", "doctored")); err == nil {
		t.Error("doctor made the study's folder")
	}

	// Every other partition that is open, with GPUs and an interpreter.
	b.write("gpu.toml", "interface = \"eth0\"\npython = \""+python+"\"\n[[partitions]]\nname = \"short\"\nmax_nodes = 2\ngpus_per_node = 4\nmax_time = \"5m\"\n")
	b.must(0, &rows, "doctor", "--site", "gpu.toml", "--format", "json")
	expectRows(t, rows, "probe job | short | ok", "GPU | short | warn | task 0 on node1 has CUDA_VISIBLE_DEVICES=0,1",
		"interpreter | short/node1 | ok | "+python+" 3.11.2 in ", "interpreter | short/node2 | ok", "sbatch --test-only | - | not tested")

	// The nodes lack this interface; the other checks still run.
	b.write("interface.toml", "interface = \"nosuch0\"\n[[partitions]]\nname = \"main\"\n")
	b.must(3, &rows, "doctor", "--site", "interface.toml", "--format", "json")
	expectRows(t, rows, "probe job | main | ok", "run folder | main/node2 | ok", "CPU set | main | ",
		`interface | main/node1 | fail | no network interface "nosuch0" on this host; it has: `,
		`interface | main/node2 | fail | no network interface "nosuch0"`, "network | main/node1–node2 | fail")

	// A worker that does not exist on the nodes.
	b.write("worker.toml", "worker = \"/nowhere/scalebench-worker\"\n[[partitions]]\nname = \"main\"\n")
	b.must(3, &rows, "doctor", "--site", "worker.toml", "--format", "json")
	expectRows(t, rows, "worker | /nowhere/scalebench-worker | fail | /nowhere/scalebench-worker is not a program",
		"probe job | main | fail | job … is FAILED", "worker | main | fail | no task answered: ",
		"run folder | main/node 0 of the job | not tested | the batch script wrote there")

	// Partitions that are closed or do not exist, limits that differ from the cluster's, and a
	// point that Slurm refuses.
	b.write("closed.toml", "[[partitions]]\nname = \"closed\"\n[[partitions]]\nname = \"nosuch\"\n")
	b.must(3, &rows, "doctor", "--site", "closed.toml", "--format", "json")
	expectRows(t, rows, "partition | closed | fail | DOWN", "probe job | closed | not tested", "partition | nosuch | fail | the cluster has no such partition; it has: main, ")
	b.write("long.toml", "[[partitions]]\nname = \"short\"\nmax_time = \"1h\"\nmax_nodes = 9\n")
	b.write("long_study.toml", strings.Replace(doctorStudy, `"5m"`, `"30m"`, 1))
	b.must(3, &rows, "doctor", "--site", "long.toml", "long_study.toml", "--no-job", "--format", "json")
	expectRows(t, rows, "limits | short | fail | max_time is 1h, the cluster's limit 5m; resources.time of the largest point is 30m, the cluster's limit 5m; max_nodes is 9, the cluster's limit 4",
		"sbatch --test-only | native-w4-", "probe job | - | not tested")
	for _, r := range rows {
		if r.Check == "sbatch --test-only" && (r.Result != "fail" || !strings.Contains(r.Found, "Requested time limit is invalid")) {
			t.Error(r)
		}
	}

	// A job that does not start in time is cancelled, and does not count as a failure.
	b.write("begin.toml", "[options]\nbegin = \"now+1hour\"\n[[partitions]]\nname = \"main\"\n")
	b.must(0, &rows, "doctor", "--site", "begin.toml", "--timeout", "3s", "--format", "json")
	expectRows(t, rows, "probe job | main | not tested | job … is still PENDING (BeginTime) after 3s and was cancelled")
	b.emptied(c) // jobs of earlier calls may still be ending

	// A node that does not see the runs folder.
	runs := filepath.Join(b.dir, "runs")
	onNode(t, c, "node2", "mount", "-t", "tmpfs", "none", runs)
	b.must(3, &rows, "doctor", "--site", "made.toml", "study.toml", "--format", "json")
	onNode(t, c, "node2", "umount", runs)
	expectRows(t, rows, "probe job | main | fail | job …task 2 never answered, task 3 never answered",
		"run folder | main/node1 | ok", "run folder | main/node 1 of the job | fail", "worker | main | fail | …the folder of this job is not visible on node2: ")

	// No controller: exit code 4.
	if err := c.Stop("slurmctld", "TERM"); err != nil {
		t.Fatal(err)
	}
	if _, complaint, code := b.run("doctor", "--site", "made.toml"); code != 4 || !strings.Contains(complaint, "Unable to contact slurm controller") {
		t.Errorf("exit code %d\n%s", code, complaint)
	}
}

// onNode runs a command in a node's namespaces.
func onNode(t *testing.T, c *slurmtest.Cluster, node string, command ...string) {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(c.Dir, "pids", node))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("nsenter", append([]string{"--target", strings.Fields(string(pid))[0], "--mount"}, command...)...).CombinedOutput(); err != nil {
		t.Fatalf("%q on %s: %v\n%s", command, node, err, out)
	}
}
