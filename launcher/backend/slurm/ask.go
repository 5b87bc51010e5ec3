package slurm

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// maxNames is the maximum number of jobs in one query of sacct by name. More names fill several command
// lines, and one query for all of the user's jobs is cheaper for the database.
const maxNames = 500

// An answer holds Slurm's reports about attempts.
type answer struct {
	jobs map[rundir.Folder]*slurm.Job
	odd  map[rundir.Folder]error // attempts with lines that cannot be parsed
}

// askSlurm returns the jobs of attempts, each with the id that submit printed.
func askSlurm(ctx context.Context, client *slurm.Client, attempts []*launcher.Attempt) (answer, error) {
	known, err := askJobs(ctx, client, attempts)
	for _, a := range attempts {
		if job := known.jobs[a.Run]; job != nil {
			known.jobs[a.Run] = taskOf(job, a.Record.ArrayTask())
		}
	}
	return known, err
}

// askJobs returns the jobs of attempts as Slurm reports them. It runs squeue once for all, again if some have
// ended, and sacct once for those that squeue no longer lists. Without accounting those are missing, and the
// run folder decides.
func askJobs(ctx context.Context, client *slurm.Client, attempts []*launcher.Attempt) (answer, error) {
	// By number: a static binary knows only the names in /etc/passwd, and most
	// clusters keep their users elsewhere.
	self := strconv.Itoa(os.Getuid())
	known := answer{map[rundir.Folder]*slurm.Job{}, map[rundir.Folder]error{}}
	queue, err := client.Queue(ctx, slurm.Filter{User: self})
	if err := known.read(attempts, err); err != nil {
		return known, err
	}
	known.add(pick(attempts, queue))
	if err := addExitCodes(ctx, client, self, known.jobs); err != nil {
		return answer{}, err
	}
	var forgotten []string
	since := time.Now()
	for _, a := range attempts {
		if known.jobs[a.Run] == nil && known.odd[a.Run] == nil {
			forgotten = append(forgotten, a.Record.JobName)
			if created := metrics.Time(a.Record.CreatedUnix); created.Before(since) {
				since = created
			}
		}
	}
	if len(forgotten) == 0 {
		return known, nil
	}
	slices.Sort(forgotten)
	forgotten = slices.Compact(forgotten) // the attempts of a pack share a name
	// A minute earlier: the clocks of this host and the database's may differ.
	filter := slurm.Filter{Names: forgotten}
	if len(forgotten) > maxNames {
		filter = slurm.Filter{User: self}
	}
	history, err := client.Accounting(ctx, since.Add(-time.Minute), filter)
	if err := known.read(attempts, err); err != nil && !errors.Is(err, slurm.ErrNoAccounting) {
		return known, err
	}
	// The controller alone knows about active jobs. In the database a job that the controller has lost stays
	// RUNNING forever, and requeued incarnations stay REQUEUED next to later ones.
	history = slices.DeleteFunc(history, func(j slurm.Job) bool { return j.State.Known() && !j.State.Terminal() })
	known.add(pick(attempts, history))
	return known, nil
}

// add stores jobs of attempts whose job is unknown so far. If one line about an attempt cannot be parsed, no other line
// about it is used: it may be outdated.
func (k *answer) add(jobs map[rundir.Folder]*slurm.Job) {
	for run, job := range jobs {
		if k.jobs[run] == nil && k.odd[run] == nil {
			k.jobs[run] = job
		}
	}
}

// read records the attempts whose lines cannot be parsed; other jobs of the user do not matter. It returns any
// other error.
func (k *answer) read(attempts []*launcher.Attempt, err error) error {
	var odd *slurm.UnreadableError
	if !errors.As(err, &odd) {
		return err
	}
	for _, a := range attempts {
		id := ""
		if a.Submission != nil {
			id = a.Submission.JobID
		}
		if err := odd.Of(a.Record.JobName, id); err != nil {
			k.odd[a.Run] = err
		}
	}
	return nil
}

// addExitCodes asks for the exit codes of ended jobs, with one query for all, or none if no job needs it. If
// this Slurm does not support the query, the batch script's exit record has to do.
func addExitCodes(ctx context.Context, client *slurm.Client, user string, known map[rundir.Folder]*slurm.Job) error {
	lacks := func(j *slurm.Job) bool { return j.State.Terminal() && j.ExitCode == nil }
	if !slices.ContainsFunc(slices.Collect(maps.Values(known)), lacks) {
		return nil
	}
	codes, err := client.ExitCodes(ctx, user)
	var gone launcher.Unreachable
	if errors.As(err, &gone) {
		return err
	}
	for _, j := range known {
		if code, ok := codes[j.ID]; ok && lacks(j) {
			j.ExitCode = &code
		}
	}
	return nil
}

// A queuePlace identifies an attempt's job in the queue.
type queuePlace struct {
	name string
	task int // index in a job array; -1 if there is no array or Slurm does not report it
}

// pick finds each attempt's job among those with its name, and, in an array,
// with its index. The name is the attempt's own, or its pack's, so several jobs
// mean that a submission went through twice or that the job was requeued: the
// copy that claimed the run counts, and of its incarnations the last; before
// any has, one that may still run.
func pick(attempts []*launcher.Attempt, jobs []slurm.Job) map[rundir.Folder]*slurm.Job {
	at := map[queuePlace][]*slurm.Job{}
	jobs = slurm.ExpandArray(jobs)
	for i := range jobs {
		p := queuePlace{jobs[i].Name, -1}
		if _, task, ok := slurm.ArrayTask(jobs[i].ID); ok {
			p.task = task
		}
		at[p] = append(at[p], &jobs[i])
	}
	picked := map[rundir.Folder]*slurm.Job{}
	for _, a := range attempts {
		candidates := at[queuePlace{a.Record.JobName, a.Record.ArrayTask()}]
		if len(candidates) == 0 {
			candidates = at[queuePlace{a.Record.JobName, -1}]
		}
		owner := a.Run.Owner()
		for _, job := range candidates {
			if owner != "" && job.ID != owner {
				continue
			}
			best := picked[a.Run]
			if best == nil || best.State.Terminal() && !job.State.Terminal() ||
				best.State.Terminal() == job.State.Terminal() && !job.Submit.Before(best.Submit) {
				picked[a.Run] = job
			}
		}
	}
	return picked
}

// taskOf turns an array's job into the job of one task. Slurm does not always name the task: it shortens long
// lists, "99_[1,3,...]", and lists an array cancelled while waiting by its number only, "32". The id becomes
// the task's, as submit printed it: the array's id would mean all tasks.
func taskOf(job *slurm.Job, task int) *slurm.Job {
	if task < 0 {
		return job
	}
	one := *job
	array, _, _ := strings.Cut(job.ID, "_")
	one.ID = array + "_" + strconv.Itoa(task)
	return &one
}

// adopt records the jobs of attempts whose submission was not recorded because the submitting command died
// first. If one task of an array is found, all of them were submitted.
func adopt(open []*launcher.Attempt, jobs map[rundir.Folder]*slurm.Job) (wrong map[rundir.Folder]error) {
	wrong = map[rundir.Folder]error{}
	packs := map[rundir.Pack]*launcher.Submission{}
	for _, a := range open {
		job, m := jobs[a.Run], a.Record.Pack
		if job == nil || a.Submission != nil {
			continue
		}
		answer := &launcher.Submission{JobID: job.ID, Cluster: job.Cluster, SubmittedUnix: metrics.Unix(job.Submit)}
		path := a.Run.Job()
		if m != nil {
			if path = a.Run.Pack(m.Name).Job(); packs[a.Run.Pack(m.Name)] != nil {
				continue
			}
			answer.JobID = afterJob(job.ID)
		}
		if err := rundir.WriteJSON(path, answer, 0o644); err != nil {
			wrong[a.Run] = err
			continue
		}
		if m != nil {
			packs[a.Run.Pack(m.Name)] = answer
			continue
		}
		a.Submission = answer
	}
	for _, a := range open {
		if m := a.Record.Pack; m != nil && a.Submission == nil && packs[a.Run.Pack(m.Name)] != nil {
			a.Submission = m.Submission(*packs[a.Run.Pack(m.Name)])
		}
	}
	return wrong
}
