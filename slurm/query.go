package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/slurm/notation"
)

// A Filter selects jobs: by id or else by name, and by User if set. An empty Filter selects all jobs that Slurm
// shows to this user. Many ids or names take several calls; a User takes one.
type Filter struct {
	IDs   []string
	Names []string
	User  string
}

func (f Filter) validate() error {
	if len(f.IDs) > 0 && len(f.Names) > 0 {
		return fmt.Errorf("slurm: a filter cannot have both ids and names")
	}
	for _, v := range slices.Concat(f.IDs, f.Names, []string{f.User}) {
		if strings.ContainsAny(v, ", \t\n") {
			return fmt.Errorf("slurm: %q contains a comma or blank, but Slurm separates lists by commas", v)
		}
	}
	return nil
}

// options returns the filter as options of squeue and sacct, one list per call.
func (f Filter) options() [][]string {
	var user []string
	if f.User != "" {
		user = []string{"--user=" + f.User}
	}
	option, values := "--jobs=", f.IDs
	if len(f.Names) > 0 {
		option, values = "--name=", f.Names
	}
	if len(values) == 0 {
		return [][]string{user}
	}
	var calls [][]string
	for _, part := range chunks(values) {
		calls = append(calls, append([]string{option + strings.Join(part, ",")}, user...))
	}
	return calls
}

// chunkBytes bounds the arguments of one call: Linux allows 128 KiB for a single one.
const chunkBytes = 100_000

// chunks splits a list into parts that fit a command line.
func chunks(values []string) [][]string {
	var parts [][]string
	for start, size, i := 0, 0, 0; i < len(values); i++ {
		if size += len(values[i]) + 1; size > chunkBytes && i > start {
			parts = append(parts, values[start:i])
			start, size = i, len(values[i])+1
		}
		if i == len(values)-1 {
			parts = append(parts, values[start:])
		}
	}
	return parts
}

// separator separates the fields of an answer: names and reasons may contain any printable character.
const separator = "\x1f"

var queueFormat = strings.Join([]string{"%i", "%j", "%P", "%T", "%r", "%N", "%V", "%S", "%e", "%k"}, separator)

// Queue asks the controller about jobs that wait or run, or that ended within its MinJobAge (usually five
// minutes). Unknown jobs are missing from the result. With an *UnreadableError it also returns the jobs that
// could be parsed.
func (c *Client) Queue(ctx context.Context, f Filter) ([]Job, error) {
	return c.ask(ctx, f, ParseQueue, "squeue", "--noheader", "--states=all", "--format="+queueFormat)
}

// Accounting asks the accounting database about jobs. It returns one Job per incarnation: requeued incarnations
// have the state REQUEUED (or NODE_FAIL, PREEMPTED) and an End; the last one has the current state. By name or
// user it finds only jobs that became eligible to run after since; a held job, or one that waits for its --begin
// is missing, so ask Queue too. sacct lags some seconds behind. Without a database it returns ErrNoAccounting.
func (c *Client) Accounting(ctx context.Context, since time.Time, f Filter) ([]Job, error) {
	// sacct does not accept seconds since 1970 here; it reads local time.
	return c.ask(ctx, f, ParseAccounting, "sacct", "--noheader", "--allocations", "--duplicates", "--parsable2",
		"--delimiter="+separator, "--starttime="+since.Local().Format("2006-01-02T15:04:05"),
		"--format="+strings.Join(accountingFields, ","))
}

func (c *Client) ask(ctx context.Context, f Filter, parse func([]byte) ([]Job, error), name string, args ...string) ([]Job, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	var jobs []Job
	var bad []Unreadable
	for _, options := range f.options() {
		out, _, err := c.run(ctx, name, append(slices.Clone(args), options...)...)
		var refused *RefusedError
		if errors.As(err, &refused) && strings.Contains(refused.Message, "Invalid job id specified") {
			continue // squeue's answer for a single job that it no longer knows
		}
		if refused != nil && strings.Contains(refused.Message, "accounting storage is disabled") {
			return nil, ErrNoAccounting
		}
		if err != nil {
			return nil, unanswered(err)
		}
		part, err := parse(out)
		jobs = append(jobs, part...)
		if odd, ok := errors.AsType[*UnreadableError](err); ok {
			bad = append(bad, odd.Lines...)
		}
	}
	return jobs, unreadable(bad)
}

// ExitCodes returns the exit codes of the user's ended jobs that the controller still knows, by id. The format
// that Queue uses does not include them.
func (c *Client) ExitCodes(ctx context.Context, user string) (map[string]ExitCode, error) {
	out, _, err := c.run(ctx, "squeue", "--noheader", "--states=all", "--user="+user, "--Format=JobArrayID:"+separator+",exit_code:"+separator)
	if err != nil {
		return nil, err
	}
	return parseExitCodes(out)
}

// parseExitCodes parses the raw wait statuses of Client.ExitCodes.
func parseExitCodes(out []byte) (map[string]ExitCode, error) {
	lines, bad := records("squeue", out, 3) // every field ends with a separator
	codes := map[string]ExitCode{}
	for _, f := range lines {
		raw, err := strconv.ParseUint(f[1], 10, 32)
		if err != nil {
			bad = append(bad, Unreadable{strings.Join(f, separator), fmt.Errorf("squeue, job %.40q: exit code %.40q is not a wait status", f[0], f[1])})
			continue
		}
		status := syscall.WaitStatus(raw)
		code := ExitCode{Status: int(raw>>8) & 0xff}
		if status.Signaled() {
			code = ExitCode{Signal: int(status.Signal())}
		}
		codes[f[0]] = code
	}
	return codes, unreadable(bad)
}

// Steps returns the ids of a job's running steps, "7.0", by name.
func (c *Client) Steps(ctx context.Context, job string) (map[string]string, error) {
	if err := (Filter{IDs: []string{job}}).validate(); err != nil {
		return nil, err
	}
	out, _, err := c.run(ctx, "squeue", "--steps", "--noheader", "--jobs="+job, "--format=%i"+separator+"%j")
	if refused, ok := errors.AsType[*RefusedError](err); ok && strings.Contains(refused.Message, "Invalid job id specified") {
		return nil, nil
	}
	if err != nil {
		return nil, unanswered(err)
	}
	lines, bad := records("squeue", out, 2)
	steps := map[string]string{}
	for _, f := range lines {
		steps[f[1]] = f[0]
	}
	return steps, unreadable(bad)
}

// ErrNoJob reports that the controller does not know a job, or no longer does.
var ErrNoJob = errors.New("no such job")

// Show asks the controller about one job. It returns what Queue and Accounting return together, for clusters
// without accounting. Each job takes one call.
func (c *Client) Show(ctx context.Context, id string) (Job, error) {
	out, _, err := c.run(ctx, "scontrol", "show", "job", "-o", id)
	if refused, ok := errors.AsType[*RefusedError](err); ok && strings.Contains(refused.Message, "Invalid job id specified") {
		return Job{}, fmt.Errorf("%w: the controller does not know job %s", ErrNoJob, id)
	}
	if err != nil {
		return Job{}, unanswered(err)
	}
	jobs, err := ParseShow(out)
	if err == nil && len(jobs) != 1 {
		err = fmt.Errorf("scontrol show job %s: %d jobs, not one", id, len(jobs))
	}
	if err != nil {
		return Job{}, err
	}
	return jobs[0], nil
}

// hosts parses a node list in Slurm's format.
func hosts(field string) ([]string, error) { return notation.ExpandHosts(known(field)) }
