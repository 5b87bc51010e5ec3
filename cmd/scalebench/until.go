package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// untilOptions configure measuring until a study's question is decided.
type untilOptions struct {
	on        bool
	most      int
	nodeHours float64
	by        string        // local time
	wish      adviseOptions // the question
	set       bool          // an option other than on was set
}

const untilCategory = "With --until-decided"

// flags returns the options of `run` and `submit` for measuring until the question is decided.
func (o *untilOptions) flags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "until-decided", Destination: &o.on, DisableDefaultText: true, Usage: "check the results after each batch of runs, and measure only what may still change the answer of advise"},
		&cli.Float64Flag{Name: "max-node-hours", Category: untilCategory, Destination: &o.nodeHours, DefaultText: "no limit", Usage: "stop before the study's runs take more than `N` node-hours"},
		&cli.StringFlag{Name: "stop-by", Category: untilCategory, Destination: &o.by, DefaultText: "no limit", Usage: "begin no batch after `TIME`, such as 2026-12-24T18:00"},
	}, o.questionFlags(untilCategory)...)
}

// questionFlags are the options for the question and the design.
func (o *untilOptions) questionFlags(category string) []cli.Flag {
	q := &o.wish
	q.wish.Loss = sensitivity.Usual
	return []cli.Flag{
		&cli.IntFlag{Name: "max-repeats", Category: category, Destination: &o.most, DefaultText: fmt.Sprint(sequential.Most), Usage: "at most `N` runs of each point"},
		&cli.DurationFlag{Name: "deadline", Category: category, Destination: &q.deadline, DefaultText: "none", Usage: "find the cheapest worker count that reaches the target within `TIME`, as advise does"},
		&cli.Float64Flag{Name: "budget", Category: category, Destination: &q.wish.Options.Budget, DefaultText: "none", Usage: "find the fastest worker count that costs at most `AMOUNT`, as advise does"},
		&cli.GenericFlag{Name: "min-efficiency", Category: category, Value: &shareFlag{&q.wish.Options.MinEfficiency}, DefaultText: "none", Usage: "find the most workers with an efficiency of `E` or more, as advise does"},
		&cli.GenericFlag{Name: "target", Category: category, Value: &q.target, DefaultText: "as in advise", Usage: "decide by the time to `TARGET`, such as 0.75"},
		&cli.StringFlag{Name: "compare", Category: category, Destination: &q.wish.Contrast, DefaultText: "worker counts", Usage: "instead of worker counts, compare the values of the swept `KEY`, such as framework"},
		&cli.BoolFlag{Name: "spec", Category: category, Destination: &q.wish.Spec, DisableDefaultText: true, Usage: "instead of worker counts, find how much of each swept resource is enough, as advise does"},
		&cli.GenericFlag{Name: "loss", Category: category, Value: &shareFlag{&q.wish.Loss}, DefaultText: "5%", Usage: "with --spec: an amount is enough if the throughput is at most `E` below that with the most of every resource, such as 5% or 0.05"},
		&cli.Float64Flag{Name: "rate", Category: category, Destination: &q.wish.Rate, DefaultText: "none", Usage: "for a service: find how many replicas handle `R` requests/s within the study's limit, as advise does"},
		&cli.StringFlag{Name: "measure", Aliases: []string{"m"}, Category: category, Destination: &q.Measure, DefaultText: "as in advise", Usage: "decide by the `MEASURE`"},
	}
}

// questionNames are the options that set the question.
var questionNames = []string{"deadline", "budget", "min-efficiency", "target", "measure", "compare", "spec", "loss", "rate"}

// question returns the options that set the question, by name; nil if it is the default one.
func (o *untilOptions) question() map[string]string {
	q, list := &o.wish, map[string]string{}
	add := func(name string, set bool, value any) {
		if set {
			list[name] = fmt.Sprint(value)
		}
	}
	add("deadline", q.deadline != 0, q.deadline)
	add("budget", q.wish.Options.Budget != 0, q.wish.Options.Budget)
	add("min-efficiency", q.wish.Options.MinEfficiency != 0, q.wish.Options.MinEfficiency)
	add("target", q.target.Target != nil, q.target.Target)
	add("measure", q.Measure != "", q.Measure)
	add("compare", q.wish.Contrast != "", q.wish.Contrast)
	add("spec", q.wish.Spec, true)
	add("loss", q.wish.Spec && q.wish.Loss != sensitivity.Usual, q.wish.Loss)
	add("rate", q.wish.Rate != 0, q.wish.Rate)
	if len(list) == 0 {
		return nil
	}
	if prices := q.deadline != 0 || q.wish.Options.Budget != 0; prices && q.wish.Site != "" {
		if site, err := filepath.Abs(q.wish.Site); err == nil {
			list["site"] = site
		}
	}
	return list
}

// askAgain sets the options that a recorded question had, unless the command line asks another one.
func (s *session) askAgain(c *cli.Context, question map[string]string) error {
	if len(question) == 0 || slices.ContainsFunc(questionNames, c.IsSet) {
		return nil
	}
	text := ""
	for _, name := range questionNames {
		value, recorded := question[name]
		if !recorded {
			continue
		}
		if err := c.Set(name, value); err != nil {
			return fmt.Errorf("looks.json: question.%s %q: %w", name, value, err)
		}
		text += " --" + name + " " + value
	}
	if site := question["site"]; !c.IsSet("site") && workspace.Exists(site) {
		if err := c.Set("site", site); err != nil {
			return err
		}
		text += " --site " + workspace.ShellQuote(workspace.Near(site))
	}
	s.note("question of the last look:%s", strings.ReplaceAll(text, "--spec true", "--spec"))
	return nil
}

// asked returns a request for the study, with the maximum number of repeats that the design allows.
func (o *untilOptions) asked(c *cli.Context, command *workspace.Command, site string) (workspace.Request, error) {
	words := c.Args().Slice()
	o.set = slices.ContainsFunc(append([]string{"max-repeats", "max-node-hours", "stop-by"}, questionNames...), c.IsSet)
	if err := wished(c); err != nil {
		return workspace.Request{}, err
	}
	o.wish.wish.Site = site // for its prices
	a, err := command.Request(site, words)
	if !o.on && !o.set || err != nil {
		return a, err
	}
	repeated := func(w string) bool { return strings.HasPrefix(w, "repeats=") || strings.HasPrefix(w, "study.repeats=") }
	if slices.ContainsFunc(a.Overrides, repeated) {
		return a, usagef("repeats and --until-decided; give one: --max-repeats limits the runs of each point")
	}
	a.Overrides = append(slices.Clone(a.Overrides), o.overrides()...)
	return a, nil
}

// overrides returns the keys that the options set.
func (o *untilOptions) overrides() (list []string) {
	if o.on {
		list = append(list, "study.repeats="+study.UntilDecided)
	}
	if o.most > 0 {
		list = append(list, fmt.Sprintf("study.max_repeats=%d", o.most))
	}
	if o.nodeHours > 0 {
		list = append(list, fmt.Sprintf("study.max_node_hours=%g", o.nodeHours))
	}
	if o.by != "" {
		list = append(list, fmt.Sprintf("study.stop_by=%q", o.by))
	}
	return list
}

// of reports whether the options or the study request to measure until its question is decided.
func (o *untilOptions) of(st *study.Study) (bool, error) {
	if o.set && !st.UntilDecided {
		return false, usagef("--max-repeats, --max-node-hours, --stop-by and a question go with --until-decided")
	}
	return st.UntilDecided, nil
}
