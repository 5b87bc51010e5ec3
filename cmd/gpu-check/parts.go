package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/gpucheck"
)

// driverPart is the part that checks the GPU's driver. If it fails, nothing else can be
// checked.
const driverPart = "libraries/driver"

// parts returns all parts of the check, in the order in which they run. A part comes after
// those that it needs.
func (c *checker) parts(ctx context.Context) ([]part, error) {
	const second, minute = time.Second, time.Minute
	const driver, pytorch, nccl, cublas = driverPart, "libraries/pytorch", "libraries/nccl", "libraries/cublas"
	list := []part{
		{driver, 3 * second, nil, c.gpu},
		{pytorch, 15 * second, []string{driver}, c.pytorch},
		{nccl, 3 * second, []string{driver}, c.library},
		{cublas, 3 * second, []string{driver}, c.cublas},
	}
	results, err := c.results(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		p := part{r.Name, time.Duration(r.Seconds * float64(second)), []string{driver}, func(ctx context.Context, o *outcome) error { return c.check(ctx, o) }}
		if !strings.HasPrefix(r.Name, "kernels/") {
			p.needs = append(p.needs, cublas)
		}
		if r.NCCL {
			p.needs = append(p.needs, nccl)
		}
		if r.PyTorch {
			p = c.withPyTorch(p)
		}
		list = append(list, p)
	}
	list = append(list,
		part{"collectives/correct", 20 * second, []string{nccl}, c.correctness},
		part{"collectives/wrong-bit", 20 * second, []string{nccl, "collectives/correct"}, c.canFail},
		part{"collectives/overhead", 10 * second, []string{nccl}, c.overhead},
		part{"collectives/benchmark", 20 * second, []string{nccl}, c.benchmark},
		part{"collectives/nccl-tests", 20 * second, []string{nccl}, c.ncclTests})
	for _, w := range workloads(c.Double) {
		list = append(list, part{"training/" + w.String(), 40 * second, []string{cublas}, func(ctx context.Context, o *outcome) error { return c.train(ctx, o, w) }})
	}
	for _, model := range speedModels(c.Double) {
		list = append(list, part{"training/time-" + model, 15 * second, []string{cublas}, func(ctx context.Context, o *outcome) error { return c.split(ctx, o, model) }})
	}
	list = append(list,
		part{"study/whole", 2 * minute, []string{nccl, cublas}, c.study},
		part{"scaling/gpus", 3 * minute, []string{nccl, cublas}, c.scaling},
		part{"energy/nvml", minute, []string{cublas}, c.energy})
	// PyTorch's speed comes last, because it checks no part of scalebench and takes longest.
	for _, w := range workloads(c.Double) {
		estimate := minute
		if w.compiled() {
			estimate = 3 * minute
		}
		list = append(list, c.withPyTorch(part{"pytorch/" + w.String(), estimate, nil, func(ctx context.Context, o *outcome) error { return c.compare(ctx, o, w) }}))
	}
	return list, nil
}

// withPyTorch returns the part p with a condition: without a PyTorch for CUDA, its
// outcome is "left out".
func (c *checker) withPyTorch(p part) part {
	run := p.run
	p.needs = append(slices.Clone(p.needs), driverPart)
	p.run = func(ctx context.Context, o *outcome) error {
		if !c.hasPyTorch() {
			o.Why = "it needs PyTorch, and libraries/pytorch is " + c.report.outcome("libraries/pytorch").Result
			return nil
		}
		return run(ctx, o)
	}
	return p
}

// hasPyTorch reports whether an interpreter with a working PyTorch was found.
func (c *checker) hasPyTorch() bool { return c.report.outcome("libraries/pytorch").Result == passed }

// due reports whether --only selects a part. Parts that check the libraries are always
// selected.
func (c *checker) due(p part) bool {
	return len(c.Only) == 0 || p.group() == "libraries" || slices.Contains(c.Only, p.group()) || slices.Contains(c.Only, p.name)
}

// selected returns the parts to run in this call. Parts that were done in an earlier
// call are run again if --only selects them, if they check the libraries, or if they
// were left out.
func (c *checker) selected(ctx context.Context) ([]part, error) {
	all, err := c.parts(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Only {
		if !slices.ContainsFunc(all, func(p part) bool { return p.name == name || strings.HasPrefix(p.name, name+"/") }) {
			return nil, usageError(fmt.Sprintf("--only %s: there is no such check; want one of %s, or a part as --list names it", name, strings.Join(groups(all), ", ")))
		}
	}
	var list []part
	for _, p := range all {
		if !c.due(p) {
			continue
		}
		o := c.report.outcome(p.name)
		if strings.HasPrefix(p.name, "libraries/") || len(c.Only) > 0 || !o.done() || o.Result == leftOut {
			o.Result = pending
			list = append(list, p)
		}
	}
	return list, nil
}

func groups(parts []part) (list []string) {
	for _, p := range parts {
		if !slices.Contains(list, p.group()) {
			list = append(list, p.group())
		}
	}
	return list
}

// listParts prints the parts and how long each takes on one H100.
func listParts(ctx context.Context, o options, stdout io.Writer) error {
	c := &checker{options: o}
	parts, err := c.parts(ctx)
	if err != nil {
		return err
	}
	total := time.Duration(0)
	for _, p := range parts {
		if total += p.estimate; c.due(p) {
			fmt.Fprintf(stdout, "%-28s %4.0f s\n", p.name, p.estimate.Seconds())
		}
	}
	_, err = fmt.Fprintf(stdout, "%-28s %4.0f s\n", "all", total.Seconds())
	return err
}

// results asks the worker which checks of kernels' results it has.
func (c *checker) results(ctx context.Context) (list []gpucheck.Listed, err error) {
	text, err := c.start(ctx, nil, c.Worker, "checks")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not the GPU variant of the worker; use the bundle of make gpu-bundle: %w", c.Worker, err)
	}
	return list, nil
}

// checks is a worker process that checks the results of kernels, one check after the
// other. All use one process, because opening a GPU takes longer than most checks.
type checks struct {
	cmd   *exec.Cmd
	names io.WriteCloser
	lines *bufio.Reader
	said  *tail
}

// check runs one check of a kernel's results. After a failure it ends the worker, so
// that the next check starts a new one: after an error inside a kernel, every later
// CUDA call of the process fails.
func (c *checker) check(ctx context.Context, o *outcome) error {
	if c.checks == nil {
		if err := c.startChecks(); err != nil {
			return err
		}
	}
	type answer struct {
		text []byte
		err  error
	}
	done := make(chan answer, 1)
	w := c.checks
	go func() {
		_, err := fmt.Fprintln(w.names, o.Name)
		var text []byte
		if err == nil {
			text, err = w.lines.ReadBytes('\n')
		}
		done <- answer{text, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errNoTime) {
			c.endChecks()
			return context.Cause(ctx)
		}
		_ = syscall.Kill(w.cmd.Process.Pid, syscall.SIGQUIT) // the worker then prints its stacks
		select {
		case <-done:
		case <-time.After(2 * time.Second):
		}
		c.endChecks()
		return fmt.Errorf("%w; the worker was in %s", context.Cause(ctx), strings.Join(frames(w.said.String()), ", called by "))
	}
	var r gpucheck.Result
	if a.err == nil {
		a.err = json.Unmarshal(a.text, &r)
	}
	if a.err != nil {
		c.endChecks()
		lines := strings.Split(w.said.String(), "\n")
		return fmt.Errorf("the worker ended in %s (%v): %s", o.Name, w.cmd.ProcessState, strings.Join(lines[:min(len(lines), 20)], "\n"))
	}
	for _, line := range r.Log {
		o.Found = append(o.Found, "- "+line)
	}
	if r.Failure != nil {
		c.endChecks()
		return &checkError{*r.Failure}
	}
	return nil
}

func (c *checker) startChecks() error {
	w := &checks{cmd: exec.Command(c.Worker, "check"), said: &tail{}}
	w.cmd.Env = append(slices.Clone(c.environment), gpucheck.PythonVariable+"="+c.python)
	w.cmd.Stderr = w.said
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := w.cmd.StdinPipe()
	out, err2 := w.cmd.StdoutPipe()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	w.names, w.lines = in, bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return err
	}
	c.checks = w
	return nil
}

// endChecks ends the worker that checks results, and the ranks that it started.
func (c *checker) endChecks() {
	if c.checks == nil {
		return
	}
	_ = syscall.Kill(-c.checks.cmd.Process.Pid, syscall.SIGKILL) // fails with ESRCH if it has ended
	_ = c.checks.cmd.Wait()
	c.checks = nil
}

// frame matches a function of scalebench in the stacks that a Go program prints at
// SIGQUIT.
var frame = regexp.MustCompile(`(?m)^github\.com/scalebench/scalebench/launcher/(?:\w+/)*(\w+\..*)\(`)

// mostFrames is the maximum number of functions that are listed from a stack.
const mostFrames = 8

// frames returns the functions of scalebench in the first stack that contains any,
// innermost first.
func frames(stacks string) (list []string) {
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		for _, m := range frame.FindAllStringSubmatch(stack, mostFrames) {
			list = append(list, m[1])
		}
		if len(list) > 0 {
			return list
		}
	}
	return []string{"a function that it did not print"}
}

// tail is a writer that keeps only the last tailBytes bytes.
type tail struct{ text []byte }

const tailBytes = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }
