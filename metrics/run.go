package metrics

// Run is one attempt at a point: what was asked for, where it ran, how it
// ended. What it measured stands in its event files.
type Run struct {
	// ID names the run among all of a user's: "STUDY/POINT-r2-a1". It is also
	// the run folder's path below the runs folder.
	ID      string
	Study   string
	Point   string // the point's identity, equal for its repeats and attempts
	Repeat  int    // 1-based
	Attempt int    // 1-based
	Kind    string // workload.kind

	Framework string
	Workers   int // world size that the plan asks for
	Nodes     int // nodes that the plan asks for

	// Parameters are all keys of the point, by their TOML path
	// ("workload.batch"), defaults included: string, int64, float64, bool or
	// []any of these.
	Parameters map[string]any

	Status Status
	Detail string // the scheduler's words on Status, or the run's own; "" when there is nothing to say
	Job    *Job   // nil when no scheduler was involved

	Dir         string  // absolute path of the run folder
	CreatedUnix float64 // when the attempt was recorded, seconds since the epoch
}

// Job is what the scheduler says of a run. Times are seconds since the Unix
// epoch, 0 when not known.
type Job struct {
	Cluster    string
	ID         string
	Name       string
	Partition  string
	State      string // the scheduler's own word
	Reason     string
	ExitCode   string // "CODE:SIGNAL" as the scheduler wrote it
	Nodes      []string
	SubmitUnix float64
	StartUnix  float64
	EndUnix    float64
}

// EventFile is one writer's event file in a run folder.
type EventFile struct {
	Path    string // absolute
	Writer  string // "rank" or "supervisor"
	Rank    int
	Restart int
}
