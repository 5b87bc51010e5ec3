// Package rundir owns the paths in run folders. No other package builds these names.
//
// A runs folder holds one folder per study, which holds the frozen study and one folder per attempt:
//
//	RUNS/STUDY/.gitignore          keeps runs out of the user's git
//	RUNS/STUDY/identity.json       which study the folder belongs to; created first
//	RUNS/STUDY/study.toml          the study as it was last submitted or run
//	RUNS/STUDY/site.toml           its site file, if any
//	RUNS/STUDY/plan.json           the plan
//	RUNS/STUDY/digest.key          key of the digests that replace secrets, mode 0600; only with secrets
//	RUNS/STUDY/lease               touched while a command starts attempts
//	RUNS/STUDY/trash/              unchanged folders of forgotten attempts
//	RUNS/STUDY/POINT-r1-a1/        first attempt at the first repeat of a point
//	    point.json                 the frozen contract with every program, secrets replaced by digests
//	    command.json               the [command] table with secrets, mode 0600; only with secrets
//	    parameters.json            the [parameters] table with secrets, mode 0600; only with secrets
//	    secrets.json               site variables that look like secrets, mode 0600; only with secrets
//	    attempt.json               record of the attempt, written before it starts
//	    heartbeat                  rewritten while the command that drives a local attempt is alive
//	    nonce                      secret by which ranks recognise each other (see handshake), mode 0600
//	    job.sh                     the batch script, mode 0700
//	    programs/                  the framework's programs, as embedded
//	    own/                       copies of the user's Python files
//	    output/                    files that the user's command writes
//	    model.safetensors          the trained model, with workload.save_model
//	    .torchrun-*/               torchrun's files while it runs
//	    refused.json               why the scheduler did not accept it yet: a limit on the number of jobs
//	    job.json                   the scheduler's answer to the submission
//	    cancel.json                `cancel` was asked to end the attempt; written before it is ended
//	    remarks.json               the user's tags and note
//	    state.json                 final verdict on an attempt that has ended
//	    claim-0/                   created by the first copy of the script to start
//	    exit-0.json                the batch script's record of its end
//	    printed-0.json             by the supervisor: how to read the log of a user's program
//	    job.log  rank-00000.log    output of the script and of each program
//	    events/rank-00000-0.jsonl  one file per writer: writer, rank, restart
//
// Each file has one writer, which writes a temporary file and renames it. Exceptions are the heartbeat, and
// logs and event files, which are appended to. A run folder itself appears complete, with everything that is
// written before the attempt starts. The folder is the state: every command can continue from it.
package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Study is the folder of one study.
type Study string

// OpenStudy names the folder of study below the runs folder.
func OpenStudy(runs, study string) Study { return Study(filepath.Join(runs, study)) }

func (s Study) Path() string      { return string(s) }
func (s Study) Runs() string      { return filepath.Dir(string(s)) }
func (s Study) StudyFile() string { return filepath.Join(string(s), "study.toml") }
func (s Study) SiteFile() string  { return filepath.Join(string(s), "site.toml") }
func (s Study) Plan() string      { return filepath.Join(string(s), "plan.json") }
func (s Study) Key() string       { return filepath.Join(string(s), "digest.key") }
func (s Study) Lease() string     { return filepath.Join(string(s), "lease") }

// Looks names the record of the looks at a study that is measured until its question is decided.
func (s Study) Looks() string { return filepath.Join(string(s), "looks.json") }

// Notified names the record of the messages that were sent about a study.
func (s Study) Notified() string { return filepath.Join(string(s), "notified.json") }

// A Folder is the folder of one attempt.
type Folder string

// Run names the folder of one attempt at one repeat of a point.
func (s Study) Run(point string, repeat, attempt int) Folder {
	return Folder(filepath.Join(string(s), fmt.Sprintf("%s-r%d-a%d", point, repeat, attempt)))
}

// identity matches the end of a point's name: a hash. An entry with such a name that is not a
// folder may replace an attempt.
var identity = regexp.MustCompile(`-[0-9a-f]{10}$`)

var runName = regexp.MustCompile(`^(.+)-r(\d+)-a(\d+)$`)

// An Attempt is a run folder with the parts of its name.
type Attempt struct {
	Run    Folder
	Point  string
	Repeat int
	Number int
}

// Attempts lists everything in the study's folder that has the name of an attempt, by point, repeat and number;
// reading it shows whether it is one. It returns none if the folder does not exist.
func (s Study) Attempts() ([]Attempt, error) {
	entries, err := sharedfs.ReadDir(string(s))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Attempt
	for _, e := range entries {
		a, ok := ParseName(e.Name())
		if !ok || !e.IsDir() && !identity.MatchString(a.Point) {
			continue
		}
		a.Run = Folder(filepath.Join(string(s), e.Name()))
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(a.Point, b.Point), cmp.Compare(a.Repeat, b.Repeat), cmp.Compare(a.Number, b.Number))
	})
	return list, nil
}

// ParseName reads an attempt's name, "POINT-r1-a1"; ok is false of any other.
func ParseName(name string) (a Attempt, ok bool) {
	m := runName.FindStringSubmatch(name)
	if m == nil {
		return a, false
	}
	repeat, err1 := strconv.Atoi(m[2])
	number, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil {
		return a, false // the number overflows an int: not an attempt
	}
	return Attempt{Point: m[1], Repeat: repeat, Number: number}, true
}

// Studies lists the studies with a plan below the runs folder. It returns none if the folder does not exist, and an
// error if this user may not read it.
func Studies(runs string) ([]string, error) {
	if _, err := os.ReadDir(runs); errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	plans, err := filepath.Glob(filepath.Join(escape(runs), "*", "plan.json"))
	if err != nil {
		return nil, err
	}
	for i, p := range plans {
		plans[i] = filepath.Base(filepath.Dir(p))
	}
	return plans, nil
}

// escape quotes the special characters of a Glob pattern.
func escape(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}

func (r Folder) Path() string    { return string(r) }
func (r Folder) Name() string    { return filepath.Base(string(r)) }
func (r Folder) Point() string   { return filepath.Join(string(r), "point.json") }
func (r Folder) Command() string { return filepath.Join(string(r), "command.json") }
func (r Folder) Parameters() string {
	return filepath.Join(string(r), "parameters.json")
}
func (r Folder) Secrets() string  { return filepath.Join(string(r), "secrets.json") }
func (r Folder) Attempt() string  { return filepath.Join(string(r), "attempt.json") }
func (r Folder) Refused() string  { return filepath.Join(string(r), "refused.json") }
func (r Folder) Job() string      { return filepath.Join(string(r), "job.json") }
func (r Folder) State() string    { return filepath.Join(string(r), "state.json") }
func (r Folder) Cancel() string   { return filepath.Join(string(r), "cancel.json") }
func (r Folder) Remarks() string  { return filepath.Join(string(r), "remarks.json") }
func (r Folder) Script() string   { return filepath.Join(string(r), "job.sh") }
func (r Folder) Programs() string { return filepath.Join(string(r), "programs") }
func (r Folder) OwnFiles() string { return filepath.Join(string(r), "own") }
func (r Folder) Output() string   { return filepath.Join(string(r), "output") }
func (r Folder) Model() string    { return filepath.Join(string(r), "model.safetensors") }

// Checkpoints is the folder in which a user's program leaves checkpoints for later attempts.
func (r Folder) Checkpoints() string { return filepath.Join(r.Output(), "checkpoints") }
func (r Folder) Nonce() string       { return filepath.Join(string(r), "nonce") }
func (r Folder) JobLog() string      { return filepath.Join(string(r), "job.log") }
func (r Folder) Events() string      { return filepath.Join(string(r), "events") }

// Latencies returns the path of a load's latency log, for the incarnation of the rank that wrote it.
func (r Folder) Latencies(load string, restart int) string {
	return filepath.Join(string(r), "latencies", fmt.Sprintf("%s-%d.hlog", load, restart))
}

// Requests returns the path of a load's requests in a format, "jsonl" or "parquet", for the incarnation of the rank
// that wrote it.
func (r Folder) Requests(load, format string, restart int) string {
	return filepath.Join(string(r), "requests", fmt.Sprintf("%s-%d.%s", load, restart, format))
}

// ServerMetrics returns the path of a server's metrics around a load, for the incarnation of the rank that wrote
// it.
func (r Folder) ServerMetrics(name string, restart int) string {
	return filepath.Join(string(r), "server", fmt.Sprintf("%s-%d.prom", name, restart))
}

// Heartbeat is rewritten while the command that drives a local attempt is alive; other hosts judge the command
// by its time.
func (r Folder) Heartbeat() string { return filepath.Join(string(r), "heartbeat") }

// ID returns the run's name, unique among the user's runs: "STUDY/POINT-r1-a1".
func (r Folder) ID() string {
	return filepath.Base(filepath.Dir(string(r))) + "/" + r.Name()
}

// Study returns the folder of the run's study.
func (r Folder) Study() Study { return Study(filepath.Dir(string(r))) }

// Exit returns the path of the batch script's record of its end.
func (r Folder) Exit(restart int) string {
	return filepath.Join(string(r), fmt.Sprintf("exit-%d.json", restart))
}

// Printed returns the path of the file that says how to read the output of a user's program.
func (r Folder) Printed(restart int) string {
	return filepath.Join(string(r), fmt.Sprintf("printed-%d.json", restart))
}

// RankLog returns the path of the output of one rank's program.
func (r Folder) RankLog(rank int) string {
	return filepath.Join(string(r), fmt.Sprintf("rank-%05d.log", rank))
}

var rankLogName = regexp.MustCompile(`^rank-(\d{5,9})\.log$`)

// RankLogs returns the ranks that have a log, in no particular order.
func (r Folder) RankLogs() []int {
	entries, _ := sharedfs.ReadDir(string(r)) // an unreadable folder counts as empty
	var ranks []int
	for _, e := range entries {
		if m := rankLogName.FindStringSubmatch(e.Name()); m != nil {
			rank, _ := strconv.Atoi(m[1]) // nine digits
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// EventFile returns the path of one writer's event file.
func (r Folder) EventFile(writer string, rank, restart int) string {
	return filepath.Join(r.Events(), fmt.Sprintf("%s-%05d-%d.jsonl", writer, rank, restart))
}

var eventName = regexp.MustCompile(`^([a-z]+)-(\d{5,})-(\d+)\.jsonl$`)

// EventFiles lists the event files of the run, by writer, rank and restart. The list may be empty.
func (r Folder) EventFiles() ([]metrics.EventFile, error) {
	entries, err := sharedfs.ReadDir(r.Events())
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []metrics.EventFile
	for _, e := range entries {
		m := eventName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		rank, err1 := strconv.Atoi(m[2])
		restart, err2 := strconv.Atoi(m[3])
		if err1 != nil || err2 != nil {
			continue
		}
		list = append(list, metrics.EventFile{Path: filepath.Join(r.Events(), e.Name()), Folder: string(r), Writer: m[1], Rank: rank, Restart: restart})
	}
	return list, nil
}

// Restarts lists the incarnations whose batch script has started. Withdrawn attempts have no incarnation.
func (r Folder) Restarts() ([]int, error) {
	entries, err := sharedfs.ReadDir(string(r))
	if err != nil {
		return nil, err
	}
	var list []int
	for _, e := range entries {
		if n, ok := strings.CutPrefix(e.Name(), "claim-"); ok {
			if restart, err := strconv.Atoi(n); err == nil && restart >= 0 && !(restart == 0 && r.Withdrawn()) {
				list = append(list, restart)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

// Create creates a run folder that appears complete: fill writes into a folder with a temporary name, which is
// then renamed. If the run folder already exists, the error satisfies errors.Is(err, fs.ErrExist): of two
// commands that create the same attempt, even on different hosts, one succeeds.
func (r Folder) Create(fill func(Folder) error) error {
	study := filepath.Dir(string(r))
	if err := makeFolder(study); err != nil {
		return err
	}
	temporary, err := sharedfs.MkdirTemp(study, unfinished, sharedfs.ModeFolder)
	if err != nil {
		return err
	}
	err = fill(Folder(temporary))
	if err == nil {
		err = SyncFolder(temporary)
	}
	if err == nil {
		err = sharedfs.Place(temporary, string(r))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	return SyncFolder(study)
}

// kept holds the folders whose names are synced to disk.
var kept sync.Map

// makeFolder creates a folder and its missing parents, and syncs their names, even if another command has just
// created them: losing a study's folder would lose every record in it.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if _, done := kept.Load(path); done {
			return nil
		}
		// A folder that may not be read is not one that was made for this.
		if err := SyncFolder(filepath.Dir(path)); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return nil
		} else if err != nil {
			return err
		}
		kept.Store(path, true)
	}
	return nil
}

// unfinished begins the names of folders that Create fills.
const unfinished = ".new-"

// SyncFolder syncs the names in a folder to disk: a rename that is lost in a power failure could lose the
// record of a submission. Some network file systems do not support it and do not need it.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

// largest bounds the size of scalebench's files; most have some KB.
const largest = 16 << 20

// ReadFile reads one of scalebench's files. In a run folder it could be anything, so only regular files up to a
// limit are read. It may be replaced during the read.
func ReadFile(path string) ([]byte, error) { return sharedfs.ReadFile(path, largest) }

// ReadFile reads a file of the run folder. Others may have written it: a link out of the
// folder is an error.
func (r Folder) ReadFile(path string) ([]byte, error) {
	return sharedfs.ReadFileIn(string(r), path, largest)
}

// Open opens a file of the run folder for reading, as ReadFile does.
func (r Folder) Open(path string) (*os.File, error) { return sharedfs.OpenIn(string(r), path) }

// ReadFile reads a file of the study's folder of at most limit bytes. A link out of the folder is an error.
func (s Study) ReadFile(path string, limit int64) ([]byte, error) {
	return sharedfs.ReadFileIn(string(s), path, limit)
}

// WriteFile is sharedfs.Write that also syncs the name to disk. In a folder that Create fills, Create syncs all
// names at once, since each sync costs as much as a file.
func WriteFile(path string, content []byte, perm fs.FileMode) error {
	if err := sharedfs.Write(path, content, perm); err != nil {
		return err
	}
	if folder := filepath.Dir(path); !strings.HasPrefix(filepath.Base(folder), unfinished) {
		return SyncFolder(folder)
	}
	return nil
}
