//go:build slurm

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

const nfsStudy = `
[study]
name = "s"
repeats = 2
[workload]
model = "mlp"
batch = 16
max_steps = 20
warmup_epochs = 0
[data]
kind = "synthetic"
train_samples = 256
test_samples = 64
[resources]
time = "5m"
[sweep]
workers = [1]
`

// desk is a user's folder with a study; the fakes of Slurm's commands keep their ledger
// next to it.
type desk struct {
	t     *testing.T
	dir   string
	env   []string
	slurm string   // the fakes' folder
	under []string // program that runs the command line; empty: none
}

func newDesk(t *testing.T, worker, runs, db string) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), slurm: t.TempDir()}
	for name, text := range map[string]string{"study.toml": nfsStudy,
		"site.toml": fmt.Sprintf("worker = %q\n[[partitions]]\nname = \"main\"\nmax_nodes = 4\n", worker)} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(os.Environ(), "SCALEBENCH_RUNS="+runs, "SCALEBENCH_DB="+db, "HOME="+d.dir, slurmtest.FakeVariable+"="+d.slurm)
	return d
}

// command returns a scalebench command.
func (d *desk) command(ctx context.Context, args ...string) *exec.Cmd {
	line := append(append(slices.Clone(d.under), "scalebench"), args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// run runs scalebench, which must end in time.
func (d *desk) run(args ...string) (out string, code int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), longest)
	defer cancel()
	cmd := d.command(ctx, args...)
	text, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		d.t.Errorf("scalebench %v hangs:\n%s", args, text)
	} else if cmd.ProcessState == nil {
		d.t.Error(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// wholeStudy returns what is wrong with the results of nfsStudy's points. Each must have
// exactly one good run, in the folders with all of its events, and in the
// database.
func (d *desk) wholeStudy(folder rundir.Study) (wrong []string) {
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	good := map[int]int{}
	f := &findings{}
	for _, a := range attempts {
		if a.Verdict == nil {
			wrong = append(wrong, a.Record.ID+" has no verdict")
		} else if a.Verdict.Status.Good() {
			good[a.Point.Repeat]++
			f.wholeEvents(a)
		}
	}
	wrong = append(append(append(wrong, f.lost...), f.doubled...), f.other...)
	out, code := d.run("runs", "--study", "s", "--format", "json")
	var rows []struct {
		Run    string
		Status metrics.Status
		Steps  *int
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 {
		return append(wrong, fmt.Sprintf("runs: exit code %d, %v: %s", code, err, out))
	}
	stored := 0
	for _, row := range rows {
		if row.Status.Good() {
			stored++
			if row.Steps == nil || *row.Steps != 20 {
				wrong = append(wrong, fmt.Sprintf("%s: of 20 steps %v are stored", row.Run, row.Steps))
			}
		}
	}
	if good[1] != 1 || good[2] != 1 || stored != 2 || len(rows) != len(attempts) {
		wrong = append(wrong, fmt.Sprintf("good attempts by repeat: %v; %d attempts, of which %d are stored, %d as good", good, len(attempts), len(rows), stored))
	}
	return wrong
}

// Two hosts run one study at the same time and then collect it, on a file system that loses
// replies. Every run is made once and stored once, and nothing hangs.
func TestNFSStudy(t *testing.T) {
	worker := buildWorker(t)
	lost, stale := int64(0), int64(0)
	for seed := range uint64(4) {
		folder, local := t.TempDir(), t.TempDir()
		plan := nfstest.Plan{Lost: 0.2, Stale: 0.1, Exclusive: seed%2 == 0, Delay: time.Duration(seed%2) * 4 * time.Millisecond, Memory: time.Duration(seed%3) * 100 * time.Millisecond}
		var hosts []*nfstest.Client
		var desks []*desk
		for i := range uint64(2) {
			plan.Seed = 2*seed + i
			hosts = append(hosts, nfstest.Mount(t, folder, plan))
			desks = append(desks, newDesk(t, worker, hosts[i].Path, filepath.Join(local, "scalebench.db")))
		}
		desks[1].dir = desks[0].dir // one study, submitted from two hosts
		var all sync.WaitGroup
		for _, d := range desks {
			all.Go(func() {
				if out, code := d.run("run", "study.toml", "--site", "site.toml", "--oversubscribe"); code != 0 {
					t.Errorf("seed %d: run: exit code %d\n%s%s", seed, code, out, logs(folder))
				}
			})
		}
		all.Wait()
		for _, d := range desks {
			if out, code := d.run("collect", "s"); code != 0 {
				t.Errorf("seed %d: collect: exit code %d\n%s", seed, code, out)
			}
		}
		if wrong := desks[0].wholeStudy(rundir.OpenStudy(folder, "s")); len(wrong) > 0 {
			t.Errorf("seed %d:\n  %s", seed, strings.Join(wrong, "\n  "))
		}
		for _, h := range hosts {
			a, _, c, _ := h.Fired()
			lost, stale = lost+a, stale+c
		}
	}
	if t.Logf("%d answers lost, %d handles stale", lost, stale); lost < 20 || stale == 0 {
		t.Errorf("only %d answers were lost, and %d handles stale", lost, stale)
	}
}

// logs returns the output of the ranks and jobs below a runs folder.
func logs(folder string) string {
	var b strings.Builder
	paths, _ := filepath.Glob(filepath.Join(folder, "*", "*", "*.log"))
	for _, log := range paths {
		text, _ := os.ReadFile(log)
		fmt.Fprintf(&b, "%s:\n%s", log, text)
	}
	return b.String()
}

// marked calls the fake sbatch, and creates a file in the recording when it has accepted the
// job.
const marked = `#!/bin/bash
'%s' "$@" || exit
: >'%s/accepted'.$$
`

// slurmStep replaces srun on this machine: one task.
const slurmStep = `#!/bin/bash
while [ "${1#--}" != "$1" ]; do shift; done
export SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_NNODES=1 SLURM_NTASKS_PER_NODE=1 SLURM_STEP_NODELIST=localhost SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_NUM_TASKS=1
exec "$@"
`

// The power fails somewhere between the first submission and the end of collect, and
// unsynced data may be missing or torn. The next commands continue with what is left: no
// accepted job is submitted again, and each point gets a good result that is stored once.
func TestPowerLoss(t *testing.T) {
	worker := buildWorker(t)
	record := &nfstest.Recording{}
	c := nfstest.Mount(t, t.TempDir(), nfstest.Plan{Record: record})
	runs := filepath.Join(c.Path, "runs")
	d := newDesk(t, worker, runs, filepath.Join(c.Path, "scalebench.db"))
	realSbatch, err := exec.LookPath("sbatch")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	for name, text := range map[string]string{"sbatch": fmt.Sprintf(marked, realSbatch, c.Path), "srun": slurmStep} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(d.env, "PATH="+path+":"+os.Getenv("PATH"))
	must := func(d *desk, args ...string) {
		t.Helper()
		if out, code := d.run(args...); code != 0 {
			t.Fatalf("scalebench %v: exit code %d\n%s", args, code, out)
		}
	}
	// jobs runs the batch scripts that the folder's submissions name, each once,
	// except for the first few jobs, which began before the power failed.
	jobs := func(d *desk, folder rundir.Study, begun int) {
		t.Helper()
		attempts, err := launcher.Attempts(folder)
		if err != nil {
			t.Error(err)
		}
		var states bytes.Buffer
		for _, a := range attempts {
			if a.Submission == nil || a.Verdict != nil {
				continue
			}
			script, err := os.ReadFile(a.Run.Script())
			if err != nil {
				t.Fatal(err)
			}
			// The folder is restored under another name.
			id, _ := strconv.Atoi(a.Submission.JobID)
			cmd := exec.Command("bash", "-c", strings.ReplaceAll(string(script), runs, filepath.Dir(folder.Path())))
			cmd.Env = append(d.env, "SLURM_JOB_ID="+a.Submission.JobID, "SLURM_JOB_NODELIST=localhost", "SLURM_JOB_NUM_NODES=1")
			if id > begun {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", a.Record.ID, err, out)
				}
			}
			state := "COMPLETED 0:0"
			if _, err := os.Stat(a.Run.Exit(0)); err != nil { // the node lost its power too
				state = "NODE_FAIL 0:0"
			}
			fmt.Fprintf(&states, "%s %s\n", a.Record.JobName, state)
		}
		old, _ := os.ReadFile(filepath.Join(d.slurm, "states"))
		if err := os.WriteFile(filepath.Join(d.slurm, "states"), append(old, states.Bytes()...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(d, "submit", "study.toml", "--site", "site.toml")
	submitted := record.Len()
	jobs(d, rundir.OpenStudy(runs, "s"), 0)
	must(d, "collect", "s")
	if wrong := d.wholeStudy(rundir.OpenStudy(runs, "s")); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	ledger, err := os.ReadFile(filepath.Join(d.slurm, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(ledger))+"\n", "\n")

	end := record.Len()
	if err := os.Rename(runs, runs+".before"); err != nil { // so that the restored folder replaces it
		t.Fatal(err)
	}
	lost, doubled, again := 0, 0, 0
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 3))
		cut := rng.IntN(end + 1)
		if seed%2 == 0 {
			cut = rng.IntN(submitted + 1)
		}
		left := t.TempDir()
		if err := record.After(cut, rng, left); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-2 * time.Minute) // the machine needs two minutes to restart
		if err := filepath.WalkDir(left, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(path, then, then))
		}); err != nil {
			t.Fatal(err)
		}
		n := newDesk(t, worker, filepath.Join(left, "runs"), filepath.Join(left, "scalebench.db"))
		n.dir = d.dir
		n.env = append(n.env, "PATH="+path+":"+os.Getenv("PATH"))
		accepted, begun := record.Count("accepted", cut), 0
		if cut > submitted {
			begun = accepted
		}
		if err := os.WriteFile(filepath.Join(n.slurm, "jobs"), []byte(strings.Join(lines[:accepted], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		folder := rundir.OpenStudy(filepath.Join(left, "runs"), "s")
		say := func(format string, a ...any) {
			t.Errorf("power lost after %d of %d changes (%d to the submission, %d jobs accepted), seed %d: %s", cut, end, submitted, accepted, seed, fmt.Sprintf(format, a...))
		}
		if out, code := n.run("submit", "study.toml", "--site", "site.toml"); code != 0 {
			say("submit: exit code %d\n%s", code, out)
			lost++
			continue
		}
		if after, err := os.ReadFile(filepath.Join(n.slurm, "jobs")); err != nil || cut <= submitted && strings.Count(string(after), "\n") != 2 {
			say("sbatch accepted, in the end,\n%s (%v)", after, err)
			doubled++
		}
		for range 3 { // a run whose events were lost is repeated
			jobs(n, folder, begun)
			if out, code := n.run("submit", "study.toml", "--site", "site.toml"); code != 0 {
				say("submit: exit code %d\n%s", code, out)
			} else if strings.Contains(out, "nothing to submit") {
				break
			}
			again++
		}
		if out, code := n.run("collect", "s"); code != 0 {
			say("collect: exit code %d\n%s", code, out)
		}
		if wrong := n.wholeStudy(folder); len(wrong) > 0 {
			say("%s", strings.Join(wrong, "\n  "))
			lost++
		}
	}
	t.Logf("16 losses of power in %d changes: lost %d, doubled %d; %d times a run was made again whose events were lost", end, lost, doubled, again)
}
