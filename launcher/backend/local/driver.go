package local

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
)

// A local attempt is driven by the command that began it, and ends with it.
// Whether that command still lives is seen on its own host; from another one
// only its heartbeat is.

// processStart is when a process began, in the kernel's clock ticks since boot,
// together with the boot's id; "" when there is no such process. Pid and start
// name a process for good, which the pid alone does not.
func processStart(pid int) string {
	_, start := processStat(pid)
	if start == "" {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return start
	}
	return strings.TrimSpace(string(boot)) + " " + start
}

// processStat is a process's state as ps prints it, "T" where a signal has
// stopped it, and its start in ticks since boot; "" when there is no such
// process.
func processStat(pid int) (state, start string) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	// The second field is the name in parentheses and may hold anything; the
	// state is field 3 of proc(5), the start time field 22.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "", ""
	}
	return fields[0], fields[19]
}

// sharesPIDs reports whether the attempt was created where this process is, so that
// its pid can be looked up. Where the kernel does not tell, the host's name is
// all there is.
func sharesPIDs(r launcher.Record) bool {
	if now := worker.PIDSpace(); r.PIDSpace != "" || now != "" {
		return r.PIDSpace == now
	}
	host, err := os.Hostname()
	return err == nil && host == r.Host
}

// drives reports whether the command that drives a local attempt still lives.
// Of a command on another host only its heartbeat is known here.
func drives(r launcher.Record) (alive, known bool) {
	if !sharesPIDs(r) {
		return false, false
	}
	return r.PIDStart != "" && processStart(r.PID) == r.PIDStart, true
}

// asleep says that a command on this host which drives an attempt was stopped,
// by Ctrl-Z for example, and what to do; "" when it was not. It still holds what
// it holds: nothing else is begun in its place.
func asleep(r launcher.Record) string {
	if state, _ := processStat(r.PID); state != "T" && state != "t" {
		return ""
	}
	return fmt.Sprintf("the command that drives it (process %d) is stopped; `kill -CONT %d` resumes it, `scalebench cancel` ends it", r.PID, r.PID)
}

// driverGrace is how long a command on another host may give no sign of life (it
// does every 15 s) before the attempt that it drives counts as lost: longer than
// FileGrace, within which its record of the end may be under way, and than a
// busy file server makes a write wait.
const driverGrace = 5 * time.Minute

// drivenEvidence is all that is known of a local attempt at one moment.
type drivenEvidence struct {
	launcher.Evidence
	// Whether the command that drives it still lives; where that cannot be seen,
	// since it is on another host, how long ago it last gave a sign of life, nil
	// when that is not known either.
	Driven, DrivenKnown bool
	Silence             *time.Duration
	Asleep              string // as asleep has it
	Unwritten           error  // that kept this command from recording the end of it; nil: it has not ended, or did
}

// judgeDriven says how far a local attempt came, like judgeJob.
func judgeDriven(e drivenEvidence) (metrics.Status, string) {
	switch {
	case e.Traces.Exit != nil && e.Traces.Exit.Signal != "":
		return metrics.Cancelled, e.Traces.Cause
	case e.Traces.Exit != nil:
		return e.Exited()
	case e.Unwritten != nil:
		return metrics.Lost, fmt.Sprintf("it has ended, and the record of its end could not be written: %v", e.Unwritten)
	case e.Driven:
		return metrics.Running, e.Asleep
	case !e.DrivenKnown && e.Silence == nil:
		return metrics.Running, "driven by a command on another host, which cannot be checked from here; judged by its events"
	case !e.DrivenKnown && *e.Silence < driverGrace:
		return metrics.Running, "driven by a command on another host"
	case !e.DrivenKnown:
		return metrics.Lost, fmt.Sprintf("the command that drove it, on another host, has given no sign of life for %v and left no record of its end", e.Silence.Round(time.Second))
	}
	return metrics.Lost, "the command that drove it is gone and left no record of its end"
}

// endDriver sends SIGTERM to the command that drives a local attempt. The
// process is held by its handle before it is recognised, so that a pid that
// goes to another program meanwhile is not signalled.
func endDriver(r launcher.Record) error {
	if !sharesPIDs(r) {
		if host, err := os.Hostname(); err == nil && host == r.Host {
			return fmt.Errorf("driven by process %d on another host or container named %s, or on this host before it rebooted; end it there", r.PID, r.Host)
		}
		return fmt.Errorf("driven by process %d on %s; end it there", r.PID, r.Host)
	}
	process, err := os.FindProcess(r.PID)
	if err != nil {
		return fmt.Errorf("the command that drove it (process %d) is gone", r.PID)
	}
	defer process.Release()
	if alive, known := drives(r); !known || !alive {
		return fmt.Errorf("the command that drove it (process %d) is gone", r.PID)
	}
	// One that is stopped hears of its end when it goes on.
	if err := errors.Join(process.Signal(syscall.SIGTERM), process.Signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("the command that drives it (process %d) cannot be ended: %w", r.PID, err)
	}
	return nil
}
