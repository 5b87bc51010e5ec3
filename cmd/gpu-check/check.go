package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/cluster/probe"
)

// options configure a check; most are set on the command line.
type options struct {
	Worker     string // path of scalebench-worker, in the build with GPU support
	Scalebench string
	Python     string // Python interpreter; "": search for one
	Log        io.Writer

	Began  time.Time
	Time   time.Duration // 0: no limit
	Resume string
	Only   []string
	Output string
	Record string

	// Double is set if the environment names the test fakes of CUDA's libraries instead
	// of real ones. This serves to test gpu-check itself: studies are then small, and
	// the results say that they are from fakes.
	Double bool
	// Perturb changes a bit of one result on one rank, to test that the check then
	// fails.
	Perturb bool
}

// A part is the smallest unit of the check. A call of gpu-check can end after any part,
// and a later call continues with the next.
type part struct {
	name     string // "kernels/sgd": the check, then its part
	estimate time.Duration
	needs    []string // parts that must have passed
	run      func(context.Context, *outcome) error
}

// group is the check that a part belongs to.
func (p part) group() string {
	group, _, _ := strings.Cut(p.name, "/")
	return group
}

// patience is added to ten times the estimate of a part, to give the time limit of the
// part.
const patience = time.Minute

// mostHung is the number of parts of one check that may exceed their time limit. Its
// other parts are then not run: they would probably hang, too, and time on a GPU is
// scarce.
const mostHung = 2

// A checker runs the parts of the check and collects their results.
type checker struct {
	options
	report      *report
	environment []string // environment of all programs that are started
	facts       probe.NCCL
	cublasFile  string
	python      string // Python interpreter that was found
	ranks       int    // number of ranks in the checks of collectives
	written     bool   // the results have been written
	grace       time.Duration
	patience    time.Duration
	hung        map[string][]string // by check: its parts that exceeded their time limit
	checks      *checks             // the worker process that checks the results of kernels; nil: it is not running
}

// errNoTime is the cause if a part is interrupted because the time given by --time is
// over.
var errNoTime = errors.New("the time is over")

// runCheck runs the parts that are selected and not yet done, and returns the report
// with all results so far. It returns an error only if the check itself could not be run;
// the report says which parts failed.
func runCheck(ctx context.Context, o options) (*report, error) {
	c, err := newChecker(o)
	if err != nil {
		return nil, err
	}
	parts, err := c.selected(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(parts, func(p part) bool { return p.group() != "libraries" }) && len(o.Only) == 0 {
		return c.report, nil // with --resume, if nothing is left to do
	}
	c.begin()
	defer c.endChecks()
	stop, end := c.stop(), context.CancelFunc(func() {})
	if !stop.IsZero() {
		ctx, end = context.WithDeadlineCause(ctx, stop, errNoTime)
	}
	defer end()
	for _, p := range parts { // even the first report that is written lists all parts
		c.report.outcome(p.name).Estimate = p.estimate.Seconds()
	}
	if err := c.makeParts(ctx, parts, stop); err != nil {
		return nil, err
	}
	c.call().Seconds = time.Since(c.Began).Seconds()
	return c.report, c.write()
}

// possible reports whether the results so far let a part run. If not, its outcome says why.
func (c *checker) possible(p part, o *outcome) bool {
	if need := c.missing(p); need != nil {
		if o.Why = fmt.Sprintf("it needs %s, which is %s", need.Name, need.Result); need.Result != pending {
			o.Result = notMade
		}
		return false
	}
	if hung := c.hung[p.group()]; len(hung) >= mostHung {
		o.Result, o.Why = notMade, fmt.Sprintf("%s ran into their time limits", strings.Join(hung, " and "))
		return false
	}
	return true
}

// makeParts runs the parts that can be expected to end before stop, and writes the
// results after each.
func (c *checker) makeParts(ctx context.Context, parts []part, stop time.Time) error {
	tooLong := time.Duration(0) // estimate of the shortest part that did not fit into the time
	for _, p := range parts {
		o := c.report.outcome(p.name)
		if !c.possible(p, o) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if !stop.IsZero() && time.Until(stop) < c.expected(p, o) {
			o.Why = fmt.Sprintf("it takes about %v", c.expected(p, o).Round(time.Second))
			if tooLong == 0 || c.expected(p, o) < tooLong {
				tooLong = c.expected(p, o)
			}
			continue
		}
		if err := c.attempt(ctx, p, o); err != nil {
			return err
		}
		c.call().Seconds = time.Since(c.Began).Seconds()
		if err := c.write(); err != nil {
			return err
		}
		if p.name == driverPart && o.Result == failed {
			break // without this part, nothing can be checked
		}
	}
	if tooLong > 0 && ctx.Err() == nil && tooLong > c.Time*3/4 {
		fmt.Fprintf(c.Log, "gpu-check: the next check takes about %v: give --time %v or more\n", tooLong.Round(time.Second), (tooLong*3/2 + 20*time.Second).Round(10*time.Second))
	}
	return nil
}

func newChecker(o options) (*checker, error) {
	c := &checker{options: o, environment: os.Environ(), grace: 30 * time.Second, patience: patience, hung: map[string][]string{}}
	if o.Time > 0 {
		c.grace = min(max(o.Time/60, 500*time.Millisecond), 30*time.Second)
	}
	c.report = &report{Format: format, Double: o.Double, Version: version.String()}
	c.report.Commit = version.Commit()
	if o.Resume != "" {
		before, err := load(o.Resume)
		if err != nil {
			return nil, err
		}
		if before.Version != c.report.Version || before.Double != c.report.Double {
			return nil, usageError(fmt.Sprintf("--resume %s: made by %s (fakes: %v), this is %s (fakes: %v); begin again without --resume", o.Resume, before.Version, before.Double, c.report.Version, o.Double))
		}
		c.report = before
	}
	return c, nil
}

// write writes the results so far. When a new check writes for the first time, it keeps
// the files of an earlier check under another name.
func (c *checker) write() error {
	if c.Resume == "" && !c.written {
		if err := keepOld(c.Output); err != nil {
			return err
		}
	}
	c.written = true
	return c.report.write(c.Output)
}

// begin adds this call of gpu-check to the report.
func (c *checker) begin() {
	host, _ := os.Hostname()
	c.report.Date, c.report.Host = time.Now().UTC().Format(time.DateOnly), host
	c.report.Kernel, c.report.DriverModule = linux(), moduleVersion()
	c.report.Calls = append(c.report.Calls, call{Began: c.Began.UTC().Format(time.RFC3339), Host: host, Limit: c.Time.Seconds()})
}

func (c *checker) call() *call { return &c.report.Calls[len(c.report.Calls)-1] }

// stop returns the time at which a running part is interrupted; zero: never. It is
// early enough that the part can end and the results can be written within --time.
func (c *checker) stop() time.Time {
	if c.Time == 0 {
		return time.Time{}
	}
	return c.Began.Add(c.Time - c.grace - min(max(c.Time/60, time.Second), 5*time.Second))
}

// expected returns an estimate of how long a part takes. It is shorter with the test
// fakes, which compute little.
func (c *checker) expected(p part, o *outcome) time.Duration {
	e := p.estimate
	if c.Double {
		e = min(e, 2*time.Second)
	}
	if o.Result == pending && o.Seconds > 0 { // an earlier call was interrupted during this part
		e = max(e, time.Duration(1.5*o.Seconds*float64(time.Second)))
	}
	return e
}

// missing returns the outcome of a part that p needs and that has not passed, or nil.
// With --only, just the libraries are required.
func (c *checker) missing(p part) *outcome {
	for _, need := range p.needs {
		if len(c.Only) > 0 && !strings.HasPrefix(need, "libraries/") {
			continue
		}
		if o := c.report.outcome(need); o.Result != passed {
			return o
		}
	}
	return nil
}

// attempt runs one part and records its outcome. It returns an error only if the check
// cannot continue.
func (c *checker) attempt(ctx context.Context, p part, o *outcome) error {
	limit := c.patience + 10*p.estimate
	late := fmt.Errorf("ended after %v, the limit of this check", limit)
	partCtx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	host := c.report.Host
	*o = outcome{Name: o.Name, Result: pending, Estimate: p.estimate.Seconds(), Host: host, Seconds: o.Seconds}
	begin := time.Now()
	err := p.run(partCtx, o)
	o.Seconds = time.Since(begin).Seconds()
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		return wrong
	case ctx.Err() != nil && err != nil: // the part was interrupted
		o.Why = fmt.Sprintf("ended after %.0f s: %v", o.Seconds, context.Cause(ctx))
		c.logf("%s: %s", p.name, o.Why)
		return nil
	case err != nil:
		if errors.Is(err, late) {
			c.hung[p.group()] = append(c.hung[p.group()], p.name)
		}
		o.Result, o.Failure = failed, c.diagnose(p, err)
		c.logf("%s: FAILED after %.1f s: %s", p.name, o.Seconds, oneLine(o.Failure.Said))
	case o.Why != "":
		o.Result = leftOut
		c.logf("%s: left out: %s", p.name, o.Why)
	default:
		o.Result = passed
		c.logf("%s: passed in %.1f s", p.name, o.Seconds)
	}
	return nil
}

func (c *checker) logf(format string, args ...any) {
	fmt.Fprintf(c.Log, "gpu-check: "+format+"\n", args...)
}

// oneLine joins lines into one, shortened, for the log. The report contains all lines.
func oneLine(lines []string) string {
	text := strings.Join(strings.Fields(strings.Join(lines, "; ")), " ")
	if len(text) > 600 {
		text = strings.ToValidUTF8(text[:600], "") + " …"
	}
	return text
}

// shared reports whether there are fewer GPUs than ranks, so that ranks share a GPU.
func (c *checker) shared() bool { return c.facts.Devices != nil && *c.facts.Devices < c.ranks }

const notPerformance = "not performance: two ranks on one GPU"

// start runs a program until it ends and returns its standard output, even with an
// error. The error includes the last lines of its standard error. start also ends
// processes that the program left running.
func (c *checker) start(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.Concat(c.environment, environment) // a new slice, because several ranks are started concurrently
	cmd.Stdout, cmd.Stderr = &out, &complaint
	// After an interrupt, a program ends its own ranks. If it does not end within the
	// grace time, it is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, c.grace
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails with ESRCH if no process is left
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		what, _, _ := strings.Cut(strings.Join(append([]string{name}, args...), " "), "\n")
		return out.Bytes(), fmt.Errorf("%s: %w\n%s", what, err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
	}
	return out.Bytes(), nil
}

// decodeAll returns the JSON values that a program printed one after the other.
func decodeAll[T any](text []byte) (list []T, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var v T
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}
