package slurm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Enclosing returns the allocation of the salloc or sbatch that this process runs under, or nil.
func (b *Backend) Enclosing(getenv func(string) string) (*launcher.Allocation, error) {
	id := getenv("SLURM_JOB_ID")
	if id == "" {
		return nil, nil
	}
	a := &launcher.Allocation{JobID: id, Partition: getenv("SLURM_JOB_PARTITION")}
	var err error
	if a.Nodes, err = strconv.Atoi(getenv("SLURM_JOB_NUM_NODES")); err != nil || a.Nodes < 1 {
		return nil, fmt.Errorf("SLURM_JOB_ID is %s, but SLURM_JOB_NUM_NODES is %q, not a number of nodes; --local runs processes on this machine instead", id, getenv("SLURM_JOB_NUM_NODES"))
	}
	if a.CPUsPerNode, err = fewest(getenv("SLURM_JOB_CPUS_PER_NODE")); err != nil {
		return nil, fmt.Errorf("SLURM_JOB_CPUS_PER_NODE: %w; --local runs processes on this machine instead", err)
	}
	for _, name := range []string{"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"} { // the second may name a type before
		_, text, found := strings.Cut(getenv(name), ":")
		if !found {
			text = getenv(name)
		}
		if n, err := strconv.Atoi(text); err == nil && n > 0 && a.GPUsPerNode == 0 {
			a.GPUsPerNode = n
		}
	}
	return a, nil
}

var cpusForm = regexp.MustCompile(`^(\d+)(?:\(x\d+\))?$`)

// fewest reads Slurm's CPUs of the nodes, "4(x2),8", and is the least of them.
func fewest(text string) (int, error) {
	var all []int
	for _, part := range strings.Split(text, ",") {
		n, err := 0, error(nil)
		if m := cpusForm.FindStringSubmatch(part); m != nil {
			n, err = strconv.Atoi(m[1])
		}
		if err != nil || n < 1 {
			return 0, fmt.Errorf("%q is not a list of CPUs like \"4(x2),8\"", text)
		}
		all = append(all, n)
	}
	return slices.Min(all), nil
}

// Inside returns what runs attempts as steps of the allocation.
func (b *Backend) Inside() launcher.Carrier { return steps{b} }

// steps runs attempts as steps of the enclosing allocation: bash runs the batch scripts here, and their srun
// uses the allocation's nodes.
type steps struct {
	batch *Backend // writes the scripts
}

func (b steps) Write(t launcher.Todo, at rundir.Folder, a *launcher.Attempt) error {
	s, err := b.batch.Script(t.Planned, a)
	if err != nil {
		return err
	}
	s.JobName, s.Inside = a.Record.ID, true
	var text bytes.Buffer
	if err := b.batch.render(&text, s); err != nil {
		return err
	}
	return rundir.WriteFile(at.Script(), text.Bytes(), sharedfs.ModeScript)
}

// Ready does nothing: the script claims its attempt.
func (b steps) Ready(*launcher.Attempt) error { return nil }

// Carry runs an attempt's batch script with bash, in the environment of the
// allocation, and waits for its end.
func (b steps) Carry(ctx context.Context, a *launcher.Attempt) launcher.Exit {
	started := time.Now()
	exit := launcher.Exit{ExitCode: 1, StartUnix: metrics.Unix(started)}
	// If the site's setup fails, the log shows the failing line.
	log, err := os.OpenFile(a.Run.JobLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, sharedfs.ModePrivate)
	if err == nil {
		defer log.Close()
		cmd := exec.CommandContext(ctx, "bash", a.Run.Script())
		// The attempt was begun once, however often the job around it was.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SLURM_RESTART_COUNT=") })
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = worker.Grace + 10*time.Second
		runtime.LockOSThread() // Pdeathsig is the death of this thread
		defer runtime.UnlockOSThread()
		if err = cmd.Run(); err == nil {
			exit.ExitCode = 0
		} else {
			fmt.Fprintf(log, "scalebench: %s: %v\n", a.Run.Script(), err)
		}
	}
	if ctx.Err() != nil {
		exit.Signal = "TERM"
	}
	exit.EndUnix = exit.StartUnix + time.Since(started).Seconds()
	return exit
}
