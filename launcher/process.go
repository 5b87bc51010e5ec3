package launcher

import (
	"fmt"
	"os"
	"strings"

	"github.com/scalebench/scalebench/launcher/leftover"
)

// processStart is when a process began, in the kernel's clock ticks since boot,
// together with the boot's id; "" when there is no such process. Pid and start
// name a process for good, which the pid alone does not.
func processStart(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the name in parentheses and may hold anything; the
	// start time is field 22 of proc(5).
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return fields[19]
	}
	return strings.TrimSpace(string(boot)) + " " + fields[19]
}

// here reports whether the attempt was created where this process is, so that
// its pid can be looked up. A record of an earlier version says no more of the
// place than the host's name.
func here(r Record) bool {
	if now := leftover.Space(); r.PIDSpace != "" && now != "" {
		return r.PIDSpace == now
	}
	host, err := os.Hostname()
	return err == nil && host == r.Host
}

// drives reports whether the command that drives a local attempt still lives.
// Of a command on another host only its heartbeat is known here.
func drives(r Record) (alive, known bool) {
	if !here(r) {
		return false, false
	}
	return r.PIDStart != "" && processStart(r.PID) == r.PIDStart, true
}
