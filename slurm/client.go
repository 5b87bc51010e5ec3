// Package slurm renders batch scripts, submits and cancels jobs, and reports their states. It knows Slurm, but
// not what the jobs do.
//
// It runs Slurm's commands (sbatch, squeue, sacct, scontrol, scancel) with options that every version since
// 20.11 has. The parsers take bytes and are tested on recorded output of a real cluster. Clusters hang, forget
// jobs, and reuse job ids. So a missing answer never counts as "no such job", an unknown state never counts as
// the end of a job, and Key identifies a job, not its id alone.
package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// defaultTimeout is the time limit of one command. Slurm's commands give up after 9 to 18 s if the controller
// is down, and after 10 s if it hangs.
const defaultTimeout = time.Minute

// A Client runs Slurm's commands. The zero Client runs the commands on PATH, with this process's environment,
// for the default cluster.
type Client struct {
	Env     []string      // environment of the commands; nil means os.Environ()
	Timeout time.Duration // of each command; 0 means one minute
	Cluster string        // -M, if one installation serves several clusters; "" means the default
}

// An UnreachableError reports that Slurm did not answer: its controller or database is down or hangs, or its
// commands are not installed.
type UnreachableError struct {
	Command string // "sbatch"
	Message string // the command's output, or why it has none
	// MaybeQueued is set if a submission failed after Slurm may have accepted it. Look for the job's name
	// several times before submitting again: a hanging controller does not list the submission at first.
	MaybeQueued bool
	Err         error
}

// The message of Slurm's commands if munged does not answer: the second of four lines. The first only advises
// options for a running munged.
var withoutMunge = regexp.MustCompile(`Munge encode failed: (.*?)(?: \(Did you start munged\?\))?(?:\n|$)`)

func (e *UnreachableError) Error() string {
	s := "Slurm cannot be reached: " + e.Command + ": " + strings.ReplaceAll(e.Message, "\n", "; ")
	if m := withoutMunge.FindStringSubmatch(e.Message); m != nil {
		s = "Slurm cannot be reached: munge, which signs every request, does not answer on this host: " + m[1] + "; start munged, or tell the cluster's administrators"
	}
	if e.MaybeQueued {
		s += " (the job may be queued nevertheless)"
	}
	return s
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Queued returns MaybeQueued; other schedulers' errors have the same method.
func (e *UnreachableError) Queued() bool { return e.MaybeQueued }

// A RefusedError reports that Slurm answered and refused the request.
type RefusedError struct {
	Command string
	Script  string // path, if a submission was refused
	Message string // all lines of Slurm's message
	Exit    int
}

func (e *RefusedError) Error() string {
	switch {
	case e.Script != "":
		return e.Script + ": " + e.Message
	case strings.HasPrefix(e.Message, e.Command+": "):
		return e.Message
	}
	return e.Command + ": " + e.Message
}

// Words returns Message; other schedulers' errors have the same method.
func (e *RefusedError) Words() string { return e.Message }

// unanswered converts the refusal of a query to an *UnreachableError: if the controller refuses a query, or
// without a configuration, the answer is unknown.
func unanswered(err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return &UnreachableError{refused.Command, refused.Message, false, err}
	}
	return err
}

// ErrNoAccounting reports that the cluster keeps no accounting records (slurmdbd), which sacct needs.
var ErrNoAccounting = errors.New("the cluster has no accounting storage (slurmdbd), so sacct cannot say what became of a job")

// kept holds Slurm's variables that select the installation and authenticate the user. All others describe the
// allocation that this process may run in, or change the commands' output; sbatch would prefer them to the
// lines of the script.
var kept = map[string]bool{"SLURM_CONF": true, "SLURM_CONF_SERVER": true, "SLURM_JWT": true}

// scrubbed holds the prefixes of Slurm's variables.
var scrubbed = []string{"SLURM_", "SBATCH_", "SALLOC_", "SRUN_", "SQUEUE_", "SACCT_", "SCANCEL_", "SCONTROL_"}

// Scrub returns env without the variables that an enclosing allocation sets or that change the commands'
// output.
func Scrub(env []string) []string {
	var clean []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		slurms := false
		for _, prefix := range scrubbed {
			slurms = slurms || strings.HasPrefix(name, prefix)
		}
		if !slurms || kept[name] {
			clean = append(clean, v)
		}
	}
	return clean
}

// unreachable lists messages of the commands that mean that Slurm did not answer; queued reports whether a
// submission may have been accepted.
var unreachable = []struct {
	words  string
	queued bool
}{
	{"Unable to contact slurm controller", false},
	{"Slurm backup controller in standby mode", false},
	{"Socket timed out on send/recv operation", true},
	{"Zero Bytes were transmitted or received", true},
	{"Message receive failure", true},
	{"Unexpected message received", true},
	// The controller died with the connection open, perhaps after it received the request.
	{"Connection reset by peer", true},
	{"Broken pipe", true},
	{"Connection refused", false},
	// Without munge the controller cannot authenticate the user.
	{"Munge encode failed", false},
	{"Protocol authentication error", false},
	{"If munged is up", false},
	{"slurm_persist_conn_open", false},
	{"Unable to contact slurmdbd", false},
	{"Problem talking to the database", false},
	{"Sending PersistInit msg", false},
}

// run runs one command and returns its standard output and standard error. If it fails, the error is an
// *UnreachableError or a *RefusedError.
func (c *Client) run(ctx context.Context, name string, args ...string) (stdout, stderr []byte, err error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = Scrub(env)
	submits := name == "sbatch"
	if !submits { // the job would inherit these variables
		// Print all indices of an array's tasks instead of the first 64 characters.
		env = append(env, "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0")
	}
	if c.Cluster != "" {
		args = append([]string{"--clusters=" + c.Cluster}, args...)
	}
	path, err := lookPath(env, name)
	if err != nil {
		return nil, nil, &UnreachableError{name, "command not found on PATH: is this a login node of the cluster?", false, err}
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(limited, path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &complaint
	// A grandchild may keep the pipes open. WaitDelay counts from the command's exit, when this process may
	// still be reading its output, so it must not be too short: a truncated answer can look like another one.
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	message := strings.TrimSpace(complaint.String())
	if err == nil {
		return out.Bytes(), complaint.Bytes(), nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, &UnreachableError{name, "interrupted before it answered", submits, ctx.Err()}
	case limited.Err() != nil:
		return nil, nil, &UnreachableError{name, fmt.Sprintf("no answer within %s", timeout), submits, limited.Err()}
	}
	for _, u := range unreachable {
		if strings.Contains(message, u.words) {
			return nil, nil, &UnreachableError{name, message, submits && u.queued, err}
		}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil, nil, &UnreachableError{name, err.Error(), submits && cmd.Process != nil, err}
	}
	if exit.ExitCode() < 0 { // ended by a signal
		return nil, nil, &UnreachableError{name, strings.TrimSpace(message + " " + exit.Error()), submits, err}
	}
	if message == "" {
		message = name + ": " + exit.Error()
	}
	return nil, nil, &RefusedError{Command: name, Message: message, Exit: exit.ExitCode()}
}

// lookPath finds a command on the PATH of env, which may differ from this process's.
func lookPath(env []string, name string) (string, error) {
	path := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value // the last assignment counts
		}
	}
	for dir := range strings.SplitSeq(path, string(os.PathListSeparator)) {
		if dir == "" {
			continue
		}
		file := dir + "/" + name
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
