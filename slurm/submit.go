package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A Submission is sbatch's answer.
type Submission struct {
	ID      string
	Cluster string // "" unless the installation serves several clusters
	Notice  string // sbatch's other output; often a site's advice
}

// Submit passes a script to sbatch; args are further options that override those in the script. A refusal is a
// *RefusedError with sbatch's message and the script's path. After an *UnreachableError with MaybeQueued, the
// job may be in the queue.
func (c *Client) Submit(ctx context.Context, script string, args ...string) (Submission, error) {
	stdout, stderr, err := c.run(ctx, "sbatch", append(append([]string{"--parsable"}, args...), script)...)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		refused.Script = script
	}
	if err != nil {
		return Submission{}, err
	}
	s, err := parseSubmission(stdout)
	s.Notice = strings.TrimSpace(string(stderr))
	if err != nil { // sbatch reported success, so the job may be queued
		return s, &UnreachableError{"sbatch", err.Error(), true, err}
	}
	return s, nil
}

// ErrNoJobID means that sbatch accepted the job, but its answer does not state the job's
// id. The caller can look the job up by its name.
var ErrNoJobID = errors.New("the answer of sbatch has no job id")

// submissionForm matches "162" and "162;cluster", as --parsable prints, and what sbatch
// prints without it: "Submitted batch job 162 on cluster c".
var submissionForm = regexp.MustCompile(`^(?:([0-9]{1,18})(?:;([^\s;]+))?|(?:sbatch: )?Submitted batch job ([0-9]{1,18})(?: on cluster ([^\s.]+))?\.?)$`)

// parseSubmission finds the line that states the job's id. A site's plugins and wrappers
// may print lines before and after it. Two different ids are an error.
func parseSubmission(stdout []byte) (found Submission, err error) {
	for line := range strings.Lines(string(stdout)) {
		m := submissionForm.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		one := Submission{ID: m[1] + m[3], Cluster: m[2] + m[4]}
		if found.ID != "" && found.ID != one.ID {
			return Submission{}, fmt.Errorf("%w: several lines have one; it printed %.200q", ErrNoJobID, stdout)
		}
		found = Submission{ID: one.ID, Cluster: cmp.Or(one.Cluster, found.Cluster)}
	}
	if found.ID == "" {
		return found, fmt.Errorf("%w: it printed %.200q", ErrNoJobID, stdout)
	}
	return found, nil
}

// Cancel ends jobs, in as few calls as the command line allows. It ignores jobs that have already ended.
func (c *Client) Cancel(ctx context.Context, ids ...string) error {
	var problems []error
	for _, part := range chunks(ids) {
		_, _, err := c.run(ctx, "scancel", part...)
		if refused, ok := errors.AsType[*RefusedError](err); ok && endedAlready(refused.Message) {
			err = nil
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Signal sends a job step, "7.0", a signal by name. It ignores a step that has already ended.
func (c *Client) Signal(ctx context.Context, step, signal string) error {
	_, _, err := c.run(ctx, "scancel", "--signal="+signal, step)
	if refused, ok := errors.AsType[*RefusedError](err); ok && endedAlready(refused.Message) {
		return nil
	}
	return err
}

// endedAlready reports whether every line of scancel's message is about a job that has ended.
func endedAlready(message string) bool {
	for line := range strings.SplitSeq(message, "\n") {
		if !strings.Contains(line, "Invalid job id specified") && !strings.Contains(line, "Job/step already completing or completed") {
			return false
		}
	}
	return true
}
