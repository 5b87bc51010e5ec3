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
	"os/exec"
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

// Grace is how long a program may take to end after the first signal before it is killed. It is
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
	// Devices reads what the node's sampler finds in no file; nil: nothing.
	Devices telemetry.Devices
}

// LoadPoint reads the frozen contract of a run folder, with the command as it is
// to be run. What this user or root has not written is refused.
func LoadPoint(run rundir.Folder) (study.Point, error) {
	var p study.Point
	if err := trust.Own(run.Path(), run.Programs(), run.Own()); err != nil {
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

// readSecrets reads a table of the study that holds secrets; found is false if there are none.
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

// longestNonce is the largest accepted size of a nonce file, in bytes; ours has 33.
const longestNonce = 4096

// ReadNonce reads a run's nonce, by which its ranks know each other. One that
// everybody can read, or that somebody else may have written, proves nothing.
func ReadNonce(run rundir.Folder) (nonce string, err error) {
	text, err := trust.ReadSecret(run.Nonce(), longestNonce)
	if err != nil {
		return "", fmt.Errorf("cannot read the run's nonce: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// OpenEvents makes the event file of one writer. It is an error if the file is
// there already: two processes would then claim one place in the world.
func OpenEvents(run rundir.Folder, writer string, w world.World) (*os.File, error) {
	// Not the folders above: where the runs were moved away, a run folder that is
	// made again would pass for all there is of the study.
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
	// The name outlasts a loss of power as what is written will.
	return f, rundir.SyncFolder(run.Events())
}

// Supervise runs one program to its end and returns its exit code, or 128 + the number of the
// signal that ended it. The error says why it could not be run.
func Supervise(ctx context.Context, o Options) (int, error) {
	point, err := LoadPoint(o.Run)
	if err != nil {
		return 1, err
	}
	f, err := framework.Find(point.Framework)
	if err != nil {
		return 1, err
	}
	record, err := readRecord(o.Run)
	if err != nil {
		return 1, err
	}
	perNode := f.OncePerNode(point)
	starts := !f.Once(point) || o.World.Node == 0 // else the first node's supervisor does
	if perNode {
		o.World = o.World.PerNode(point.WorkersPerNode)
	}
	file, err := OpenEvents(o.Run, "supervisor", o.World)
	if err != nil {
		return 1, err
	}
	defer file.Close()
	host, _ := os.Hostname()
	start := metrics.Start{Writer: "supervisor", Framework: point.Framework, Rank: o.World.Rank,
		WorldSize: o.World.Size, LocalRank: o.World.LocalRank, Restart: o.World.Restart, Host: host, PID: os.Getpid()}
	if perNode {
		start.Ranks = o.World.LocalSize
	}
	events, err := metrics.NewWriter(file, start)
	if err != nil {
		return 1, err
	}
	// Processes left on this host by a killed supervisor would compete with the program.
	earlier := EndAbandoned(func(v map[string]string) bool { return sameWork(v, o.Run, os.Getenv) })
	if text := earlier.Of("an earlier run"); text != "" {
		Warn(os.Stderr, text)
	}
	program := framework.Rank{Point: point, Run: o.Run, World: o.World, Worker: o.Worker, Python: cmp.Or(o.Python, record.Python)}
	program.Resume = record.Resume
	environment := environmentOf(ctx, o.World)
	environment.Files = ownFiles(f, program)
	if environment.Interface != nil {
		program.Interface = environment.Interface.Name
	}
	environment.GitCommit = o.Commit
	environment.Setting = record.Setting
	if environment.Setting != nil && environment.Setting.Python == "" {
		environment.Setting.Python = f.Interpreter(program)
	}
	if err := events.Write(metrics.Event{Environment: environment}); err != nil {
		return 1, err
	}
	if record.Resume != "" {
		if err := events.Write(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureResumed, Value: float64(record.ResumedAttempt), Note: "from " + filepath.Base(record.Resume)}}); err != nil {
			return 1, err
		}
	}
	code, why := 1, ""
	if err := limited(point, perNode, runtime.NumCPU(), os.DirFS("/")); err != nil {
		why = err.Error()
	} else if hold, err := useStaged(&program); err != nil {
		why = err.Error()
	} else {
		sampler := sample(o, start, record.SampleEvery)
		begun, written := time.Now(), output{log: o.Run.RankLog(o.World.Rank)}
		note := func(text string) { _ = events.Write(metrics.Event{Note: &metrics.Note{Text: text}}) }
		// Catch signals until the program's end is recorded. Another rank that noticed it may have
		// this one ended meanwhile, and then the record would not show which ended first.
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP)
		defer signal.Stop(signals)
		heard := func(s os.Signal) {
			// At once: this process may be killed before the program has ended,
			// and what it knew would be taken for a node's that failed.
			note("signal " + s.String() + " came")
		}
		if starts {
			code, why = run(f, program, &written, signals, heard)
		} else {
			code, why = await(o.Run, o.World.Restart, signals, heard)
		}
		if code == 0 && starts && f.StartsUsers(point) {
			// A program that handles SIGTERM may exit with 0, and a shell continues after its child
			// was killed: in both cases the measurement may be incomplete.
			if by := toldToEnd(o.Run, signals, strings.TrimPrefix(why, "after ")); by != "" {
				code, why = 128+int(syscall.SIGTERM), fmt.Sprintf("told to end (%s), it exited with 0; what it measured may be cut short", by)
			}
		}
		if ran := time.Since(begun).Seconds(); starts && f.StartsUsers(point) && code == 0 {
			_ = events.Write(metrics.Event{Figure: &metrics.Figure{Name: metrics.FigureRunSeconds, Value: ran, Unit: "s", Better: "lower"}})
		}
		sampler.end()
		// Beside the end of the measurement, and before another one begins.
		if left := endBelow(func(int) bool { return false }).String(); left != "" {
			note(left)
		}
		if f.StartsUsers(point) && code == 0 && o.World.Rank == framework.Printer(point) {
			if err := collect(program, written, begun); err != nil {
				code, why = 1, err.Error()
			}
		}
		for _, item := range hold {
			item.Release()
		}
	}
	// Nothing in what a killed program printed says which of several it was.
	if strings.HasPrefix(why, "killed by ") && o.World.Size > 1 {
		of := "rank"
		if perNode {
			of = "node"
		}
		why = fmt.Sprintf("%s %d was %s", of, o.World.Rank, why)
	}
	stop := metrics.Stop{Status: metrics.StopDone, Cause: redact.Known(slices.Concat(point.Secrets(), redact.Variables(os.Environ())))(why)}
	if code != 0 {
		stop.Status = metrics.StopFailed
	}
	return code, events.Write(metrics.Event{Stop: &stop})
}

// run starts the program and waits for it, passing signals on as they come; heard is
// told of the first. It notes where in the log the program's own output begins.
func run(f framework.Framework, s framework.Rank, o *output, signals <-chan os.Signal, heard func(os.Signal)) (code int, why string) {
	w, arguments, users := s.World, f.Started(s), f.StartsUsers(s.Point)
	log, err := os.OpenFile(o.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return 1, err.Error()
	}
	defer log.Close()
	// The log is often sent to others: its first line shows no secret.
	shown := s
	shown.Point.Seal(nil)
	fmt.Fprintf(log, "# %s rank %d of %d, incarnation %d: %s\n", time.Now().Format(time.RFC3339), w.Rank, w.Size, w.Restart, strings.Join(redact.Key(nil).Arguments(f.Started(shown)), " "))
	if info, err := log.Stat(); err == nil {
		o.offset = info.Size()
	}

	if err := AdoptOrphans(); err != nil {
		return 1, fmt.Sprintf("cannot adopt the program's daemons: %v", err)
	}
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = append(os.Environ(), w.Environ()...)
	if f.OncePerNode(s.Point) {
		cmd.Env = world.WithoutRank(cmd.Env)
	}
	if f.Once(s.Point) && w.JobID != "" {
		cmd.Env = w.WholeJob(cmd.Env, s.Point.Resources.CPUsPerWorker, s.Point.Resources.MPI)
	}
	cmd.Env = append(cmd.Env, supervisorMark(), framework.RunVariable+"="+s.Run.Path(), framework.DataVariable+"="+s.Point.Data.Path)
	if s.Python != "" {
		cmd.Env = append(cmd.Env, framework.PythonVariable+"="+s.Python)
	}
	if f.Environment != nil {
		cmd.Env = append(cmd.Env, f.Environment(s)...)
	}
	if f.Directory != nil {
		cmd.Dir = f.Directory(s)
	}
	if f.UserProgram {
		if err := makeOutput(s.Run.Output(), cmd.Dir); err != nil {
			return 1, err.Error()
		}
		if framework.Resumes(s.Point.Command) {
			if err := os.MkdirAll(s.Run.Checkpoints(), 0o755); err != nil {
				return 1, err.Error()
			}
		}
	}
	cmd.Stdout, cmd.Stderr = log, log
	// Its own process group, so that a signal reaches what it starts; and it
	// dies with us, so that a killed supervisor leaves no orphan on the node.
	// Pdeathsig is the thread's death, hence the lock.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 127, notStarted(arguments[0], cmd.Dir, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ended := make(chan os.Signal, 1) // some child, the program or an orphan of its
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)

	var received os.Signal
	var kill <-chan time.Time
	for {
		select {
		case s := <-signals:
			if users && s == syscall.SIGUSR1 {
				continue // it would end a program that knows nothing of it, before its time
			}
			if received == nil {
				kill = time.After(Grace)
			}
			// USR1 is the scheduler's early warning; the program hears of both
			// as it came. A program that is gone needs no signal.
			_ = syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal))
			// A stopped process handles no signal before it continues.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
			if received == nil {
				received = s
				heard(s)
			}
		case <-ended:
			reapChildren(func(pid int) bool { return pid == cmd.Process.Pid }) // which Wait does
		case <-kill:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case err := <-done:
			code, why = outcome(err, *o)
			if received != nil {
				why = strings.TrimPrefix(why+"; after "+received.String(), "; ")
			}
			return code, why
		}
	}
}

// sameWork reports whether a process with these variables was started for a run
// of the same study, or in the same job.
func sameWork(v map[string]string, run rundir.Folder, getenv func(string) string) bool {
	job := getenv("SLURM_JOB_ID")
	return job != "" && v["SLURM_JOB_ID"] == job || v[framework.RunVariable] != "" && filepath.Dir(v[framework.RunVariable]) == filepath.Dir(run.Path())
}

// makeOutput makes the run's output folder, and the folder in which the program
// starts where that is below it.
func makeOutput(output, start string) error {
	if err := os.Mkdir(output, 0o755); err != nil && !errors.Is(err, os.ErrExist) { // the run folder is there, or gone
		return err
	}
	if below, err := filepath.Rel(output, start); err == nil && filepath.IsLocal(below) {
		return os.MkdirAll(start, 0o755)
	}
	return nil
}
