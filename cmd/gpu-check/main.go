// Command gpu-check tests every part of scalebench that uses a GPU, on a machine with a GPU. The
// machine needs only the GPU's driver. `make gpu-bundle` packs gpu-check and the programs that it
// tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/metrics/clean"
)

// Exit codes.
const (
	exitPassed     = 0
	exitError      = 1 // the check could not be run
	exitUsage      = 2
	exitFailed     = 3 // at least one check failed
	exitUnfinished = 4 // no check failed, but some have not been run
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// usage precedes the list of options.
const usage = `gpu-check checks everything of scalebench that touches a GPU, and writes what it
found to gpu-check.json and gpu-check.md after every check. It needs the GPU's
driver. NCCL and cuBLAS come from the Python that has PyTorch, else from the system.

  ./gpu-check                              every check
  ./gpu-check --time 8m                    stop before 8 minutes are over
  ./gpu-check --resume gpu-check.json      continue, also on another node of the same kind
  ./gpu-check --only kernels               one check, or one part of it: kernels/sgd

Exit codes: 0 everything passed, 1 the check could not be made, 2 wrong options,
3 something failed, 4 unfinished.

`

// only is the value of the option --only, which can be repeated.
type only []string

func (o *only) String() string     { return strings.Join(*o, ",") }
func (o *only) Set(s string) error { *o = append(*o, strings.Split(s, ",")...); return nil }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := options{Log: stderr, Began: time.Now()}
	if self, err := os.Executable(); err == nil {
		o.Worker, o.Scalebench = filepath.Join(filepath.Dir(self), "scalebench-worker"), filepath.Join(filepath.Dir(self), "scalebench")
	}
	flags := flag.NewFlagSet("gpu-check", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		io.WriteString(stderr, usage)
		flags.PrintDefaults()
	}
	flags.DurationVar(&o.Time, "time", 0, "stop before this much time is over, for example 8m; 0: no limit")
	flags.StringVar(&o.Resume, "resume", "", "continue the check of this `gpu-check.json`")
	flags.Var((*only)(&o.Only), "only", "make only the check of this `NAME`; may be repeated")
	list := flags.Bool("list", false, "list the checks with their estimated times, and exit")
	flags.StringVar(&o.Output, "output", "gpu-check.json", "`file` for the results; the page goes next to it as .md")
	flags.StringVar(&o.Python, "python", "", "`interpreter` with PyTorch for CUDA (default: $VIRTUAL_ENV/bin/python3, else python3)")
	flags.BoolVar(&o.Double, "double", false, "expect the test fakes of CUDA's libraries instead of a GPU")
	flags.BoolVar(&o.Perturb, "perturb", false, "flip a bit of one result: the check must fail")
	flags.StringVar(&o.Worker, "worker", o.Worker, "the worker's GPU variant")
	flags.StringVar(&o.Scalebench, "scalebench", o.Scalebench, "scalebench")
	flags.StringVar(&o.Record, "record", "", "a `checkout` of scalebench: if nothing failed on a GPU, write launcher/gpucheck/record.json and record.md there; with --resume, of those results, and no check is made")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPassed
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		err = usageError(fmt.Sprintf("%q is one argument too many; options are listed by --help", flags.Arg(0)))
	case o.Time < 0:
		err = usageError(fmt.Sprintf("--time %v: want a length of time above 0, for example 8m", o.Time))
	}
	if err == nil {
		err = o.absolute()
	}
	var r *report
	if err == nil {
		if *list {
			err = listParts(ctx, o, stdout)
		} else if r, err = o.results(ctx); err == nil && o.Record != "" && r.Result != "failed" {
			err = record(r, o.Record, stdout)
		}
	}
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(stderr, "gpu-check:", clean.Lines(err.Error()))
		return exitUsage
	case err != nil:
		fmt.Fprintln(stderr, "gpu-check:", clean.Lines(err.Error()))
		return exitError
	case r == nil:
		return exitPassed
	}
	if r.outcome(driverPart).Result != failed { // otherwise an earlier line has said everything
		fmt.Fprintln(stderr, "gpu-check:", clean.Lines(r.summary(o.Output)))
	}
	return r.exitCode()
}

// results runs the check and returns the report. With both --resume and --record it runs nothing
// and returns the report of the earlier check, which may come from another machine.
func (o options) results(ctx context.Context) (*report, error) {
	if o.Resume == "" || o.Record == "" {
		return runCheck(ctx, o)
	}
	r, err := load(o.Resume)
	if err == nil {
		r.judge()
	}
	return r, err
}

// usageError is the error for a mistake on the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// absolute makes paths absolute, because some programs are started in other folders. It searches
// for a program name without a slash in PATH.
func (o *options) absolute() error {
	if o.Resume != "" {
		o.Output = o.Resume
	}
	for _, path := range []*string{&o.Worker, &o.Scalebench, &o.Python, &o.Output} {
		if *path == "" || path == &o.Python && !strings.ContainsRune(*path, filepath.Separator) {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
