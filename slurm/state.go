package slurm

import "strings"

// State is a job's state by Slurm's name for it (squeue(1), "JOB STATE
// CODES"). A word that is none of these is kept as it came; it is not
// Terminal, because a job is finished only when Slurm says so in a word that
// is understood.
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

// terminal says of every known state whether the job (this incarnation of it)
// is over. PREEMPTED and NODE_FAIL are: a requeue is an incarnation of its own.
var terminal = map[State]bool{
	BootFail: true, Cancelled: true, Completed: true, Deadline: true, Failed: true, NodeFail: true,
	OutOfMemory: true, Preempted: true, Revoked: true, Timeout: true,
	Completing: false, Configuring: false, Pending: false, Requeued: false, RequeueFed: false,
	RequeueHold: false, Resizing: false, Running: false, Signaling: false, SpecialExit: false,
	StageOut: false, Stopped: false, Suspended: false,
}

// ParseState reads the state out of Slurm's word for it: sacct says who
// cancelled ("CANCELLED by 1000") and marks what it had to cut ("CANCELLED+").
func ParseState(word string) State {
	first, _, _ := strings.Cut(word, " ")
	if s := State(strings.TrimSuffix(first, "+")); s.Known() {
		return s
	}
	return State(word)
}

// Known reports whether the state is one of those above.
func (s State) Known() bool { _, ok := terminal[s]; return ok }

// Terminal reports whether this incarnation of the job is over. It is false
// for a state that is not Known.
func (s State) Terminal() bool { return terminal[s] }
