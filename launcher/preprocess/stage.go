package preprocess

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Stage is an activity of a thread. At any time a thread is in exactly one stage, so the times of
// all stages add up to the whole time.
type Stage int

// The stages, in the order in which a sample passes them.
const (
	List      Stage = iota // find the files
	Open                   // open and close them
	Read                   // read bytes from storage or the page cache
	Unpack                 // extract samples from a file with many; split lines into fields
	Decode                 // convert JPEG to pixels
	Cast                   // convert text to numbers
	Resize                 // resize and crop
	LookUp                 // convert categories to numbers
	Normalise              // normalise and convert to float32
	Pack                   // copy into the form that is written or handed over
	Write                  // write to the page cache or to storage
	Sync                   // wait until the data is on storage
	HandOver               // wait for a consumer
	stages
)

// Stages is the number of stages.
const Stages = int(stages)

var stageNames = [Stages]string{"list", "open", "read", "unpack", "decode", "cast", "resize", "look up", "normalise", "pack", "write", "fsync", "hand over"}

// String returns the name of the stage, as tables and plots show it.
func (s Stage) String() string { return stageNames[s] }

// Spent is the time spent in a stage, in seconds: by the clock and of the CPU.
type Spent struct{ Wall, CPU float64 }

// A stopwatch measures the time that one thread spends in each stage. CPU time is measured per
// thread, so the goroutine must be locked to its thread, and only this goroutine may use the
// stopwatch.
type stopwatch struct {
	now  Stage
	wall time.Time
	cpu  time.Duration
	sums [Stages]Spent
}

func startWatch(s Stage) *stopwatch { return &stopwatch{now: s, wall: time.Now(), cpu: threadCPU()} }

// enter ends the present stage and begins the next.
func (w *stopwatch) enter(next Stage) {
	wall, cpu := time.Now(), threadCPU()
	sum := &w.sums[w.now]
	sum.Wall += wall.Sub(w.wall).Seconds()
	sum.CPU += (cpu - w.cpu).Seconds()
	w.now, w.wall, w.cpu = next, wall, cpu
}

// threadCPU returns the CPU time of the calling thread.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processCPU returns the CPU time of the process, including its garbage collector.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil { // both clocks exist since Linux 2.6.12
		return 0
	}
	return time.Duration(t.Nano())
}

// threadDelay returns how long the calling thread was runnable but had no CPU; ok is false if the
// kernel does not measure that.
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

// StorageRead returns the number of bytes that storage, not the page cache, has delivered to this
// process so far.
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
