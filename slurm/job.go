package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Job is what Slurm says of one incarnation of a job. What the answering
// command does not report, or Slurm does not know yet, is nil, empty or a zero
// time, never a number.
type Job struct {
	ID        string // "41", "48+0", "95_3", "95_[4-9%2]"
	Name      string
	Cluster   string
	Partition string

	State  State
	Word   string // Slurm's own word for State, "CANCELLED by 1000"
	Reason string // why it waits or ended, as Slurm has it; "" for "None"

	ExitCode    *ExitCode // of the batch script
	DerivedExit *ExitCode // highest of all steps; sacct only

	Nodes  []string
	Submit time.Time // of this incarnation; a requeue may move it
	Start  time.Time // zero until started
	End    time.Time // zero until ended

	Restarts *int // requeues so far; scontrol only
	Comment  string
}

// Key tells a job from every other. The id alone does not: after a crash of
// the controller it is given to another job.
type Key struct {
	ID     string
	Submit time.Time // UTC, whole seconds
	Name   string
}

// Key is the job's identity.
func (j Job) Key() Key { return Key{j.ID, j.Submit.UTC().Truncate(time.Second), j.Name} }

// ExitCode is how a process ended: its exit status, or the signal that ended
// it. Slurm writes it "3:0" and "0:15".
type ExitCode struct{ Status, Signal int }

func (e ExitCode) String() string { return fmt.Sprintf("%d:%d", e.Status, e.Signal) }

// Success reports whether neither is set.
func (e ExitCode) Success() bool { return e == ExitCode{} }

// parseExit reads "3:0"; an empty field is an exit code not known.
func parseExit(s string) (*ExitCode, error) {
	if s == "" {
		return nil, nil
	}
	status, signal, _ := strings.Cut(s, ":")
	a, err1 := strconv.Atoi(status)
	b, err2 := strconv.Atoi(signal)
	if err1 != nil || err2 != nil || a < 0 || b < 0 {
		return nil, fmt.Errorf("exit code %q is not of the form STATUS:SIGNAL", s)
	}
	return &ExitCode{a, b}, nil
}

// parseTime reads seconds since 1970, which is what the client asks Slurm to
// write; its words for a time that there is not are a zero time.
func parseTime(s string) (time.Time, error) {
	switch s {
	case "", "N/A", "NONE", "None", "Unknown", "(null)":
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return time.Time{}, fmt.Errorf("time %q is not in seconds since 1970, as SLURM_TIME_FORMAT=%%s asks for", s)
	}
	if n == 0 {
		return time.Time{}, nil
	}
	return time.Unix(n, 0).UTC(), nil
}

// known is a field without Slurm's words for nothing.
func known(s string) string {
	switch s {
	case "(null)", "None", "N/A":
		return ""
	}
	return s
}

// settle drops the times that the controller only expects: the start of a job
// that waits and the end of one that runs.
func (j *Job) settle() {
	switch j.State {
	case Pending, Configuring, Requeued, RequeueHold, RequeueFed, SpecialExit:
		j.Start = time.Time{}
	}
	if !j.State.Terminal() {
		j.End = time.Time{}
	}
}
