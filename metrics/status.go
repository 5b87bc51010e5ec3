package metrics

// Status is how far an attempt at a point came. The terminal ones are a
// positive list: whatever is not on it is not finished.
type Status string

const (
	Planned     Status = "planned"       // in the plan, nothing submitted
	Submitted   Status = "submitted"     // sbatch was called; the scheduler does not show it yet
	Pending     Status = "pending"       // waits in the queue
	Running     Status = "running"       //
	Requeued    Status = "requeued"      // ended by the scheduler, which will start it again
	Done        Status = "done"          // the scheduler and the run itself both say so
	Incomplete  Status = "incomplete"    // the scheduler says completed, the run's own stop event is missing
	Failed      Status = "failed"        // the program or the batch script failed
	TimedOut    Status = "timed_out"     // wall-time limit
	OutOfMemory Status = "out_of_memory" //
	NodeFailed  Status = "node_failed"   //
	Preempted   Status = "preempted"     //
	Cancelled   Status = "cancelled"     // by a person
	Lost        Status = "lost"          // neither the scheduler nor the run folder knows what became of it
	Unknown     Status = "unknown"       // the scheduler reports a state that scalebench does not know
)

// Statuses lists every status, in the order of a run's life.
var Statuses = []Status{Planned, Submitted, Pending, Running, Requeued, Done, Incomplete, Failed,
	TimedOut, OutOfMemory, NodeFailed, Preempted, Cancelled, Lost, Unknown}

// Terminal reports whether nothing more will come of the attempt.
func (s Status) Terminal() bool {
	switch s {
	case Done, Incomplete, Failed, TimedOut, OutOfMemory, NodeFailed, Preempted, Cancelled, Lost:
		return true
	}
	return false
}

// Good reports whether the attempt's results count.
func (s Status) Good() bool { return s == Done }
