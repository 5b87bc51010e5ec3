// Package rundir owns every path of the run folders. Nothing else in the
// project joins two of these names.
//
// A runs folder holds one folder a study, which holds the frozen study and one
// folder an attempt:
//
//	RUNS/STUDY/.gitignore          keeps runs out of the user's git
//	RUNS/STUDY/identity.json       which study that is; made first, by link
//	RUNS/STUDY/study.toml          the study as it was last submitted or run
//	RUNS/STUDY/site.toml           the site file that went with it, if any
//	RUNS/STUDY/plan.json           the plan
//	RUNS/STUDY/digest.key          the key of the digests that replace secrets, mode 0600; where there are any
//	RUNS/STUDY/lease               touched while a command begins attempts, old while none does
//	RUNS/STUDY/trash/              the folders of attempts that were forgotten, as they were
//	RUNS/STUDY/POINT-r1-a1/        first attempt at the first repeat of a point
//	    point.json                 the frozen contract with every program, secrets replaced by digests
//	    command.json               the [command] table with them, mode 0600; where there are any
//	    parameters.json            the [parameters] table with them, mode 0600; where there are any
//	    secrets.json               values of the site's variables that look like secrets, mode 0600; where there are any
//	    attempt.json               our record of the attempt, from before it began
//	    heartbeat                  rewritten as long as the command lives that drives a local attempt
//	    nonce                      by which ranks know each other (see handshake), mode 0600
//	    job.sh                     the batch script, mode 0700
//	    programs/                  the framework's own programs, as embedded
//	    own/                       Python files of the user's, as they were then
//	    output/                    what a command of the user's writes
//	    model.safetensors          what a training came to, with workload.save_model
//	    .torchrun-*/               what torchrun keeps while it runs
//	    job.json                   what the scheduler answered to it
//	    cancel.json                that `cancel` was asked to end it; from before anything else is done about that
//	    remarks.json               what people say of the run: tags, a note
//	    state.json                 the last word on an attempt that has ended
//	    claim-0/                   made by the first copy of the script to start
//	    exit-0.json                the batch script's own record of its end
//	    printed-0.json             by the supervisor: how to read the log of a program of the user's
//	    job.log  rank-00000.log    output of the script and of each program
//	    events/rank-00000-0.jsonl  one file a writer: writer, rank, restart
//
// Each file has one writer and is written whole (temporary name, then rename),
// but for the heartbeat, and the logs and event files, which are appended to. A run folder itself
// appears whole, with everything that is written before the attempt begins.
// The folder is the state: every command can start again from what is here.
package rundir

import (
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

// Study is the folder of one study.
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

// Folder is the folder of one attempt.
type Folder string

// Run names the folder of one attempt at one repeat of a point.
func (s Study) Run(point string, repeat, attempt int) Folder {
	return Folder(filepath.Join(string(s), fmt.Sprintf("%s-r%d-a%d", point, repeat, attempt)))
}

// identity is how the identity of a point ends: in a hash. What has such a name
// and is no folder stands where an attempt belongs.
var identity = regexp.MustCompile(`-[0-9a-f]{10}$`)

var runName = regexp.MustCompile(`^(.+)-r(\d+)-a(\d+)$`)

// Attempt is a run folder and what its name says.
type Attempt struct {
	Run    Folder
	Point  string
	Repeat int
	Number int
}

// Attempts lists what has the name of an attempt in the study's folder, by
// point, repeat and number; whether it is one is seen when it is read. A study
// without a folder has none.
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
		if c := strings.Compare(a.Point, b.Point); c != 0 {
			return c
		}
		if a.Repeat != b.Repeat {
			return a.Repeat - b.Repeat
		}
		return a.Number - b.Number
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
		return a, false // digits beyond an int: not one of ours
	}
	return Attempt{Point: m[1], Repeat: repeat, Number: number}, true
}

// Studies lists the studies below the runs folder that have a plan.
func Studies(runs string) ([]string, error) {
	plans, err := filepath.Glob(filepath.Join(escape(runs), "*", "plan.json"))
	if err != nil {
		return nil, err
	}
	for i, p := range plans {
		plans[i] = filepath.Base(filepath.Dir(p))
	}
	return plans, nil
}

// escape makes a path safe to stand in a Glob pattern.
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
func (r Folder) Job() string      { return filepath.Join(string(r), "job.json") }
func (r Folder) State() string    { return filepath.Join(string(r), "state.json") }
func (r Folder) Cancel() string   { return filepath.Join(string(r), "cancel.json") }
func (r Folder) Remarks() string  { return filepath.Join(string(r), "remarks.json") }
func (r Folder) Script() string   { return filepath.Join(string(r), "job.sh") }
func (r Folder) Programs() string { return filepath.Join(string(r), "programs") }
func (r Folder) Own() string      { return filepath.Join(string(r), "own") }
func (r Folder) Output() string   { return filepath.Join(string(r), "output") }
func (r Folder) Model() string    { return filepath.Join(string(r), "model.safetensors") }

// Checkpoints is where a program of the user's leaves what a later attempt goes on
// from.
func (r Folder) Checkpoints() string { return filepath.Join(r.Output(), "checkpoints") }
func (r Folder) Nonce() string       { return filepath.Join(string(r), "nonce") }
func (r Folder) JobLog() string      { return filepath.Join(string(r), "job.log") }
func (r Folder) Events() string      { return filepath.Join(string(r), "events") }

// Latencies is the log of a load's latencies, by the load's name and the restart of
// the rank that wrote it.
func (r Folder) Latencies(load string, restart int) string {
	return filepath.Join(string(r), "latencies", fmt.Sprintf("%s-%d.hlog", load, restart))
}

// Heartbeat is rewritten by the command that drives a local attempt for as long
// as it does: its time is what other hosts see of that command.
func (r Folder) Heartbeat() string { return filepath.Join(string(r), "heartbeat") }

// ID is the run's name among all of a user's, "STUDY/POINT-r1-a1".
func (r Folder) ID() string {
	return filepath.Base(filepath.Dir(string(r))) + "/" + r.Name()
}

// Study is the folder of the run's study.
func (r Folder) Study() Study { return Study(filepath.Dir(string(r))) }

// Exit is the batch script's record of its own end.
func (r Folder) Exit(restart int) string {
	return filepath.Join(string(r), fmt.Sprintf("exit-%d.json", restart))
}

// Printed says how to read what a program of the user's has printed.
func (r Folder) Printed(restart int) string {
	return filepath.Join(string(r), fmt.Sprintf("printed-%d.json", restart))
}

// RankLog is where the output of one rank's program goes.
func (r Folder) RankLog(rank int) string {
	return filepath.Join(string(r), fmt.Sprintf("rank-%05d.log", rank))
}

var rankLogName = regexp.MustCompile(`^rank-(\d{5,9})\.log$`)

// RankLogs are the ranks that have a log of their own, in no order.
func (r Folder) RankLogs() []int {
	entries, _ := sharedfs.ReadDir(string(r)) // what cannot be read has none
	var ranks []int
	for _, e := range entries {
		if m := rankLogName.FindStringSubmatch(e.Name()); m != nil {
			rank, _ := strconv.Atoi(m[1]) // nine digits
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// EventFile is where one writer appends its events.
func (r Folder) EventFile(writer string, rank, restart int) string {
	return filepath.Join(r.Events(), fmt.Sprintf("%s-%05d-%d.jsonl", writer, rank, restart))
}

var eventName = regexp.MustCompile(`^([a-z]+)-(\d{5,})-(\d+)\.jsonl$`)

// EventFiles lists the event files of the run, by writer, rank and restart. A
// run that has written none yet has an empty list.
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

// Restarts lists the incarnations whose batch script has begun, by number. A
// withdrawn attempt has none.
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

// Create makes a run folder appear whole: fill writes into a folder of a
// temporary name, which then gets its own. It fails with an error for which
// errors.Is(err, fs.ErrExist) holds when the run folder is there already: of
// two commands that begin the same attempt, on whatever hosts, one gets it.
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

// kept are the folders whose own names are known to outlast a loss of power.
var kept sync.Map

// makeFolder makes a folder and those above it that are missing. Their names
// are synced too, also where another command has just made them: with a study's
// folder goes every record in it.
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

// SyncFolder makes the names in a folder outlast a loss of power: a rename that
// is only in memory would take a record back of what was handed to Slurm. Some
// network file systems cannot and need not do that.
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

// largest is how many bytes a file of ours may have: most have some KB.
const largest = 16 << 20

// ReadFile reads a file of ours, which in a run folder may be anything: only a
// regular file, and not without bound. It may be replaced meanwhile.
func ReadFile(path string) ([]byte, error) { return sharedfs.ReadFile(path, largest) }

// ReadFile reads a file of the run folder. Others may have written it: a link out of the
// folder is an error.
func (r Folder) ReadFile(path string) ([]byte, error) {
	return sharedfs.ReadFileIn(string(r), path, largest)
}

// Open opens a file of the run folder for reading, as ReadFile does.
func (r Folder) Open(path string) (*os.File, error) { return sharedfs.OpenIn(string(r), path) }

// ReadFile reads a file of the study's folder of at most so many bytes. A link out of the
// folder is an error.
func (s Study) ReadFile(path string, limit int64) ([]byte, error) {
	return sharedfs.ReadFileIn(string(s), path, limit)
}

// WriteFile is sharedfs.Write whose name outlasts a loss of power. In a folder that
// Create fills the names are synced once for all, by Create: each costs as much
// as a file.
func WriteFile(path string, content []byte, perm fs.FileMode) error {
	if err := sharedfs.Write(path, content, perm); err != nil {
		return err
	}
	if folder := filepath.Dir(path); !strings.HasPrefix(filepath.Base(folder), unfinished) {
		return SyncFolder(folder)
	}
	return nil
}
