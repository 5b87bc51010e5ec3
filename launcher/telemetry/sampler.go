// Package telemetry samples what a run's processes use on one node: CPU time, memory, bytes, pressure, energy.
// It reads Linux's files under /proc and /sys and does not need root. A value that cannot be read is missing,
// with a reason, and never 0.
//
// Every value names its source, because its meaning depends on it. The CPU time of a Slurm step's cgroup is the
// run's; a container's cgroup may include other programs, so there the sampler adds up the run's processes
// instead.
//
// Each node has one sampler, in the supervisor of its first rank. It uses at most 1/200 of a core: if a sample
// is expensive (on a node with thousands of processes), it samples less often.
package telemetry

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Options configure a sampler.
type Options struct {
	Root  string        // folder that contains proc and sys; "" means /
	Every time.Duration // minimum time between samples
	// Marks are environment variables that identify the run's processes, including those that another
	// supervisor on the node started. A process must have all of them.
	Marks []Mark
	// Devices reads values that are not in files; nil means none.
	Devices Devices
}

// A Mark is a variable in the environment of a run's process; an empty Value matches any value.
type Mark struct{ Name, Value string }

const (
	perLine = 60 // samples per line
	// share is the maximum share of one core that the sampler uses.
	share = 1.0 / 200
	tick  = time.Millisecond
	// firstPause is the time before the second sample; later pauses double up to Options.Every. Programs change
	// most at their start.
	firstPause = 100 * time.Millisecond
	// patience limits how long the end of a run waits for a sample that hangs in the kernel.
	patience = 2 * time.Second
)

// A Sampler is a running sampler.
type Sampler struct {
	stop, done chan struct{}
}

// Start starts sampling and writes to events, which no one else may use.
func Start(events *metrics.Writer, o Options) *Sampler {
	s := &Sampler{stop: make(chan struct{}), done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(s.done)
		// CPU time is measured per thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		n := newNode(o)
		defer n.outside.end()
		spent := func() time.Duration { return threadTime() + n.outside.time() }
		b := batch{}
		early := firstPause
		for ended := false; ; {
			before := spent()
			b.add(int64(time.Since(began)/tick), append(n.sample(), Counter(metrics.TelemetrySampler, "", "this sampler's threads", "s", 1e-6, int64(before/time.Microsecond))))
			if ended || len(b.at) >= perLine {
				if events.Write(metrics.Event{Telemetry: b.take(n.missing)}) != nil {
					return // the supervisor reports a full disk
				}
			}
			if ended {
				_ = events.Write(metrics.Event{Stop: &metrics.Stop{Status: metrics.StopDone}})
				return
			}
			cost := time.Duration(float64(spent()-before) / share)
			if early == firstPause {
				cost = min(cost, o.Every) // the first sample is expensive because it loads files that later ones reuse
			}
			pause := max(min(o.Every, early), cost)
			early = min(2*early, time.Hour)
			select {
			case <-s.stop:
				ended = true
			case <-time.After(pause):
			}
		}
	}()
	return s
}

// Stop takes a last sample and writes the remaining ones. It returns false if a read hangs; the sampler is then
// abandoned.
func (s *Sampler) Stop() bool {
	close(s.stop)
	select {
	case <-s.done:
		return true
	case <-time.After(patience):
		return false
	}
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A Reading is one value at one moment: Count × Scale in Unit. For the other fields see
// metrics.TelemetryColumn.
type Reading struct {
	Name, Of, Source, Unit string
	Counter                bool
	Scale                  float64
	Count                  int64
}

// Gauge returns a reading of a value that rises and falls.
func Gauge(name, of, source, unit string, scale float64, count int64) Reading {
	return Reading{name, of, source, unit, false, scale, count}
}

// Counter returns a reading of a value that only rises; the difference of two readings is the usage between
// them.
func Counter(name, of, source, unit string, scale float64, count int64) Reading {
	return Reading{name, of, source, unit, true, scale, count}
}

// A batch collects samples as columns.
type batch struct {
	at      []int64
	columns []Reading // Count is unset
	values  [][]*int64
	index   map[Reading]int
}

// mostColumns bounds a batch; readings beyond it are dropped.
const mostColumns = 512

func (b *batch) add(at int64, sample []Reading) {
	if n := len(b.at); n > 0 && at <= b.at[n-1] {
		return // two samples within a tick: the run ended at once
	}
	if b.index == nil {
		b.index = map[Reading]int{}
	}
	b.at = append(b.at, at)
	for _, r := range sample {
		count := r.Count
		if count < 0 || count > metrics.MaxCount {
			continue
		}
		r.Count = 0
		i, known := b.index[r]
		if !known {
			if len(b.columns) >= mostColumns {
				continue
			}
			i = len(b.columns)
			b.index[r], b.columns, b.values = i, append(b.columns, r), append(b.values, nil)
		}
		for len(b.values[i]) < len(b.at) {
			b.values[i] = append(b.values[i], nil)
		}
		b.values[i][len(b.at)-1] = &count
	}
}

// take returns the batch as an event's payload and starts a new one.
func (b *batch) take(missing map[string]string) *metrics.Telemetry {
	t := &metrics.Telemetry{Tick: tick.Seconds(), At: b.at, Missing: maps.Clone(missing)}
	for i, r := range b.columns {
		c := metrics.TelemetryColumn{Name: r.Name, Of: r.Of, Source: r.Source, Unit: r.Unit, Counter: r.Counter, Scale: r.Scale}
		values := b.values[i]
		for len(values) < len(b.at) {
			values = append(values, nil)
		}
		first := slices.IndexFunc(values, func(v *int64) bool { return v != nil })
		c.Least = *values[first]
		same := true
		for _, v := range values {
			if v != nil {
				c.Least = min(c.Least, *v)
			}
			same = same && v != nil && *v == *values[first]
		}
		if !same {
			for _, v := range values {
				if v != nil {
					*v -= c.Least
				}
			}
			c.Above = values
		}
		t.Columns = append(t.Columns, c)
		delete(t.Missing, c.Name)
	}
	*b = batch{}
	return t
}

// A node reads the files of one node.
type node struct {
	root      string
	groups    groups
	processes processes
	zones     []zone
	throttles []throttle
	outside   *outside
	missing   map[string]string
}

func newNode(o Options) *node {
	n := &node{root: o.Root, missing: map[string]string{}}
	n.groups = n.findGroups()
	n.processes = newProcesses(n, o.Marks)
	n.zones = n.findZones()
	n.throttles = n.findThrottles()
	n.outside = newOutside(o.Devices)
	return n
}

// sample reads everything once.
func (n *node) sample() []Reading {
	clear(n.missing)
	n.outside.begin()
	var list []Reading
	mine := n.processes.read()
	list = append(list, n.cpu(mine)...)
	list = append(list, n.memory(mine)...)
	list = append(list, n.bytes(mine)...)
	list = append(list, n.network()...)
	list = append(list, n.pressure()...)
	list = append(list, n.clock(mine)...)
	list = append(list, n.hot()...)
	list = append(list, n.energy()...)
	list = append(list, n.gpus()...)
	list = append(list, n.nvidia()...)
	has := map[string]bool{}
	for _, r := range list {
		has[r.Name] = true
	}
	maps.DeleteFunc(n.missing, func(name, _ string) bool { return has[name] })
	return list
}

// lack records why a value could not be read; the first reason is kept.
func (n *node) lack(name string, err error) {
	var at *fs.PathError
	text := err.Error()
	if errors.As(err, &at) {
		text = strings.TrimPrefix(at.Path, n.root) + ": " + at.Err.Error()
	}
	if n.missing[name] == "" {
		n.missing[name] = text
	}
}

const largest = 1 << 20 // maximum size of a kernel file

// text reads a kernel file; path is relative to the root.
func (n *node) text(path ...string) (string, error) {
	text, err := sharedfs.ReadFile(filepath.Join(append([]string{n.root, "/"}, path...)...), largest)
	return string(text), err
}

// integer reads a file that contains one integer.
func (n *node) integer(path ...string) (int64, error) {
	text, err := n.text(path...)
	if err != nil {
		return 0, err
	}
	return number(strings.TrimSpace(text), path...)
}

// number parses a non-negative integer.
func number(text string, path ...string) (int64, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		if len(text) > 40 {
			text = text[:40] + "…"
		}
		return 0, &fs.PathError{Op: "read", Path: filepath.Join(path...), Err: errors.New(strconv.QuoteToASCII(text) + " is not a whole number")}
	}
	return v, nil
}

// pairs reads the "key number" lines of a file and ignores others.
func (n *node) pairs(path ...string) (map[string]int64, error) {
	text, err := n.text(path...)
	if err != nil {
		return nil, err
	}
	m := map[string]int64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 {
			if v, err := number(f[1]); err == nil {
				m[f[0]] = v
			}
		}
	}
	return m, nil
}

// names returns the sorted names in a folder; nil if it cannot be read.
func (n *node) names(path ...string) []string {
	f, err := os.Open(filepath.Join(append([]string{n.root, "/"}, path...)...))
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.Readdirnames(-1)
	slices.Sort(list)
	return list
}
