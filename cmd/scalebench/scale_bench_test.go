package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// scaleBench is the real program with Slurm commands that answer immediately, so that only
// scalebench is measured: sbatch accepts everything; squeue and sacct print the files with
// their names.
type scaleBench struct {
	b   *testing.B
	dir string
}

func newScaleBench(b *testing.B, points int) *scaleBench {
	b.Helper()
	s := &scaleBench{b, b.TempDir()}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(s.dir, "scalebench"), ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	s.write("scalebench-worker", "#!/bin/sh\n")
	s.write("sbatch", "#!/bin/sh\necho sbatch >>calls\necho $$\n")
	for _, name := range []string{"squeue", "sacct"} {
		s.write(name, "#!/bin/sh\necho "+name+" >>calls\ncat "+name+".answer\n")
		s.write(name+".answer", "")
	}
	batches := make([]string, points/10)
	for i := range batches {
		batches[i] = fmt.Sprint(i + 1)
	}
	s.write("study.toml", `
[study]
name = "scale"
[workload]
model = "mlp"
epochs = 1
warmup_epochs = 0
[data]
kind = "synthetic"
train_samples = 1000000
test_samples = 100
[sweep]
workers = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
batch = [`+strings.Join(batches, ", ")+"]\n")
	return s
}

func (s *scaleBench) write(name, text string) {
	s.b.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
		s.b.Fatal(err)
	}
}

// expense is the cost of one run of the program.
type expense struct {
	wall       time.Duration
	residentMB float64 // at its peak
	calls      int     // of Slurm's commands
}

func (s *scaleBench) run(args ...string) expense {
	s.b.Helper()
	calls := filepath.Join(s.dir, "calls")
	if err := os.WriteFile(calls, nil, 0o644); err != nil {
		s.b.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(s.dir, "scalebench"), append(args, "--quiet", "--db", "history.db", "--format", "csv")...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "PATH="+s.dir+":"+os.Getenv("PATH"))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	began := time.Now()
	if err := cmd.Run(); err != nil {
		s.b.Fatalf("scalebench %s: %v\n%s", strings.Join(args, " "), err, &complaint)
	}
	c := expense{wall: time.Since(began)}
	// VmHWM, or the largest child's, which is a shell.
	c.residentMB = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1e3
	text, err := os.ReadFile(calls)
	if err != nil {
		s.b.Fatal(err)
	}
	c.calls = strings.Count(string(text), "\n")
	return c
}

// answers writes squeue's output for the first jobs and sacct's for the others, which have
// left the queue.
func (s *scaleBench) answers(attempts []*launcher.Attempt, queued int, state string) {
	s.b.Helper()
	var queue, accounting strings.Builder
	now := fmt.Sprint(time.Now().Unix())
	for i, a := range attempts {
		id, name := a.Submission.JobID, a.Record.JobName
		to, fields := &queue, []string{id, name, "main", "PENDING", "Priority", "", now, "N/A", "N/A", "(null)"}
		if i >= queued {
			to, fields = &accounting, []string{id, name, "bench", "main", state, "None", "0:0", "0:0", "node1", now, now, "Unknown", ""}
		}
		fmt.Fprintln(to, strings.Join(fields, "\x1f"))
	}
	s.write("squeue.answer", queue.String())
	s.write("sacct.answer", accounting.String())
}

// files returns the milliseconds that writing as many files of a batch script's size takes.
func (s *scaleBench) files(n int) float64 {
	s.b.Helper()
	if err := os.Mkdir(filepath.Join(s.dir, "files"), 0o755); err != nil {
		s.b.Fatal(err)
	}
	script := strings.Repeat("#", 5000)
	began := time.Now()
	for i := range n {
		s.write(filepath.Join("files", fmt.Sprint(i)), script)
	}
	return float64(time.Since(began).Microseconds()) / 1e3
}

// train writes the files of a short training with one rank into each run folder.
func (s *scaleBench) train(attempts []*launcher.Attempt) {
	s.b.Helper()
	for _, a := range attempts {
		if err := os.Mkdir(a.Run.Claim(0), 0o755); err != nil {
			s.b.Fatal(err)
		}
		if err := os.WriteFile(a.Run.EventFile("rank", 0, 0), rankEvents(0, 1, 1795000000, 32, 0.01, &metrics.Environment{}), 0o644); err != nil {
			s.b.Fatal(err)
		}
	}
}

// BenchmarkScale runs a study's whole workflow with growing numbers of points; figures per
// point show whether the cost grows in proportion. The stated targets are for 10,000
// points. The file system takes most of render's time: as-many-files is the time to write
// only the files.
func BenchmarkScale(b *testing.B) {
	sizes := []int{100, 1_000, 10_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, points := range sizes {
		b.Run(fmt.Sprintf("points=%d", points), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer() // only parts are timed, each separately
				s := newScaleBench(b, points)
				report := func(step string, c expense) {
					b.ReportMetric(float64(c.wall.Microseconds())/1e3, step+"-ms")
					b.ReportMetric(float64(c.wall.Microseconds())/float64(points), step+"-µs/point")
					b.ReportMetric(c.residentMB, step+"-MB")
				}
				report("render", s.run("render", "study.toml", "-o", "scripts"))
				b.ReportMetric(s.files(points), "as-many-files-ms")
				report("submit", s.run("submit", "study.toml"))
				attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(s.dir, "runs"), "scale"))
				if err != nil || len(attempts) != points {
					b.Fatalf("%d attempts (%v), want %d", len(attempts), err, points)
				}
				s.answers(attempts, points/2, "RUNNING")
				poll := s.run("status", "scale")
				report("status", poll)
				b.ReportMetric(float64(poll.calls), "status-calls")
				s.train(attempts)
				s.answers(attempts, 0, "COMPLETED")
				report("collect", s.run("collect", "scale"))
				report("collect-again", s.run("collect", "scale"))
				if points == 10_000 {
					b.ReportMetric(2, "status-calls-target")
					b.ReportMetric(150, "MB-target")
				}
				b.StartTimer()
			}
		})
	}
}
