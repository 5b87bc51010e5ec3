//go:build slurm

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/slurm"
)

var jobClasses = []class{
	{name: "node crashed", fire: nodeCrashed},
	{name: "slurmd restarted", fire: slurmdRestarted},
	{name: "job requeued", fire: jobRequeued, lane: onCluster},
	{name: "job preempted", fire: jobPreempted},
	{name: "job cancelled by hand", fire: jobCancelled, lane: onCluster},
	{name: "job timed out", fire: jobTimedOut, lane: onCluster},
	{name: "job out of memory", fire: jobOutOfMemory, lane: onCluster},
	{name: "job held by a limit", fire: jobHeld},
}

// running returns one of the trial's running jobs, with its nodes.
func (tr *trial) running() (slurm.Job, error) {
	var found slurm.Job
	err := tr.await("a running job", func() bool {
		queue, err := tr.queue()
		for _, j := range queue {
			if err == nil && j.State == slurm.Running && len(j.Nodes) > 0 {
				found = j
				return true
			}
		}
		return false
	})
	return found, err
}

// atRunningJob submits a study with longer runs and calls do with one of its running
// jobs.
func (tr *trial) atRunningJob(do func(slurm.Job) error) error {
	tr.steps = 200
	tr.files()
	if err := tr.underway(); err != nil {
		return err
	}
	j, err := tr.running()
	if err != nil {
		return err
	}
	time.Sleep(tr.between(0, time.Second))
	return do(j)
}

func nodeCrashed(tr *trial) error {
	tr.site.requeue = tr.rng.IntN(2) == 0
	return tr.atRunningJob(func(j slurm.Job) error {
		node := j.Nodes[tr.rng.IntN(len(j.Nodes))]
		off := tr.between(0, 3*time.Second)
		tr.how = fmt.Sprintf("%s of job %s for %.1f s, requeue %v", node, j.ID, off.Seconds(), tr.site.requeue)
		if err := tr.cluster.CrashNode(node); err != nil {
			return err
		}
		time.Sleep(off)
		return tr.cluster.BootNode(node)
	})
}

func slurmdRestarted(tr *trial) error {
	return tr.atRunningJob(func(j slurm.Job) error {
		daemon := "slurmd-" + j.Nodes[tr.rng.IntN(len(j.Nodes))]
		tr.how = daemon + " " + tr.one("TERM", "KILL")
		if err := tr.cluster.Stop(daemon, tr.how[len(daemon)+1:]); err != nil {
			return err
		}
		return tr.cluster.Restart(daemon)
	})
}

func jobRequeued(tr *trial) error {
	tr.site.requeue = true
	return tr.atRunningJob(func(j slurm.Job) error {
		tr.how = "job " + j.ID
		_, err := tr.slurm("scontrol", "requeue", j.ID)
		return err
	})
}

func jobPreempted(tr *trial) error {
	tr.site.partition, tr.site.requeue = "scavenge", tr.rng.IntN(2) == 0
	return tr.atRunningJob(func(j slurm.Job) error {
		tr.how = fmt.Sprintf("requeue %v", tr.site.requeue)
		urgent, err := tr.slurm("sbatch", "--parsable", "--job-name=stranger", "--partition=main", "--exclusive",
			fmt.Sprintf("--nodes=%d", len(j.Nodes)), "--nodelist="+strings.Join(j.Nodes, ","),
			"--output=/dev/null", "--time=5", "--wrap", "sleep 1")
		if err != nil {
			return err
		}
		return tr.await("the urgent job", func() bool {
			state, err := tr.slurm("squeue", "--noheader", "--states=all", "--format=%T", "--jobs="+urgent)
			return err == nil && state == "COMPLETED"
		})
	})
}

func jobCancelled(tr *trial) error {
	if tr.rng.IntN(2) == 0 {
		tr.how = "while it ran"
		return tr.atRunningJob(func(j slurm.Job) error {
			_, err := tr.slurm("scancel", j.ID)
			return err
		})
	}
	tr.how = "as soon as it was submitted"
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	_, err := tr.slurm("scancel", tr.jobs()...)
	return err
}

// jobTimedOut shortens the time limit of a running job, and waits for the timeout.
func jobTimedOut(tr *trial) error {
	tr.site.setup = "sleep 60"
	tr.files()
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	j, err := tr.running()
	if err != nil {
		return err
	}
	tr.how = "job " + j.ID
	if _, err := tr.slurm("scontrol", "update", "JobId="+j.ID, "EndTime=now+2"); err != nil {
		return err
	}
	if err := tr.ended(j.ID, slurm.Timeout); err != nil {
		return err
	}
	return tr.heal()
}

func jobOutOfMemory(tr *trial) error {
	tr.site.setup = "x=$(head -c 400000000 /dev/zero | tr '\\0' x); sleep 60; echo ${#x}"
	tr.files()
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	j, err := tr.running()
	if err != nil {
		return err
	}
	tr.how = "job " + j.ID
	if err := tr.ended(j.ID, slurm.Failed, slurm.OutOfMemory); err != nil {
		return err
	}
	return tr.heal()
}

// ended waits until Slurm reports that a job ended in one of the states.
func (tr *trial) ended(id string, in ...slurm.State) error {
	return tr.await(fmt.Sprintf("job %s %v", id, in), func() bool {
		queue, err := tr.queue()
		for _, j := range queue {
			for _, state := range in {
				if err == nil && j.ID == id && j.State == state {
					return true
				}
			}
		}
		return false
	})
}

// heal corrects the site file and cancels the jobs that were submitted with the faulty one.
func (tr *trial) heal() error {
	tr.site = site{}
	tr.files()
	_, err := tr.slurm("scancel", tr.jobs()...)
	return err
}

// jobHeld keeps the jobs in the queue by a limit of the account, and checks that status gives
// the reason.
func jobHeld(tr *trial) (err error) {
	limit := func(jobs string) error {
		_, err := tr.slurm("sacctmgr", "--immediate", "modify", "account", "bench", "set", "GrpJobs="+jobs)
		return err
	}
	if err := limit("0"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limit("-1")) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd, complaint := tr.start(ctx, "submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s")
	err = tr.await("a job that the limit holds", func() bool {
		queue, err := tr.queue()
		return err == nil && slices.ContainsFunc(queue, func(j slurm.Job) bool { return j.Reason == "AssocGrpJobsLimit" })
	})
	cancel()
	tr.finish(cmd, complaint)
	if err != nil {
		return err
	}
	out, code := tr.run("status", tr.name, "--format", "csv")
	if code != 0 {
		tr.problem("status of held jobs: exit code %d", code)
	}
	for _, want := range []string{"pending", "AssocGrpJobsLimit"} {
		if !strings.Contains(out, want) {
			tr.problem("status of held jobs does not say %s", want)
		}
	}
	tr.how = "GrpJobs=0"
	return nil
}
