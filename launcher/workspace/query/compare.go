package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/slurm"
)

// A Comparison is a request to compare two sets of runs, A and B.
type Comparison struct {
	Selection        // applies to both sets
	A, B      string // each a study, or commit:HASH, files:DIGITS, date:FROM..TO, where:CONDITION
	Metric    string
	Site      string   // site file with the prices for the cost of a million answers; "" for the studies' own
	At        []string // KEY=VALUE, such as one load of runs that measure several
	Mix       bool
	Judge     bool // a verdict (better or worse) is requested, so it must be known which direction is better
}

// Compared is a comparison of two sets of runs.
type Compared struct {
	*compare.Comparison
	Measure  measure.Measure
	Warnings []string
	Lines    []string // shell commands that measure both sets again; nil if that is impossible
}

// MoreRepeats is the number of new runs per point that a comparison suggests. It suffices for an
// interval, and for a verdict on up to 23 points at once.
const MoreRepeats = 6

// comparedMeasure returns the measure with this name; priced sets the currency of a cost.
func comparedMeasure(ctx context.Context, db *store.Store, name string) (measure.Measure, error) {
	for _, m := range measure.PerMillion("") {
		if m.Name == name {
			return m, nil
		}
	}
	return FindMeasure(ctx, db, name)
}

// side returns the runs of one side, of which there is at least one, and warnings.
func (r *Reader) side(ctx context.Context, db *store.Store, text string, filter store.Filter) (list []scaling.Observation, warnings []string, err error) {
	if list, warnings, err = db.Select(ctx, filter); err != nil {
		return nil, nil, workspace.StoreError(err)
	}
	if len(list) == 0 {
		return nil, nil, &workspace.Error{Err: fmt.Errorf("no good run belongs to %s", text), Hint: "`scalebench runs` lists all runs."}
	}
	if filter.Study != "" {
		_, err = r.unread(ctx, db, filter.Study, filter.Study, list)
	}
	return list, warnings, err
}

// Compare compares the medians of two sets of runs, point by point. Its result includes the
// commands that would measure both sets again.
func (r *Reader) Compare(ctx context.Context, o Comparison) (*Compared, error) {
	db, common, err := r.OpenFor(o.Selection)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	c := &Compared{}
	if c.Measure, err = comparedMeasure(ctx, db, o.Metric); err != nil {
		return nil, err
	}
	if err := directed(o.Judge, c.Measure); err != nil {
		return nil, err
	}
	at, err := conditionsOf("--at", o.At)
	if err != nil {
		return nil, err
	}
	var sides [2][]scaling.Observation
	again := true // whether new runs would belong to the same two sets
	for i, text := range []string{o.A, o.B} {
		filter, err := sideOf(ctx, db, common, text, time.Now())
		if err != nil {
			return nil, err
		}
		again = again && filter.Commit == "" && filter.Files == "" && filter.Since.Equal(common.Since) && filter.Until.Equal(common.Until)
		list, more, err := r.side(ctx, db, text, filter)
		if err != nil {
			return nil, err
		}
		if list, err = r.priced(ctx, list, o, &c.Measure, i > 0); err != nil {
			return nil, err
		}
		if sides[i], err = scaling.FilterPositions(list, at); err != nil {
			return nil, &workspace.Error{Err: fmt.Errorf("--at: %s: %w", text, err)}
		}
		for _, w := range more {
			c.Warnings = append(c.Warnings, text+": "+w)
		}
	}
	list, err := lookedAt(ctx, db, slices.Concat(sides[0], sides[1]))
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	confidence, told := testLevel(list)
	c.Warnings = append(c.Warnings, told...)
	c.Comparison, err = compare.Runs(sides[0], sides[1], c.Measure, compare.Options{Mix: o.Mix, Confidence: confidence})
	if err != nil {
		return nil, &workspace.Error{Err: err}
	}
	if again && len(c.Comparison.Again) > 0 {
		scheduled := slices.ContainsFunc(slices.Concat(sides[0], sides[1]), func(o scaling.Observation) bool { return o.Job != "" })
		c.Lines, err = o.inTurns(ctx, db, c.Comparison.Again, scheduled)
	}
	return c, err
}

// priced adds the cost of a million answers to the runs of a set, if that is what is compared. It
// gives the measure its currency. second tells that the first set has been priced.
func (r *Reader) priced(ctx context.Context, list []scaling.Observation, o Comparison, m *measure.Measure, second bool) ([]scaling.Observation, error) {
	if m.Name != measure.CostPerMillion && m.Name != measure.CostPerMillionSamples {
		return list, nil
	}
	study := list[0].Study
	list, _, err := r.perMillion(ctx, list, Question{Study: study, Measure: m.Name, Prices: &o.Site}, study)
	if err != nil {
		return nil, err
	}
	priced, err := scaling.FindMeasure(list, m.Name)
	if err != nil {
		return nil, unanswered(err)
	}
	if second && priced.Unit != m.Unit {
		return nil, &workspace.Error{Err: fmt.Errorf("%s is in %s for %s and in %s for %s", m.Name, m.Unit, o.A, priced.Unit, o.B), Hint: "Give one site file with the prices of both: --site FILE."}
	}
	*m = priced
	return list, nil
}

// inTurns returns shell commands that measure both studies again and compare the new runs. The
// order is A, B, B, A and so on, so that a steady drift affects both equally. If both sets are in
// one study, each of its blocks contains both. The result is nil if a study has no file.
func (o *Comparison) inTurns(ctx context.Context, db *store.Store, studies []string, scheduled bool) ([]string, error) {
	begin := make([]string, len(studies)) // command that runs each study; the number of repeats is added at its end
	last := make([]int, len(studies))     // number of repeats that each study has so far
	for i, name := range studies {
		known, err := db.Study(ctx, name)
		if errors.Is(err, store.ErrNotFound) || err == nil && (known.Imported() || !workspace.Exists(known.File)) {
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
		command := []string{"scalebench", "run", workspace.Near(known.File)}
		if scheduled {
			command = []string{"scalebench", "submit", "--wait", workspace.Near(known.File)}
		}
		if begin[i], err = quoted(command); err != nil {
			return nil, err
		}
		begin[i] += " repeats="
	}
	line, err := o.command()
	if err != nil {
		return nil, err
	}
	lines := []string{"since=$(date -u +%FT%TZ)"}
	if studies[0] == studies[1] {
		lines = append(lines, begin[0]+strconv.Itoa(last[0]+MoreRepeats))
	} else {
		turn := func(side, more int) string { return fmt.Sprintf("%s$((%d+i))", begin[side], last[side]+more) }
		lines = append(lines,
			"for i in $(seq 1 2 "+strconv.Itoa(MoreRepeats)+"); do",
			"  "+turn(0, 0)+" && "+turn(1, 0)+" &&",
			"  "+turn(1, 1)+" && "+turn(0, 1)+" || break",
			"done")
	}
	return append(lines, line+` --since "$since"`), nil
}

// command returns the shell command for this comparison.
func (o *Comparison) command() (string, error) {
	words := []string{"scalebench", "compare", o.A, o.B}
	for _, option := range []struct{ name, value string }{{"framework", o.Framework}, {"where", o.Where}, {"measure", o.Metric}} {
		if option.value != "" && option.value != measure.Throughput {
			words = append(words, "--"+option.name, option.value)
		}
	}
	if o.Workers != 0 {
		words = append(words, "--workers", strconv.Itoa(o.Workers))
	}
	for _, at := range o.At {
		words = append(words, "--at", at)
	}
	if o.Mix {
		words = append(words, "--mix")
	}
	return quoted(words)
}

// quoted quotes the words for a shell and joins them with spaces.
func quoted(words []string) (string, error) {
	for i, word := range words {
		var err error
		if words[i], err = slurm.Quote(word); err != nil {
			return "", err
		}
	}
	return strings.Join(words, " "), nil
}
