package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/launcher/trust"
)

// Exit codes. They are part of the interface, so that a script can tell a
// study that does not measure from a cluster that does not answer.
const (
	exitDone        = 0
	exitInternal    = 1
	exitUsage       = 2
	exitRunsFailed  = 3 // or checks, or compare found what it was to fail at
	exitScheduler   = 4
	exitInterrupted = 130 // as shells report a program that SIGINT ended
)

const exitHelp = `Exit codes:
0    done
1    internal error: a defect of scalebench, or of the machine it runs on
2    bad usage, or a bad study or site file
3    some runs, or some of doctor's checks, failed; compare found B worse
4    the scheduler cannot be reached
130  interrupted`

// usageError is a command line, study or site file that cannot be carried out
// as it stands.
type usageError struct {
	err  error
	hint string // what to do; "" when the error says it
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef is a usageError without a hint.
func usagef(format string, a ...any) error {
	return &usageError{err: fmt.Errorf(format, a...)}
}

// runsFailedError says that the command did its work but some runs have no
// good result.
type runsFailedError struct {
	failed, total int
	hint          string
}

func (e *runsFailedError) Error() string {
	return fmt.Sprintf("%d of %d runs failed", e.failed, e.total)
}

// checksFailedError says that doctor found what has to be put right first.
type checksFailedError struct{ failed, total int }

func (e *checksFailedError) Error() string {
	return fmt.Sprintf("%d of %d checks failed", e.failed, e.total)
}

// worseError says that a comparison came out as the user wants to be told.
type worseError struct{ err error }

func (e *worseError) Error() string { return e.err.Error() }
func (e *worseError) Unwrap() error { return e.err }

// schedulerError says that the scheduler did not answer. What it refused in
// words is a usageError instead: trying again will not help.
type schedulerError struct {
	err  error
	hint string
}

func (e *schedulerError) Error() string { return e.err.Error() }
func (e *schedulerError) Unwrap() error { return e.err }

// panicError is a defect of scalebench.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("this is a bug in scalebench: %v", e.value) }

// exitCode maps how run ended to the exit code. It is the only place that does.
func exitCode(err error) int {
	var (
		usage     *usageError
		failed    *runsFailedError
		checks    *checksFailedError
		worse     *worseError
		scheduler *schedulerError
		bug       *panicError
		untrusted *trust.Error
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &bug):
		return exitInternal
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &untrusted):
		return exitUsage
	case errors.As(err, &scheduler):
		return exitScheduler
	case errors.As(err, &failed), errors.As(err, &checks), errors.As(err, &worse):
		return exitRunsFailed
	}
	return exitInternal
}

// hintFor is what a person can do about err; "" when the error says it all.
func hintFor(err error) string {
	var (
		usage     *usageError
		failed    *runsFailedError
		scheduler *schedulerError
		bug       *panicError
	)
	switch {
	case errors.As(err, &bug):
		return "Please report it with the command line and these lines:\n" + string(bug.stack)
	case errors.As(err, &usage):
		return usage.hint
	case errors.As(err, &scheduler):
		return scheduler.hint
	case errors.As(err, &failed):
		return failed.hint
	}
	return ""
}
