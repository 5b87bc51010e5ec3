package telemetry

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// usage is the total usage of the run's processes.
type usage struct {
	n              int
	cpu            int64 // hundredths of a second
	resident, peak int64 // bytes
	read, written  int64 // bytes from and to storage
	calls          int64 // bytes of read calls
	counted        bool  // read, written and calls are known
	cpus           map[int]bool
	err            error // why the usage is unknown
}

// processes finds the processes of the run and adds up their usage. When a process ends, Linux adds its CPU
// time and bytes to its parent's once the parent has waited for it. If the parent does not belong to the run,
// gone keeps the values last seen.
type processes struct {
	node    *node
	marks   []Mark
	self    int
	members map[int]member
	// others holds ids of processes that are known not to belong to the run. Since ids are reused, the set is
	// cleared from time to time.
	others  map[int]bool
	samples int
	gone    account
	last    account
}

// A member is a process of the run, as last seen.
type member struct {
	parent int
	start  string
	used   account
}

// An account holds the counters that add up over time.
type account struct {
	cpu, read, written, calls int64
	counted                   bool
}

func (a *account) add(b account) {
	a.cpu += b.cpu
	a.read += b.read
	a.written += b.written
	a.calls += b.calls
	a.counted = a.counted || b.counted
}

func newProcesses(n *node, marks []Mark) processes {
	return processes{node: n, marks: marks, self: os.Getpid(), members: map[int]member{}, others: map[int]bool{}}
}

const forgetAfter = 30 // samples

// ended returns the use of processes that have ended, unless a parent counts it as its own.
func (p *processes) ended(before map[int]member) (u account) {
	for pid, m := range before {
		if now, still := p.members[pid]; still && now.start == m.start {
			continue
		}
		if _, waited := p.members[m.parent]; !waited {
			u.add(m.used)
		}
	}
	return u
}

// read examines every process of the run.
func (p *processes) read() usage {
	u := usage{cpus: map[int]bool{}}
	names := p.node.names("proc")
	if names == nil {
		u.err = errors.New("/proc cannot be read")
		return u
	}
	if p.samples++; p.samples%forgetAfter == 0 {
		clear(p.others)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 0 && pid != p.self {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	before := p.members
	p.members = make(map[int]member, len(before))
	total := p.gone
	for _, pid := range pids {
		if p.others[pid] {
			continue
		}
		m, sizes, err := p.look(pid)
		if err != nil {
			continue
		}
		was, known := before[pid]
		if known = known && was.start == m.start; !known && !p.belongs(pid, m.parent) {
			p.others[pid] = true
			continue
		}
		if known && !m.used.counted && was.used.counted { // a zombie's bytes cannot be read
			m.used.read, m.used.written, m.used.calls, m.used.counted = was.used.read, was.used.written, was.used.calls, true
		}
		p.members[pid] = m
		total.add(m.used)
		u.n++
		u.resident += sizes.resident
		u.peak += sizes.peak
		for _, cpu := range sizes.cpus {
			u.cpus[cpu] = true
		}
	}
	ended := p.ended(before)
	p.gone.add(ended)
	total.add(ended)
	// A child that ends between two samples may be counted twice or not at all.
	total.cpu = max(total.cpu, p.last.cpu)
	total.read, total.written, total.calls = max(total.read, p.last.read), max(total.written, p.last.written), max(total.calls, p.last.calls)
	p.last = total
	u.cpu, u.read, u.written, u.calls = total.cpu, total.read, total.written, total.calls
	u.counted = total.counted && u.n > 0
	if u.n == 0 {
		u.err = errors.New("no process of the run was found")
	}
	return u
}

type sizes struct {
	resident, peak int64
	cpus           []int
}

// look reads one process's usage.
func (p *processes) look(pid int) (m member, s sizes, err error) {
	folder := filepath.Join("proc", strconv.Itoa(pid))
	text, err := p.node.text(folder, "stat")
	if err != nil {
		return m, s, err
	}
	// The name is in parentheses and may itself contain parentheses.
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 20 {
		return m, s, errors.New("stat has an unknown format")
	}
	m.start = f[19]
	if m.parent, err = strconv.Atoi(f[1]); err != nil {
		return m, s, err
	}
	for _, field := range []int{11, 12, 13, 14} { // utime, stime, and the same for children that were waited for
		v, err := number(f[field])
		if err != nil {
			return m, s, err
		}
		m.used.cpu += v
	}
	if text, err := p.node.text(folder, "io"); err == nil {
		found := 0
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(line, ":")
			into := map[string]*int64{"read_bytes": &m.used.read, "write_bytes": &m.used.written, "rchar": &m.used.calls}[key]
			if into == nil {
				continue
			}
			if v, err := number(strings.TrimSpace(value)); err == nil {
				*into = v
				found++
			}
		}
		m.used.counted = found == 3
	}
	if text, err := p.node.text(folder, "status"); err == nil {
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(line, ":")
			switch key {
			case "VmRSS":
				s.resident = kilobytes(value)
			case "VmHWM":
				s.peak = kilobytes(value)
			case "Cpus_allowed_list":
				s.cpus = cpuList(value)
			}
		}
	}
	return m, s, nil
}

// belongs reports whether a process belongs to the run: its parent does, or its environment has the run's
// marks. The environment of other users' processes cannot be read.
func (p *processes) belongs(pid, parent int) bool {
	if _, is := p.members[parent]; is {
		return true
	}
	text, err := sharedfs.ReadFile(filepath.Join(p.node.root, "/", "proc", strconv.Itoa(pid), "environ"), 4*largest)
	if err != nil || len(p.marks) == 0 {
		return false
	}
	for _, mark := range p.marks {
		if !slices.ContainsFunc(strings.Split(string(text), "\x00"), func(entry string) bool {
			name, value, ok := strings.Cut(entry, "=")
			return ok && name == mark.Name && (mark.Value == "" || value == mark.Value)
		}) {
			return false
		}
	}
	return true
}

// kilobytes parses "1234 kB" into bytes; 0 if the text has another form.
func kilobytes(text string) int64 {
	text, ok := strings.CutSuffix(strings.TrimSpace(text), " kB")
	v, err := number(strings.TrimSpace(text))
	if !ok || err != nil || v > 1<<40 {
		return 0
	}
	return v * 1024
}

const mostCPUs = 1 << 16

// cpuList parses "0-3,8"; nil if the text has another form.
func cpuList(text string) []int {
	var list []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		low, high, is := strings.Cut(part, "-")
		if !is {
			high = low
		}
		a, err1 := strconv.Atoi(low)
		b, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || a < 0 || b < a || b >= mostCPUs || len(list) > mostCPUs {
			return nil
		}
		for cpu := a; cpu <= b; cpu++ {
			list = append(list, cpu)
		}
	}
	return list
}
