package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tests run the tests of packages.
type tests struct {
	parallel int
	skip     string        // regular expression of tests that are not run; "" runs all
	limit    time.Duration // for each package
	scratch  string        // folder for the overlay
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

// pass checks that every test passes on the code as it is: a test that fails anyway
// would kill every mutant.
func (t tests) pass(ctx context.Context, packages []goPackage, dependents map[string][]string, stderr io.Writer) error {
	var all []string
	for _, p := range packages {
		all = append(append(all, p.ImportPath), dependents[p.ImportPath]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	fmt.Fprintf(stderr, "testing %d packages as they are\n", len(all))
	if out, err := t.command(ctx, "", all...).CombinedOutput(); err != nil {
		return fmt.Errorf("tests fail without any mutant; mend them first: %w\n%s", err, tail(out))
	}
	return nil
}

// judge runs the tests of a mutant's package, then those of its dependents, until one
// fails.
func (t tests) judge(ctx context.Context, m mutant, dependents []string) (outcome, error) {
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
		out, err := t.command(ctx, overlay, pkg).CombinedOutput()
		if err == nil {
			continue
		}
		if bytes.Contains(out, []byte("[build failed]")) {
			return outcome{verdict: invalid}, nil
		}
		by := cause(string(out))
		if pkg != m.pkg {
			by = pkg + " " + by
		}
		return outcome{verdict: killed, by: by}, nil
	}
	return outcome{verdict: survived}, nil
}

// command runs short tests. Tests that call the go command themselves read the mutant
// too, through GOFLAGS.
func (t tests) command(ctx context.Context, overlay string, packages ...string) *exec.Cmd {
	p := strconv.Itoa(t.parallel)
	args := []string{"test", "-short", "-vet=off", "-failfast", "-p", p, "-timeout", t.limit.String()}
	if t.skip != "" {
		args = append(args, "-skip", t.skip)
	}
	command := exec.CommandContext(ctx, "go", append(args, packages...)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	command.Env = append(os.Environ(), "GOMAXPROCS="+p)
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
func tail(out []byte) []byte {
	const most = 4000
	return out[max(0, len(out)-most):]
}
