package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tests run the tests of packages.
type tests struct {
	parallel int
	skip     string        // regular expression of tests that are not run; "" runs all
	limit    time.Duration // for each package
	scratch  string        // folder for the overlay and the program of the tests

	module    module
	baselines map[string]*baseline // of packages
}

// A verdict is what the tests made of a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	invalid  verdict = "invalid" // it does not compile
)

type outcome struct {
	verdict verdict
	by      string // the test or package that failed, and how
}

func (o outcome) detail() string {
	if o.by == "" {
		return ""
	}
	return "  [" + o.by + "]"
}

// judge runs the tests of a mutant's package, then those of its dependents that execute
// the mutated statement, until one fails.
func (t *tests) judge(ctx context.Context, m mutant, dependents []string) (outcome, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return outcome{}, err
	}
	mutated := filepath.Join(t.scratch, "mutated.go")
	if err := os.WriteFile(mutated, m.apply(source), 0o600); err != nil {
		return outcome{}, err
	}
	overlay := filepath.Join(t.scratch, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: mutated}})
	if err != nil {
		return outcome{}, err
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return outcome{}, err
	}
	for _, pkg := range append([]string{m.pkg}, dependents...) {
		executes := t.baselines[pkg].executes(m)
		if !executes && pkg != m.pkg {
			continue
		}
		program := filepath.Join(t.scratch, "tests")
		if out, err := t.command(ctx, overlay, "go", "test", "-c", "-vet=off", "-p", strconv.Itoa(t.parallel), "-o", program, pkg).CombinedOutput(); err != nil {
			if pkg == m.pkg {
				return outcome{verdict: invalid}, nil
			}
			return outcome{}, fmt.Errorf("the tests of %s do not compile: %w\n%s", pkg, err, tail(string(out)))
		}
		if !executes {
			continue
		}
		if by := t.fail(ctx, overlay, program, pkg); by != "" {
			if pkg != m.pkg {
				by = pkg + " " + by
			}
			return outcome{verdict: killed, by: by}, nil
		}
	}
	return outcome{verdict: survived}, nil
}

// fail runs the fast tests of a program, then the slow ones, and returns the first that
// fails, or "".
func (t *tests) fail(ctx context.Context, overlay, program, pkg string) string {
	run := func(args ...string) string {
		args = append(args, "-test.short", "-test.failfast", "-test.timeout="+t.limit.String())
		command := t.command(ctx, overlay, program, args...)
		command.Dir = t.module.folder(pkg)
		if out, err := command.CombinedOutput(); err != nil {
			return cause(string(out))
		}
		return ""
	}
	if _, err := os.Stat(program); err != nil {
		return "" // no tests
	}
	defer os.Remove(program)
	slow := t.baselines[pkg].slow
	if len(slow) == 0 {
		return run("-test.skip=" + t.skip)
	}
	names := "^(" + strings.Join(slow, "|") + ")$"
	first := names
	if t.skip != "" {
		first = t.skip + "|" + names
	}
	if by := run("-test.skip=" + first); by != "" {
		return by
	}
	return run("-test.run="+names, "-test.skip="+t.skip)
}

// flags are those of go test for short tests.
func (t *tests) flags() []string {
	return []string{"-short", "-vet=off", "-failfast", "-p", strconv.Itoa(t.parallel), "-timeout", t.limit.String(), "-skip", t.skip}
}

// command runs a program. Tests that call the go command themselves read the mutant
// too, through GOFLAGS.
func (t *tests) command(ctx context.Context, overlay, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	command.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(t.parallel))
	if overlay != "" {
		command.Env = append(command.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	return command
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// cause names the test that failed, or how the package's tests ended without one.
func cause(out string) string {
	if strings.Contains(out, "panic: test timed out") || strings.Contains(out, "signal: killed") {
		return "time limit"
	}
	if m := failed.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return "crashed"
}

// tail returns the last lines of output.
func tail(out string) string {
	const most = 4000
	return out[max(0, len(out)-most):]
}
