package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/table"
)

type adviseOptions struct {
	curveOptions
	wish      query.Wish
	deadline  time.Duration
	limits    map[string]*time.Duration // by percentile; they replace the study's
	resources cli.StringSlice           // keys
	target    targetFlag
}

// asked returns the user's requirements for the advice, as set by options.
func (o *adviseOptions) asked() query.Wish {
	w := o.wish
	w.Question, w.Resources = o.question(), o.resources.Value()
	w.Options.Deadline, w.Options.Target = o.deadline.Seconds(), o.target.Target
	return w
}

func adviseCommand(s *session) *cli.Command {
	o := adviseOptions{wish: query.Wish{Loss: sensitivity.Usual}, limits: map[string]*time.Duration{}}
	return &cli.Command{
		Name:      "advise",
		Usage:     "recommend a number of workers, with reasons",
		ArgsUsage: "STUDY [STUDY...]",
		Description: "By default the answer is the measured worker count that no other beats: each doubling\n" +
			"of the workers must reach the target 1.4 times as fast. Without a target, it must\n" +
			"bring 1.4 times the throughput. Without an answer the exit code is 5. If some runs\n" +
			"cannot be read, the answer is provisional and the exit code is 3.\n" +
			"\n" +
			"The table shows the measured worker counts, doublings and the answer; -v shows all.\n" +
			"With several series it shows the answer of each; --series NAME shows the candidates of\n" +
			"one.\n" +
			"\n" +
			"--spec asks how much of each resource is enough, in a study that sweeps\n" +
			"cpus_per_worker, memory, variant or data.path. With several studies it prints a row\n" +
			"for each and, with prices, the machine that is enough for all.",
		Flags: append(slices.Concat(o.wishFlags(), o.limitFlags(), o.flags()), siteFlag(&o.wish.Site),
			&cli.StringFlag{Name: "currency", Destination: &o.wish.Currency, DefaultText: "the first price's", Usage: "prices in `CURRENCY` only"},
			&cli.StringFlag{Name: "market", Destination: &o.wish.Market, Value: cost.OnDemand, Usage: "prices on `MARKET` only: " + strings.Join(cost.Markets, ", ")}),
		Action: func(c *cli.Context) error {
			o.Study = c.Args().First()
			if err := wished(c); err != nil {
				return err
			}
			if o.wish.Spec && c.NArg() > 1 {
				return advisePhases(c.Context, s, o, c.Args().Slice())
			}
			if o.wish.Spec {
				return adviseSpec(c.Context, s, o)
			}
			if c.NArg() > 1 {
				return usagef("several studies go with --spec; ask about one at a time")
			}
			for _, name := range []string{"loss", "resource"} {
				if c.IsSet(name) {
					return usagef("--%s goes with --spec", name)
				}
			}
			if o.Measure != "" && c.IsSet("rate") {
				return usagef("--rate asks about a service's rate within its limit, and --measure about another figure; leave one out")
			}
			limit, err := o.within(c)
			if err != nil {
				return err
			}
			if o.wish.Limit = limit; c.IsSet("rate") {
				return adviseRate(c.Context, s, o)
			}
			return runAdvise(c.Context, s, o)
		},
	}
}

// wishFlags returns the options that set requirements, such as a deadline.
func (o *adviseOptions) wishFlags() []cli.Flag {
	number := func(name, usage string, to *float64) cli.Flag {
		return &cli.Float64Flag{Name: name, Usage: usage, Destination: to, DefaultText: "none"}
	}
	return []cli.Flag{
		&cli.DurationFlag{Name: "deadline", Destination: &o.deadline, DefaultText: "none", Usage: "reach the target within `TIME` from the start, such as 2h or 90m"},
		number("budget", "reach the target for at most `AMOUNT`, in the currency of the prices", &o.wish.Options.Budget),
		&cli.GenericFlag{Name: "min-efficiency", Value: &shareFlag{&o.wish.Options.MinEfficiency}, DefaultText: "none", Usage: "keep an efficiency of `E` or more, such as 50% or 0.5"},
		&cli.GenericFlag{Name: "target", Value: &o.target, DefaultText: "the program's own, else the hardest that runs reached", Usage: "`TARGET` to reach: an accuracy such as 0.75, or loss=2"},
		number("samples", "train on `N` samples, instead of to a target", &o.wish.Options.Samples),
		number("rate", "for a service: find how many replicas handle `R` requests/s within the study's limit", &o.wish.Rate),
		&cli.BoolFlag{Name: "spec", Destination: &o.wish.Spec, DisableDefaultText: true, Usage: "ask how much of each resource is enough"},
		&cli.GenericFlag{Name: "loss", Value: &shareFlag{&o.wish.Loss}, DefaultText: "5%", Usage: "with --spec: an amount is enough if the throughput is at most `E` below that with the most of every resource, such as 5% or 0.05"},
		&cli.StringSliceFlag{Name: "resource", Destination: &o.resources, DefaultText: "those that differ", Usage: "with --spec: treat the parameter or label `KEY` as a resource; may be repeated"},
		&cli.StringFlag{Name: "measure", Aliases: []string{"m"}, Destination: &o.Measure, DefaultText: "time or throughput, or what a service carries", Usage: "decide by the `MEASURE`; with --spec, the measure that may lose at most --loss"},
	}
}

// latencyNames explains the first parts of words of measure.Percentiles.
var latencyNames = map[string]string{
	"ttft": "time to first token (TTFT)",
	"ttfo": "time to first output token after the reasoning (TTFO)",
	"tpot": "time per output token (TPOT)",
	"itl":  "inter-token latency (ITL)",
}

// limitFlags returns the options that replace the study's limit, one for each percentile.
func (o *adviseOptions) limitFlags() []cli.Flag {
	var list []cli.Flag
	for _, word := range measure.Percentiles() {
		to := new(time.Duration)
		of := "latency"
		if family, _, found := strings.Cut(word, "_"); found {
			of = latencyNames[family]
		}
		o.limits[word] = to
		list = append(list, &cli.DurationFlag{Name: limitFlag(word), Destination: to, DefaultText: "the study's limit",
			Usage: "with --rate: limit this percentile of the " + of + " to `TIME`"})
	}
	return list
}

func limitFlag(word string) string { return strings.ReplaceAll(word, "_", "-") }

// within returns the latency limit that the options set; nil: use the study's limit.
func (o *adviseOptions) within(c *cli.Context) (*measure.Limit, error) {
	var words []string
	for _, word := range measure.Percentiles() {
		if !c.IsSet(limitFlag(word)) {
			continue
		}
		if !c.IsSet("rate") {
			return nil, usagef("--%s is for services: with --rate R it asks how many replicas carry R requests/s within it", limitFlag(word))
		}
		words = append(words, word+"="+o.limits[word].String())
	}
	if words == nil {
		return nil, nil
	}
	limit, err := measure.ParseLimit(strings.Join(words, " "))
	if err != nil {
		return nil, &usageError{err: err}
	}
	return &limit, nil
}

// wished returns an error if an option that sets a requirement has the value 0.
func wished(c *cli.Context) error {
	for _, name := range []string{"deadline", "budget", "min-efficiency", "samples", "rate"} {
		share, _ := c.Generic(name).(*shareFlag)
		if c.IsSet(name) && (share == nil || *share.to == 0) && c.Float64(name) == 0 && c.Duration(name) == 0 {
			return usagef("--%s must be above 0, or left out", name)
		}
	}
	return nil
}

func runAdvise(ctx context.Context, s *session, o adviseOptions) error {
	a, err := s.reader().Advise(ctx, o.asked())
	if err != nil {
		return err
	}
	if err := s.printAdvice(a); err != nil {
		return err
	}
	s.warnOn(a.Analysis, s.forPeople() && len(a.Advice) == 1 && a.Advice[0].Workers != nil, advice.Warnings(a.Advice)...)
	if !slices.ContainsFunc(a.Advice, func(a *advice.Advice) bool { return a.Workers != nil }) {
		return errUndecided
	}
	return nil
}

// printAdvice prints the advice of one series for people. For several, it prints the best
// answer and a table, and with --verbose each series' own advice.
func (s *session) printAdvice(a *query.Advised) error {
	list := a.Advice
	switch s.format {
	case table.FormatJSON:
		return s.printJSON(a.Whole())
	case table.FormatCSV:
		return s.print(report.AdviceData(list))
	}
	if len(list) > 1 {
		answers := report.Answers(a.Curves, list, a.Wish)
		if !s.verbose {
			answers.Notes = append(answers.Notes, "The candidates of one series: --series NAME; of every series: -v.")
		}
		best := cmp.Or(report.Best(list, a.Wish), "No configuration can be recommended; the reasons are below.")
		if err := s.printSentences(best, answers); err != nil || !s.verbose {
			return err
		}
	}
	for i, one := range list {
		sentences := one.Sentences()
		if len(list) > 1 {
			sentences = one.Series + ": " + sentences
		}
		if i > 0 || len(list) > 1 {
			fmt.Fprintln(s.stdout)
		}
		if len(one.Candidates) == 0 { // a table would have no rows
			if _, err := fmt.Fprintln(s.stdout, s.sentences(sentences)); err != nil {
				return err
			}
			continue
		}
		if err := s.printSentences(sentences, report.Advice(one, s.verbose)); err != nil {
			return err
		}
	}
	return nil
}

// adviseRate prints how many replicas of a service are needed for a demand (--rate,
// requests/s).
func adviseRate(ctx context.Context, s *session, o adviseOptions) error {
	a, err := s.reader().Replicas(ctx, o.asked())
	if err != nil {
		return err
	}
	if s.format == table.FormatJSON {
		err = s.printJSON(a.Answers)
	} else if t, sentence := report.Rates(a.Answers, a.Load, a.Currency, s.forPeople()); sentence == "" {
		err = s.print(t)
	} else {
		err = s.printSentences(sentence, t)
	}
	if err != nil {
		return err
	}
	s.warnOn(a.Analysis, false)
	if a.Answers[0].Replicas == 0 { // those without an answer come last
		return errUndecided
	}
	return nil
}
