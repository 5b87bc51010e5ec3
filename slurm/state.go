package slurm

import "strings"

// A State is a job's state by Slurm's name (squeue(1), "JOB STATE CODES"). Unknown names are kept; they are not
// Terminal, because a job has finished only if Slurm reports a known final state.
type State string

const (
	BootFail    State = "BOOT_FAIL"
	Cancelled   State = "CANCELLED"
	Completed   State = "COMPLETED"
	Completing  State = "COMPLETING"
	Configuring State = "CONFIGURING"
	Deadline    State = "DEADLINE"
	Failed      State = "FAILED"
	NodeFail    State = "NODE_FAIL"
	OutOfMemory State = "OUT_OF_MEMORY"
	Pending     State = "PENDING"
	Preempted   State = "PREEMPTED"
	Requeued    State = "REQUEUED"
	RequeueFed  State = "REQUEUE_FED"
	RequeueHold State = "REQUEUE_HOLD"
	Resizing    State = "RESIZING"
	Revoked     State = "REVOKED"
	Running     State = "RUNNING"
	Signaling   State = "SIGNALING"
	SpecialExit State = "SPECIAL_EXIT"
	StageOut    State = "STAGE_OUT"
	Stopped     State = "STOPPED"
	Suspended   State = "SUSPENDED"
	Timeout     State = "TIMEOUT"
)

// terminal maps every known state to whether this incarnation of the job is over. PREEMPTED and NODE_FAIL are:
// a requeue makes a new incarnation.
var terminal = map[State]bool{
	BootFail: true, Cancelled: true, Completed: true, Deadline: true, Failed: true, NodeFail: true,
	OutOfMemory: true, Preempted: true, Revoked: true, Timeout: true,
	Completing: false, Configuring: false, Pending: false, Requeued: false, RequeueFed: false,
	RequeueHold: false, Resizing: false, Running: false, Signaling: false, SpecialExit: false,
	StageOut: false, Stopped: false, Suspended: false,
}

// ParseState parses the state as Slurm prints it: sacct appends who cancelled the job ("CANCELLED by 1000") and
// marks truncated names ("CANCELLED+").
func ParseState(word string) State {
	first, _, _ := strings.Cut(word, " ")
	if s := State(strings.TrimSuffix(first, "+")); s.Known() {
		return s
	}
	return State(word)
}

// Known reports whether the state is one of the constants above.
func (s State) Known() bool { _, ok := terminal[s]; return ok }

// Terminal reports whether this incarnation of the job is over. It is false for a state that is not Known.
func (s State) Terminal() bool { return terminal[s] }
