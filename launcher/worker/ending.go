package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/rundir"
)

// settle is the largest delay between the signals that the processes of a job receive at its end:
// Slurm signals them one after the other.
const settle = 250 * time.Millisecond

// endRequest returns why a program that has ended was asked to end: heard, the signal that its
// supervisor received earlier; a signal that arrives within settle; or `scalebench cancel`. It is
// "" if the program ended by itself.
func endRequest(run rundir.Folder, signals <-chan os.Signal, heard string) string {
	if heard != "" {
		return heard
	}
	var late <-chan time.Time
	if os.Getenv("SLURM_JOB_ID") != "" {
		late = time.After(settle)
	}
	for late != nil {
		select {
		case s := <-signals:
			if s != syscall.SIGUSR1 {
				return s.String()
			}
		case <-late:
			late = nil
		}
	}
	if _, err := os.Stat(run.Cancel()); err == nil {
		return "scalebench cancel"
	}
	return ""
}

// notStarted returns why a program could not be started, and on which host.
func notStarted(program, directory string, err error) string {
	host, _ := os.Hostname()
	// A folder that is missing reads as if the program were.
	if _, gone := os.Stat(directory); directory != "" && gone != nil {
		return fmt.Sprintf("the program's folder is missing on %s: %v", host, gone)
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Sprintf("%q is not on the PATH of %s", program, host)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%q does not exist on %s, or the interpreter that its first line names does not", program, host)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%q is not executable on %s", program, host)
	}
	return err.Error()
}

// outcome returns a program's exit code and, if it is not 0, why it failed, according to the end of its output.
func outcome(err error, o output) (code int, why string) {
	if err == nil {
		return 0, ""
	}
	said := diagnose(o.end())
	code, why = 1, err.Error()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status := exit.Sys().(syscall.WaitStatus)
		code = exit.ExitCode()
		why = fmt.Sprintf("exit code %d", code)
		if code < 0 {
			code = 128 + int(status.Signal())
			why = "killed by " + unix.SignalName(status.Signal())
		} else if said != "" && !strings.HasPrefix(said, "its last") {
			return code, said
		}
	}
	if said == "" {
		said = "it printed nothing"
	}
	return code, why + "; " + said
}
