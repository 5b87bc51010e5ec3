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

// A local attempt is driven by the command that started it, and ends with it. On the same host its process
// shows whether it is alive; on another host only its heartbeat does.

// processStart returns when a process started, in clock ticks since boot, together with the boot's id; "" if it
// does not exist. Together with the pid this identifies a process uniquely; pids are reused.
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

// processStat returns a process's state as ps prints it ("T" if a signal stopped it) and its start in ticks
// since boot, or "" if it does not exist.
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

// sharesPIDs reports whether the attempt was created in this process's pid namespace, so that its pid can be
// looked up. If the kernel does not report the namespace, it compares host names.
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

// asleep returns a message if a command on this host that drives an attempt was stopped, for example by Ctrl-Z,
// and what to do; otherwise "". A stopped command keeps its attempts: they are not restarted.
func asleep(r launcher.Record) string {
	if state, _ := processStat(r.PID); state != "T" && state != "t" {
		return ""
	}
	return fmt.Sprintf("the command that drives it (process %d) is stopped; `kill -CONT %d` resumes it, `scalebench cancel` ends it", r.PID, r.PID)
}

// driverGrace is the time without a heartbeat (one every 15 s) after which an attempt driven from another host
// counts as lost. It is longer than FileGrace, within which the record of the end may still arrive, and longer
// than a busy file server delays a write.
const driverGrace = 5 * time.Minute

// drivenEvidence is everything known about a local attempt at one moment.
type drivenEvidence struct {
	launcher.Evidence
	// Driven and DrivenKnown tell whether the command that drives it is alive. If that is unknown because it is
	// on another host, Silence is the time since its last heartbeat; nil if that is unknown too.
	Driven, DrivenKnown bool
	Silence             *time.Duration
	Asleep              string // message of asleep
	Unwritten           error  // error that prevented this command from recording the end; nil if there was none
}

// judgeDriven returns the status of a local attempt, like judgeJob.
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

// endDriver sends SIGTERM to the command that drives a local attempt. It opens a handle to the process before
// it checks its identity, so that a program that reuses the pid is not signalled.
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
	// A stopped process only receives SIGTERM after SIGCONT.
	if err := errors.Join(process.Signal(syscall.SIGTERM), process.Signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("the command that drives it (process %d) cannot be ended: %w", r.PID, err)
	}
	return nil
}
