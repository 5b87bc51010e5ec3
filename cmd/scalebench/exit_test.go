package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/workspace"
)

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("disk full"), 1},
		{&panicError{value: "index out of range"}, 1},
		{guard(func() error { panic(context.Canceled) }), 1},
		{usagef("no such study"), 2},
		{fmt.Errorf("check: %w", usagef("no such study")), 2},
		{&workspace.RunsFailed{Failed: 1, Total: 3}, 3},
		{&checksFailedError{failed: 1, total: 3}, 3},
		{&schedulerError{err: errors.New("connection refused")}, 4},
		{fmt.Errorf("submit: %w", &schedulerError{err: errors.New("connection refused")}), 4},
		{fmt.Errorf("run: %w", context.Canceled), 130},
		// If the cluster became unreachable, its exit code takes precedence over failed runs.
		{errors.Join(&workspace.RunsFailed{Failed: 1, Total: 3}, &schedulerError{err: errors.New("gone")}), 4},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("exitCode(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}

func TestReport(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&usageError{err: errors.New("no base"), hint: "Run it first."}, "scalebench: no base\nRun it first.\n"},
		{&workspace.RunsFailed{Failed: 2, Total: 5, Hint: "See show RUN."}, "scalebench: 2 of 5 runs failed\nSee show RUN.\n"},
		{&workspace.RunsFailed{Cancelled: 5, Total: 6, Hint: "Retry."}, "scalebench: 5 of 6 runs cancelled\nRetry.\n"},
		{&workspace.RunsFailed{Failed: 5, Total: 6, Cause: "exit code 1", Share: 5}, "scalebench: 5 of 6 runs failed, all for one reason: exit code 1\n"},
		{&workspace.RunsFailed{Failed: 5, Cancelled: 1, Total: 6, Cause: "exit code 1", Share: 3}, "scalebench: 5 of 6 runs failed, 1 cancelled, 3 for one reason: exit code 1\n"},
		{&workspace.RunsFailed{Failed: 1, Cancelled: 2, Total: 6}, "scalebench: 1 of 6 runs failed, 2 cancelled\n"},
		{errors.New("first\nsecond \x1b[31m"), "scalebench: first\nsecond \\x1b[31m\n"},
	} {
		var b bytes.Buffer
		complain(&b, test.err)
		if b.String() != test.want {
			t.Errorf("got %q, want %q", b.String(), test.want)
		}
	}
}

// A panic is reported as our bug, with its location.
func TestPanicIsReported(t *testing.T) {
	err := guard(func() error {
		var none []int
		return fmt.Errorf("%d", none[3])
	})
	var b bytes.Buffer
	complain(&b, err)
	for _, want := range []string{"scalebench: this is a bug in scalebench: runtime error: index out of range", "Please report it", "exit_test.go:"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
}

// An interrupt, which takes the lock of a command's parts, waits for a file that is being
// written: no temporary file remains.
func TestInterruptWaitsForAFile(t *testing.T) {
	dir, s := t.TempDir(), &session{}
	content := make([]byte, 8<<20)
	for range 10 {
		written := make(chan error, 1)
		go func() { written <- s.put(filepath.Join(dir, "report.html"), content) }()
		for done := false; !done; {
			select {
			case err := <-written:
				if err != nil {
					t.Fatal(err)
				}
				done = true
			default:
			}
			if !s.parts.TryLock() {
				continue
			}
			list, err := os.ReadDir(dir)
			s.parts.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				if e.Name() != "report.html" {
					t.Fatalf("%s is left where an interrupt ends the command", e.Name())
				}
			}
		}
	}
}
