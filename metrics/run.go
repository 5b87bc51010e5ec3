package metrics

import (
	"crypto/rand"
	"strings"
)

// Run is one attempt at a point: what was asked for, where it ran, how it
// ended. What it measured stands in its event files.
type Run struct {
	// ID names the run among all of a user's: "STUDY/POINT-r2-a1". It is also
	// the run folder's path below the runs folder.
	ID      string
	Study   string
	StudyID string `json:"-"` // which study of that name; no part of what is said of the run
	Point   string // the point's identity, equal for its repeats and attempts
	Repeat  int    // 1-based
	Attempt int    // 1-based
	Kind    string // workload.kind

	Framework string
	Workers   int // that the plan asks for
	Beside    int `json:",omitzero"` // ranks of the run's world that are no workers
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

	// Secrets are values that the run was given and nobody may store: programs
	// write them into their messages. It is no part of the record.
	Secrets []string `json:"-"`
}

// NewStudyID is an id that no other study has: a name does not say which one is
// meant, as two people, or one person twice, call different studies the same.
func NewStudyID() string { return strings.ToLower(rand.Text()) }

// Job is what the scheduler says of a run. Times are seconds since the Unix
// epoch, 0 when not known.
type Job struct {
	Cluster    string   `json:"cluster,omitempty"`
	ID         string   `json:"id,omitempty"`
	Name       string   `json:"name,omitempty"`
	Partition  string   `json:"partition,omitempty"`
	State      string   `json:"state,omitempty"` // the scheduler's own word
	Reason     string   `json:"reason,omitempty"`
	ExitCode   string   `json:"exit_code,omitempty"` // "CODE:SIGNAL" as the scheduler wrote it
	Nodes      []string `json:"nodes,omitempty"`
	SubmitUnix float64  `json:"submit_unix,omitempty"`
	StartUnix  float64  `json:"start_unix,omitempty"`
	EndUnix    float64  `json:"end_unix,omitempty"`
}

// EventFile is one writer's event file in a run folder.
type EventFile struct {
	Path    string // absolute
	Folder  string // the run folder, which links must not leave; "": they may lead anywhere
	Writer  string // "rank" or "supervisor"
	Rank    int
	Restart int
}
