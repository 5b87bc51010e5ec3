// Command mutants measures how many mistakes the tests detect (mutation testing). It
// makes small changes in the code, one at a time, and counts how many of these mutants
// make a test fail. `make mutants` runs it.
//
// Testing every mutant would take days, and no maintained tool tests a random sample of
// the mutants in chosen packages. All mutants of a sample are compiled together, once:
// each function begins with a switch that calls one of its mutated copies, which an
// environment variable selects. The working tree is never changed: the go command reads
// the mutated files through -overlay.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// numeric are the packages in which a mistake would give wrong numbers.
// metrics/scaling/internal is not among them, since only tests use it.
var numeric = []string{
	"./metrics/scaling", "./metrics/scaling/advice", "./metrics/scaling/capacity", "./metrics/scaling/decision",
	"./metrics/scaling/predict",
	"./metrics/scaling/sensitivity", "./metrics/scaling/sequential",
	"./metrics/measure", "./metrics/summary", "./metrics/extract", "./metrics/cost",
	"./launcher/study", "./slurm", "./slurm/notation",
}

const usage = `mutants draws random mutants of packages and runs their short tests on each.

  mutants [OPTION]... [PACKAGE]...

Without a package it draws from those that compute or parse figures. The same seed
draws the same mutants of the same code. If a package's own tests pass on a mutant,
those of the packages that import it and call the mutated function are run too,
except those of commands and of packages that start processes. A mutant that exceeds
the limit of time or memory counts as killed. Mutants that are listed in equivalent.txt
are counted apart.

`

// Limits for each process, since a mutant may loop forever or use all memory. The time
// is CPU time, which does not depend on the load of the machine.
const (
	memory    = 6 << 30
	processor = 2 * time.Minute
)

// limit sets the limits for this process; the processes that it starts inherit them.
func limit() error {
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}); err != nil {
		return fmt.Errorf("limiting memory to %d bytes: %w", memory, err)
	}
	seconds := uint64(processor / time.Second)
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}); err != nil {
		return fmt.Errorf("limiting processor time to %s: %w", processor, err)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := limit()
	if err == nil {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the settings from the command line.
type options struct {
	seed       uint64
	count      int
	at         string // FILE:LINE, or ""
	dependents bool
	list       bool // print the sample without testing it
	tests      tests
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the sample")
	flags.IntVar(&o.count, "n", 100, "number of mutants to test")
	flags.StringVar(&o.at, "at", "", "test every mutant of `FILE:LINE` instead of a sample")
	flags.BoolVar(&o.dependents, "dependents", true, "also run the tests of packages that import the mutated one")
	flags.BoolVar(&o.list, "list", false, "print the sample and test nothing; some of it may not compile")
	flags.StringVar(&o.tests.skip, "skip", "", "leave out tests that match this `REGEXP`; the rate is then a lower bound")
	flags.IntVar(&o.tests.parallel, "p", 1, "packages that the go command builds at once, and processors of a test")
	flags.DurationVar(&o.tests.limit, "limit", 10*time.Minute, "time limit for a package's tests; a mutant that exceeds it counts as killed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.count < 1 || o.tests.parallel < 1 {
		return fmt.Errorf("-n and -p must be at least 1, got %d and %d", o.count, o.tests.parallel)
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = numeric
	}
	packages, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	candidates, err := sitesOf(packages)
	if err != nil {
		return err
	}
	if o.at != "" {
		candidates = at(candidates, o.at)
		if len(candidates) == 0 {
			return fmt.Errorf("-at %s: no mutant there; give a file's path from the module's root and a line of code in it, such as metrics/scaling/ratio.go:41", o.at)
		}
		o.count = len(candidates)
	} else {
		candidates = sample(candidates, o.seed)
	}
	if o.list {
		for _, m := range candidates[:min(o.count, len(candidates))] {
			fmt.Fprintln(stdout, m)
		}
		return nil
	}
	return try(ctx, o, packages, candidates, stdout, stderr)
}

// try tests the first o.count candidates that compile, and prints the result. If it is
// interrupted, it prints the result for the mutants tested so far.
func try(ctx context.Context, o options, packages []goPackage, candidates []mutant, stdout, stderr io.Writer) error {
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	t := o.tests
	t.scratch, t.module, t.programs, t.progress = scratch, packages[0].Module, map[string]*program{}, stderr
	var dependents map[string][]string
	if o.dependents {
		if dependents, err = importers(ctx, packages); err != nil {
			return err
		}
	}
	var score tally
	chosen, outside, err := choose(ctx, &t, o.count, packages, candidates, &score, stdout)
	if err != nil {
		return err
	}
	// round tests mutants and returns those that survive and for which more reports
	// that other tests remain.
	round := func(what string, mutants []*mutant, by func(*mutant) []string, more func(*mutant) bool) (alive []*mutant, err error) {
		for i, m := range mutants {
			fmt.Fprintf(stderr, "%s %d/%d %s\n", what, i+1, len(mutants), m)
			judge := t.judge
			if slices.Contains(outside, m) {
				judge = t.judgeAlone
			}
			result, err := judge(ctx, m, by(m))
			if err != nil || ctx.Err() != nil {
				return nil, err
			}
			if result.verdict == survived && more(m) {
				alive = append(alive, m)
				fmt.Fprintf(stderr, "%s: alive\n", what)
				continue
			}
			score.add(m.pkg, result)
			result.print(stdout, m)
		}
		return alive, nil
	}
	alive, err := round("own tests", chosen, func(m *mutant) []string { return []string{m.pkg} },
		func(m *mutant) bool { return dependents[m.pkg] != nil })
	if err == nil {
		_, err = round("dependents", alive, func(m *mutant) []string { return dependents[m.pkg] },
			func(*mutant) bool { return false })
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	score.print(stdout)
	if tested := score.total().tested(); ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d mutants", tested, o.count)
	} else if o.at == "" && tested < o.count {
		return fmt.Errorf("%s have no more than %d mutants that compile, of the %d asked for", strings.Join(names(packages), ", "), tested, o.count)
	}
	return nil
}

// choose returns the first count candidates that compile and are not known to be equivalent.
// outside lists the chosen mutants that are outside functions.
func choose(ctx context.Context, t *tests, count int, packages []goPackage, candidates []mutant, score *tally, stdout io.Writer) (chosen, outside []*mutant, err error) {
	reasons, err := parseEquivalents(equivalents)
	if err != nil {
		return nil, nil, err
	}
	checked := map[*mutant]bool{} // mutants outside functions that were compiled
	for next := 0; ; {
		for ; len(chosen) < count && next < len(candidates); next++ {
			m := &candidates[next]
			m.number = next + 1
			if reason := reasons[m.key()]; reason != "" {
				score.equivalent++
				fmt.Fprintf(stdout, "%-8s  %s  [%s]\n", "same", m, reason)
				continue
			}
			chosen = append(chosen, m)
		}
		fmt.Fprintf(t.progress, "compiling %d mutants\n", len(chosen))
		var at map[place]*mutant
		if t.all, outside, at, err = t.withAll(packages, chosen); err != nil {
			return nil, nil, err
		}
		wrong, err := t.doNotCompile(ctx, packages, at)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range outside {
			if checked[m] {
				continue
			}
			ok, err := t.compiles(ctx, m)
			if err != nil {
				return nil, nil, err
			}
			if checked[m] = true; !ok {
				wrong = append(wrong, m)
			}
		}
		if len(wrong) == 0 {
			return chosen, outside, nil
		}
		score.invalid += len(wrong)
		chosen = slices.DeleteFunc(chosen, func(m *mutant) bool { return slices.Contains(wrong, m) })
	}
}
