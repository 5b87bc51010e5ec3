package launcher

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/scalebench/scalebench/slurm"
)

// maxNames is how many jobs sacct is asked for by name. Names of more fill
// several command lines, and one call for all of the user's jobs costs the
// database less.
const maxNames = 500

// askSlurm returns what Slurm knows of attempts, by job name. It takes one
// squeue for all of them, and one sacct for those that squeue has forgotten;
// where there is no accounting, those are missing and the folder has the say.
func askSlurm(ctx context.Context, client *slurm.Client, attempts []*Attempt) (map[string]*slurm.Job, error) {
	// By number: a static binary knows only the names in /etc/passwd, and most
	// clusters keep their users elsewhere.
	self := strconv.Itoa(os.Getuid())
	queue, err := client.Queue(ctx, slurm.Filter{User: self})
	if err != nil {
		return nil, err
	}
	known := pick(attempts, queue)
	var forgotten []string
	since := time.Now()
	for _, a := range attempts {
		if known[a.Record.JobName] == nil {
			forgotten = append(forgotten, a.Record.JobName)
			if created := time.Unix(int64(a.Record.CreatedUnix), 0); created.Before(since) {
				since = created
			}
		}
	}
	if len(forgotten) == 0 {
		return known, nil
	}
	// A minute earlier: the clocks of this host and the database's may differ.
	filter := slurm.Filter{Names: forgotten}
	if len(forgotten) > maxNames {
		filter = slurm.Filter{User: self}
	}
	history, err := client.Accounting(ctx, since.Add(-time.Minute), filter)
	if err != nil && !errors.Is(err, slurm.ErrNoAccounting) {
		return known, err
	}
	// Of what is under way the controller alone has the word. In the database a
	// job that the controller has lost stays RUNNING for ever, and what a
	// requeue ended stays REQUEUED beside what came of it.
	history = slices.DeleteFunc(history, func(j slurm.Job) bool { return j.State.Known() && !j.State.Terminal() })
	for name, job := range pick(attempts, history) {
		if known[name] == nil {
			known[name] = job
		}
	}
	return known, nil
}

// pick finds each attempt's job among those with its name. The name is the
// attempt's own, so several jobs mean that a submission went through twice or
// that the job was requeued: the copy that claimed the run counts, and of its
// incarnations the last; before any has, one that may still run.
func pick(attempts []*Attempt, jobs []slurm.Job) map[string]*slurm.Job {
	byName := map[string][]*slurm.Job{}
	for i := range jobs {
		byName[jobs[i].Name] = append(byName[jobs[i].Name], &jobs[i])
	}
	picked := map[string]*slurm.Job{}
	for _, a := range attempts {
		name := a.Record.JobName
		owner := a.Run.Owner()
		for _, job := range byName[name] {
			if owner != "" && job.ID != owner {
				continue
			}
			best := picked[name]
			if best == nil || best.State.Terminal() && !job.State.Terminal() ||
				best.State.Terminal() == job.State.Terminal() && !job.Submit.Before(best.Submit) {
				picked[name] = job
			}
		}
	}
	return picked
}
