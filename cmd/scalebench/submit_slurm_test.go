//go:build slurm

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// cpu is the CPU time, in milliseconds, of this process (RUSAGE_SELF) or of its
// children that have ended (RUSAGE_CHILDREN).
func cpu(b *testing.B, who int) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// BenchmarkSlurmSubmission measures what scalebench adds to a submission: 200 jobs of `scalebench
// submit` on a real cluster, with its CPU time and that of its sbatch processes listed separately,
// and then the same 200 scripts with sbatch alone. The jobs wait in a partition that is down. The
// kernel takes most of our CPU time for creating and syncing run folders: TMPDIR=/dev/shm shows the
// rest.
func BenchmarkSlurmSubmission(b *testing.B) {
	const jobs = 200
	b.Setenv("PATH", realPath)
	c := slurmtest.Start(b, slurmtest.Options{})
	for _, v := range c.Env() {
		if name, value, _ := strings.Cut(v, "="); name == "PATH" || name == "SLURM_CONF" {
			b.Setenv(name, value)
		}
	}
	var own, ours, plain, wall, plainWall float64
	for b.Loop() {
		dir := b.TempDir()
		b.Chdir(dir)
		batches := make([]string, jobs)
		for i := range batches {
			batches[i] = fmt.Sprint(i + 1)
		}
		for name, text := range map[string]string{
			"worker":     "#!/bin/sh\n",
			"site.toml":  "worker = \"" + filepath.Join(dir, "worker") + "\"\n[[partitions]]\nname = \"closed\"\n",
			"study.toml": "[study]\nname = \"cost\"\n[workload]\nmodel = \"mlp\"\nepochs = 1\n[data]\nkind = \"synthetic\"\n[resources]\ntime = \"1m\"\n[sweep]\nworkers = [1]\nbatch = [" + strings.Join(batches, ", ") + "]\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				b.Fatal(err)
			}
		}

		self, children, began := cpu(b, syscall.RUSAGE_SELF), cpu(b, syscall.RUSAGE_CHILDREN), time.Now()
		line := []string{"scalebench", "submit", "study.toml", "--site", "site.toml", "--db", "history.db", "--quiet"}
		if err := run(b.Context(), &session{stdin: strings.NewReader(""), stdout: io.Discard, stderr: os.Stderr}, line); err != nil {
			b.Fatal(err)
		}
		wall = time.Since(began).Seconds()
		own, ours = cpu(b, syscall.RUSAGE_SELF)-self, cpu(b, syscall.RUSAGE_CHILDREN)-children

		attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(dir, "runs"), "cost"))
		if err != nil || len(attempts) != jobs {
			b.Fatalf("%d attempts (%v), want %d", len(attempts), err, jobs)
		}
		children, began = cpu(b, syscall.RUSAGE_CHILDREN), time.Now()
		for _, a := range attempts {
			if out, err := exec.Command("sbatch", "--parsable", a.Run.Script()).CombinedOutput(); err != nil {
				b.Fatalf("sbatch: %v\n%s", err, out)
			}
		}
		plainWall = time.Since(began).Seconds()
		plain = cpu(b, syscall.RUSAGE_CHILDREN) - children
		if out, err := exec.Command("scancel", "--partition=closed").CombinedOutput(); err != nil {
			b.Fatalf("scancel: %v\n%s", err, out)
		}
	}
	b.ReportMetric(own/jobs, "own-cpu-ms/job")
	b.ReportMetric(ours/jobs, "its-sbatch-cpu-ms/job")
	b.ReportMetric(plain/jobs, "plain-sbatch-cpu-ms/job")
	b.ReportMetric(own/plain, "own/plain-cpu")
	b.ReportMetric(1e3*wall/jobs, "wall-ms/job")
	b.ReportMetric(1e3*plainWall/jobs, "plain-wall-ms/job")
}
