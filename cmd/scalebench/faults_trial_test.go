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
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/slurm"
)

// A trial is one injected fault and the study that it affects.
type trial struct {
	*rig
	name  string
	class class
	rng   *rand.Rand
	how   string // how the fault was injected, for the log
	dir   string // the user's folder
	runs  string // the run folders

	steps    int  // steps of each run
	workers  int  // workers of the study's larger point
	native   bool // uses the native trainer; else a trivial program
	site     site
	fired    time.Time
	user     int    // user ID that runs the commands; 0: the test's own
	clock    string // the commands' clock, see steppedClock; "": the machine's
	patience time.Duration
	mayBreak bool         // Go's runtime may abort the commands with its own message
	log      bytes.Buffer // commands, exit codes and problems
	problems []string     // found before check
}

// patience is the time after which a command counts as hanging. Under load, training takes
// minutes.
const patience = 10 * time.Minute

func (r *rig) trial(name string, c class, rng *rand.Rand) *trial {
	tr := &trial{rig: r, name: name, class: c, rng: rng, steps: 40, workers: 2, dir: filepath.Join(r.dir, name), patience: patience}
	tr.runs = filepath.Join(tr.dir, "runs")
	for _, dir := range []string{tr.dir, filepath.Join(tr.dir, "path")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, command := range []string{"sbatch", "squeue", "sacct"} {
		tr.file("path/"+command, fmt.Sprintf(commandWrapper, command, tr.dir, filepath.Join(r.cluster.Dir, "bin", command)), 0o755)
	}
	tr.file("train.sh", cheapProgram, 0o755)
	tr.file("worker", fmt.Sprintf(workerWrapper, tr.dir, filepath.Join(r.dir, "bin", "scalebench-worker")), 0o755)
	tr.files()
	return tr
}

func (tr *trial) file(name, text string, mode os.FileMode) {
	if err := os.WriteFile(filepath.Join(tr.dir, name), []byte(text), mode); err != nil {
		tr.t.Fatal(err)
	}
}

// lines returns the lines of a file in the trial's folder; none if it does not exist.
func (tr *trial) lines(name string) []string {
	text, err := os.ReadFile(filepath.Join(tr.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		tr.t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
}

// start begins a scalebench command.
func (tr *trial) start(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	return tr.startUnder(ctx, nil, args...)
}

// startUnder starts a scalebench command through another program, which receives its command line.
func (tr *trial) startUnder(ctx context.Context, program []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	out := new(bytes.Buffer)
	bin, environment := filepath.Join(tr.bench.dir, "bin"), []string{"HOME=" + tr.dir}
	if tr.clock != "" {
		var err error
		if bin, err = tr.stepped(); err != nil {
			tr.t.Fatal(err)
		}
		environment = append(environment, steppedClock+"="+tr.clock, "FAULT_WORKER="+filepath.Join(bin, "scalebench-worker"))
	}
	line := slices.Concat(program, []string{filepath.Join(bin, "scalebench")}, args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	// The delay allows reading the whole output of an ended command: on a machine that
	// paused for a second, half a table was lost.
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = tr.dir, out, out, 30*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if tr.user != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(tr.user), Gid: uint32(tr.user)}
	}
	cmd.Env = slices.Concat(tr.env, environment, []string{"SCALEBENCH_DB=" + filepath.Join(tr.dir, "scalebench.db"), "SCALEBENCH_RUNS=" + tr.runs,
		"PATH=" + filepath.Join(tr.dir, "path") + ":" + filepath.Join(tr.cluster.Dir, "bin") + ":" + os.Getenv("PATH")})
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // including the program around it
	if err := cmd.Start(); err != nil {
		tr.t.Error(err)
	}
	return cmd, out
}

// run runs a scalebench command to its end. Exceeding the trial's patience is recorded as a
// problem.
func (tr *trial) run(args ...string) (out string, code int) { return tr.runUnder(nil, args...) }

// runUnder runs a scalebench command through another program, which receives its command line.
func (tr *trial) runUnder(program []string, args ...string) (out string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), tr.patience)
	defer cancel()
	out, code = tr.finish(tr.startUnder(ctx, program, args...))
	if ctx.Err() != nil {
		tr.problem("scalebench %s did not end within %s", strings.Join(args, " "), tr.patience)
	}
	return out, code
}

// command returns the command that runs the trial's study: submit, or run if the fault
// needs no cluster.
func (tr *trial) command() []string {
	if tr.class.lane == onThisHost {
		return []string{"run", "study.toml", "--site", "site.toml", "--local", "--oversubscribe"}
	}
	return []string{"submit", "study.toml", "--site", "site.toml"}
}

// finish waits for a started command; the exit code is -1 if it was
// killed.
func (tr *trial) finish(cmd *exec.Cmd, out *bytes.Buffer) (string, int) {
	_ = cmd.Wait() // ProcessState has the exit code
	code := cmd.ProcessState.ExitCode()
	fmt.Fprintf(&tr.log, "$ %s\n%s[%s]\n", strings.Join(cmd.Args, " "), out, cmd.ProcessState)
	if strings.Contains(out.String(), "this is a bug") || !tr.mayBreak && strings.Contains(out.String(), "\ngoroutine ") {
		tr.problem("scalebench %s crashed", cmd.Args[1])
	}
	return out.String(), code
}

// orphans waits for Slurm commands whose caller was killed. A lookup cannot see a submission
// that is still under way, so the attempt would be submitted again, which is
// correct.
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
	return tr.run(tr.command()...)
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

// between returns a random duration.
func (tr *trial) between(low, high time.Duration) time.Duration {
	return low + time.Duration(tr.rng.Int64N(int64(high-low)))
}

// one returns one of the given texts at random.
func (tr *trial) one(of ...string) string { return of[tr.rng.IntN(len(of))] }

// jobs returns the job IDs that sbatch returned.
func (tr *trial) jobs() []string {
	var ids []string
	for _, line := range tr.lines("submitted") {
		id, _, _ := strings.Cut(line, " ")
		ids = append(ids, id)
	}
	return ids
}

// queue returns the trial's jobs in Slurm's queue.
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

// skipGrace makes the commands that settle the trial skip the grace period after which an
// unknown job is lost: Slurm itself no longer needs it, and its length has a separate test.
func (tr *trial) skipGrace() {
	if left := launcherGrace - time.Since(tr.fired); left > 0 {
		tr.clock = fmt.Sprintf("0:%d", int(left.Seconds())+1)
	}
}

// launcherGrace is the time after which an unknown job counts as lost.
const launcherGrace = 5 * time.Minute

// settle repeats `submit --wait`, or `run`, until there is nothing left to do.
func (tr *trial) settle(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	defer func() { tr.clock = "" }()
	args := tr.command()
	if tr.class.lane != onThisHost {
		args = append(args, "--wait", "--interval", "1s")
	}
	for ctx.Err() == nil {
		switch out, code := tr.finish(tr.start(ctx, args...)); code {
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

// story describes the events, for a report.
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
