//go:build slurm

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
)

var toolClasses = []class{
	{name: "submit killed", fire: submitKilled, lane: onCluster},
	{name: "collect killed", fire: collectKilled, lane: onCluster},
	{name: "retry killed", fire: retryKilled, lane: onCluster},
	{name: "run killed", fire: runKilled, lane: onThisHost},
	{name: "forget killed", fire: forgetKilled, lane: onThisHost},
}

// fileCalls are the system calls with which scalebench changes files, each with a count that a
// single thread rarely exceeds.
var fileCalls = []struct {
	name string
	most int
}{{"renameat", 8}, {"fsync", 10}, {"mkdirat", 3}, {"linkat", 1}, {"unlinkat", 4}, {"write", 10}, {"pwrite64", 60}, {"openat", 60}}

// kill runs a scalebench command and kills it: after a random part of its usual duration; before,
// during or after its nth call of one of Slurm's commands ("sbatch 2"); or when one of its
// threads enters one of fileCalls for the nth time. If the command ends before that, kill
// repeats it with an earlier call, then with a call of squeue, and finally with the opening of
// the study's file or folder, which every command does.
func (tr *trial) kill(calls []string, args ...string) error {
	points := append(calls, "delay", "file", "file", "file")
	call := fileCalls[tr.rng.IntN(len(fileCalls))]
	const tries = 4
	for try := range tries {
		point := tr.one(points...)
		if try == tries-1 {
			point = "open"
		}
		var delay time.Duration
		var tracer []string
		switch {
		case point == "open":
			tracer = killedAt("openat", 1, "study.toml", tr.runs, tr.folder().Path())
		case point == "file":
			points = []string{"file", "squeue 1"}
			call.most = 1 + tr.rng.IntN(call.most)
			point = fmt.Sprintf("%s %d", call.name, call.most)
			tracer = killedAt(call.name, call.most)
		case point == "delay" || tr.class.lane == onThisHost:
			points = []string{"squeue 1"}
			delay = tr.between(0, tr.took[args[0]])
			point = fmt.Sprintf("after %.1f ms", delay.Seconds()*1e3)
		default:
			points = []string{"squeue 1"}
			point += " " + tr.one("before", "during", "after")
			tr.file("kill", point+"\n", 0o644)
			tr.forget()
		}
		cmd, out := tr.startUnder(context.Background(), tracer, args...)
		if delay > 0 {
			time.Sleep(delay)
			_ = cmd.Process.Kill() // it may have ended
		}
		tr.finish(cmd, out)
		os.Remove(filepath.Join(tr.dir, "kill"))
		if err := tr.orphans(); err != nil {
			return err
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			tr.how = strings.TrimPrefix(tr.how+", "+args[0]+" "+point, ", ")
			return nil
		}
	}
	return fmt.Errorf("%s ended each time before it could be killed", args[0])
}

// killedAt returns a command prefix that kills the program when one of its threads enters a
// system call for the nth time (counting only calls with one of the paths, if given).
func killedAt(call string, when int, paths ...string) []string {
	line := []string{"strace", "-f", "-qq", "--detach-on=execve", "-o", "/dev/null", "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, when)}
	for _, path := range paths {
		line = append(line, "-P", path)
	}
	return line
}

func submitKilled(tr *trial) error {
	for range 1 + tr.rng.IntN(2) {
		if err := tr.kill([]string{"sbatch 1", "sbatch 1", "sbatch 2"}, "submit", "study.toml", "--site", "site.toml"); err != nil {
			return err
		}
	}
	return nil
}

func collectKilled(tr *trial) error {
	tr.steps = 200 // collect calls squeue while there are jobs
	tr.files()
	if err := tr.underway(); err != nil {
		return err
	}
	for range 2 {
		if err := tr.kill([]string{"squeue 1"}, "collect"); err != nil {
			return err
		}
	}
	return nil
}

// forget resets the commands' call counters.
func (tr *trial) forget() {
	for _, command := range []string{"sbatch", "squeue", "sacct"} {
		os.Remove(filepath.Join(tr.dir, command+".calls"))
	}
}

// retryKilled kills the command that resubmits runs which a faulty site file made
// fail.
func retryKilled(tr *trial) error {
	tr.site.setup = "false"
	tr.files()
	if out, code := tr.run("submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s"); code != exitRunsFailed {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	tr.site = site{}
	tr.files()
	for range 1 + tr.rng.IntN(2) {
		if err := tr.kill([]string{"sbatch 1", "sbatch 1", "sbatch 2"}, "retry", "study.toml", "--site", "site.toml"); err != nil {
			return err
		}
	}
	return nil
}

// runKilled kills the command that drives runs on this machine.
func runKilled(tr *trial) error {
	for range 1 + tr.rng.IntN(2) {
		if err := tr.kill(nil, tr.command()...); err != nil {
			return err
		}
	}
	return nil
}

// forgetKilled kills the commands that forget runs and restore them. At any time, each run is
// in exactly one of the two folders, and it can be restored.
func forgetKilled(tr *trial) error {
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, out)
	}
	names := func(in rundir.Study) []string {
		list, err := in.Attempts()
		if err != nil {
			tr.t.Fatal(err)
		}
		var names []string
		for _, a := range list {
			names = append(names, a.Run.Name())
		}
		return names
	}
	whole := names(tr.folder())
	for range 1 + tr.rng.IntN(2) {
		for _, args := range [][]string{{"forget", tr.name}, {"forget", "--restore", tr.name}} {
			if err := tr.kill(nil, args...); err != nil {
				return err
			}
			both := append(names(tr.folder()), names(tr.folder().Trash())...)
			if slices.Sort(both); !slices.Equal(slices.Sorted(slices.Values(whole)), both) {
				tr.problem("after %s: %v are in the study's folder or its trash, and were %v", tr.how, both, whole)
			}
			if tr.rng.IntN(2) == 0 {
				if out, code := tr.run("collect", tr.name); code != 0 {
					tr.problem("collect after %s: exit code %d: %s", tr.how, code, out)
				}
			}
		}
	}
	if out, code := tr.run("forget", "--restore", tr.name); code != 0 && !strings.Contains(out, "none of its runs is forgotten") {
		tr.problem("restore after %s: exit code %d: %s", tr.how, code, out)
	}
	return nil
}
