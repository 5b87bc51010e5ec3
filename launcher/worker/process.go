package worker

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A process is one process at one moment. Pids are reused, so the start time is part of its identity.
type process struct {
	pid, parent, group int
	ended              bool   // it has ended, and its parent has not waited for it (zombie)
	start              string // start time in clock ticks since the boot
}

// look reads /proc/PID/stat.
func look(pid int) (process, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	// The name is in parentheses and may itself contain parentheses.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return process{}, errors.New("/proc has a stat of another form")
	}
	parent, _ := strconv.Atoi(fields[1])
	group, _ := strconv.Atoi(fields[2])
	// A process whose main thread has ended is shown as a zombie while its other threads still run.
	threads, _ := strconv.Atoi(fields[17])
	return process{pid: pid, parent: parent, group: group, ended: fields[0] == "Z" && threads <= 1, start: fields[19]}, nil
}

// all returns the visible processes of this host.
func all() []process {
	entries, _ := os.ReadDir("/proc")
	var list []process
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, err := look(pid); err == nil {
				list = append(list, p)
			}
		}
	}
	return list
}

// children returns the processes that pid has started or adopted.
func children(pid int) []process {
	var list []process
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
	for _, task := range tasks {
		text, err := os.ReadFile(task + "/children")
		if errors.Is(err, os.ErrNotExist) && exists(task) { // a kernel without them
			return slices.DeleteFunc(all(), func(p process) bool { return p.parent != pid })
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				if p, err := look(child); err == nil {
					list = append(list, p)
				}
			}
		}
	}
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// descendants returns the children of pid and their descendants, except children that spare reports
// and everything below them.
func descendants(pid int, spare func(process) bool) []process {
	var list []process
	for _, p := range children(pid) {
		if !spare(p) {
			list = append(append(list, p), descendants(p.pid, func(process) bool { return false })...)
		}
	}
	return list
}

// descends reports whether pid has started or adopted this process or one of its ancestors, except
// through children that spare reports. A process whose parent ends at this moment counts, because
// its origin is unknown.
func (p process) descends(pid int, spare func(process) bool) bool {
	for {
		if p.parent == pid {
			return !spare(p)
		}
		if p.parent <= 1 {
			return false
		}
		var err error
		if p, err = look(p.parent); err != nil {
			return true
		}
	}
}

// killGroup kills the process's whole group at once, so that no member can start another process. It does
// nothing if the group has a member that is not ours.
func (p process) killGroup(ours func(process) bool) {
	if p.group <= 1 || p.group == syscall.Getpgrp() {
		return
	}
	for _, other := range all() {
		if other.group == p.group && !other.ended && !ours(other) {
			return
		}
	}
	if now, err := look(p.pid); err == nil && now.start == p.start && now.group == p.group {
		_ = syscall.Kill(-p.group, syscall.SIGKILL)
	}
}

// signal sends a signal to this process and to no other that has got its number.
func (p process) signal(s syscall.Signal) error {
	handle, err := os.FindProcess(p.pid) // a pidfd: it stays with the process
	if err != nil {
		return err
	}
	defer handle.Release()
	if now, err := look(p.pid); err != nil || now.start != p.start {
		return os.ErrProcessDone
	}
	return handle.Signal(s)
}

// variables returns the environment that the process was started with.
func (p process) variables() map[string]string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return nil
	}
	m := map[string]string{}
	for v := range strings.SplitSeq(string(text), "\x00") {
		if name, value, ok := strings.Cut(v, "="); ok && m[name] == "" {
			m[name] = value
		}
	}
	return m
}

// String returns, for example, "python3 train.py (pid 123)": the program, and the script if there
// is one. Other arguments are left out because they may be confidential.
func (p process) String() string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
	words := strings.Split(string(text), "\x00")
	name := filepath.Base(words[0])
	if words[0] == "" {
		name = "a process"
	} else if len(words) > 1 && filepath.Ext(words[1]) != "" && !strings.ContainsAny(words[1], "=: \n") && !strings.HasPrefix(words[1], "-") {
		name += " " + filepath.Base(words[1])
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
	return name[:min(len(name), 60)] + " (pid " + strconv.Itoa(p.pid) + ")"
}

// PIDSpace identifies the scope in which a pid names one process: a boot of a kernel and one of its
// pid namespaces. Host names are not enough: two hosts or containers may share one, and each would
// believe the other's processes had ended. It returns "" if it cannot tell. A rebooted host has a
// new PIDSpace.
func PIDSpace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}
