//go:build slurm

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var signalClasses = []class{
	{name: "signals to run", fire: commandSignalled, lane: onThisHost},
	{name: "signals to submit --wait", fire: commandSignalled, lane: onCluster},
	{name: "process of a run killed", fire: partKilled, lane: onThisHost},
	{name: "process of a job killed", fire: partKilled, lane: onCluster},
}

// commandSignalled sends signals to commands at random times, once or several times, and may
// pause them before.
func commandSignalled(tr *trial) error {
	commands := [][]string{tr.command(), tr.command(), {"collect"}, {"status", tr.name}, {"runs"}, {"report", tr.name, "-o", "page.html"}}
	if tr.class.lane == onCluster {
		wait := append(tr.command(), "--wait", "--interval", "1s")
		commands[0], commands[1] = wait, append([]string{"retry"}, wait[1:]...)
	}
	for range 2 + tr.rng.IntN(3) {
		args := commands[tr.rng.IntN(len(commands))]
		took := 4 * time.Second
		if args[0] != tr.command()[0] && args[0] != "retry" {
			took = 60 * time.Millisecond
		}
		signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT}[tr.rng.IntN(5)]
		cmd, out := tr.start(context.Background(), args...)
		time.Sleep(tr.between(0, took))
		if tr.rng.IntN(3) == 0 {
			_ = cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(tr.between(0, 2*time.Second))
			_ = cmd.Process.Signal(syscall.SIGCONT)
		}
		times := 1 + tr.rng.IntN(2)
		for range times {
			_ = cmd.Process.Signal(signal) // it may have ended
			time.Sleep(tr.between(0, 50*time.Millisecond))
		}
		tr.how = strings.TrimPrefix(fmt.Sprintf("%s; %s %v", tr.how, args[0], signal), "; ")
		ended := time.AfterFunc(time.Minute, func() {
			tr.problem("%s does not end after %v", args[0], signal)
			_ = cmd.Process.Kill()
		})
		tr.mayBreak = signal == syscall.SIGQUIT // Go then prints its stacks
		tr.finish(cmd, out)
		tr.mayBreak = false
		ended.Stop()
	}
	return tr.orphans()
}

// partKilled kills one of the processes of a run that is under way.
func partKilled(tr *trial) error {
	tr.native = tr.rng.IntN(3) == 0
	tr.steps = 100
	tr.files()
	parts := map[string]string{"the supervisor": "scalebench-worker\x00run", "the program": "train"}
	if tr.class.lane == onCluster {
		parts["srun"] = "srun\x00"
	}
	part := tr.one("the supervisor", "the program")
	if tr.class.lane == onCluster {
		part = tr.one("the supervisor", "the program", "srun")
	}
	tr.how = fmt.Sprintf("%s, native %v", part, tr.native)
	args := tr.command()
	if tr.class.lane == onCluster {
		args = append(args, "--wait", "--interval", "1s")
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	cmd, out := tr.start(ctx, args...)
	var pids []int
	err := awaitFor(time.Minute, part, func() bool {
		pids = tr.processes(parts[part])
		return len(pids) > 0 || tr.over(cmd.Process.Pid)
	})
	if err == nil && len(pids) > 0 {
		time.Sleep(tr.between(0, time.Second))
		_ = syscall.Kill(pids[tr.rng.IntN(len(pids))], syscall.SIGKILL) // it may have ended
	}
	if out, code := tr.finish(cmd, out); code != 0 && code != exitRunsFailed {
		tr.problem("with %s killed: exit code %d: %s", part, code, out)
	}
	if err == nil && len(pids) == 0 {
		return fmt.Errorf("%s never ran", part)
	}
	return err
}

// processes returns the processes of the trial's runs, on this machine or a node, whose
// command line contains text.
func (tr *trial) processes(text string) []int {
	return processes(func(environment, line string) bool {
		return (strings.Contains(environment, "\x00SCALEBENCH_RUN="+tr.folder().Path()+"/") ||
			strings.Contains(line, "--dir\x00"+tr.folder().Path()+"/")) && strings.Contains(line, text)
	})
}

// nodeProcesses returns all processes of the trial's jobs, on any node, whose command line
// contains text.
func (tr *trial) nodeProcesses(text string) []int {
	return processes(func(environment, line string) bool {
		return strings.Contains(environment, "\x00SLURM_JOB_ID=") && strings.Contains(environment, tr.dir+"/") && strings.Contains(line, text)
	})
}

// processes returns the processes on this machine, in any namespaces, that meant selects.
// Their environments have a zero byte before each variable.
func processes(meant func(environment, line string) bool) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		environment, _ := os.ReadFile(filepath.Join(p, "environ"))
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil && meant("\x00"+string(environment), string(line)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
