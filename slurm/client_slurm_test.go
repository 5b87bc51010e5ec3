//go:build slurm

package slurm_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/scalebench/scalebench/slurm"
	"github.com/scalebench/scalebench/slurm/notation"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

var (
	record  = flag.Bool("record", false, "rewrite testdata/transcripts from the real cluster")
	cluster *slurmtest.Cluster
	client  *slurm.Client
)

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if cluster, err = slurmtest.Open(slurmtest.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	client = &slurm.Client{Env: cluster.Env()}
	code := m.Run()
	if err := cluster.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runDir creates a folder that all nodes see, with a substitute for the worker binary that prints the node's
// address and a port.
func runDir(t *testing.T) (dir, worker string) {
	t.Helper()
	dir, err := os.MkdirTemp(cluster.Dir, "run")
	if err != nil {
		t.Fatal(err)
	}
	worker = filepath.Join(dir, "worker")
	write(t, worker, "#!/bin/bash\nread -r ip _ < <(getent ahostsv4 \"$(hostname)\")\necho \"$ip 29500\"\n", 0o755)
	return dir, worker
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// job returns a script in which every task runs a line of shell.
func job(t *testing.T, name string, nodes, tasks int, shell string) (slurm.Script, string) {
	dir, worker := runDir(t)
	return slurm.Script{
		JobName: name, Nodes: nodes, TasksPerNode: tasks, CPUsPerTask: 1, Time: 2 * time.Minute,
		Output: filepath.Join(dir, "job.log"), RunDir: dir, Worker: worker, Workdir: dir,
		Command: []string{"/bin/bash", "-c", shell},
	}, dir
}

func submit(t *testing.T, s slurm.Script, args ...string) string {
	t.Helper()
	path := filepath.Join(s.RunDir, "job.sh")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Render(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	sub, err := client.Submit(context.Background(), path, args...)
	if err != nil {
		t.Fatal(err)
	}
	return sub.ID
}

// longest is the timeout for events that take seconds on an idle machine.
const longest = 3 * time.Minute

// await polls the job until done accepts it.
func await(t *testing.T, id string, done func(slurm.Job) bool) slurm.Job {
	t.Helper()
	var last slurm.Job
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		jobs, err := client.Queue(context.Background(), slurm.Filter{IDs: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) == 1 {
			if last = jobs[0]; done(last) {
				return last
			}
		}
	}
	t.Fatalf("job %s did not get there: %+v\n%s", id, last, logs(id))
	return last
}

func logs(id string) string {
	out, _ := exec.Command("bash", "-c", "tail -n 20 "+cluster.Dir+"/run*/job.log "+cluster.Dir+"/log/slurmctld.log").CombinedOutput()
	return id + "\n" + string(out)
}

func ended(j slurm.Job) bool { return j.State.Terminal() }

func awaitFile(t *testing.T, pattern string, n int) {
	t.Helper()
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got, _ := filepath.Glob(pattern); len(got) >= n {
			return
		}
	}
	t.Fatalf("no %d files %s\n%s", n, pattern, logs(""))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, logs(""))
	}
	return string(b)
}

type exitRecord struct {
	ExitCode int     `json:"exit_code"`
	Signal   string  `json:"signal"`
	Start    float64 `json:"start_unix"`
	End      float64 `json:"end_unix"`
	JobID    string  `json:"job_id"`
	Nodelist string  `json:"nodelist"`
	Restart  int     `json:"restart"`
}

func exit(t *testing.T, dir string, restart int) exitRecord {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("exit-%d.json", restart))
	awaitFile(t, path, 1)
	var r exitRecord
	if err := json.Unmarshal([]byte(read(t, path)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScriptRunsOnTheCluster(t *testing.T) {
	for _, tt := range []struct{ nodes, perNode int }{{1, 1}, {1, 2}, {2, 1}, {2, 2}} {
		t.Run(fmt.Sprintf("%d nodes, %d each", tt.nodes, tt.perNode), func(t *testing.T) {
			t.Parallel()
			s, dir := job(t, "shape", tt.nodes, tt.perNode,
				`scontrol --detail show job "$SLURM_JOB_ID" >"$SCALEBENCH_RUN/granted-$SLURM_PROCID"
echo "$SLURM_PROCID $(hostname) $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $MASTER_ADDR $MASTER_PORT $SCALEBENCH_RESTART $OMP_NUM_THREADS $(ulimit -c) $(umask)" >"$SCALEBENCH_RUN/task-$SLURM_PROCID"`)
			s.GPUsPerNode, s.Exclusive = tt.perNode, tt.nodes == 1
			id := submit(t, s)
			j := await(t, id, ended)
			if j.State != slurm.Completed || len(j.Nodes) != tt.nodes {
				t.Fatalf("%+v\n%s", j, read(t, s.Output))
			}
			hosts := map[string]bool{}
			for rank := range tt.nodes * tt.perNode {
				f := strings.Fields(read(t, filepath.Join(dir, fmt.Sprintf("task-%d", rank))))
				if len(f) != 10 {
					t.Fatalf("task %d: %q", rank, f)
				}
				hosts[f[1]] = true
				gpus := grantedGPUs(t, read(t, filepath.Join(dir, fmt.Sprintf("granted-%d", rank))), f[2])
				got := strings.Split(f[3], ",")
				slices.Sort(got)
				if len(slices.Compact(got)) != tt.perNode || slices.ContainsFunc(got, func(gpu string) bool { return !slices.Contains(gpus, gpu) }) {
					t.Errorf("task %d sees GPUs %s, want %d of %s, which Slurm gave the job on %s", rank, f[3], tt.perNode, gpus, f[2])
				}
				if d := cmp.Diff([]string{"29500", "0", "1", "0", "0077"}, f[5:]); d != "" {
					t.Errorf("task %d (-want +got):\n%s", rank, d)
				}
				if addr, err := netip.ParseAddr(f[4]); err != nil || cluster.Namespaces && addr.IsLoopback() {
					t.Errorf("task %d: MASTER_ADDR is %s (%v)", rank, f[4], err)
				}
			}
			if cluster.Namespaces && len(hosts) != tt.nodes {
				t.Errorf("ran on %v, want %d hosts", hosts, tt.nodes)
			}
			r := exit(t, dir, 0)
			nodes, err := notation.ExpandHosts(r.Nodelist)
			if err != nil || !slices.Equal(nodes, j.Nodes) || r.ExitCode != 0 || r.Signal != "" || r.JobID != id || r.End < r.Start {
				t.Errorf("exit record %+v, job %+v (%v)", r, j, err)
			}
		})
	}
	if !cluster.Namespaces {
		t.Log("nodes share this machine's host name and address: what is between nodes was not tested (run as root)")
	}
}

// grantedGPUs returns the indices of a job's GPUs on a node according to `scontrol --detail show job`. Other
// jobs on the cluster may have the first ones, and a job with an exclusive node gets all of them.
func grantedGPUs(t *testing.T, shown, node string) (indices []string) {
	t.Helper()
	// Nodes=node[1-2] CPU_IDs=0 Mem=1000 GRES=gpu:2(IDX:0-1), a line for nodes alike.
	for _, m := range regexp.MustCompile(`(?m)^ *Nodes=(\S+) .*GRES=gpu\S*\(IDX:([0-9,-]+)\)`).FindAllStringSubmatch(shown, -1) {
		nodes, err := notation.ExpandHosts(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(nodes, node) {
			continue
		}
		list, err := notation.ExpandHosts("[" + m[2] + "]")
		if err != nil {
			t.Fatal(err)
		}
		indices = append(indices, list...)
	}
	if indices == nil {
		t.Fatalf("no GPUs on %s in:\n%s", node, shown)
	}
	return indices
}

func TestOneFailingTaskEndsTheJob(t *testing.T) {
	// If a task fails before the other node has started its task, srun (22.05) signals too early: its only
	// signal finds no step there, and the job runs until its time limit. So task 1 waits until task 0 is up.
	s, dir := job(t, "fails", 2, 1, `touch "$SCALEBENCH_RUN/up-$SLURM_PROCID"
[ "$SLURM_PROCID" = 0 ] && exec sleep 600
until [ -e "$SCALEBENCH_RUN/up-0" ]; do sleep 0.1; done; exit 3`)
	id := submit(t, s)
	j := await(t, id, ended)
	if j.State != slurm.Failed || j.End.Sub(j.Start) >= s.Time {
		t.Errorf("%+v\n%s", j, read(t, s.Output))
	}
	if r := exit(t, dir, 0); r.ExitCode == 0 {
		t.Errorf("exit record %+v", r)
	}
}

// catches is the shell code of a task that records signals and exits on TERM.
const catches = `trap 'echo USR1 >>$SCALEBENCH_RUN/got-$SLURM_PROCID' USR1
trap 'echo TERM >>$SCALEBENCH_RUN/got-$SLURM_PROCID; exit 0' TERM
touch "$SCALEBENCH_RUN/up-$SLURM_PROCID"; while :; do sleep 0.1; done`

func TestSignalsReachTheTasks(t *testing.T) {
	s, dir := job(t, "signals", 2, 1, catches)
	id := submit(t, s)
	awaitFile(t, filepath.Join(dir, "up-*"), 2)
	// Signal only the batch script, as --signal=B:USR1@N does.
	cmd := exec.Command(filepath.Join(cluster.Dir, "bin", "scancel"), "--batch", "--signal=USR1", id)
	cmd.Env = cluster.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	awaitFile(t, filepath.Join(dir, "got-*"), 2)
	if _, err := os.Stat(filepath.Join(dir, "exit-0.json")); err == nil {
		t.Error("the script did not wait for the tasks after USR1")
	}
	if err := client.Cancel(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	if j := await(t, id, ended); j.State != slurm.Cancelled {
		t.Errorf("%+v", j)
	}
	if r := exit(t, dir, 0); r.Signal != "TERM" {
		t.Errorf("exit record %+v", r)
	}
	for rank := range 2 {
		got := read(t, filepath.Join(dir, fmt.Sprintf("got-%d", rank)))
		if !strings.HasPrefix(got, "USR1\nTERM\n") {
			t.Errorf("task %d got %q", rank, got)
		}
	}
	if err := client.Cancel(context.Background(), id, "999999"); err != nil {
		t.Errorf("cancelling a job that has ended: %v", err)
	}
}

func TestSecondCopyOnTheCluster(t *testing.T) {
	s, dir := job(t, "twice", 1, 1, `echo "$SLURM_JOB_ID" >>"$SCALEBENCH_RUN/trained"; sleep 1`)
	s.Output = filepath.Join(dir, "%j.log") // literal: a % in a path is not a pattern
	a, b := submit(t, s), submit(t, s)
	states := map[slurm.State]int{}
	for _, id := range []string{a, b} {
		states[await(t, id, ended).State]++
	}
	if states[slurm.Completed] != 1 || states[slurm.Failed] != 1 {
		t.Errorf("states %v", states)
	}
	trained := strings.TrimSpace(read(t, filepath.Join(dir, "trained")))
	if r := exit(t, dir, 0); trained != a && trained != b || r.JobID != trained || r.ExitCode != 0 {
		t.Errorf("trained in %q, exit record %+v", trained, r)
	}
	if log := read(t, s.Output); !strings.Contains(log, "second copy of this attempt") {
		t.Errorf("log: %s", log)
	}
}

func TestRequeueIsAnIncarnation(t *testing.T) {
	s, dir := job(t, "again", 1, 1, `touch "$SCALEBENCH_RUN/up-$SCALEBENCH_RESTART"; [ "$SCALEBENCH_RESTART" = 1 ] || sleep 600`)
	s.Requeue = true
	id := submit(t, s)
	awaitFile(t, filepath.Join(dir, "up-0"), 1)
	cmd := exec.Command(filepath.Join(cluster.Dir, "bin", "scontrol"), "requeue", id)
	cmd.Env = cluster.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := exit(t, dir, 1); r.ExitCode != 0 || r.Restart != 1 {
		t.Errorf("exit record %+v", r)
	}
	if j := await(t, id, ended); j.State != slurm.Completed {
		t.Errorf("%+v", j)
	}
	j, err := client.Show(context.Background(), id)
	if err != nil || j.Restarts == nil || *j.Restarts != 1 {
		t.Errorf("%+v, %v", j, err)
	}
	rows := account(t, func(rows []slurm.Job) bool { return len(rows) == 2 && ended(rows[1]) }, slurm.Filter{IDs: []string{id}})
	if rows[0].State != slurm.Requeued || rows[1].State != slurm.Completed {
		t.Errorf("%+v", rows)
	}
}

// account polls sacct until done accepts the rows.
func account(t *testing.T, done func([]slurm.Job) bool, f slurm.Filter) []slurm.Job {
	t.Helper()
	var rows []slurm.Job
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var err error
		if rows, err = client.Accounting(context.Background(), time.Now().Add(-time.Hour), f); err != nil {
			t.Fatal(err)
		}
		if done(rows) {
			return rows
		}
	}
	t.Fatalf("sacct did not get there: %+v", rows)
	return nil
}

func TestRefusalHasSlurmsMessage(t *testing.T) {
	for _, tt := range []struct {
		change func(*slurm.Script)
		want   string
	}{
		{func(s *slurm.Script) { s.Partition = "nope" }, "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified"},
		{func(s *slurm.Script) { s.Nodes = 99 }, "More processors requested than permitted"},
		{func(s *slurm.Script) { s.Partition, s.Time = "short", time.Hour }, "Requested time limit is invalid (missing or exceeds some limit)"},
		{func(s *slurm.Script) { s.Account = "nope" }, "Invalid account or account/partition combination specified"},
		{func(s *slurm.Script) { s.GPUsPerNode = 9 }, "Requested node configuration is not available"},
		{func(s *slurm.Script) { s.Options = map[string]string{"bogus": "1"} }, "unrecognized option '--bogus=1'"},
	} {
		s, dir := job(t, "refused", 1, 1, "true")
		tt.change(&s)
		path := filepath.Join(dir, "job.sh")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Render(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		_, err = client.Submit(context.Background(), path)
		var refused *slurm.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, tt.want) || refused.Script != path {
			t.Errorf("%v; want a refusal with %q", err, tt.want)
			continue
		}
		var own strings.Builder
		cmd := exec.Command(filepath.Join(cluster.Dir, "bin", "sbatch"), "--parsable", path)
		cmd.Env, cmd.Stderr = cluster.Env(), &own
		if err := cmd.Run(); err == nil || refused.Message != strings.TrimSpace(own.String()) {
			t.Errorf("refused with %q, sbatch says %q (%v)", refused.Message, own.String(), err)
		}
	}
}

func TestDirectivesReachSlurm(t *testing.T) {
	for _, comment := range []string{`say "hi" \ $HOME 'x' #1`, "$(touch /tmp/x) `id`", `\`, "a  b\\\\c", "é€"} {
		s, _ := job(t, "quoting", 1, 1, "true")
		s.Options = map[string]string{"comment": comment, "begin": "now+1hour"}
		id := submit(t, s)
		jobs, err := client.Queue(context.Background(), slurm.Filter{IDs: []string{id}})
		if err != nil || len(jobs) != 1 || jobs[0].Comment != comment {
			t.Errorf("%q came back as %+v (%v)", comment, jobs, err)
		}
		if err := client.Cancel(context.Background(), id); err != nil {
			t.Error(err)
		}
	}
}

func TestControllerDown(t *testing.T) {
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1, NoAccounting: true, Plain: true})
	small := &slurm.Client{Env: c.Env()}
	_, err := small.Accounting(context.Background(), time.Now(), slurm.Filter{})
	if !errors.Is(err, slurm.ErrNoAccounting) {
		t.Errorf("without slurmdbd: %v", err)
	}
	if _, err := small.Show(context.Background(), "77"); !errors.Is(err, slurm.ErrNoJob) {
		t.Errorf("unknown job: %v", err)
	}
	script := filepath.Join(t.TempDir(), "job.sh")
	write(t, script, "#!/bin/bash\n#SBATCH --output=/dev/null\n", 0o644)

	if err := c.Signal("slurmctld", "STOP"); err != nil {
		t.Fatal(err)
	}
	hasty := &slurm.Client{Env: c.Env(), Timeout: time.Second}
	_, err = hasty.Submit(context.Background(), script)
	var gone *slurm.UnreachableError
	if !errors.As(err, &gone) || !gone.MaybeQueued {
		t.Errorf("controller hung: %v", err)
	}
	if err := c.Signal("slurmctld", "CONT"); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop("slurmctld", "KILL"); err != nil {
		t.Fatal(err)
	}
	// The kernel resets connections that it accepted for the controller just before.
	for range 10 {
		if _, err = small.Submit(context.Background(), script); !errors.As(err, &gone) || !gone.MaybeQueued {
			break
		}
	}
	if !errors.As(err, &gone) || gone.MaybeQueued || !strings.Contains(gone.Message, "Unable to contact slurm controller") {
		t.Errorf("controller down: %v", err)
	}
	if err := c.Restart("slurmctld"); err != nil {
		t.Fatal(err)
	}
	if _, err = small.Queue(context.Background(), slurm.Filter{}); err != nil {
		t.Errorf("controller back: %v", err)
	}
}
