package worker

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This file ends processes that a program leaves behind on its host: background helpers, daemons, children of a
// killed process. They would slow down the next run, which is measured.
//
// Processes are recognised by their ancestors if these are alive: a process that calls AdoptOrphans becomes the
// parent of all orphans below it, including daemons. If the adopting process was itself killed, an environment
// variable (supervisorMark) names it. Names of programs never count, and processes of other users are never
// ended.

// supervisorVariable is the environment variable that names a program's supervisor to the program's children.
const supervisorVariable = "SCALEBENCH_SUPERVISOR"

// How long leftover processes get to end by themselves, and how long they are killed before giving up.
const (
	grace   = 2 * time.Second
	killing = 5 * time.Second
)

// named bounds how many processes a report names; it only counts the others.
const named = 5

// A ReapReport lists processes that outlived their program.
type ReapReport struct {
	Ended int      // how many
	Names []string // names of the first processes
	Alive []string // processes that could not be ended: another user's, or blocked in the kernel
}

// String returns "3 processes outlived WHOSE and were ended: sh (pid 12), …", or "" if there were none.
func (r ReapReport) String() string { return r.Describe("the program") }

// Describe is String with a name for what the processes outlived.
func (r ReapReport) Describe(whose string) string {
	var parts []string
	if r.Ended > 0 {
		names := strings.Join(r.Names, ", ")
		if r.Ended > len(r.Names) {
			names += ", …"
		}
		what := "processes outlived " + whose + " and were ended"
		if r.Ended == 1 {
			what = "process outlived " + whose + " and was ended"
		}
		parts = append(parts, fmt.Sprintf("%d %s: %s", r.Ended, what, names))
	}
	if len(r.Alive) > 0 {
		parts = append(parts, fmt.Sprintf("still running after %s, and could not be killed: %s", whose, strings.Join(r.Alive, ", ")))
	}
	return strings.Join(parts, "; ")
}

// inherited are the children that this process had before it adopted any: those
// of a shell that has replaced itself by it.
var inherited = sync.OnceValue(func() map[int]string {
	m := map[int]string{}
	for _, p := range children(os.Getpid()) {
		m[p.pid] = p.start
	}
	return m
})

// AdoptOrphans makes this process the parent of every descendant whose parent ends.
func AdoptOrphans() error {
	inherited()
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// supervisorMark returns the variable for the environment of this process's children. Launchers pass it on to
// other hosts (srun, mpirun), so it names the host and pid namespace that it is valid in.
func supervisorMark() string {
	self, err := look(os.Getpid())
	if err != nil {
		return supervisorVariable + "="
	}
	return supervisorVariable + "=" + strconv.Itoa(self.pid) + "." + self.start + "." + PIDSpace()
}

// reapChildren takes note of the end of adopted children, which would otherwise keep their numbers.
// It skips those for which spare returns true, because other code waits for them.
func reapChildren(spare func(pid int) bool) { reap(func(p process) bool { return spare(p.pid) }) }

func reap(spare func(process) bool) (some bool) {
	for _, p := range children(os.Getpid()) {
		if p.ended && !spare(p) {
			pid, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
			some = some || err == nil && pid == p.pid
		}
	}
	return some
}

// endBelow ends every descendant of this process, except children that spare reports and everything
// below them.
func endBelow(spare func(pid int) bool) ReapReport {
	return below(func(p process) bool { return spare(p.pid) })
}

// EndOrphans ends the processes that this process has adopted: its children in another process
// group than its own, except those that spare reports. What it starts itself stays in its own
// group. It does nothing in the first process of a container, which adopts every orphan there.
func EndOrphans(spare func(pid int) bool) ReapReport {
	if os.Getpid() == 1 {
		return ReapReport{}
	}
	group, before := syscall.Getpgrp(), inherited()
	return below(func(p process) bool { return p.group == group || before[p.pid] == p.start || spare(p.pid) })
}

func below(spare func(process) bool) ReapReport {
	self := os.Getpid()
	return end(func() []process { return descendants(self, spare) },
		func(p process) bool { return p.descends(self, spare) }, spare)
}

// EndAbandoned ends the processes whose Mark names a supervisor that has ended, if belongs reports
// true for the environment they were started with. It neither sees nor touches processes of other
// users or of other PID namespaces.
func EndAbandoned(belongs func(variables map[string]string) bool) ReapReport {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ReapReport{}
	}
	self := os.Getpid()
	abandoned := func(p process) bool {
		if p.pid == self || p.ended {
			return false
		}
		v := p.variables() // readable only for the user's own processes, and by root
		if v[supervisorVariable] == "" || alive(v[supervisorVariable]) || !belongs(v) {
			return false
		}
		if info, err := os.Stat("/proc/" + strconv.Itoa(p.pid)); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
			return false
		}
		ns, err := os.Readlink("/proc/" + strconv.Itoa(p.pid) + "/ns/pid")
		return err == nil && ns == namespace
	}
	find := func() []process {
		return slices.DeleteFunc(all(), func(p process) bool { return !abandoned(p) })
	}
	return end(find, abandoned, func(process) bool { return true }) // their new parents wait for them
}

// alive reports whether the supervisor that a mark names is alive; true if that cannot be determined here.
func alive(mark string) bool {
	fields := strings.SplitN(mark, ".", 3)
	if len(fields) != 3 || fields[2] == "" || fields[2] != PIDSpace() {
		return true // the text is not a mark, or another host's
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return true
	}
	p, err := look(pid)
	return err == nil && p.start == fields[1] && !p.ended
}

// end ends the processes that find returns until it returns none: first by SIGTERM, then by
// SIGKILL, including those that are started meanwhile. ours reports whether a process may be
// ended.
func end(find func() []process, ours, spare func(process) bool) ReapReport {
	r := reaper{ours: ours, told: map[processKey]bool{}, immune: map[processKey]bool{}}
	begun := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		// A process that ends may have started another that find could not see yet.
		quiet := !reap(spare)
		kill, late := time.Since(begun) >= grace, time.Since(begun) > grace+killing
		for _, p := range find() {
			if !r.immune[p.key()] {
				quiet = false
				r.end(p, kill, late)
			}
		}
		if quiet || late {
			reap(spare)
			return r.report
		}
		if kill {
			pause = time.Millisecond // a short pause, to catch a process that forks continually
		}
		time.Sleep(pause)
	}
}

// A processKey identifies a process, as PIDs are used again.
type processKey struct {
	pid   int
	start string
}

func (p process) key() processKey { return processKey{p.pid, p.start} }

// A reaper ends processes and reports which.
type reaper struct {
	ours         func(process) bool
	told, immune map[processKey]bool // signalled, and given up
	report       ReapReport
}

// end signals one process, with SIGKILL if kill is set, and gives it up if it is late or
// another user's.
func (r *reaper) end(p process, kill, late bool) {
	if p.ended {
		return
	}
	if !r.told[p.key()] {
		r.told[p.key()] = true
		r.report.Ended++
		if len(r.report.Names) < named {
			r.report.Names = append(r.report.Names, p.String())
		}
		if !kill {
			_ = p.signal(syscall.SIGTERM)
			_ = p.signal(syscall.SIGCONT) // a stopped process handles no signal before it continues
		}
	}
	if kill {
		p.killGroup(r.ours)
	}
	if kill && errors.Is(p.signal(syscall.SIGKILL), syscall.EPERM) || late {
		r.immune[p.key()] = true
		r.report.Ended--
		r.report.Names = slices.DeleteFunc(r.report.Names, func(name string) bool { return name == p.String() })
		r.report.Alive = append(r.report.Alive, p.String())
	}
}
