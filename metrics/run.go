package metrics

import (
	"crypto/rand"
	"strings"
)

// Run is one attempt at a point: what was requested, where it ran, and how it ended. Its
// measurements are in its event files.
type Run struct {
	// ID is unique among a user's runs: "STUDY/POINT-r2-a1". It is also the path of the run folder
	// below the runs folder.
	ID      string
	Study   string
	StudyID string `json:"-"` // distinguishes studies with the same name
	Point   string // the point's identity, equal for its repeats and attempts
	Repeat  int    // 1-based
	Attempt int    // 1-based
	Kind    string // workload.kind

	Framework string
	Workers   int // planned
	AuxRanks  int `json:"Beside,omitzero"` // non-worker ranks of the run
	Nodes     int // as planned

	// Parameters are all keys of the point including defaults, by TOML path ("workload.batch"):
	// string, int64, float64, bool or []any of these.
	Parameters map[string]any

	Status Status
	Detail string // explanation of Status by the scheduler or the run; may be ""
	Job    *Job   // nil without a scheduler

	Dir         string  // absolute path of the run folder
	CreatedUnix float64 // when the attempt was recorded, seconds since the epoch

	// Secrets are secret values that the run received. They must be removed from messages of its
	// programs, and are not stored.
	Secrets []string `json:"-"`
}

// NewStudyID returns a unique id for a study. Names are not unique: two studies may have the same
// name.
func NewStudyID() string { return strings.ToLower(rand.Text()) }

// Job is the scheduler's data on a run. Times are seconds since the Unix epoch; 0: unknown.
type Job struct {
	Cluster    string   `json:"cluster,omitempty"`
	ID         string   `json:"id,omitempty"`
	Name       string   `json:"name,omitempty"`
	Partition  string   `json:"partition,omitempty"`
	State      string   `json:"state,omitempty"` // as the scheduler names it
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
	Folder  string // the run folder, which symbolic links must not leave; "": no restriction
	Writer  string // "rank" or "supervisor"
	Rank    int
	Restart int
}
