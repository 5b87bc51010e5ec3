package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tests compiles and runs the tests of packages.
type tests struct {
	parallel int
	skip     string        // regular expression that matches tests to skip; "" skips none
	limit    time.Duration // time limit for the tests of each package
	scratch  string        // folder for overlays and programs

	module   module
	programs map[string]*program // by package
	all      string              // overlay with all mutants within functions
	progress io.Writer
}

// A program is the compiled tests of a package.
type program struct {
	pkg, path string
	reached   map[int]bool // numbers of the mutants whose function the tests call
	slow      []string     // tests that take longer than slowSeconds
}

// slowSeconds is the duration above which a test counts as slow. Slow tests are run only
// if a mutant survives all other tests.
const slowSeconds = 1

// A verdict says how the tests of a mutant ended.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
)

type outcome struct {
	verdict verdict
	by      string // which test or package failed, and how
}

func (o outcome) print(w io.Writer, m *mutant) {
	fmt.Fprintf(w, "%-8s  %s%s\n", o.verdict, m, o.detail())
	if o.verdict == survived {
		fmt.Fprintf(w, "          in  %s\n", m.code)
	}
}

func (o outcome) detail() string {
	if o.by == "" {
		return ""
	}
	return "  [" + o.by + "]"
}

// build compiles the tests of a package. It returns nil if the package has no tests.
func (t *tests) build(ctx context.Context, overlay, pkg, name string) (*program, error) {
	p := &program{pkg: pkg, path: filepath.Join(t.scratch, name)}
	command := t.command(ctx, overlay, "go", "test", "-c=true", "-vet=off", "-p", strconv.Itoa(t.parallel), "-o", p.path, pkg)
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the tests of %s do not compile: %w\n%s", pkg, err, tail(string(out)))
	}
	if _, err := os.Stat(p.path); err != nil {
		return nil, nil
	}
	return p, nil
}

// prepared returns the compiled tests of a package; nil if it has no tests. The first
// call compiles them, and runs them without a mutant to record which mutants they reach.
// It returns an error if a test fails, since that test would fail with every mutant.
func (t *tests) prepared(ctx context.Context, pkg string) (*program, error) {
	p, known := t.programs[pkg]
	if known {
		return p, nil
	}
	fmt.Fprintf(t.progress, "without a mutant: %s\n", pkg)
	p, err := t.build(ctx, t.all, pkg, fmt.Sprintf("%d.test", len(t.programs)))
	if err != nil {
		return nil, err
	}
	if t.programs[pkg] = p; p == nil {
		return nil, nil
	}
	reached := filepath.Join(t.scratch, "reached")
	command := t.program(ctx, p, "-test.v", "-test.skip="+t.skip)
	command.Env = append(command.Env, "MUTANTS_REACHED="+reached)
	out, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the tests of %s fail without any mutant; mend them first: %w\n%s", pkg, err, tail(string(out)))
	}
	for _, m := range passed.FindAllSubmatch(out, -1) {
		if seconds, err := strconv.ParseFloat(string(m[2]), 64); err == nil && seconds > slowSeconds {
			p.slow = append(p.slow, regexp.QuoteMeta(string(m[1])))
		}
	}
	p.reached, err = numbers(reached)
	return p, err
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\S+) \(([0-9.]+)s\)$`)

// numbers reads a file with one number per line, and removes it.
func numbers(path string) (map[int]bool, error) {
	set := map[int]bool{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return set, nil
	}
	for line := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		set[n] = true
	}
	return set, errors.Join(err, os.Remove(path))
}

// judge runs the tests that reach a mutant until one fails: the fast tests of all
// packages first, then the slow ones.
func (t *tests) judge(ctx context.Context, m *mutant, packages []string) (outcome, error) {
	var programs []*program
	for _, pkg := range packages {
		p, err := t.prepared(ctx, pkg)
		if err != nil {
			return outcome{}, err
		}
		if p != nil && p.reached[m.number] {
			programs = append(programs, p)
		}
	}
	return t.run(ctx, m, programs)
}

// judgeAlone compiles and runs the tests for a single mutant outside functions.
func (t *tests) judgeAlone(ctx context.Context, m *mutant, packages []string) (outcome, error) {
	overlay, err := t.overlayOf(m)
	if err != nil {
		return outcome{}, err
	}
	for _, pkg := range packages {
		p, err := t.prepared(ctx, pkg)
		if err != nil {
			return outcome{}, err
		}
		if p == nil {
			continue
		}
		alone, err := t.build(ctx, overlay, pkg, "alone.test")
		if err != nil {
			return outcome{}, err
		}
		alone.slow = p.slow
		if o, err := t.run(ctx, m, []*program{alone}); err != nil || o.verdict == killed {
			return o, err
		}
	}
	return outcome{verdict: survived}, nil
}

func (t *tests) run(ctx context.Context, m *mutant, programs []*program) (outcome, error) {
	for _, slow := range []bool{false, true} {
		for _, p := range programs {
			skip, only := t.skip, ""
			if names := "^(" + strings.Join(p.slow, "|") + ")$"; slow {
				only = names
			} else if p.slow != nil && skip != "" {
				skip += "|" + names
			} else if p.slow != nil {
				skip = names
			}
			if slow && p.slow == nil {
				continue
			}
			command := t.program(ctx, p, "-test.failfast", "-test.skip="+skip, "-test.run="+only)
			command.Env = append(command.Env, "MUTANT="+strconv.Itoa(m.number))
			out, err := command.CombinedOutput()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				return outcome{}, err
			}
			if err != nil {
				by := cause(string(out))
				if p.pkg != m.pkg {
					by = p.pkg + " " + by
				}
				return outcome{verdict: killed, by: by}, nil
			}
		}
	}
	return outcome{verdict: survived}, nil
}

// program returns the command that runs compiled tests in the folder in which the go
// command would run them. If the tests call the go command, it uses the code without
// mutants.
func (t *tests) program(ctx context.Context, p *program, args ...string) *exec.Cmd {
	command := t.command(ctx, "", p.path, append(args, "-test.short", "-test.timeout="+t.limit.String())...)
	command.Dir = t.module.folder(p.pkg)
	return command
}

// command returns the command that runs a program. If it is the go command, it uses the
// overlay; "" for none.
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

// cause returns the name of the test that failed, or how the tests ended if none failed
// by itself.
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
