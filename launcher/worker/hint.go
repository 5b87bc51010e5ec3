package worker

import (
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// hints are the remedies for common causes. The first pattern that matches a cause wins; $1 is its
// first group.
var hints = []struct {
	words *regexp.Regexp
	todo  string
}{
	{regexp.MustCompile(`No module named '?([\w.]+)`),
		"Install $1 for the interpreter that runs the program, or name one that has it: python in the site file, or the first word of command.run."},
	{regexp.MustCompile(`(?:can't open file|cannot open|Cannot open|can't open) '?([^':]+)`),
		"Put the file there, or correct its path in command.run; relative paths are taken from command.directory, else the study file's folder."},
	{regexp.MustCompile(`^"?([^"]+)"? (?:is not on the PATH|does not exist|is not executable)`),
		"Correct command.run, or python in the site file, or load what provides it there (modules, setup)."},
	{regexp.MustCompile(`(?i)address already in use|EADDRINUSE`),
		"Another process uses the port. Let the program listen on MASTER_PORT, which is free when the run starts, or end the other process."},
	{device,
		"The GPU's memory is too small: lower the batch per worker, or take more workers."},
	{regexp.MustCompile(`(?i)exceeded memory limit|oom.?kill|memory limit|MemoryError|Cannot allocate memory|out of memory`),
		"Raise resources.memory, or lower the batch per worker."},
	{regexp.MustCompile(`(?i)^setup failed`),
		"Correct modules or setup in the site file."},
	{regexp.MustCompile(`No space left on device|Disk quota exceeded`),
		"Make room on that file system, or move the runs (--runs DIR)."},
	{regexp.MustCompile(`killed by SIGKILL`),
		"It was killed, most often by the kernel when memory runs out (`dmesg` shows it): lower the batch per worker, or raise resources.memory."},
}

// device matches the messages by which frameworks report that a GPU is out of memory.
var device = regexp.MustCompile(`(?:CUDA|HIP) out of memory|cuMemAlloc: out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: .*[Oo]ut of memory`)

// IsOutOfDeviceMemory reports whether a program's words are about a GPU's memory.
func IsOutOfDeviceMemory(words string) bool { return device.MatchString(words) }

// statuses are the remedies for causes that no hint matches.
var statuses = map[metrics.Status]string{
	metrics.OutOfMemory: "Raise resources.memory, or lower the batch per worker.",
	metrics.NodeFailed:  "Nothing is wrong with the run itself. Retry it: the next attempt avoids the failed node.",
	metrics.Preempted:   "Nothing is wrong with the run itself: retry it.",
}

// Hint returns what the user can do about a run that ended with this status and cause, or "" if
// only the run's log can tell. lengths are the keys that a shorter run would lower.
func Hint(status metrics.Status, cause string, lengths []string) string {
	if status == metrics.TimedOut {
		if len(lengths) == 0 { // the command decides when it ends
			return "Raise resources.time, or give the program less to do."
		}
		return "Raise resources.time, or lower " + strings.Join(lengths, " or ") + "."
	}
	if todo := statuses[status]; todo != "" && status != metrics.OutOfMemory {
		return todo
	}
	for _, h := range hints {
		if m := h.words.FindStringSubmatchIndex(cause); m != nil {
			return string(h.words.ExpandString(nil, h.todo, cause, m))
		}
	}
	return statuses[status]
}
