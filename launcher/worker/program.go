package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics/redact"
)

// run starts the program and waits for it, passing signals on as they come; heard is called
// with the first. It records where in the log the program's output begins.
func run(f framework.Framework, s framework.Rank, o *output, signals <-chan os.Signal, heard func(os.Signal)) (code int, why string) {
	log, err := openLog(f, s, o)
	if err != nil {
		return 1, err.Error()
	}
	defer log.Close()
	if err := AdoptOrphans(); err != nil {
		return 1, fmt.Sprintf("cannot adopt the program's daemons: %v", err)
	}
	cmd := command(f, s)
	if f.UserProgram {
		if err := makeFolders(s, cmd.Dir); err != nil {
			return 1, err.Error()
		}
	}
	cmd.Stdout, cmd.Stderr = log, log
	// A separate process group, so that a signal reaches the program's children. The program dies with this
	// process, so that a killed supervisor leaves no orphan on the node. Pdeathsig fires when the thread ends,
	// so lock it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 127, notStarted(cmd.Args[0], cmd.Dir, err)
	}
	received, err := wait(cmd, f.StartsUsers(s.Point), signals, heard)
	code, why = outcome(err, *o)
	if received != nil {
		why = strings.TrimPrefix(why+"; after "+received.String(), "; ")
	}
	return code, why
}

// openLog opens the program's log and writes a first line with its command. Logs are often
// sent to others, so the line shows no secret.
func openLog(f framework.Framework, s framework.Rank, o *output) (*os.File, error) {
	log, err := os.OpenFile(o.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	w, shown := s.World, s
	shown.Point.Seal(nil)
	fmt.Fprintf(log, "# %s rank %d of %d, incarnation %d: %s\n", time.Now().Format(time.RFC3339), w.Rank, w.Size, w.Restart, strings.Join(redact.Key(nil).Arguments(f.Started(shown)), " "))
	if info, err := log.Stat(); err == nil {
		o.offset = info.Size()
	}
	return log, nil
}

// command returns the program with its arguments, environment and folder.
func command(f framework.Framework, s framework.Rank) *exec.Cmd {
	w, arguments := s.World, f.Started(s)
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
	return cmd
}

// makeFolders makes the folders that a user's program writes to.
func makeFolders(s framework.Rank, start string) error {
	if err := makeOutput(s.Run.Output(), start); err != nil {
		return err
	}
	if framework.Resumes(s.Point.Command) {
		return os.MkdirAll(s.Run.Checkpoints(), 0o755)
	}
	return nil
}

// wait waits for the program's end, which err describes, and passes signals on to its process
// group. received is the first signal; nil for none. It kills a program that outlives received
// by Grace.
func wait(cmd *exec.Cmd, users bool, signals <-chan os.Signal, heard func(os.Signal)) (received os.Signal, err error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ended := make(chan os.Signal, 1) // a child: the program or an orphan of it
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)

	var kill <-chan time.Time
	for {
		select {
		case s := <-signals:
			// SIGUSR1 is the scheduler's early warning. It would end a user's program, which
			// does not know it, too early.
			if users && s == syscall.SIGUSR1 {
				continue
			}
			if received == nil {
				kill = time.After(Grace)
			}
			_ = syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal))
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT) // a stopped process handles no signal before it continues
			if received == nil {
				received = s
				heard(s)
			}
		case <-ended:
			reapChildren(func(pid int) bool { return pid == cmd.Process.Pid }) // Wait reaps the program
		case <-kill:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case err := <-done:
			return received, err
		}
	}
}

// makeOutput creates the run's output folder, and the program's working directory if it is below it.
func makeOutput(output, start string) error {
	if err := os.Mkdir(output, 0o755); err != nil && !errors.Is(err, os.ErrExist) { // the run folder exists, or was removed
		return err
	}
	if below, err := filepath.Rel(output, start); err == nil && filepath.IsLocal(below) {
		return os.MkdirAll(start, 0o755)
	}
	return nil
}
