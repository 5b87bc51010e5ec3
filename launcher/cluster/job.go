package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/slurm"
)

// A job is a probe job. Until watch returns, only its goroutine may use the fields, except state.
type job struct {
	use    use
	dir    rundir.Probe
	script slurm.Script
	id     string
	asked  probe.Question

	answers []*probe.Answer // by rank; nil if missing
	clocks  []nodeClock     // by node

	mu    sync.Mutex
	state *slurm.Job // from the last query of the queue; nil before the first
	gone  bool       // the queue no longer lists the job
}

// A nodeClock is the result of exchanging files with one node.
type nodeClock struct {
	rounds int          // number of answered files
	best   probe.Clocks // of the shortest round trip; the node's clock minus this host's
	err    error
}

// probeTime is the jobs' time limit: enough for all phases, and short enough for the scheduler to backfill.
const probeTime = 10 * time.Minute

// submit writes a probe job's folder and submits its script. The site's settings apply as in the study's
// scripts.
func (c Cluster) submit(ctx context.Context, dir rundir.Probe, u use) (*job, error) {
	if err := os.MkdirAll(dir.Path(), 0o700); err != nil {
		return nil, err
	}
	j := &job{use: u, dir: dir, asked: probe.Question{Token: token(), Interface: c.Site.Interface, Python: c.Site.Python, Imports: c.imports()}}
	text, err := json.Marshal(j.asked)
	if err != nil {
		return nil, err
	}
	if err := rundir.WriteFile(dir.Question(), text, 0o600); err != nil {
		return nil, err
	}
	shape := u.shape
	shape.Point.Nodes = min(2, shape.Point.Nodes)
	shape.Point.Workers = shape.Point.Nodes * shape.Point.WorkersPerNode
	s, err := c.Script(shape)
	if err != nil {
		return nil, err
	}
	s.StepName = ""
	s.JobName, s.RunDir, s.Output = "scalebench-doctor-"+j.asked.Token[:8], dir.Path(), dir.JobLog()
	s.Time, s.SignalBefore, s.Requeue, s.Exclusive = probeTime, 0, false, false
	if u.known.MaxTime != nil {
		s.Time = min(s.Time, *u.known.MaxTime)
	}
	// The tasks look for the interface themselves: if the script failed to find it, the probe would report
	// nothing else.
	s.Interface = ""
	s.Stage, s.Unstage = nil, nil // there is no data to stage
	s.Command = []string{s.Worker, "probe", "--dir", dir.Path()}
	j.script = s
	j.answers, j.clocks = make([]*probe.Answer, s.Tasks()), make([]nodeClock, s.Nodes)

	var rendered bytes.Buffer
	if err := c.Render(&rendered, s); err != nil {
		return nil, err
	}
	if err := rundir.WriteFile(dir.Script(), rendered.Bytes(), 0o700); err != nil {
		return nil, err
	}
	j.id, err = c.submitted(ctx, j)
	return j, err
}

func token() string {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err) // crypto/rand does not fail on Linux
	}
	return hex.EncodeToString(b)
}

// over reports whether Slurm has reported that the job has ended.
func (j *job) over() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.gone || j.state != nil && j.state.State.Terminal()
}

// fileGrace limits how late a job's files may arrive after Slurm reports its end: NFS may hide a new file for a
// minute (acdirmax).
const fileGrace = 65 * time.Second

// failed reports whether the batch script recorded a failure, after which no more answers arrive.
func (j *job) failed() bool {
	text, err := rundir.ReadFile(rundir.Folder(j.dir).Exit(0))
	var record launcher.Exit
	return err == nil && json.Unmarshal(text, &record) == nil && record.ExitCode != 0
}

// watch exchanges files with the nodes and reads the answers until all have arrived, the job has ended, or ctx
// is done.
func (j *job) watch(ctx context.Context) {
	var nodes sync.WaitGroup
	exchanging, stop := context.WithCancel(ctx)
	defer nodes.Wait()
	defer stop()
	for node := range j.clocks {
		nodes.Go(func() { j.clocks[node] = exchangeFiles(exchanging, j.dir, node) })
	}
	var ended time.Time
	for {
		if j.readAnswers() {
			nodes.Wait()
			return
		}
		if j.over() {
			if ended.IsZero() {
				ended = time.Now()
			}
			if time.Since(ended) > fileGrace || j.failed() {
				j.readAnswers()
				return
			}
		}
		select {
		case <-ctx.Done():
			j.readAnswers()
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// readAnswers reads the answers that exist, and reports whether they are complete.
func (j *job) readAnswers() bool {
	all := true
	for rank, a := range j.answers {
		if a != nil && a.Phase == probe.Done {
			continue
		}
		var read probe.Answer
		text, err := rundir.ReadFile(j.dir.Answer(rank))
		if err == nil && json.Unmarshal(text, &read) == nil {
			j.answers[rank] = &read
		}
		all = all && j.answers[rank] != nil && j.answers[rank].Phase == probe.Done
	}
	return all
}

// exchangeFiles is the login node's side of the exchange with one node.
func exchangeFiles(ctx context.Context, dir rundir.Probe, node int) nodeClock {
	var c nodeClock
	if _, err := probe.AwaitFile(ctx, dir.Ready(node), 24*time.Hour); err != nil {
		c.err = errors.New("no file that the node wrote is visible here")
		return c
	}
	for round := range probe.Rounds {
		word := token()
		t0 := time.Now()
		if err := rundir.WriteFile(dir.Ping(node, round), []byte(word), 0o600); err != nil {
			c.err = err
			return c
		}
		text, err := probe.AwaitFile(ctx, dir.Pong(node, round), probe.FileWait)
		t3 := time.Now()
		if err != nil {
			c.err = err
			return c
		}
		var p probe.Pong
		if err := json.Unmarshal(text, &p); err != nil {
			c.err = err
			return c
		}
		if p.Word != word {
			c.err = errors.New("the node read something other than what was written here")
			return c
		}
		// Times relative to t0: seconds since 1970 would leave too few digits.
		begin := float64(t0.UnixNano()) / 1e9
		m := probe.Midpoint(0, p.Seen-begin, p.Sent-begin, t3.Sub(t0).Seconds())
		if c.rounds == 0 || m.RoundTrip < c.best.RoundTrip {
			c.best = m
		}
		c.rounds++
	}
	return c
}

// A queue asks Slurm about all jobs at once, at growing intervals.
type queue struct {
	client *slurm.Client
	jobs   []*job
}

// Intervals between the queue's queries, and the number that may fail in a row.
const (
	firstLook  = time.Second
	rarestLook = 15 * time.Second
	failures   = 3
)

// poll updates the jobs' states until the context ends. It returns an error if Slurm does not answer several
// times in a row.
func (q *queue) poll(ctx context.Context) error {
	var names []string
	for _, j := range q.jobs {
		names = append(names, j.script.JobName)
	}
	failed := 0
	for pause := firstLook; ; pause = min(rarestLook, pause*3/2) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		jobs, err := q.client.Queue(ctx, slurm.Filter{Names: names})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if failed++; failed == failures {
				return err
			}
		default:
			failed = 0
			for _, j := range q.jobs {
				j.take(jobs)
			}
		}
	}
}

// take records the job's state. It checks both id and name, since Slurm may reuse an id.
func (j *job) take(jobs []slurm.Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range jobs {
		if jobs[i].Name == j.script.JobName && jobs[i].ID == j.id {
			j.state = &jobs[i]
			return
		}
	}
	j.gone = j.gone || j.state != nil
}

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
