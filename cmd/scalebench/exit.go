package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/scalebench/scalebench/cmd/internal/cmdline"
	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Exit codes. They are part of the interface: scripts can distinguish a failed study from a
// cluster that does not answer.
const (
	exitDone        = 0
	exitInternal    = 1
	exitUsage       = 2
	exitRunsFailed  = 3 // or are unreadable, or checks failed, or the condition of compare --fail-if-worse holds
	exitScheduler   = 4
	exitUndecided   = 5   // advise has no answer, or a study is not decided
	exitInterrupted = 130 // as shells report a program ended by SIGINT; 143: SIGTERM; 129: SIGHUP; 131: SIGQUIT
)

const exitHelp = `Exit codes:
0    done
1    internal error: a bug in scalebench, or a fault of the machine it runs on
2    bad usage, a bad study or site file, or a file that cannot be used
3    some runs failed, or cannot be read and are missing from what was printed, or some of
     doctor's checks failed, or compare found B worse; everything else was done
4    the scheduler cannot be reached
5    advise found no answer, or a study is not decided: the runs cannot decide, or no
     choice meets the limits
130  interrupted; 143 by SIGTERM, 129 by SIGHUP, 131 by SIGQUIT`

// usageError reports an invalid option, study or site file.
type usageError struct {
	err  error
	hint string // what to do; "" if the error says so itself
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef returns a usageError without a hint.
func usagef(format string, a ...any) error {
	return &usageError{err: fmt.Errorf(format, a...)}
}

// checksFailedError reports that doctor found problems to fix first.
type checksFailedError struct{ failed, total int }

func (e *checksFailedError) Error() string {
	return fmt.Sprintf("%d of %s failed", e.failed, number.Count(e.total, "check"))
}

// worseError reports that the condition of --fail-if-worse holds.
type worseError struct{ err error }

func (e *worseError) Error() string { return e.err.Error() }
func (e *worseError) Unwrap() error { return e.err }

// errUndecided reports that advise has printed why it has no answer.
var errUndecided = errors.New("nothing can be recommended; the answer says why")

// openError reports that a study is not decided, and why measuring stopped.
type openError struct{ why string }

func (e *openError) Error() string { return "not decided: " + e.why }

// Is makes errors.Is treat an openError as errUndecided, so that it has the same exit code.
func (e *openError) Is(target error) bool { return target == errUndecided }

// schedulerError reports that the scheduler did not answer. A refusal is a usageError
// instead, since retrying will not help.
type schedulerError struct {
	err  error
	hint string
}

func (e *schedulerError) Error() string { return e.err.Error() }
func (e *schedulerError) Unwrap() error { return e.err }

// interruptedError reports that a signal ended the command.
type interruptedError struct{ signal syscall.Signal }

func (e *interruptedError) Error() string { return "interrupted" }
func (e *interruptedError) Unwrap() error { return context.Canceled }

// panicError reports a bug in scalebench.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("this is a bug in scalebench: %v", e.value) }

// unfit are errors about paths that the user can correct.
var unfit = []error{sharedfs.ErrNotRegular, sharedfs.ErrTooLarge, fs.ErrExist, fs.ErrPermission, syscall.EISDIR, syscall.ENOTDIR, syscall.ELOOP, syscall.EROFS}

// crashed reports whether a command ended by a bug in scalebench.
func crashed(err error) bool {
	var bug *panicError
	return errors.As(err, &bug)
}

// exitCode returns the exit code for an error of run. Exit codes are decided only here.
func exitCode(err error) int {
	var (
		line      *cmdline.Error
		usage     *usageError
		failed    *workspace.RunsFailed
		partial   *workspace.PartialError
		checks    *checksFailedError
		worse     *worseError
		scheduler *schedulerError
		bug       *panicError
		interrupt *interruptedError
		untrusted *trust.Error
		refused   *workspace.Error
		gone      launcher.Unreachable
		declined  launcher.Refusal
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &bug):
		return exitInternal
	case errors.As(err, &interrupt):
		return 128 + int(interrupt.signal)
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &line), errors.As(err, &usage), errors.As(err, &refused), errors.As(err, &untrusted):
		return exitUsage
	case errors.As(err, &scheduler), errors.As(err, &gone):
		return exitScheduler
	case errors.As(err, &declined):
		return exitUsage
	case errors.Is(err, errUndecided):
		return exitUndecided
	case errors.As(err, &failed), errors.As(err, &partial), errors.As(err, &checks), errors.As(err, &worse):
		return exitRunsFailed
	case slices.ContainsFunc(unfit, func(e error) bool { return errors.Is(err, e) }):
		return exitUsage
	}
	return exitInternal
}

// hintFor returns what the user can do about err; "" if the error says so.
func hintFor(err error) string {
	var (
		line      *cmdline.Error
		usage     *usageError
		failed    *workspace.RunsFailed
		partial   *workspace.PartialError
		scheduler *schedulerError
		bug       *panicError
		refused   *workspace.Error
		gone      launcher.Unreachable
	)
	switch {
	case errors.As(err, &bug):
		return "Please report it with the command line and these lines:\n" + string(bug.stack)
	case errors.As(err, &line):
		return line.Hint
	case errors.As(err, &usage):
		return cmp.Or(usage.hint, workspace.AskOwner(err))
	case errors.As(err, &refused):
		return cmp.Or(refused.Hint, workspace.AskOwner(err))
	case errors.As(err, &scheduler):
		return scheduler.hint
	case errors.As(err, &gone) && gone.Queued():
		return "The last submission may be in the queue. The same command looks for it before it submits again."
	case errors.As(err, &gone):
		return "Nothing is lost; repeat the command later."
	case errors.As(err, &failed):
		return failed.Hint
	case errors.As(err, &partial):
		return partial.Hint
	}
	return workspace.AskOwner(err)
}
