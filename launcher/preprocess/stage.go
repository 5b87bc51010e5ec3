package preprocess

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Stage is an activity of a thread. A thread is always in exactly one, so the stages add up to
// the whole time.
type Stage int

// The stages, in a sample's order.
const (
	List      Stage = iota // find the files
	Open                   // open, and close
	Read                   // from storage or the page cache
	Unpack                 // samples from a file of many; fields from lines
	Decode                 // JPEG to pixels
	Cast                   // text to numbers
	Resize                 // and crop
	LookUp                 // categories to numbers
	Normalise              // and convert to float32
	Pack                   // into what is written or handed over
	Write                  // to the page cache, or to storage
	Sync                   // until storage has it
	HandOver               // wait for a consumer
	stages
)

// Stages is the number of stages.
const Stages = int(stages)

var stageNames = [Stages]string{"list", "open", "read", "unpack", "decode", "cast", "resize", "look up", "normalise", "pack", "write", "fsync", "hand over"}

// String returns the stage's name in figures.
func (s Stage) String() string { return stageNames[s] }

// Spent is the time spent in a stage, in seconds.
type Spent struct{ Wall, CPU float64 }

// A stopwatch belongs to one thread, which must be locked and is the only one to read it: CPU time is measured
// per thread.
type stopwatch struct {
	now  Stage
	wall time.Time
	cpu  time.Duration
	sums [Stages]Spent
}

func startWatch(s Stage) *stopwatch { return &stopwatch{now: s, wall: time.Now(), cpu: threadCPU()} }

// enter ends one stage and begins another, and says which it was.
func (w *stopwatch) enter(next Stage) (before Stage) {
	wall, cpu := time.Now(), threadCPU()
	sum := &w.sums[w.now]
	sum.Wall += wall.Sub(w.wall).Seconds()
	sum.CPU += (cpu - w.cpu).Seconds()
	before, w.now, w.wall, w.cpu = w.now, next, wall, cpu
	return before
}

// threadCPU returns the CPU time of the calling thread.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processCPU returns the CPU time of the process, including its garbage collector.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil { // both exist since Linux 2.6.12
		return 0
	}
	return time.Duration(t.Nano())
}

// threadDelay returns how long the calling thread was runnable but had no CPU; ok is false if the
// kernel does not count it.
func threadDelay() (d time.Duration, ok bool) {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return 0, false
	}
	words := strings.Fields(string(text))
	if len(words) < 2 {
		return 0, false
	}
	ns, err := strconv.ParseInt(words[1], 10, 64)
	return time.Duration(ns), err == nil
}

// StorageRead returns the bytes that storage has delivered to this process so far.
func StorageRead() (int64, error) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "read_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/self/io has no read_bytes")
}
