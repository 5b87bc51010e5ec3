// Package slurm speaks to Slurm: it renders batch scripts, submits and cancels
// them, and says what became of them. It knows Slurm, and nothing of what the
// jobs do.
//
// Slurm is used through its commands (sbatch, squeue, sacct, scontrol,
// scancel), in forms that every version since 20.11 has; the parsers are
// functions of bytes, tested on what a real cluster printed. Clusters hang,
// forget and reuse job ids: an answer that did not come is never taken for "no
// such job", a state that is not understood is never taken for an end, and a
// job is identified by Key, not by its id.
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

// defaultTimeout is how long a command may take. Slurm's own give up on a
// controller that is down after 9 to 18 s, and on one that hangs after 10.
const defaultTimeout = time.Minute

// Client runs Slurm's commands. The zero Client runs those on PATH, with this
// process's environment, for the default cluster.
type Client struct {
	Env     []string      // environment of the commands; nil: os.Environ()
	Timeout time.Duration // of each command; 0: DefaultTimeout
	Cluster string        // -M, where one installation serves several; "": the default
}

// UnreachableError says that Slurm did not answer: its controller or database
// is down or hangs, or its commands are not installed.
type UnreachableError struct {
	Command string // "sbatch"
	Message string // what the command said, or why there was none
	// MaybeQueued: it was a submission, and it may have been accepted all the
	// same. Look for the job's name before submitting again, more than once: a
	// submission inside a controller that hangs is seen by nobody.
	MaybeQueued bool
	Err         error
}

// What Slurm says where munged does not answer, among four lines of which the
// first advises other options of a munged that runs.
var withoutMunge = regexp.MustCompile(`Munge encode failed: (.*?)(?: \(Did you start munged\?\))?(?:\n|$)`)

func (e *UnreachableError) Error() string {
	s := "Slurm cannot be reached: " + e.Command + ": " + strings.ReplaceAll(e.Message, "\n", "; ")
	if m := withoutMunge.FindStringSubmatch(e.Message); m != nil {
		s = "Slurm cannot be reached: munge, which signs every request, does not answer on this host: " + m[1] + "; start munged, or tell whoever runs the cluster"
	}
	if e.MaybeQueued {
		s += " (the job may have been queued all the same)"
	}
	return s
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Queued is MaybeQueued, for those who speak to other schedulers too.
func (e *UnreachableError) Queued() bool { return e.MaybeQueued }

// RefusedError says that Slurm answered, and the answer was no.
type RefusedError struct {
	Command string
	Script  string // of a submission
	Message string // Slurm's own words, every line of them
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

// Words is Message, for those who speak to other schedulers too.
func (e *RefusedError) Words() string { return e.Message }

// unanswered is the error of a question: one that was refused, by a controller or
// because there is no configuration, was not answered.
func unanswered(err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return &UnreachableError{refused.Command, refused.Message, false, err}
	}
	return err
}

// ErrNoAccounting says that the cluster keeps no records of its jobs
// (slurmdbd), so that sacct has nothing to say.
var ErrNoAccounting = errors.New("the cluster has no accounting storage (slurmdbd), so sacct cannot say what became of a job")

// kept are the variables of Slurm's that say which Slurm to speak to, and with
// what right. All others describe an allocation that this process may stand
// in, or change what the commands print; sbatch would take them over the lines
// of the script.
var kept = map[string]bool{"SLURM_CONF": true, "SLURM_CONF_SERVER": true, "SLURM_JWT": true}

// scrubbed are the beginnings of Slurm's variables.
var scrubbed = []string{"SLURM_", "SBATCH_", "SALLOC_", "SRUN_", "SQUEUE_", "SACCT_", "SCANCEL_", "SCONTROL_"}

// Scrub is an environment without what Slurm set for an enclosing allocation
// and without what would change the commands' answers.
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

// unreachable are words of the commands when Slurm did not answer, and whether
// a submission may have gone through.
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
	// The controller died with the connection open, perhaps behind the request.
	{"Connection reset by peer", true},
	{"Broken pipe", true},
	{"Connection refused", false},
	// Without munge nobody can prove to the controller who asks.
	{"Munge encode failed", false},
	{"Protocol authentication error", false},
	{"If munged is up", false},
	{"slurm_persist_conn_open", false},
	{"Unable to contact slurmdbd", false},
	{"Problem talking to the database", false},
	{"Sending PersistInit msg", false},
}

// run runs one command and returns what it printed on standard output and
// standard error. An exit status other than 0 is an *UnreachableError or a
// *RefusedError.
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
	if !submits { // the job would inherit it
		// Lists of an array's tasks come whole, not cut after 64 characters.
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
	// A grandchild may hold the pipes. The delay begins with the command's end, when this
	// process may not have read all of what it said: an answer that is cut short can
	// look like another.
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

// lookPath finds a command on the PATH of env, which need not be ours.
func lookPath(env []string, name string) (string, error) {
	path := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value // the last one counts
		}
	}
	for _, dir := range strings.Split(path, string(os.PathListSeparator)) {
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
