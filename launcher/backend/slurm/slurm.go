// Package slurm runs attempts as batch jobs of Slurm: it writes their scripts, submits them singly or packed,
// and judges their ends by Slurm's answers and the run folders.
package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/slurm"
)

// backendName is the name of this backend in records and site files.
const backendName = "slurm"

func init() {
	launcher.Register(backendName, func(o launcher.Options) (launcher.Backend, error) { return open(o) })
}

// Backend runs attempts as batch jobs.
type Backend struct {
	launcher.Creator
	Client *slurm.Client
	// Template is the text of the site's own batch script template, named
	// Site.Template; "" for scalebench's.
	Template string

	limits    launcher.Limits
	packing   string // study.PackJob, also when empty, PackArray or PackAllocation
	blocks    bool   // an allocation has one repeat of each point
	requeue   bool   // let Slurm start a job again that lost its nodes
	arraySize int    // the cluster's MaxArraySize, once asked for
}

// maxTemplate is the maximum size of a site's template in bytes; the built-in one has some thousand.
const maxTemplate = 1 << 20

// open reads the site's template, if it names one.
func open(o launcher.Options) (*Backend, error) {
	b := &Backend{Creator: o.Creator, Client: &slurm.Client{},
		limits: launcher.Limits{InFlight: o.Policy.MaxInFlight, Rate: o.Policy.Rate}, packing: o.Policy.Packing, blocks: o.Blocks, requeue: o.Policy.Requeue}
	b.Scripted = true
	if b.Site == nil {
		b.Site = study.DefaultSite()
	}
	if err := slurm.CheckOutput(b.Folder.Path()); err != nil {
		return nil, fmt.Errorf("the study's folder is %q, and job logs are written there: %w; rename the folder, or name another one for the runs with --runs", b.Folder.Path(), err)
	}
	if b.Site.Template != "" {
		text, err := sharedfs.ReadFile(b.Site.Template, maxTemplate)
		if err != nil {
			return nil, fmt.Errorf("%s: template: %w", b.Site.File, err)
		}
		b.Template = string(text)
	}
	if b.Site.Stage.Python != "" {
		if _, err := os.Stat(b.Site.Stage.Python); err != nil {
			return nil, fmt.Errorf("%s: stage.python: %w", b.Site.File, err)
		}
	}
	return b, nil
}

// Name returns the name.
func (b *Backend) Name() string { return backendName }

// Attached returns false: jobs outlive the command.
func (b *Backend) Attached() bool { return false }

// Limits returns the policy's limits.
func (b *Backend) Limits() launcher.Limits { return b.limits }

// Occupies reports whether Slurm has accepted the attempt.
func (b *Backend) Occupies(s launcher.State) bool { return s.Submission != nil }

// record returns the facts about an attempt's job that are known before submission. pack is the
// name of its pack; "" means a separate job.
func (b *Backend) record(t launcher.Todo, pack string) launcher.Record {
	name := b.packName(pack)
	if pack == "" {
		name = b.Folder.Run(t.Point.ID, t.Point.Repeat, t.Number).ID() + "-" + launcher.Token(3)
	}
	return launcher.Record{Backend: backendName, JobName: name, Exclude: t.Exclude, Requeue: b.requeue}
}

// Begin writes the attempts of a load down, script included, and submits it.
func (b *Backend) Begin(ctx context.Context, load []launcher.Todo) ([]*launcher.Attempt, error) {
	t := load[0]
	if len(load) > 1 || t.Again != nil && t.Again.Record.Pack != nil {
		return b.beginPack(ctx, load)
	}
	a, err := b.begin(ctx, t)
	if a == nil {
		return nil, err
	}
	return []*launcher.Attempt{a}, err
}

func (b *Backend) begin(ctx context.Context, t launcher.Todo) (*launcher.Attempt, error) {
	if t.Again != nil {
		if err := trust.Tree(t.Again.Run.Path()); err != nil {
			return nil, err
		}
		return t.Again, b.submit(ctx, t.Again, t.After)
	}
	a, err := b.Create(t, b.record(t, ""), func(at rundir.Folder, a *launcher.Attempt) error {
		var text bytes.Buffer
		if err := b.Render(&text, t.Planned, a); err != nil {
			return err
		}
		return rundir.WriteFile(at.Script(), text.Bytes(), sharedfs.ModeScript)
	})
	if err != nil {
		return nil, err
	}
	return a, b.submit(ctx, a, t.After)
}

func (b *Backend) submit(ctx context.Context, a *launcher.Attempt, after string) error {
	answer, err := b.sbatch(ctx, a.Run.Script(), a.Record.JobName, after)
	if err != nil {
		return err
	}
	return a.Submitted(*answer)
}

// sbatch submits a script. If the answer does not state the job's id, sbatch looks the job
// up at once by its name, which is unique.
func (b *Backend) sbatch(ctx context.Context, script, name, after string) (*launcher.Submission, error) {
	var options []string
	if after != "" {
		options = append(options, "--dependency=afterany:"+afterJob(after))
	}
	answer, err := b.Client.Submit(ctx, script, options...)
	if errors.Is(err, slurm.ErrNoJobID) {
		if id := b.queued(ctx, name); id != "" {
			answer.ID, err = id, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &launcher.Submission{JobID: answer.ID, Cluster: answer.Cluster, Notice: answer.Notice, After: after, SubmittedUnix: metrics.Unix(time.Now())}, nil
}

// queued returns the id of the job with that name in the queue, or "" unless exactly one has it.
func (b *Backend) queued(ctx context.Context, name string) (id string) {
	jobs, err := b.Client.Queue(ctx, slurm.Filter{Names: []string{name}})
	if err != nil {
		return ""
	}
	for _, j := range jobs {
		of := afterJob(j.ID)
		if id != "" && id != of {
			return ""
		}
		id = of
	}
	return id
}

// CheckJobName returns an error for a name that scalebench gives no job.
func (b *Backend) CheckJobName(name string) error { return slurm.CheckJobName(name) }

// CheckJobID returns an error unless id is the id of one job.
func (b *Backend) CheckJobID(id string) error { return slurm.CheckJobID(id) }

// CheckCluster returns an error unless name can be the name of a cluster.
func (b *Backend) CheckCluster(name string) error { return slurm.CheckCluster(name) }

// CheckNode returns an error for what cannot name one node.
func (b *Backend) CheckNode(name string) error { return slurm.CheckNode(name) }

// Partitions returns the names of Slurm's partitions; nil on a host without Slurm's commands.
func (b *Backend) Partitions(ctx context.Context) ([]string, error) {
	known, err := b.Client.Partitions(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	var names []string
	for _, p := range known {
		names = append(names, p.Name)
	}
	return names, err
}

// Survey asks Slurm about jobs.
func (b *Backend) Survey(ctx context.Context, open []*launcher.Attempt) ([]launcher.Finding, error) {
	said, unreachable := askSlurm(ctx, b.Client, open)
	wrong := adopt(open, said.jobs)
	findings := make([]launcher.Finding, len(open))
	waiting := waitingArrays(said.jobs)
	for i, a := range open {
		job, odd := said.jobs[a.Run], said.odd[a.Run]
		dropped := job == nil && a.Submission != nil && waiting[arrayOf(a.Submission.JobID)]
		findings[i] = launcher.Finding{Job: jobFacts(a, job), Err: errors.Join(wrong[a.Run], odd), Judge: func(t launcher.Traces) (metrics.Status, string) {
			e := jobEvidenceOf(a, job, t, unreachable == nil && odd == nil)
			e.Dropped = dropped
			return judgeJob(e)
		}}
	}
	return findings, unreachable
}

// waitingArrays returns the job arrays of which a task is waiting.
func waitingArrays(jobs map[rundir.Folder]*slurm.Job) map[string]bool {
	waiting := map[string]bool{}
	for _, job := range jobs {
		if array := arrayOf(job.ID); array != "" && job.State == slurm.Pending {
			waiting[array] = true
		}
	}
	return waiting
}

// arrayOf returns the id of the array that a job is a task of, or "".
func arrayOf(job string) string {
	array, _, ok := slurm.ArrayTask(job)
	if !ok {
		return ""
	}
	return array
}

// jobEvidenceOf returns the evidence about an attempt; job is Slurm's report, or nil if Slurm does not know the
// job.
func jobEvidenceOf(a *launcher.Attempt, job *slurm.Job, t launcher.Traces, asked bool) jobEvidence {
	e := jobEvidence{Evidence: a.Evidence(t), Created: metrics.Time(a.Record.CreatedUnix),
		Submitted: a.Submission != nil, Asked: asked, Requeue: a.Record.Requeue, Shared: a.Record.SharesJob(),
		Withdrawn: a.Cancelled != nil && a.Run.Withdrawn(), Job: job}
	if a.Limited != nil {
		e.Limit = a.Limited.Words
	}
	if t.Exit == nil && job == nil {
		e.Now = a.Since(a.Run.Attempt(), a.Record.CreatedUnix)
	}
	return e
}

// jobFacts returns the scheduler's facts for the database. If the scheduler no longer knows the job, they come
// from the records.
func jobFacts(a *launcher.Attempt, job *slurm.Job) *metrics.Job {
	if job == nil {
		return a.RecordedJob()
	}
	fact := &metrics.Job{Cluster: job.Cluster, ID: job.ID, Name: job.Name, Partition: job.Partition, State: job.Word,
		Reason: job.Reason, Nodes: job.Nodes,
		SubmitUnix: metrics.Unix(job.Submit), StartUnix: metrics.Unix(job.Start), EndUnix: metrics.Unix(job.End)}
	if job.ExitCode != nil {
		fact.ExitCode = job.ExitCode.String()
	}
	if a.Record.SharesJob() {
		// The job's state and end apply to all of its runs; each run uses the first nodes.
		fact.State, fact.Reason, fact.ExitCode, fact.EndUnix = "", "", "", 0
		nodes, _ := a.Point.Shape()
		fact.Nodes = fact.Nodes[:min(len(fact.Nodes), max(nodes, 0))]
	}
	return fact
}

// Cancel ends the jobs in one call of scancel. A job that serves several attempts is only ended if all of them
// are to be cancelled; otherwise it continues without those.
func (b *Backend) Cancel(ctx context.Context, states []launcher.State) ([]launcher.Ending, error) {
	list := make([]launcher.Ending, len(states))
	attempts, meant := make([]*launcher.Attempt, len(states)), map[rundir.Folder]bool{}
	for i, s := range states {
		list[i], attempts[i], meant[s.Run] = launcher.Ending{State: s, What: "Slurm cannot be reached"}, s.Attempt, true
		if s.Run.Withdrawn() {
			list[i].What += "; whenever its job starts, it runs nothing"
		}
	}
	// The status of an attempt that shares a job says nothing about the job, so ask Slurm again.
	said, err := askSlurm(ctx, b.Client, attempts)
	if err != nil {
		return list, err
	}
	jobs := said.jobs
	others, err := othersServed(attempts, meant)
	if err != nil {
		return list[:0], err
	}
	var ids []string
	var wrong []error
	for i, s := range states {
		job := jobs[s.Run]
		switch {
		case said.odd[s.Run] != nil:
			list[i].What = "Slurm's answer about its job cannot be read"
			if s.Run.Withdrawn() {
				list[i].What += "; whenever it starts, it runs nothing"
			}
			continue
		case job == nil && s.Run.Withdrawn():
			list[i].Asked, list[i].What = true, "Slurm has no job for it; if one turns up, it runs nothing"
			continue
		case job == nil:
			list[i].What = "Slurm has no job for it" // the ID may belong to another job by now
			continue
		case job.State.Terminal():
			list[i].What = fmt.Sprintf("job %s has already ended", job.ID)
			continue
		}
		list[i].Asked = true
		n := 0
		if s.Record.SharesJob() {
			n = others[s.Run.Pack(s.Record.Pack.Name)]
		}
		switch {
		case n == 0:
			if !slices.Contains(ids, job.ID) {
				ids = append(ids, job.ID)
			}
			list[i].What = "asked Slurm to end job " + job.ID
		case s.Run.Withdrawn():
			list[i].What = fmt.Sprintf("job %s continues with %s and skips this one", job.ID, otherRuns(n))
		default:
			list[i].What, err = b.endOneOf(ctx, job.ID, s.Run.Name(), n)
			list[i].Asked = err == nil
			wrong = append(wrong, err)
		}
	}
	if len(ids) == 0 {
		return list, errors.Join(wrong...)
	}
	err = b.Client.Cancel(ctx, ids...)
	for i, s := range states {
		if err != nil && list[i].Asked && jobs[s.Run] != nil && slices.Contains(ids, jobs[s.Run].ID) {
			list[i].Asked, list[i].What = false, "Slurm did not end it"
		}
	}
	return list, errors.Join(append(wrong, err)...)
}

// endOneOf ends the named run in a job that continues with n others, and says what it did.
func (b *Backend) endOneOf(ctx context.Context, job, name string, n int) (string, error) {
	switch step, err := b.endStep(ctx, job, name); {
	case err != nil:
		return "Slurm did not end it", err
	case step == "": // the script looks before it starts one
		return fmt.Sprintf("job %s runs no step for it now and will start none", job), nil
	default:
		return fmt.Sprintf("asked Slurm to end step %s; job %s continues with %s", step, job, otherRuns(n)), nil
	}
}

func otherRuns(n int) string {
	if n == 1 {
		return "1 other run"
	}
	return fmt.Sprintf("%d other runs", n)
}

// endStep asks Slurm to end the job step with that name and returns its id, or "" if it does not exist.
// Supervisors kill processes that do not end.
func (b *Backend) endStep(ctx context.Context, job, name string) (id string, err error) {
	steps, err := b.Client.Steps(ctx, job)
	if err != nil || steps[name] == "" {
		return "", err
	}
	return steps[name], b.Client.Signal(ctx, steps[name], "TERM")
}

// othersServed counts, for each pack, the attempts that have not ended, are not among meant, and were not
// cancelled before.
func othersServed(list []*launcher.Attempt, meant map[rundir.Folder]bool) (map[rundir.Pack]int, error) {
	var shared []*launcher.Attempt
	for _, a := range list {
		if a.Record.SharesJob() {
			shared = append(shared, a)
		}
	}
	others := map[rundir.Pack]int{}
	for _, study := range studiesOf(shared) {
		all, err := launcher.Attempts(study)
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			if !a.Record.SharesJob() || a.Verdict != nil || meant[a.Run] || a.Cancelled != nil && a.Run.Withdrawn() {
				continue
			}
			if t, err := launcher.ReadTraces(a.Run); err != nil || t.Exit == nil {
				others[a.Run.Pack(a.Record.Pack.Name)]++
			}
		}
	}
	return others, nil
}

// studiesOf returns the studies of attempts without duplicates.
func studiesOf(attempts []*launcher.Attempt) (list []rundir.Study) {
	for _, a := range attempts {
		if s := a.Run.Study(); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
