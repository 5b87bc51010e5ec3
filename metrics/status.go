package metrics

// A Status says how far an attempt at a point has got. Terminal lists the final ones; any other status
// counts as unfinished.
type Status string

const (
	Planned     Status = "planned"       // in the plan, nothing submitted
	Submitted   Status = "submitted"     // sbatch was called; the scheduler does not show it yet
	Pending     Status = "pending"       // waits in the queue
	Running     Status = "running"       //
	Requeued    Status = "requeued"      // ended by the scheduler, which will start it again
	Done        Status = "done"          // both the scheduler and the run itself report success
	Incomplete  Status = "incomplete"    // completed according to the scheduler, but without the run's stop event
	Failed      Status = "failed"        // the program or the batch script failed
	TimedOut    Status = "timed_out"     // wall-time limit
	OutOfMemory Status = "out_of_memory" //
	NodeFailed  Status = "node_failed"   //
	Preempted   Status = "preempted"     //
	Cancelled   Status = "cancelled"     // by a person
	Lost        Status = "lost"          // no trace of its end in the scheduler or the run folder
	Unknown     Status = "unknown"       // the scheduler reports a state that scalebench does not know
)

// Statuses lists every status, in the order of a run's life.
var Statuses = []Status{Planned, Submitted, Pending, Running, Requeued, Done, Incomplete, Failed,
	TimedOut, OutOfMemory, NodeFailed, Preempted, Cancelled, Lost, Unknown}

// Terminal reports whether the attempt has ended.
func (s Status) Terminal() bool {
	switch s {
	case Done, Incomplete, Failed, TimedOut, OutOfMemory, NodeFailed, Preempted, Cancelled, Lost:
		return true
	}
	return false
}

// Good reports whether the attempt's results count.
func (s Status) Good() bool { return s == Done }
