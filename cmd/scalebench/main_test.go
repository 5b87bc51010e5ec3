package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// go test ./cmd/scalebench -update rewrites what the scripts compare with; read
// the difference before committing it.
var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// disguises maps other names of this program to what it does under them.
var disguises = map[string]func(){}

func TestMain(m *testing.M) {
	disguises["scalebench"] = func() { os.Exit(invokeAndCheck(os.Args)) }
	for _, name := range slurmtest.FakeCommands {
		disguises[name] = func() { os.Exit(slurmtest.FakeMain(name)) }
	}
	disguises["double-service"] = doubleService
	testscript.Main(sharing{m}, disguises)
}

// sharing runs the tests with a folder that all of them share.
type sharing struct{ m *testing.M }

func (s sharing) Run() int {
	var err error
	if built.dir, err = os.MkdirTemp("", "scalebench-programs"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(built.dir)
	// Signals that this process ignores (under nohup, or in a script's background) would also be
	// ignored by every program that it starts. With a handler, the programs have the
	// default.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	return s.m.Run()
}

// built holds the real programs, built once for all tests of a process.
var built struct {
	sync.Mutex
	dir string
}

// program returns the path of a real program: scalebench, scalebench-worker or
// scalebench-worker-gpu.
func program(t testing.TB, name string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	path := filepath.Join(built.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	source, onGPUs := strings.CutSuffix(name, "-gpu")
	build := exec.Command("go", "build", "-o", path)
	switch {
	case onGPUs:
		build.Args = append(build.Args, "-tags", "gpu,osusergo,netgo") // packages net and os/user as the other programs have them
	case name == "scalebench-worker":
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	build.Args = append(build.Args, module+"/cmd/"+source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// buildWorker returns the path of a real scalebench-worker for site files.
func buildWorker(t testing.TB) string {
	t.Helper()
	return program(t, "scalebench-worker")
}

// TestScript runs testdata/script/<verb>_<case>.txtar: the real command line in a separate
// process, in an empty folder.
//
// $WORKER is a real scalebench-worker, for site files, and $EXAMPLES the folder of
// the examples. Slurm's commands are the fakes, whose answers the script writes
// into the folder "slurm".
func TestScript(t *testing.T) {
	worker := buildWorker(t)
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": code, "measured": measured, "benchmarked": benchmarked, "agrees": agrees},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("NO_COLOR", "1")
			e.Setenv("XDG_CACHE_HOME", "none") // relative, so ignored: no command remembers warnings
			e.Setenv("TZ", "UTC")
			e.Setenv("WORKER", worker)
			e.Setenv("EXAMPLES", examples)
			e.Setenv(slurmtest.FakeVariable, e.WorkDir+"/slurm")
			if err := os.Mkdir(e.WorkDir+"/slurm", 0o755); err != nil {
				return err
			}
			e.Setenv("SCALEBENCH_DB", e.WorkDir+"/history.db")
			e.Setenv(refusedVariable, e.WorkDir+"/.refused")
			e.Defer(func() {
				if refused, err := os.ReadFile(e.WorkDir + "/.refused"); err == nil {
					e.T().Fatal("commands print these command lines, which are refused:\n" + string(refused))
				}
				if err := databasesAgree(e.WorkDir); err != nil {
					e.T().Fatal(err)
				}
			})
			return nil
		},
	})
}

// databasesAgree compares the view "scaling" of every database below dir with the curves that
// the commands print.
func databasesAgree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a script made it unreadable
		}
		file, err := os.Open(path)
		if err != nil {
			return nil
		}
		defer file.Close()
		head := make([]byte, 16)
		if n, _ := file.Read(head); string(head[:n]) != "SQLite format 3\x00" {
			return nil
		}
		_, err = viewsAgree(context.Background(), path)
		for _, unusable := range []error{store.ErrNotOurs, store.ErrNewer, store.ErrOlder, store.ErrUnusable, fs.ErrNotExist} {
			if errors.Is(err, unusable) {
				return nil // the script created it this way
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// agrees is databasesAgree for one database, with the expected number of compared points:
// "agrees db.sqlite 6".
func agrees(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: agrees DATABASE POINTS")
	}
	n, err := viewsAgree(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	if fmt.Sprint(n) != args[1] {
		ts.Fatalf("%d points compared, want %s", n, args[1])
	}
}

// code runs a program and compares its exit code: "code 2 scalebench plot".
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
