//go:build slurm

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/slurm"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// rig is what all faults of a test share: the cluster and the binaries.
type rig struct {
	*bench
	cluster *slurmtest.Cluster
	small   string // a file system of 16 MB that the nodes see; "" where none can be mounted
	took    map[string]time.Duration
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{took: map[string]time.Duration{}}
	if dir := t.TempDir(); os.Getuid() == 0 { // before the nodes get their own view of the mounts
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
			t.Logf("run folders are made read-only, but not full: no small file system can be mounted: %v", err)
		} else {
			r.small = dir
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
		}
	}
	r.cluster = startCluster(t, slurmtest.Options{Conf: "AccountingStorageEnforce=associations,limits,qos\nMinJobAge=10"})
	r.bench = newBench(t, r.cluster)

	// A study without a fault: what the commands take, and that all is well.
	calm := r.trial("calm", class{name: "no fault"}, rand.New(rand.NewPCG(0, 0)))
	for _, args := range [][]string{{"submit", "study.toml", "--site", "site.toml"}, {"collect"}} {
		began := time.Now()
		if out, code := calm.run(args...); code != 0 {
			t.Fatalf("scalebench %v: exit code %d\n%s", args, code, out)
		}
		r.took[args[0]] = time.Since(began)
	}
	r.took["retry"] = r.took["submit"]
	calm.settle(longest)
	newTally().add(t, calm)
	if t.Failed() {
		t.FailNow()
	}
	ctx, dismiss := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.administer(ctx); close(ended) }()
	t.Cleanup(func() { dismiss(); <-ended })
	return r
}

// trial is one fault and the study that it is fired at.
type trial struct {
	*rig
	name  string
	class class
	rng   *rand.Rand
	how   string // which way the fault was fired, for the log
	dir   string // the user's folder
	runs  string // the run folders

	steps    int // of each run
	site     site
	log      bytes.Buffer // commands, exit codes and complaints
	problems []string     // found before check
}

// site is what a trial's site file, and the policy of its study, say; faulty
// ones are healed by the zero value.
type site struct {
	partition string // "": main
	setup     string // a line of shell before the programs
	requeue   bool   // Slurm may start the job again
	unclaimed bool   // the batch script does not claim its attempt
	array     bool   // each point runs twice, and runs of one shape are a job array
}

func (r *rig) trial(name string, c class, rng *rand.Rand) *trial {
	tr := &trial{rig: r, name: name, class: c, rng: rng, steps: 40, dir: filepath.Join(r.dir, name)}
	tr.runs = filepath.Join(tr.dir, "runs")
	for _, dir := range []string{tr.dir, filepath.Join(tr.dir, "path")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, command := range []string{"sbatch", "squeue", "sacct"} {
		tr.file("path/"+command, fmt.Sprintf(commandWrapper, command, tr.dir, filepath.Join(r.cluster.Dir, "bin", command)), 0o755)
	}
	tr.file("worker", fmt.Sprintf(workerWrapper, tr.dir, filepath.Join(r.dir, "bin", "scalebench-worker")), 0o755)
	tr.files()
	return tr
}

// commandWrapper stands before one of Slurm's commands. As the file "kill" says
// (COMMAND CALL WHEN), it kills the tool that called it before the real
// command is run, while it runs, or after it; "twice" hands a job over twice
// and tells only of the second. Where the file "silent" is, it answers nothing.
// "submitted" lists the jobs of which sbatch's answer was to be had; as long as
// one of these is at work there is a file "busy".
const commandWrapper = `#!/bin/bash
name=%s dir=%s real=%s
: >"$dir/busy.$$"; trap 'rm -f "$dir/busy.$$"' EXIT
read -r calls 2>/dev/null <"$dir/$name.calls"
echo "$((calls += 1))" >"$dir/$name.calls"
read -r what call when 2>/dev/null <"$dir/kill"
[ "$what $call" = "$name $calls" ] || when=
[ "$name" = sbatch ] || [ ! -e "$dir/silent" ] || exit 0
if [ "$when" = before ]; then kill -KILL $PPID; exit 1; fi
if [ "$when" = during ]; then kill -KILL $PPID; fi
if [ "$when" = twice ]; then "$real" "$@" >>"$dir/unseen"; fi
out=$("$real" "$@" 2>"$dir/$name.err.$$"); code=$?
if [ "$name" = sbatch ] && [ $code = 0 ]; then echo "$out ${*: -1}" >>"$dir/submitted"; fi
if [ "$when" = after ]; then kill -KILL $PPID; exit 1; fi
[ -z "$out" ] || printf '%%s\n' "$out"
cat "$dir/$name.err.$$" >&2; rm -f "$dir/$name.err.$$"
exit $code
`

// workerWrapper stands before the worker on the nodes and lists, apart from the run
// folder, which rank of which attempt was started by which job.
const workerWrapper = `#!/bin/bash
if [ "$1" = run ]; then echo "$SCALEBENCH_RUN $SCALEBENCH_RESTART $SLURM_PROCID $SLURM_JOB_ID" >>%s/started; fi
exec %s "$@"
`

func (tr *trial) file(name, text string, mode os.FileMode) {
	if err := os.WriteFile(filepath.Join(tr.dir, name), []byte(text), mode); err != nil {
		tr.t.Fatal(err)
	}
}

// lines are those of a file in the trial's folder; none when it is not there.
func (tr *trial) lines(name string) []string {
	text, err := os.ReadFile(filepath.Join(tr.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		tr.t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
}

// files writes the study and the site file.
func (tr *trial) files() {
	s := tr.site
	study := fmt.Sprintf(`
[study]
name = "%s"
[workload]
model = "mlp"
batch = 16
max_steps = %d
warmup_epochs = 0
[data]
kind = "synthetic"
train_samples = 512
test_samples = 128
[resources]
time = "5m"
memory = "150M"
exclusive = false
workers_per_node = 1
[sweep]
workers = [1, 2]
[policy]
requeue = %v
`, tr.name, tr.steps, s.requeue)
	if s.array {
		study = strings.Replace(study, "[workload]", "repeats = 2\n[workload]", 1) + "packing = \"array\"\n"
	}
	tr.file("study.toml", study, 0o644)
	if s.partition == "" {
		s.partition = "main"
	}
	text := "worker = \"worker\"\n"
	if s.setup != "" {
		text += fmt.Sprintf("setup = ['''%s''']\n", s.setup)
	}
	if s.unclaimed {
		text += "template = \"job.tmpl\"\n"
		template := "#!/bin/bash\n{{template \"directives\" .}}\n"
		for _, block := range []string{"prepare", "claim", "record", "environment", "address", "step"} {
			call := fmt.Sprintf("{{template %q .}}\n", block)
			if block == "claim" { // it must stand there
				call = "if false; then\n" + call + "fi\n"
			}
			template += call
		}
		tr.file("job.tmpl", template, 0o644)
	}
	tr.file("site.toml", text+fmt.Sprintf("[[partitions]]\nname = %q\nmax_nodes = 4\n", s.partition), 0o644)
}

// start begins a scalebench command.
func (tr *trial) start(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	return tr.startUnder(ctx, nil, args...)
}

// startUnder begins it by another program, which takes its command line.
func (tr *trial) startUnder(ctx context.Context, program []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	out := new(bytes.Buffer)
	line := slices.Concat(program, []string{filepath.Join(tr.bench.dir, "bin", "scalebench")}, args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = tr.dir, out, out, time.Second
	cmd.Env = slices.Concat(tr.env, []string{"SCALEBENCH_DB=" + filepath.Join(tr.dir, "scalebench.db"), "SCALEBENCH_RUNS=" + tr.runs,
		"PATH=" + filepath.Join(tr.dir, "path") + ":" + filepath.Join(tr.cluster.Dir, "bin") + ":" + os.Getenv("PATH")})
	if err := cmd.Start(); err != nil {
		tr.t.Error(err)
	}
	return cmd, out
}

// run runs a scalebench command to its end, at most two minutes.
func (tr *trial) run(args ...string) (out string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return tr.finish(tr.start(ctx, args...))
}

// finish waits for a command that was started; its code is -1 when it was
// killed.
func (tr *trial) finish(cmd *exec.Cmd, out *bytes.Buffer) (string, int) {
	_ = cmd.Wait() // what matters of it is in ProcessState
	code := cmd.ProcessState.ExitCode()
	fmt.Fprintf(&tr.log, "$ %s\n%s[%s]\n", strings.Join(cmd.Args, " "), out, cmd.ProcessState)
	if strings.Contains(out.String(), "this is a bug") || strings.Contains(out.String(), "goroutine ") {
		tr.problem("scalebench %s crashed", cmd.Args[1])
	}
	return out.String(), code
}

// orphans waits for Slurm's commands whose caller was killed: a submission that
// is on its way no lookup can see, and the attempt is then rightly handed over
// again.
func (tr *trial) orphans() error {
	return tr.await("an end of the commands that were under way", func() bool {
		busy, err := filepath.Glob(filepath.Join(tr.dir, "busy.*"))
		return err == nil && len(busy) == 0
	})
}

func (tr *trial) problem(format string, a ...any) {
	tr.problems = append(tr.problems, fmt.Sprintf(format, a...))
}

// submit submits the trial's study without waiting.
func (tr *trial) submit() (out string, code int) {
	return tr.run("submit", "study.toml", "--site", "site.toml")
}

// underway submits the study and waits until a rank has written its first
// event. It submits again when the jobs end before: what an earlier fault made
// slurmctld forget it may still end on the nodes, under ids that are ours now.
func (tr *trial) underway() error {
	begun := func() bool {
		files, _ := filepath.Glob(filepath.Join(tr.runs, tr.name, "*", "events", "rank-*"))
		return len(files) > 0
	}
	for range 3 {
		if out, code := tr.submit(); code != 0 {
			return fmt.Errorf("submit: exit code %d\n%s", code, out)
		}
		err := tr.await("a rank's events", func() bool {
			queue, err := tr.queue()
			return begun() || err == nil && !slices.ContainsFunc(queue, func(j slurm.Job) bool { return !j.State.Terminal() })
		})
		if err != nil || begun() {
			return err
		}
	}
	return errors.New("none of three submissions came as far as a rank's first event")
}

// calm waits until an earlier fault is over for Slurm too: nothing of a
// stranger's is left and every node is back.
func (r *rig) calm() error {
	if _, err := r.slurm("scancel", "--name=stranger"); err != nil {
		return err
	}
	return r.await("nodes that are all up", func() bool {
		states, err := r.nodes()
		for _, state := range states {
			if !slices.Contains([]string{"idle", "mix", "alloc"}, state) {
				return false
			}
		}
		return err == nil && len(states) > 0
	})
}

// nodes are the states of the nodes.
func (r *rig) nodes() (map[string]string, error) {
	out, err := r.slurm("sinfo", "--noheader", "--Node", "--partition=main", "--format=%n %t")
	states := map[string]string{}
	for line := range strings.Lines(out) {
		node, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		states[node] = state
	}
	return states, err
}

// administer does what an administrator would, until the test ends: Slurm
// drains nodes that a fault made it mistrust, and they come back only by hand.
func (r *rig) administer(ctx context.Context) {
	for ctx.Err() == nil {
		states, _ := r.nodes()
		for node, state := range states {
			if strings.HasPrefix(state, "drain") || strings.HasPrefix(state, "drng") {
				_, _ = r.slurm("scontrol", "update", "NodeName="+node, "State=RESUME")
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

func (r *rig) await(what string, done func() bool) error {
	for end := time.Now().Add(longest); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s: none within %v", what, longest)
		}
	}
	return nil
}

// between is a random time.
func (tr *trial) between(low, high time.Duration) time.Duration {
	return low + time.Duration(tr.rng.Int64N(int64(high-low)))
}

// one of the given, at random.
func (tr *trial) one(of ...string) string { return of[tr.rng.IntN(len(of))] }

// jobs are the ids that sbatch answered with.
func (tr *trial) jobs() []string {
	var ids []string
	for _, line := range tr.lines("submitted") {
		id, _, _ := strings.Cut(line, " ")
		ids = append(ids, id)
	}
	return ids
}

// slurm runs one of Slurm's own commands, past the trial's.
func (r *rig) slurm(name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(r.cluster.Dir, "bin", name), args...)
	cmd.Env = r.cluster.Env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// queue is what Slurm says of the trial's jobs.
func (tr *trial) queue() ([]slurm.Job, error) {
	all, err := (&slurm.Client{Env: tr.cluster.Env()}).Queue(context.Background(), slurm.Filter{})
	var mine []slurm.Job
	for _, j := range all {
		if strings.HasPrefix(j.Name, tr.name+"/") {
			mine = append(mine, j)
		}
	}
	return mine, err
}

// settle repeats `submit --wait` until there is nothing left to do.
func (tr *trial) settle(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for ctx.Err() == nil {
		switch out, code := tr.finish(tr.start(ctx, "submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s")); code {
		case exitDone:
			return
		case exitRunsFailed, exitScheduler, -1:
		default:
			tr.problem("healed, but submit ends with code %d: %s", code, strings.TrimSpace(out))
			return
		}
	}
	tr.problem("not settled after %s", limit)
}

func (tr *trial) folder() rundir.Study { return rundir.OpenStudy(tr.runs, tr.name) }

// story is what happened, for a report.
func (tr *trial) story() string {
	text := tr.log.String()
	queue, _ := tr.slurm("squeue", "--states=all", "--format=%i %j %T %r %N")
	text += "squeue:\n" + queue + "\n"
	for _, name := range []string{"submitted", "unseen", "started"} {
		text += name + ": " + strings.Join(tr.lines(name), "\n  ") + "\n"
	}
	logs, _ := filepath.Glob(filepath.Join(tr.runs, tr.name, "*", "job.log"))
	for _, path := range logs {
		line, _ := os.ReadFile(path)
		text += path + ":\n" + string(line)
	}
	return text
}
