package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Job is Slurm's view of one incarnation of a job. Values that the answering command does not report, or that
// Slurm does not know yet, are nil, empty, or a zero time.
type Job struct {
	ID        string // "41", "48+0", "95_3", "95_[4-9%2]"
	Name      string
	Cluster   string
	Partition string

	State  State
	Word   string // State as Slurm printed it, "CANCELLED by 1000"
	Reason string // why it waits or ended, as Slurm printed it; "" for "None"

	ExitCode    *ExitCode // of the batch script
	DerivedExit *ExitCode // highest of all steps; sacct only

	Nodes  []string
	Submit time.Time // of this incarnation; a requeue may move it
	Start  time.Time // zero until started
	End    time.Time // zero until ended

	Restarts *int // number of requeues so far; scontrol only
	Comment  string
}

// A Key identifies a job uniquely. The id alone does not: after a crash of the controller another job may get
// the same id.
type Key struct {
	ID     string
	Submit time.Time // UTC, whole seconds
	Name   string
}

// Key returns the job's identity.
func (j Job) Key() Key { return Key{j.ID, j.Submit.UTC().Truncate(time.Second), j.Name} }

// An ExitCode is a process's exit status, or the signal that ended it. Slurm prints it as "3:0" or "0:15".
type ExitCode struct{ Status, Signal int }

func (e ExitCode) String() string { return fmt.Sprintf("%d:%d", e.Status, e.Signal) }

// Success reports whether both are zero.
func (e ExitCode) Success() bool { return e == ExitCode{} }

// parseExit parses "3:0"; nil means that the exit code is unknown.
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

// parseTime parses seconds since 1970, the format that the client requests. Slurm's words for missing times
// give a zero time.
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

// known returns s, or "" if s is one of Slurm's words for a missing value.
func known(s string) string {
	switch s {
	case "(null)", "None", "N/A":
		return ""
	}
	return s
}

// settle removes times that are only predictions of the controller: the start of a waiting job and the end of a
// running one.
func (j *Job) settle() {
	switch j.State {
	case Pending, Configuring, Requeued, RequeueHold, RequeueFed, SpecialExit:
		j.Start = time.Time{}
	}
	if !j.State.Terminal() {
		j.End = time.Time{}
	}
}
