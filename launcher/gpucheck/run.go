package gpucheck

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// A Result is the outcome of a check that a program ran.
type Result struct {
	Name    string   `json:"name"`
	Seconds float64  `json:"seconds"`
	Log     []string `json:"log,omitempty"`
	Failure *Failure `json:"failure,omitempty"` // nil: the check passed
}

// A Failure describes a failed check.
type Failure struct {
	Said        []string     `json:"said"` // the first messages
	Differences []Difference `json:"differences,omitempty"`
}

// mostSaid is the number of messages and differences kept of a failed check.
const mostSaid = 8

// Run runs a check to its end, in a new goroutine: a check may lock its goroutine to a
// thread.
func Run(c Check) Result {
	r := &recorder{Result: Result{Name: c.Name}}
	begin := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanUp()
		defer r.recover()
		c.Run(r)
	}()
	<-done
	r.Seconds = time.Since(begin).Seconds()
	return r.Result
}

// recorder implements T for Run.
type recorder struct {
	Result
	cleanups []func()
}

func (r *recorder) recover() {
	if p := recover(); p != nil {
		r.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// cleanUp runs the cleanups, the last first, as testing does; one that fails does
// not keep the others from running.
func (r *recorder) cleanUp() {
	if len(r.cleanups) == 0 {
		return
	}
	last := r.cleanups[len(r.cleanups)-1]
	r.cleanups = r.cleanups[:len(r.cleanups)-1]
	defer r.cleanUp()
	defer r.recover()
	last()
}

func (r *recorder) failure() *Failure {
	if r.Failure == nil {
		r.Failure = &Failure{}
	}
	return r.Failure
}

func (r *recorder) differ(d Difference) {
	if f := r.failure(); len(f.Differences) < mostSaid {
		f.Differences = append(f.Differences, d)
	}
}

func (r *recorder) say(text string) {
	if f := r.failure(); len(f.Said) < mostSaid {
		f.Said = append(f.Said, strings.TrimSpace(text))
	}
}

func (*recorder) Helper()                          {}
func (r *recorder) Cleanup(f func())               { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(format string, a ...any)   { r.Log = append(r.Log, fmt.Sprintf(format, a...)) }
func (r *recorder) Error(args ...any)              { r.say(fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, a ...any) { r.say(fmt.Sprintf(format, a...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, a ...any) {
	r.Errorf(format, a...)
	runtime.Goexit()
}

func (r *recorder) TempDir() string {
	dir, err := os.MkdirTemp("", "gpu-check-")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
