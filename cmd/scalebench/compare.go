package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/slurm"
)

type compareOptions struct {
	selection
	a, b    string
	metric  string
	measure measure.Measure // that metric names
	at      cli.StringSlice // KEY=VALUE, a place within the runs
	limit   string          // of --fail-if-worse; "" for none
	mix     bool
}

func compareCommand(s *session) *cli.Command {
	var o compareOptions
	return &cli.Command{
		Name:      "compare",
		Usage:     "compare two sets of runs, point by point",
		ArgsUsage: "A B",
		Description: "A and B are each one of: a study (its name or file; study:NAME if a name is\n" +
			"ambiguous), commit:HASH, files:DIGITS (first digits of the SHA-256 of your own\n" +
			"file), date:FROM..TO (without TO itself; either may be left out) or a single day, or\n" +
			"where:CONDITION. Options that select runs apply to both.\n" +
			"\n" +
			"Ratios are B over A, with their 95 % interval. The verdict is better or worse if p\n" +
			"<= 0.05 over all points together (Mann-Whitney, Holm). That takes 4 runs a side for\n" +
			"one point, 5 for 2 to 6 points, 6 for up to 23. The verdict same means that these\n" +
			"runs show no difference. Runs of different programs (command.run) are only compared\n" +
			"with --mix.",
		Flags: append(o.flags(), mixFlag(&o.mix), atFlag(&o.at),
			metricFlag(&o.metric),
			&cli.StringFlag{Name: "fail-if-worse", Destination: &o.limit, Usage: "end with exit code 3 if a point's verdict is worse and B is worse by `PERCENT` or more, such as 5%, or if no point can be judged"}),
		Action: func(c *cli.Context) error {
			o.a, o.b = c.Args().Get(0), c.Args().Get(1)
			return runCompare(c.Context, s, o)
		},
	}
}

func runCompare(ctx context.Context, s *session, o compareOptions) error {
	limit, err := parsePercent(o.limit)
	if err != nil {
		return &usageError{err: fmt.Errorf("--fail-if-worse %q: %w", o.limit, err)}
	}
	db, common, err := s.openFor(&o)
	if err != nil {
		return err
	}
	defer db.Close()
	if o.measure, err = findMeasure(ctx, db, o.metric); err != nil {
		return err
	}
	if o.limit != "" && o.measure.Better == measure.Neither {
		return usagef("--fail-if-worse: %s has no better direction; set better = \"higher\" or \"lower\" where it is defined", o.measure.Name)
	}
	at, err := conditions("--at", o.at)
	if err != nil {
		return err
	}
	var sides [2][]scaling.Observation
	again := true // what the sets are holds for new runs too
	var warnings []string
	for i, text := range []string{o.a, o.b} {
		filter, err := sideOf(ctx, db, common, text, time.Now())
		if err != nil {
			return err
		}
		again = again && filter.Commit == "" && filter.Files == "" && filter.Since.Equal(common.Since) && filter.Until.Equal(common.Until)
		list, more, err := db.Select(ctx, filter)
		if err != nil {
			return workspace.StoreError(err)
		}
		if len(list) == 0 {
			return &usageError{err: fmt.Errorf("no good run belongs to %s", text), hint: "`" + appName + " runs` lists all runs."}
		}
		if list, err = scaling.Within(list, at); err != nil {
			return &usageError{err: fmt.Errorf("--at: %s: %w", text, err)}
		}
		sides[i] = list
		for _, w := range more {
			warnings = append(warnings, text+": "+w)
		}
	}
	r, err := compare.Runs(sides[0], sides[1], o.measure, compare.Options{Mix: o.mix})
	if err != nil {
		return &usageError{err: err}
	}
	if err := s.printEither(tables.Contrast(r, o.measure, o.a, o.b), tables.ContrastData(r, o.measure)); err != nil {
		return err
	}
	if r.OtherDays != "" && !s.forPeople() {
		warnings = append(warnings, r.OtherDays)
	}
	s.doubtAll(o.a+" "+o.b, warnings...)
	if again && len(r.Again) > 0 {
		lines, err := inTurns(ctx, db, r.Again, o, slices.ContainsFunc(slices.Concat(sides[0], sides[1]), func(o scaling.Observation) bool { return o.Job != "" }))
		if err != nil {
			return err
		}
		if len(lines) > 0 {
			s.note("To measure every point of both %s more times, alternating, and compare only the new runs:\n  %s", number.Exact(moreRepeats), strings.Join(lines, "\n  "))
		}
	}
	if len(r.OnlyA) > 0 {
		s.note("Only in %s: %s.", o.a, strings.Join(r.OnlyA, "; "))
	}
	if len(r.OnlyB) > 0 {
		s.note("Only in %s: %s.", o.b, strings.Join(r.OnlyB, "; "))
	}
	if o.limit == "" {
		return nil
	}
	if err := r.FailAt(limit); err != nil {
		return &worseError{err}
	}
	return nil
}

// moreRepeats is how many runs of each point a comparison is offered: enough for a
// verdict on up to 23 points, and for an interval.
const moreRepeats = 6

// inTurns are the lines for a shell that measure both studies again and compare the
// new runs: A, B, B, A and so on, so that what changes at a steady pace falls on
// both alike. One study has both sets in each of its blocks. Without lines, a study
// has no file that could be run.
func inTurns(ctx context.Context, db *store.Store, studies []string, o compareOptions, scheduled bool) ([]string, error) {
	words := func(list ...string) (string, error) {
		for i, word := range list {
			var err error
			if list[i], err = slurm.Quote(word); err != nil {
				return "", err
			}
		}
		return strings.Join(list, " "), nil
	}
	begin := make([]string, len(studies)) // of a study, for as many repeats as follow it
	last := make([]int, len(studies))     // repeats that it has
	for i, name := range studies {
		known, err := db.Study(ctx, name)
		if errors.Is(err, store.ErrNotFound) || err == nil && (known.Imported() || !exists(known.File)) {
			return nil, nil
		}
		if err != nil {
			return nil, workspace.StoreError(err)
		}
		runs, err := db.Runs(ctx, store.Filter{Study: name})
		if err != nil {
			return nil, workspace.StoreError(err)
		}
		for _, r := range runs {
			last[i] = max(last[i], r.Repeat)
		}
		command := []string{appName, "run", workspace.Near(known.File)}
		if scheduled {
			command = []string{appName, "submit", "--wait", workspace.Near(known.File)}
		}
		if begin[i], err = words(command...); err != nil {
			return nil, err
		}
		begin[i] += " repeats="
	}
	compare := []string{appName, "compare", o.a, o.b}
	for _, option := range []struct{ name, value string }{{"framework", o.framework}, {"where", o.where}, {"metric", o.metric}} {
		if option.value != "" && option.value != measure.Throughput {
			compare = append(compare, "--"+option.name, option.value)
		}
	}
	if o.workers != 0 {
		compare = append(compare, "--workers", strconv.Itoa(o.workers))
	}
	for _, at := range o.at.Value() {
		compare = append(compare, "--at", at)
	}
	if o.mix {
		compare = append(compare, "--mix")
	}
	line, err := words(compare...)
	if err != nil {
		return nil, err
	}
	lines := []string{"since=$(date -u +%FT%TZ)"}
	if studies[0] == studies[1] {
		lines = append(lines, begin[0]+strconv.Itoa(last[0]+moreRepeats))
	} else {
		turn := func(side, more int) string { return fmt.Sprintf("%s$((%d+i))", begin[side], last[side]+more) }
		lines = append(lines,
			"for i in $(seq 1 2 "+strconv.Itoa(moreRepeats)+"); do",
			"  "+turn(0, 0)+" && "+turn(1, 0)+" &&",
			"  "+turn(1, 1)+" && "+turn(0, 1)+" || break",
			"done")
	}
	return append(lines, line+` --since "$since"`), nil
}

// parsePercent reads "5%" or "5 %" as a fraction; "" is 0.
func parsePercent(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	number, is := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !is || err != nil || !(x >= 0 && x <= 100) {
		return 0, errors.New("not a percentage; write it like 5%")
	}
	return x / 100, nil
}

var hexDigits = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

var looksLikeCommit = regexp.MustCompile(`^[0-9a-f]{7,64}(-dirty)?$`)

// sideOf is one set of runs as a filter, within what holds for both.
func sideOf(ctx context.Context, db *store.Store, f store.Filter, text string, now time.Time) (store.Filter, error) {
	kind, value, has := strings.Cut(text, ":")
	if !has || !slices.Contains([]string{"study", "commit", "files", "date", "where"}, kind) {
		studies, err := db.Studies(ctx)
		if err != nil {
			return f, workspace.StoreError(err)
		}
		known := slices.ContainsFunc(studies, func(r store.StudyRow) bool { return r.Study == text })
		value = text
		switch {
		case known || filepath.Ext(text) == ".toml":
			kind = "study"
		case looksLikeCommit.MatchString(text):
			kind = "commit"
		case strings.Contains(text, ".."):
			kind = "date"
		default:
			return f, &usageError{err: fmt.Errorf("%q is not a study with runs", text), hint: "Other sets of runs are written commit:HASH, files:DIGITS, date:FROM..TO or where:CONDITION."}
		}
	}
	clash := func(option string) error {
		return usagef("%s and --%s cannot be combined", text, option)
	}
	var err error
	switch kind {
	case "study":
		f.Study, err = workspace.StudyName(value)
	case "commit":
		if f.Commit != "" {
			return f, clash("commit")
		}
		if value == "" {
			return f, usagef("%q does not name a commit; write commit:HASH", text)
		}
		f.Commit = value
	case "files":
		if f.Files != "" {
			return f, clash("files")
		}
		if !hexDigits.MatchString(value) {
			return f, usagef("%q does not name a version of a file; write the first 4 or more digits of its SHA-256, like files:3f2a", text)
		}
		f.Files = value
	case "date":
		if !f.Since.IsZero() || !f.Until.IsZero() {
			return f, clash("since or --until")
		}
		from, to, is := strings.Cut(value, "..")
		if day, err := time.ParseInLocation(time.DateOnly, value, now.Location()); err == nil {
			f.Since, f.Until = day, day.AddDate(0, 0, 1)
			return f, nil
		}
		if !is || from == "" && to == "" {
			return f, usagef("%q is not a date range; write date:2026-11-01..2026-11-08, leave one of them out, or name one day", text)
		}
		if f.Since, err = parseSince(from, now); err == nil {
			f.Until, err = parseSince(to, now)
		}
		if err != nil {
			return f, &usageError{err: fmt.Errorf("%s: %w", text, err)}
		}
	case "where":
		if f.Where != "" {
			value = "(" + f.Where + ") AND (" + value + ")"
		}
		f.Where = value
	}
	return f, err
}
