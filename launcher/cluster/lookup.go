package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/slurm"
)

// lookups limits how often to look for a job whose submission got no answer, at growing intervals (firstLook,
// then double the last): 15 s in total plus the time of Slurm's commands. By then a controller that hung for a
// moment has queued the job.
const lookups = 4

// submitted submits a job's script with sbatch and returns the job's id. If the answer is lost, it looks for
// the job by its name, which is unique. A job that it cannot find may still be queued by a hanging controller,
// so it takes the job's claim: the job then ends at once if it ever starts. If both an id and an error are
// returned, the job is running.
func (c Cluster) submitted(ctx context.Context, j *job) (id string, err error) {
	answer, err := c.Client.Submit(ctx, j.dir.Script())
	var gone *slurm.UnreachableError
	if !errors.As(err, &gone) || !gone.MaybeQueued {
		return answer.ID, err
	}
	for look, pause := 0, firstLook; look < lookups && ctx.Err() == nil; look, pause = look+1, 2*pause {
		wait := pause
		if look == 0 && errors.Is(err, slurm.ErrNoJobID) {
			wait = 0 // sbatch has accepted the job, so it is in the queue
		}
		select {
		case <-ctx.Done():
			continue
		case <-time.After(wait):
		}
		jobs, err := c.Client.Queue(ctx, slurm.Filter{Names: []string{j.script.JobName}})
		if err == nil && len(jobs) > 0 {
			c.Note("%s: the answer was lost (%s); job %s is in the queue anyway", j.use.subject(), oneLine(gone.Message), jobs[0].ID)
			return jobs[0].ID, nil
		}
	}
	lost := &slurm.UnreachableError{Command: gone.Command, Err: err}
	said := "if it still appears, it ends at once"
	switch taken := rundir.Folder(j.dir).TakeClaim(0, ""); {
	case errors.Is(taken, fs.ErrExist):
		// It runs although Slurm does not list it; its own record has the id.
		id = rundir.Folder(j.dir).Owner()
		if id != "" && ctx.Err() == nil {
			return id, nil
		}
		said, lost.MaybeQueued = "the job has begun", id == ""
	case taken != nil:
		said, lost.MaybeQueued = fmt.Sprintf("its claim cannot be taken (%v)", taken), true
	}
	lost.Message = fmt.Sprintf("%s; no job %s was found in the queue afterwards, and %s", gone.Message, j.script.JobName, said)
	return id, lost
}
