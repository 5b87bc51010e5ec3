package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/clean"
)

type logsOptions struct {
	follow bool
	rank   int // -1: the one to look at first
	where  string
}

func logsCommand(s *session) *cli.Command {
	var o logsOptions
	return &cli.Command{
		Name:      "logs",
		Usage:     "print the output of a run's program, or follow it",
		ArgsUsage: "RUN",
		Description: "RUN is a run as `status` lists it, or a unique prefix of it; without an attempt, the\n" +
			"latest attempt. Without --rank it prints the log of the rank that failed first, else\n" +
			"of rank 0, else of the job (job.log), and says on standard error which. -f waits for\n" +
			"a run that has not started, and ends with the run. On a terminal colours are\n" +
			"removed. Secrets that the program has printed are shown.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing what is added, until the run has ended", Destination: &o.follow, DisableDefaultText: true},
			&cli.IntFlag{Name: "rank", Usage: "print the log of rank `N`", Value: -1, Destination: &o.rank, DefaultText: "the one that failed first, else 0"},
			whereFlag(&o.where),
		},
		Action: func(c *cli.Context) error {
			if c.IsSet("rank") && o.rank < 0 {
				return usagef("invalid --rank %d; ranks count from 0", o.rank)
			}
			return runLogs(c.Context, s, c.Args().First(), o)
		},
	}
}

func runLogs(ctx context.Context, s *session, name string, o logsOptions) error {
	attempts, err := s.attemptsAt(ctx, name, o.where)
	if err != nil {
		return err
	}
	latest := attempts[len(attempts)-1]
	look := func() (launcher.State, error) {
		// Read anew: it may have ended since.
		list, err := launcher.Attempts(latest.Run.Study())
		if err != nil {
			return launcher.State{}, err
		}
		i := slices.IndexFunc(list, func(a *launcher.Attempt) bool { return a.Run == latest.Run })
		if i < 0 {
			return launcher.State{}, usagef("%s was removed", latest.Record.ID)
		}
		states, err := launcher.Survey(ctx, list[i:i+1])
		if len(states) == 0 {
			return launcher.State{}, err
		}
		return states[0], err
	}
	// Without the scheduler the folder says what it can.
	state, unreachable := look()
	if state.Attempt == nil {
		return unreachable
	}
	logOf := func() (string, error) {
		if o.rank >= 0 {
			return state.LogOf(o.rank)
		}
		log := state.Log()
		if o.follow && !state.Status.Terminal() && log == state.Run.JobLog() {
			return "", nil // its ranks have not begun; theirs is to be followed
		}
		return log, nil
	}
	log, err := logOf()
	if err != nil {
		return &usageError{err: err}
	}
	seen := time.Now()
	pause := time.Second
	if !state.Attached() { // a scheduler is asked seldom; its script's own record tells sooner
		pause = 30 * time.Second
	}
	over := func() bool {
		traces, err := launcher.ReadTraces(latest.Run)
		ended := err == nil && traces.Exit != nil
		if time.Since(seen) >= pause || ended && time.Since(seen) >= 2*time.Second {
			if now, err := look(); now.Attempt != nil && err == nil {
				state = now
			}
			seen = time.Now()
		}
		return state.Status.Terminal()
	}
	const interval = 250 * time.Millisecond
	if log == "" && o.follow {
		s.note("%s is %s; waiting for its log", latest.Record.ID, described(state))
	}
	for log == "" && o.follow && !over() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(interval):
		}
		if log, err = logOf(); err != nil {
			return &usageError{err: err}
		}
	}
	if log == "" { // it has ended: what the job said is all there is
		if log, err = logOf(); err != nil {
			return &usageError{err: err}
		}
	}
	if log == "" {
		yet, hint := " yet", "-f waits for it."
		if state.Status.Terminal() {
			yet, hint = "", "It ended before it printed anything."
		}
		return &usageError{err: fmt.Errorf("%s is %s and has no log%s", state.Record.ID, described(state), yet), hint: hint}
	}
	which := ""
	if n := len(attempts); n > 1 {
		which = fmt.Sprintf(", attempt %d of %d", latest.Number, attempts[n-1].Number)
	}
	s.note("%s%s: %s (%s)", latest.Record.ID, which, log, described(state))
	out := io.Writer(s.stdout)
	if onTerminal(s.stdout) {
		w := clean.NewWriter(s.stdout)
		defer w.Flush()
		out = w
	}
	if !o.follow {
		over = func() bool { return true }
	}
	if err := launcher.Follow(ctx, out, latest.Run, log, interval, over); err != nil {
		return err
	}
	if o.follow {
		s.note("%s: %s", latest.Record.ID, described(state))
	}
	return unreachable
}

// described is a run's status and, where it ended badly, why.
func described(state launcher.State) string {
	text := string(state.Status)
	if state.Detail != "" {
		text += ": " + state.Detail
	}
	return text
}

// attemptsAt are the attempts at the one run that a name means, in their order;
// with the attempt in the name it alone. A study's name means its one run for which
// the condition holds.
func (s *session) attemptsAt(ctx context.Context, name, where string) ([]*launcher.Attempt, error) {
	study, run, _ := strings.Cut(name, "/")
	if filepath.Ext(name) == ".toml" {
		study, run = name, ""
	}
	folders, err := s.workspace().Folders(ctx, study)
	if err != nil {
		return nil, err
	}
	all, err := launcher.Attempts(folders[0])
	if err != nil {
		return nil, err
	}
	if where != "" {
		states, _, err := s.workspace().Survey(ctx, all)
		if err != nil {
			return nil, err
		}
		chosen, err := workspace.Runs{States: states}.Where(ctx, where)
		if err != nil {
			return nil, err
		}
		all = nil
		for _, state := range chosen.States {
			all = append(all, state.Attempt)
		}
	}
	var meant []*launcher.Attempt
	var runs []string
	for _, exact := range []bool{true, false} {
		for _, a := range all {
			if exact && a.Named(run) || !exact && strings.HasPrefix(a.Run.Name(), run) {
				meant = append(meant, a)
				point := a.Run.Study().Run(a.Point.ID, a.Point.Repeat, 1).ID()
				if point = strings.TrimSuffix(point, "-a1"); !slices.Contains(runs, point) {
					runs = append(runs, point)
				}
			}
		}
		if len(meant) > 0 {
			break
		}
	}
	switch {
	case len(runs) == 0 && where != "":
		return nil, &usageError{err: fmt.Errorf("no run of %q matches --where %q", name, where), hint: fmt.Sprintf("`scalebench status %s` lists its runs.", filepath.Base(folders[0].Path()))}
	case len(runs) == 0:
		return nil, &usageError{err: fmt.Errorf("no run %q in %s", run, folders[0].Path()), hint: fmt.Sprintf("`scalebench status %s` lists its runs.", filepath.Base(folders[0].Path()))}
	case len(runs) > 1:
		const most = 5
		more := ""
		if len(runs) > most {
			more = fmt.Sprintf(", and %d more", len(runs)-most)
		}
		return nil, &usageError{err: fmt.Errorf("%q matches %d runs", name, len(runs)), hint: "Name one of them: " + strings.Join(runs[:min(most, len(runs))], ", ") + more}
	}
	return meant, nil
}
