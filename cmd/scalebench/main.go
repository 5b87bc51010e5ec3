// Command scalebench measures how a training or service scales with the number of workers. It runs
// a study on this machine or with Slurm, stores the measurements, and presents the results.
//
// Each subcommand is one file with its options and a function. Commands only decide what to
// call and how to print it. The packages below launcher, metrics and slurm do the work;
// none of them prints or exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/internal/cmdline"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/redact"

	// Importing a backend registers it.
	_ "github.com/scalebench/scalebench/launcher/backend/local"
	_ "github.com/scalebench/scalebench/launcher/backend/slurm"
)

func main() {
	os.Exit(invoke(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// spareMemory makes the garbage collector let a large heap grow by less than by default, unless the environment sets
// GOGC: by a quarter, or by garbageRoom if that is more. Commands that hold a million runs, or a long log's figures,
// then need a third less memory. Login nodes are shared.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		afterCollection(nil)
	}
}

// garbageRoom is the number of bytes by which even a small heap may grow before a collection.
const garbageRoom = 64 << 20

// garbage is an object that nothing refers to. It has a pointer, because small objects without one share a block.
type garbage struct{ _ *garbage }

// afterCollection sets the growth of the heap until the next collection. As a finalizer, it runs after each.
func afterCollection(*garbage) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(int(min(400, max(25, 100*garbageRoom/max(1, live[0].Value.Uint64())))))
	runtime.SetFinalizer(new(garbage), afterCollection)
}

// invoke runs one command line and returns the exit code. A command that has started
// something ends in an orderly way at the first interrupt and immediately at the second;
// others end immediately. SIGTERM, SIGHUP (a closed terminal) and SIGQUIT act in the same
// way. Temporary files are removed.
func invoke(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) { // ignored under nohup
			signal.Notify(signals, sig)
		}
	}
	s := &session{stdin: stdin, stdout: stdout, stderr: stderr}
	ended := make(chan error, 1)
	go func() { ended <- guard(func() error { return run(ctx, s, args) }) }()
	var err error
	select {
	case err = <-ended:
	case sig := <-signals:
		signal.Stop(signals)
		cause := &interruptedError{signal: sig.(syscall.Signal)}
		cancel(cause)
		s.parts.Lock() // permanently: start no other part
		if err = cause; s.holds.Load() {
			s.parts.Unlock()
			if err = <-ended; exitCode(err) == exitInternal && !crashed(err) || errors.Is(err, context.Canceled) {
				err = cause // replaces other errors that the interrupt caused
			}
		}
	}
	if err != nil {
		complain(stderr, err)
	}
	return exitCode(err)
}

// run executes the command line args, whose first word is the program's name.
func run(ctx context.Context, s *session, args []string) error {
	if err := enoughFiles(); err != nil {
		return err
	}
	app := newApp(s)
	var words []string
	if len(args) > 1 {
		words = args[1:]
	}
	if len(words) > 0 && words[0] == completeCommand {
		return complete(s, app, words[1:])
	}
	line, err := cmdline.Read(app, words)
	if err != nil {
		return err
	}
	s.verbosely = line.Verbosely()
	return app.RunContext(ctx, append([]string{app.Name}, line.Words()...))
}

// fewestFiles is the lowest accepted limit of open files. A run with four workers on this
// machine needs about twenty; with fewer than eight, Go's runtime aborts.
const fewestFiles = 64

// enoughFiles returns an error for a limit at which commands would fail halfway.
func enoughFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= fewestFiles {
		return nil // the command will find out
	}
	return &usageError{err: fmt.Errorf("this shell allows %d open files, and scalebench needs %d", limit.Cur, fewestFiles),
		hint: "`ulimit -n 1024` raises the limit, as far as `ulimit -Hn` allows."}
}

// guard turns a panic into an error that says it is a bug.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return f()
}

// complain prints err with a remedy.
func complain(w io.Writer, err error) {
	message, hint := cmdline.Meant(err.Error(), hintFor(err))
	fmt.Fprintf(w, "%s: %s\n", appName, clean.Lines(redact.Text(message)))
	if hint != "" {
		fmt.Fprintln(w, clean.Lines(redact.Text(hint)))
	}
	if line := (*cmdline.Error)(nil); errors.As(err, &line) && line.Usage != "" {
		fmt.Fprintln(w, line.Usage) // our own text, so it is not searched for secrets
	}
}

// noExit prevents the command line library from exiting: exit.go alone decides exit codes.
func noExit(*cli.Context, error) {}
