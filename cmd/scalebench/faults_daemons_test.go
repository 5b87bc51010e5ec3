//go:build slurm

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

var daemonClasses = []class{
	{name: "slurmctld down", fire: controllerDown},
	{name: "slurmctld hung", fire: controllerHung, blind: true},
	{name: "slurmctld killed after sbatch", fire: controllerKilled, late: true, blind: true},
	{name: "slurmctld restarted", fire: controllerRestarted, late: true},
	{name: "job id reused", fire: idReused, late: true, blind: true},
	{name: "a submission unseen", fire: submissionUnseen, lane: onCluster, blind: true},
	{name: "array's answer lost", fire: arrayLost, lane: onCluster},
	{name: "accounting down or hung", fire: accountingAway},
}

// unreachable checks that a command reports that Slurm is unreachable.
func (tr *trial) unreachable(out string, code int) {
	if code != exitScheduler || !strings.Contains(out, "Slurm cannot be reached") {
		tr.problem("without slurmctld: exit code %d: %s", code, out)
	}
}

func controllerDown(tr *trial) error {
	begun := tr.rng.IntN(2) == 0
	tr.how = "before anything was submitted"
	if begun {
		tr.how = "with jobs under way"
		if err := tr.underway(); err != nil {
			return err
		}
	}
	if err := tr.cluster.Stop("slurmctld", tr.one("TERM", "KILL")); err != nil {
		return err
	}
	tr.unreachable(tr.submit())
	return tr.cluster.Restart("slurmctld")
}

// controllerHung pauses slurmctld during a submission, for a shorter or longer time than
// sbatch's timeout; scalebench may be killed meanwhile.
func controllerHung(tr *trial) error {
	if err := tr.cluster.Signal("slurmctld", "STOP"); err != nil {
		return err
	}
	hang := tr.between(2*time.Second, 13*time.Second)
	tr.how = fmt.Sprintf("%.1f s", hang.Seconds())
	cmd, out := tr.start(context.Background(), "submit", "study.toml", "--site", "site.toml")
	if tr.rng.IntN(3) == 0 {
		tr.how += ", the tool killed"
		time.Sleep(hang / 2)
		_ = cmd.Process.Kill()
		time.Sleep(hang / 2)
	} else {
		time.Sleep(hang)
	}
	if err := tr.cluster.Signal("slurmctld", "CONT"); err != nil {
		return err
	}
	if out, code := tr.finish(cmd, out); code != 0 && code != exitScheduler && code != -1 {
		tr.problem("with a slurmctld that hung: exit code %d: %s", code, out)
	}
	return nil
}

// controllerKilled kills slurmctld before it has saved what it accepted.
func controllerKilled(tr *trial) error {
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	after := tr.between(0, 1500*time.Millisecond)
	tr.how = fmt.Sprintf("after %s", after.Round(time.Millisecond))
	time.Sleep(after)
	return restartController(tr.cluster, "KILL")
}

func restartController(c *slurmtest.Cluster, signal string) error {
	if err := c.Stop("slurmctld", signal); err != nil {
		return err
	}
	return c.Restart("slurmctld")
}

func controllerRestarted(tr *trial) error {
	tr.steps = 150
	tr.files()
	if err := tr.underway(); err != nil {
		return err
	}
	tr.how = tr.one("TERM", "KILL")
	time.Sleep(tr.between(0, 2*time.Second))
	return restartController(tr.cluster, tr.how)
}

// idReused makes slurmctld forget the jobs that it accepted, and gives their IDs to another
// program's jobs.
func idReused(tr *trial) error {
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	if err := restartController(tr.cluster, "KILL"); err != nil {
		return err
	}
	ours, reused := map[string]bool{}, 0
	for _, id := range tr.jobs() {
		ours[id] = true
	}
	for range 2 * len(ours) {
		id, err := tr.slurm("sbatch", "--parsable", "--job-name=stranger", "--output=/dev/null", "--time=5", "--mem=10M", "--wrap", "sleep 2")
		if err != nil {
			return err
		}
		if ours[id] {
			reused++
		}
	}
	tr.how = fmt.Sprintf("%d of %d ids given to strangers", reused, len(ours))
	return nil
}

// submissionUnseen submits a job whose ID neither scalebench nor a lookup ever learns, so that
// the attempt is in the queue twice.
func submissionUnseen(tr *trial) error {
	tr.how = tr.one("sbatch 1", "sbatch 2")
	tr.file("kill", tr.how+" twice\n", 0o644)
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	if n := len(tr.lines("unseen")); n != 1 {
		return fmt.Errorf("%d unseen submissions, want 1", n)
	}
	return nil
}

// arrayLost loses sbatch's answer for a job array: scalebench is killed during or after sbatch,
// or the array is accepted twice and only one of the two is
// reported.
func arrayLost(tr *trial) error {
	tr.site.array = true
	tr.files()
	call := tr.one("sbatch 1", "sbatch 2")
	if tr.rng.IntN(2) == 0 {
		when := tr.one("during", "after")
		tr.file("kill", call+" "+when+"\n", 0o644)
		tr.how = "killed, " + call + " " + when
		if out, code := tr.submit(); code != -1 {
			return fmt.Errorf("submit was not killed: exit code %d: %s", code, out)
		}
		if err := tr.orphans(); err != nil {
			return err
		}
		return os.Remove(filepath.Join(tr.dir, "kill"))
	}
	tr.class.blind = true
	tr.file("kill", call+" twice\n", 0o644)
	tr.how = "twice, " + call
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	if n := len(tr.lines("unseen")); n != 1 {
		return fmt.Errorf("%d unseen submissions, want 1", n)
	}
	return os.Remove(filepath.Join(tr.dir, "kill"))
}

// accountingAway stops or pauses slurmdbd or its database, before the study is submitted or
// during its runs.
func accountingAway(tr *trial) error {
	daemon, away := tr.one("slurmdbd", "mariadbd"), tr.one("stopped", "killed", "hung")
	take, bring := func() error { return tr.cluster.Stop(daemon, "TERM") }, func() error { return tr.cluster.Restart(daemon) }
	switch away {
	case "killed":
		take = func() error { return tr.cluster.Stop(daemon, "KILL") }
	case "hung":
		take = func() error { return tr.cluster.Signal(daemon, "STOP") }
		bring = func() error { return tr.cluster.Signal(daemon, "CONT") }
	}
	steps := []func() error{take, tr.underway}
	when := tr.one("before it was submitted", "while it was under way")
	if when != "before it was submitted" {
		steps = []func() error{tr.underway, take}
	}
	tr.how = fmt.Sprintf("%s %s %s", daemon, away, when)
	for _, step := range steps {
		if err := step(); err != nil {
			return errors.Join(err, bring())
		}
	}
	if out, code := tr.run("collect"); code != 0 && code != exitScheduler {
		tr.problem("collect without accounting: exit code %d: %s", code, out)
	}
	time.Sleep(tr.between(0, 3*time.Second))
	return bring()
}
