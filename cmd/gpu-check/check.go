package main

import (
	"bytes"
	"context"
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

// options configure a check.
type options struct {
	Worker     string // its GPU variant
	Scalebench string
	Python     string // "": looked for
	Log        io.Writer

	Began  time.Time
	Time   time.Duration // 0: no limit
	Resume string
	Only   []string
	Output string
	Record string

	// Double says that the environment names the test fakes of CUDA's libraries. The
	// check is then one of this program: studies are small, and the results say so.
	Double bool
	// Perturb changes a bit of one result on one rank: the check has to fail.
	Perturb bool
}

// A part is the smallest piece of the check that a call can end after.
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

// patience is how much longer than ten times its estimate a part may take.
const patience = time.Minute

// mostHung is how many parts of a check may run into their limit. The others would, too,
// and time on a GPU is short.
const mostHung = 2

// A checker makes the parts of the check.
type checker struct {
	options
	report      *report
	environment []string // of everything that is started
	facts       probe.NCCL
	cublasFile  string
	python      string // the interpreter that was found
	ranks       int    // of the checks of collectives
	written     bool   // the results have been written
	grace       time.Duration
	patience    time.Duration
	hung        map[string][]string // parts of a check that ran into their limit
	checks      *checks             // the worker that makes checks of results; nil: none is running
}

// errNoTime is the cause of a part's end when the time of --time is over.
var errNoTime = errors.New("the time is over")

// runCheck makes the parts that are due, and returns the results so far. An error says
// why the check could not be made.
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
		return c.report, nil // of --resume: nothing is left to do
	}
	c.begin()
	defer c.endChecks()
	stop, end := c.stop(), context.CancelFunc(func() {})
	if !stop.IsZero() {
		ctx, end = context.WithDeadlineCause(ctx, stop, errNoTime)
	}
	defer end()
	for _, p := range parts { // all are listed from the first file on
		c.report.outcome(p.name).Estimate = p.estimate.Seconds()
	}
	if err := c.makeParts(ctx, parts, stop); err != nil {
		return nil, err
	}
	c.call().Seconds = time.Since(c.Began).Seconds()
	return c.report, c.write()
}

// makeParts makes the parts that fit before stop, and writes the results after each.
func (c *checker) makeParts(ctx context.Context, parts []part, stop time.Time) error {
	tooLong := time.Duration(0) // the shortest part that did not fit
	for _, p := range parts {
		o := c.report.outcome(p.name)
		if need := c.missing(p); need != nil {
			if o.Why = fmt.Sprintf("it needs %s, which is %s", need.Name, need.Result); need.Result != pending {
				o.Result = notMade
			}
			continue
		}
		if hung := c.hung[p.group()]; len(hung) >= mostHung {
			o.Result, o.Why = notMade, fmt.Sprintf("%s ran into their time limits", strings.Join(hung, " and "))
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
			break // nothing can be checked
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

// write writes the results so far. The first time of a new check it keeps earlier ones.
func (c *checker) write() error {
	if c.Resume == "" && !c.written {
		if err := keepOld(c.Output); err != nil {
			return err
		}
	}
	c.written = true
	return c.report.write(c.Output)
}

// begin adds this call to the results.
func (c *checker) begin() {
	host, _ := os.Hostname()
	c.report.Date, c.report.Host = time.Now().UTC().Format(time.DateOnly), host
	c.report.Kernel, c.report.DriverModule = linux(), moduleVersion()
	c.report.Calls = append(c.report.Calls, call{Began: c.Began.UTC().Format(time.RFC3339), Host: host, Limit: c.Time.Seconds()})
}

func (c *checker) call() *call { return &c.report.Calls[len(c.report.Calls)-1] }

// stop returns when parts are interrupted, early enough that they can end and results
// are written before --time is over; zero: never.
func (c *checker) stop() time.Time {
	if c.Time == 0 {
		return time.Time{}
	}
	return c.Began.Add(c.Time - c.grace - min(max(c.Time/60, time.Second), 5*time.Second))
}

// expected estimates how long a part takes. With the fakes, parts compute little.
func (c *checker) expected(p part, o *outcome) time.Duration {
	e := p.estimate
	if c.Double {
		e = min(e, 2*time.Second)
	}
	if o.Result == pending && o.Seconds > 0 { // a call ended before the part did
		e = max(e, time.Duration(1.5*o.Seconds*float64(time.Second)))
	}
	return e
}

// missing returns the outcome of a part that p needs and that has not passed, or nil.
// --only asks for no needs but the libraries.
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

// attempt makes one part. Its error is of the check itself.
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
	case ctx.Err() != nil && err != nil: // not the part's fault
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

// oneLine joins lines for the log; the results have them all.
func oneLine(lines []string) string {
	text := strings.Join(strings.Fields(strings.Join(lines, "; ")), " ")
	if len(text) > 600 {
		text = strings.ToValidUTF8(text[:600], "") + " …"
	}
	return text
}

// shared reports whether ranks have to share a GPU.
func (c *checker) shared() bool { return c.facts.Devices != nil && *c.facts.Devices < c.ranks }

const notPerformance = "not performance: two ranks on one GPU"

// start runs a program to its end and returns what it printed, also with an error,
// which ends with the last lines of its standard error. Processes that the program
// leaves are ended with it.
func (c *checker) start(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.Concat(c.environment, environment) // ranks start at once: never in one array
	cmd.Stdout, cmd.Stderr = &out, &complaint
	// A run that is interrupted ends its ranks; what hangs is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, c.grace
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nothing is left
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
