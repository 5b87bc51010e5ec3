// Package launcher carries out a plan: it starts an attempt at every run without a good result, on this machine
// or through Slurm, and judges each attempt. The run folder is the state: an attempt is recorded completely
// before anything is started. If a command dies at any moment, the next command on any host continues from the
// folder.
//
// The package prints nothing and does not use the database.
package launcher

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Record is the content of attempt.json: the facts about an attempt that are known before it
// starts.
type Record struct {
	ID        string `json:"id"`      // "STUDY/POINT-r1-a1"
	Backend   string `json:"backend"` // Backend.Name
	JobName   string `json:"job_name,omitempty"`
	Partition string `json:"partition,omitempty"`
	Exclusive bool   `json:"exclusive,omitempty"`
	// Nodes that the job keeps away from, because they failed under an attempt before.
	Exclude     []string `json:"exclude,omitempty"`
	Requeue     bool     `json:"requeue,omitempty"` // the scheduler itself may start it again
	CreatedUnix float64  `json:"created_unix"`      // seconds since the epoch
	Version     string   `json:"version"`           // of scalebench
	Commit      string   `json:"commit,omitempty"`
	Host        string   `json:"host"` // that created the attempt
	Worker      string   `json:"worker"`
	Python      string   `json:"python,omitempty"`
	// Setting is the environment in which the site starts the program.
	Setting    *metrics.Setting `json:"setting,omitempty"`
	Pack       *Member          `json:"pack,omitempty"`       // name of the script that runs it together with others
	Allocation string           `json:"allocation,omitempty"` // id of the job whose nodes a local attempt uses
	// SampleEvery is the interval at which its nodes are sampled; 0 means never.
	SampleEvery study.Duration `json:"sample_every,omitzero"`
	// Programs are the SHA-256 of the files in the programs folder, by name.
	Programs map[string]string `json:"programs,omitempty"`
	// Resume is the checkpoint from which the program continues, written by attempt ResumedAttempt; "" and 0 if
	// none exists.
	Resume         string `json:"resume,omitempty"`
	ResumedAttempt int    `json:"resumed_attempt,omitempty"`
	// Own holds the SHA-256 of the user's files in the own folder, by name.
	Own map[string]string `json:"own,omitempty"`
	// Of the command that drives a local attempt.
	PID      int    `json:"pid,omitempty"`
	PIDStart string `json:"pid_start,omitempty"` // start time of the process, because PIDs are reused
	PIDSpace string `json:"pid_space,omitempty"` // where the pid is valid, see worker.PIDSpace
}

// A Submission is the content of job.json: the scheduler's answer.
type Submission struct {
	JobID         string  `json:"job_id"`
	Cluster       string  `json:"cluster,omitempty"`
	Notice        string  `json:"notice,omitempty"` // sbatch's other output
	After         string  `json:"after,omitempty"`  // job whose end this one waits for
	SubmittedUnix float64 `json:"submitted_unix"`
}

// A Limited is the content of refused.json: the scheduler's last refusal that was only about the number of jobs.
type Limited struct {
	Words string  `json:"words"` // the scheduler's, in one line
	Unix  float64 `json:"unix"`  // seconds since the epoch
}

// A Verdict is the content of state.json: the final status of an attempt that has ended.
type Verdict struct {
	Status metrics.Status `json:"status"`
	Detail string         `json:"detail,omitempty"`
	Job    *metrics.Job   `json:"job,omitempty"`
	// FailedNodes are the job's nodes that may have failed, if the status is metrics.NodeFailed: as
	// few as the run's own records leave possible.
	FailedNodes []string `json:"failed_nodes,omitempty"`
}

// A Cancellation is the content of cancel.json: a user asked to end the attempt. It is written before the
// attempt is ended, so that the attempt is not restarted even if the scheduler forgets it.
type Cancellation struct {
	Unix float64 `json:"unix"` // seconds since the epoch
	Host string  `json:"host"` // host of the command
}

// An Exit is the content of exit-N.json: the record that the batch script (or the local launcher) writes at its
// end.
type Exit struct {
	ExitCode  int     `json:"exit_code"`
	Signal    string  `json:"signal,omitempty"` // first signal that the script received
	StartUnix float64 `json:"start_unix"`
	EndUnix   float64 `json:"end_unix"`
	JobID     string  `json:"job_id,omitempty"`
	NodeList  string  `json:"nodelist,omitempty"`
	Restart   int     `json:"restart"`
	Killed    int     `json:"killed,omitempty"` // processes, since the memory that the run was given ran out
}

// An Attempt is one attempt at one repeat of a point, as recorded on disk.
type Attempt struct {
	Run        rundir.Folder
	Number     int // 1-based
	Point      study.Point
	Record     Record
	Submission *Submission   // nil until the scheduler's answer is recorded
	Limited    *Limited      // nil unless the scheduler refused a submission for now
	Cancelled  *Cancellation // nil unless the user cancelled it
	Verdict    *Verdict      // nil until a command has found that it ended
	// Unreadable is why the folder cannot be read, or nil. The other fields are then from an earlier read or,
	// if there was none, from the folder's name: Run, Number, and the point's ID and repeat. The attempt may
	// have ended or be under way.
	Unreadable error
	// Unkeyed: the point was written with plain secrets, and its digests hold for this
	// command only, since the study's folder has no key.
	Unkeyed bool
}

// Named reports whether the attempt is one that a name means, see Means. The study
// may be before it.
func (a *Attempt) Named(name string) bool {
	if strings.Contains(name, "/") {
		return Means(name, a.Run.ID())
	}
	return Means(name, a.Run.Name())
}

// Means reports whether a name selects the run with that id: the name is the whole id, "POINT-r1-a2", or lacks
// the attempt, or is a point's name, which selects all of its runs.
func Means(name, id string) bool {
	rest, found := strings.CutPrefix(id, name)
	return found && (rest == "" || attemptEnd.MatchString(rest))
}

// attemptEnd matches what follows the name of a point or run in an attempt's id.
var attemptEnd = regexp.MustCompile(`^(-r\d+)?-a\d+$`)

// A Creator holds what the attempts of one command have in common.
type Creator struct {
	Folder  rundir.Study
	Site    *study.Site
	Key     redact.Key // key for the digests of the site's secrets
	Version string
	Commit  string // git commit of the study's folder
	Worker  string // absolute path of scalebench-worker
	// Shared is set if the group may read what a batch job writes.
	Shared bool
	// Every is the interval at which the nodes of a run are sampled; 0 means never.
	Every study.Duration

	Scripted bool // a batch script starts the programs; a backend sets it
}

// SiteOf returns the site as a point's variant changes it.
func (c Creator) SiteOf(p study.Point) *study.Site {
	if c.Site == nil {
		return study.DefaultSite()
	}
	return c.Site.As(p.Variant)
}

// each returns one load per run: no runs are submitted together.
func each(todo []Todo) [][]Todo {
	loads := make([][]Todo, len(todo))
	for i, t := range todo {
		loads[i] = []Todo{t}
	}
	return loads
}

// Create writes the folder of a new attempt at a planned point. r holds the backend's part of the
// record. extra adds files before the folder gets its final name: at is their present folder, and
// a.Run the final one. The error is fs.ErrExist if another command created the attempt first.
func (c Creator) Create(t Todo, r Record, extra func(at rundir.Folder, a *Attempt) error) (*Attempt, error) {
	final := c.Folder.Run(t.Point.ID, t.Point.Repeat, t.Number)
	f, err := framework.Find(t.Point.Framework)
	if err != nil {
		return nil, err
	}
	site := c.SiteOf(t.Point)
	r.ID = final.ID()
	if err := c.complete(&r, t, f, site); err != nil {
		return nil, err
	}
	a := &Attempt{Run: final, Number: t.Number, Point: t.Point, Record: r}
	return a, final.Create(func(at rundir.Folder) error {
		if err := writeContract(at, t, site); err != nil {
			return err
		}
		if a.Record.Programs, err = install(f.Programs, at.Programs()); err != nil {
			return err
		}
		if a.Record.Own, err = copyOwn(t.Files, at.OwnFiles()); err != nil {
			return err
		}
		if err := rundir.WriteJSON(at.Attempt(), a.Record, sharedfs.ModeOpen); err != nil {
			return err
		}
		if err := rundir.WriteFile(at.Nonce(), []byte(Token(16)+"\n"), sharedfs.ModePrivate); err != nil {
			return err
		}
		if err := os.MkdirAll(at.Events(), sharedfs.ModeFolder); err != nil {
			return err
		}
		if extra == nil {
			return nil
		}
		return extra(at, a)
	})
}

// complete adds the record's part that does not depend on the backend.
func (c Creator) complete(r *Record, t Todo, f framework.Framework, site *study.Site) (err error) {
	r.Partition, r.Exclusive, r.CreatedUnix = t.Partition, t.Exclusive, metrics.Unix(time.Now())
	r.Version, r.Commit, r.Worker, r.Python = c.Version, c.Commit, c.Worker, site.Interpreter(t.Point.Framework)
	r.SampleEvery = c.Every
	r.Setting = setting(site, f, c.Key, c.Scripted)
	if r.Host, err = os.Hostname(); err != nil {
		return err
	}
	if f.UserProgram && framework.Resumes(t.Command) {
		r.Resume, r.ResumedAttempt, err = c.resume(t)
	}
	return err
}

// writeContract writes the point and, in separate files that only the user can read, its secrets and the
// site's.
func writeContract(at rundir.Folder, t Todo, site *study.Site) error {
	mode := sharedfs.ModeOpen
	if len(t.Point.Exposed()) > 0 {
		mode = sharedfs.ModePrivate
	}
	if err := rundir.WriteJSON(at.Point(), t.Point, mode); err != nil {
		return err
	}
	for _, f := range []struct {
		path    string
		secrets []string
		content any
	}{
		{at.Command(), t.Command.Secrets(), t.Command},
		{at.Parameters(), t.Own.Secrets(), t.Own},
		{at.Secrets(), site.Secrets(), site.Secrets()}, // separate files, so that other records can be kept without secrets
	} {
		if len(f.secrets) > 0 {
			if err := rundir.WriteJSON(f.path, f.content, sharedfs.ModePrivate); err != nil {
				return err
			}
		}
	}
	return nil
}

// Worker finds scalebench-worker: at the path given, or next to this program.
func Worker(given string) (string, error) {
	if given == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		given = filepath.Join(filepath.Dir(self), "scalebench-worker")
	}
	path, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not a program; put scalebench-worker next to scalebench, or name it in the site file (worker = \"PATH\")", path)
	}
	return path, nil
}

// Token returns a random name, two hexadecimal digits for each byte.
func Token(bytes int) string {
	b := make([]byte, bytes)
	if _, err := rand.Read(b); err != nil {
		panic(err) // crypto/rand does not fail on Linux
	}
	return hex.EncodeToString(b)
}

// Supervise returns the arguments of scalebench-worker that start the supervisor of a
// rank. Without a run folder, the supervisor takes the folder that the batch script
// exports, and the interpreter from that run's record.
func Supervise(run rundir.Folder, r Record) []string {
	arguments := []string{"run"}
	if run != "" {
		arguments = append(arguments, "--dir", run.Path())
		if r.Python != "" {
			arguments = append(arguments, "--python", r.Python)
		}
	}
	if r.Commit != "" {
		arguments = append(arguments, "--commit", r.Commit)
	}
	return arguments
}
