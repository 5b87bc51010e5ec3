// Package worker is the supervisor inside a job: one process for each program, or for each node's
// launcher if a framework starts its ranks itself. It first copies what the program reads to the
// node (staging.go). It then starts the program as its rank in the world, records where it runs,
// forwards signals, and records how it ended, even if the program itself could not. It ends the
// processes that the program leaves running (reap.go) and diagnoses failures (diagnose.go). It
// never opens the database.
package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/telemetry"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Grace limits how long a program may take to end after the first signal before it is killed. It is
// shorter than Slurm's default KillWait of 30 s.
const Grace = 25 * time.Second

// Options configure a supervisor.
type Options struct {
	Run    rundir.Folder
	World  world.World
	Worker string // path of scalebench-worker
	Python string
	// Commit is the git commit of the study's folder; "" if it is not a git repository.
	Commit string
	// Devices reads devices that have no files for the node's sampler; may be nil.
	Devices telemetry.Devices
}

// LoadPoint reads the frozen contract of a run folder, with the command as it is
// to be run. What this user or root has not written is refused.
func LoadPoint(run rundir.Folder) (study.Point, error) {
	var p study.Point
	if err := trust.CheckFilesOnly(run.Path(), run.Programs(), run.OwnFiles()); err != nil {
		return p, err
	}
	text, err := trust.ReadFile(run.Point())
	if err != nil {
		return p, fmt.Errorf("cannot read the point: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s cannot be read as a point: %w", run.Point(), err)
	}
	var command study.Command
	if found, err := readSecrets(run.Command(), &command); err != nil {
		return p, err
	} else if found {
		p.Command = command
	}
	var own study.Own
	if found, err := readSecrets(run.Parameters(), &own); err != nil {
		return p, err
	} else if found {
		p.Own = own
	}
	return p, nil
}

// readSecrets reads a table of the study that holds secrets; found is false if the file does not exist.
func readSecrets(path string, into any) (found bool, err error) {
	text, err := trust.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return true, nil
}

// A record holds the parts of attempt.json that a supervisor needs.
type record struct {
	Python  string           `json:"python"`
	Setting *metrics.Setting `json:"setting"`

	Resume         string `json:"resume"`
	ResumedAttempt int    `json:"resumed_attempt"`

	SampleEvery study.Duration `json:"sample_every"`
}

// readRecord reads attempt.json; the record is empty if the file does not exist.
func readRecord(run rundir.Folder) (r record, err error) {
	text, err := trust.ReadFile(run.Attempt())
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("cannot read the attempt's record: %w", err)
	}
	return r, nil
}

// longestNonce is the maximum size of a nonce file in bytes; scalebench's have 33.
const longestNonce = 4096

// ReadNonce reads the nonce by which a run's ranks recognise each other. It returns an error if every user can
// read it or another user may have written it.
func ReadNonce(run rundir.Folder) (nonce string, err error) {
	text, err := trust.ReadSecret(run.Nonce(), longestNonce)
	if err != nil {
		return "", fmt.Errorf("cannot read the run's nonce: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// OpenEvents makes the event file of one writer. It is an error if the file is there already: two
// processes would then have the same rank.
func OpenEvents(run rundir.Folder, writer string, w world.World) (*os.File, error) {
	// Do not create the folders above: if the runs were moved away, a new folder would be mistaken
	// for the whole study.
	if err := os.Mkdir(run.Events(), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	path := run.EventFile(writer, w.Rank, w.Restart)
	err := sharedfs.Create(path, nil, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s already exists: another process has rank %d of this run, or the run was started twice", path, w.Rank)
	}
	if err != nil {
		return nil, err
	}
	var f *os.File
	err = sharedfs.RetryStale(func() error {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Sync the folder so that the file's name survives a power failure too.
	return f, rundir.SyncFolder(run.Events())
}

// Supervise runs one program to its end and returns its exit code, or 128 + the number of the
// signal that ended it. The error says why it could not be run.
func Supervise(ctx context.Context, o Options) (int, error) {
	s, err := newSupervision(o)
	if err != nil {
		return 1, err
	}
	file, err := OpenEvents(s.Run, "supervisor", s.World)
	if err != nil {
		return 1, err
	}
	defer file.Close()
	start := s.start()
	if s.events, err = metrics.NewWriter(file, start); err != nil {
		return 1, err
	}
	// Processes left on this host by a killed supervisor would compete with the program.
	earlier := EndAbandoned(func(v map[string]string) bool { return sameWork(v, s.Run, os.Getenv) })
	if text := earlier.Describe("an earlier run"); text != "" {
		Warn(os.Stderr, text)
	}
	if err := s.writeEnvironment(ctx); err != nil {
		return 1, err
	}
	defer signal.Stop(s.signals)
	code, why := s.measure(start)
	// The output of a killed program does not show which of several it was.
	if strings.HasPrefix(why, "killed by ") && s.World.Size > 1 {
		of := "rank"
		if s.perNode {
			of = "node"
		}
		why = fmt.Sprintf("%s %d was %s", of, s.World.Rank, why)
	}
	stop := metrics.Stop{Status: metrics.StopDone, Cause: redact.Known(slices.Concat(s.program.Point.Secrets(), redact.Variables(os.Environ())))(why)}
	if code != 0 {
		stop.Status = metrics.StopFailed
	}
	return code, s.events.Write(metrics.Event{Stop: &stop})
}

// A supervision runs one program.
type supervision struct {
	Options
	framework framework.Framework
	program   framework.Rank
	record    record
	perNode   bool // the program starts the ranks of a node itself
	starts    bool // false if the first node's supervisor starts the program
	events    *metrics.Writer
	signals   chan os.Signal // signals to this process while the program runs
}

func newSupervision(o Options) (*supervision, error) {
	point, err := LoadPoint(o.Run)
	if err != nil {
		return nil, err
	}
	s := &supervision{Options: o, signals: make(chan os.Signal, 8)}
	if s.framework, err = framework.Find(point.Framework); err != nil {
		return nil, err
	}
	if s.record, err = readRecord(o.Run); err != nil {
		return nil, err
	}
	s.starts = !s.framework.Once(point) || o.World.Node == 0
	if s.perNode = s.framework.OncePerNode(point); s.perNode {
		s.World = o.World.PerNode(point.WorkersPerNode)
	}
	s.program = framework.Rank{Point: point, Run: o.Run, World: s.World, Worker: o.Worker,
		Python: cmp.Or(o.Python, s.record.Python), Resume: s.record.Resume}
	return s, nil
}

// users reports whether the supervisor starts a program of the user's.
func (s *supervision) users() bool { return s.framework.StartsUsers(s.program.Point) }

// start returns the first event of the supervisor's file.
func (s *supervision) start() metrics.Start {
	host, _ := os.Hostname()
	start := metrics.Start{Writer: "supervisor", Framework: s.program.Point.Framework, Rank: s.World.Rank,
		WorldSize: s.World.Size, LocalRank: s.World.LocalRank, Restart: s.World.Restart, Host: host, PID: os.Getpid()}
	if s.perNode {
		start.Ranks = s.World.LocalSize
	}
	return start
}

// note records a text; the run continues if that fails.
func (s *supervision) note(text string) {
	_ = s.events.Write(metrics.Event{Note: &metrics.Note{Text: text}})
}

// writeEnvironment records where the program runs and which attempt it resumes.
func (s *supervision) writeEnvironment(ctx context.Context) error {
	environment := environmentOf(ctx, s.World)
	environment.Files = ownFiles(s.framework, s.program)
	if environment.Interface != nil {
		s.program.Interface = environment.Interface.Name
	}
	environment.GitCommit = s.Commit
	environment.Setting = s.record.Setting
	if environment.Setting != nil && environment.Setting.Python == "" {
		environment.Setting.Python = s.framework.Interpreter(s.program)
	}
	if err := s.events.Write(metrics.Event{Environment: environment}); err != nil || s.record.Resume == "" {
		return err
	}
	return s.events.Write(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureResumed, Value: float64(s.record.ResumedAttempt), Note: "from " + filepath.Base(s.record.Resume)}})
}

// measure checks the node's limits, copies what the program reads, and runs the program.
func (s *supervision) measure(start metrics.Start) (code int, why string) {
	if err := limited(s.program.Point, s.perNode, runtime.NumCPU(), os.DirFS("/")); err != nil {
		return 1, err.Error()
	}
	program := s.program
	hold, err := useStaged(&program)
	if err != nil {
		return 1, err.Error()
	}
	sampler := sample(s.Options, start, s.record.SampleEvery)
	begun, written := time.Now(), output{log: s.Run.RankLog(s.World.Rank)}
	// Catch signals until the program's end is recorded. Another rank that noticed it may have
	// this one ended meanwhile, and then the record would not show which ended first.
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP)
	code, why = s.run(program, &written)
	if ran := time.Since(begun).Seconds(); s.starts && s.users() && code == 0 {
		_ = s.events.Write(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureRunSeconds, Value: ran, Unit: "s", Better: "lower"}})
	}
	sampler.end()
	// After the measurement has ended, and before another one begins.
	if left := endBelow(func(int) bool { return false }).String(); left != "" {
		s.note(left)
	}
	if s.users() && code == 0 && s.World.Rank == framework.Printer(s.program.Point) {
		if err := collect(program, written, begun); err != nil {
			code, why = 1, err.Error()
		}
	}
	for _, item := range hold {
		item.Release()
	}
	return code, why
}

// run runs the program to its end, or waits for the end of the one that the first node's
// supervisor runs.
func (s *supervision) run(program framework.Rank, written *output) (code int, why string) {
	heard := func(by os.Signal) {
		// At once: this process may be killed before the program has ended, and without
		// the note its node would seem to have failed.
		s.note("signal " + by.String() + " came")
	}
	if !s.starts {
		return await(s.Run, s.World.Restart, s.signals, heard)
	}
	code, why = run(s.framework, program, written, s.signals, heard)
	if code == 0 && s.users() {
		// A program that handles SIGTERM may exit with 0, and a shell continues after its child
		// was killed: in both cases the measurement may be incomplete.
		if by := endRequest(s.Run, s.signals, strings.TrimPrefix(why, "after ")); by != "" {
			return 128 + int(syscall.SIGTERM), fmt.Sprintf("told to end (%s), it exited with 0; what it measured may be cut short", by)
		}
	}
	return code, why
}

// sameWork reports whether a process with these variables was started for a run
// of the same study, or in the same job.
func sameWork(v map[string]string, run rundir.Folder, getenv func(string) string) bool {
	job := getenv("SLURM_JOB_ID")
	return job != "" && v["SLURM_JOB_ID"] == job || v[framework.RunVariable] != "" && filepath.Dir(v[framework.RunVariable]) == filepath.Dir(run.Path())
}
