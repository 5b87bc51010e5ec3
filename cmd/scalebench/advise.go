package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/pricing"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/table"
)

type adviseOptions struct {
	curveOptions
	site, currency, market string
	deadline               time.Duration
	rate                   float64                   // requests/s of a service
	limits                 map[string]*time.Duration // in place of the study's, by their words
	limit                  *measure.Limit            // of these; nil: the study's
	spec                   bool                      // how much of each resource is enough
	loss                   float64
	resources              cli.StringSlice // keys
	wish                   advice.Options
	target                 targetFlag
}

func adviseCommand(s *session) *cli.Command {
	o := adviseOptions{loss: sensitivity.Usual, limits: map[string]*time.Duration{}}
	return &cli.Command{
		Name:      "advise",
		Usage:     "recommend a number of workers, with reasons",
		ArgsUsage: "STUDY [STUDY...]",
		Description: "By default the answer is the measured worker count that no other beats: each\n" +
			"doubling must reach the target 1.4 times as fast or, without a target, bring 1.4\n" +
			"times the throughput. The answer has its probability. It is provisional if more runs\n" +
			"or a warning may change it. Without an answer the exit code is 5.\n" +
			"\n" +
			"--deadline asks for the cheapest count that meets it, --budget alone for the\n" +
			"fastest, --min-efficiency alone for the most workers. The table shows the measured\n" +
			"worker counts, doublings and the answer; -v shows all. With several series it shows\n" +
			"the answer of each, best first; --series NAME shows the candidates of one.\n" +
			"\n" +
			"--spec asks how much of each resource is enough, in a study that sweeps\n" +
			"cpus_per_worker, memory, variant or data.path. With several studies, such as a\n" +
			"training and a service, it prints a row for each and, with prices, the machine that\n" +
			"is enough for all.",
		Flags: append(slices.Concat(o.wishFlags(), o.limitFlags(), o.flags()), siteFlag(&o.site),
			&cli.StringFlag{Name: "currency", Destination: &o.currency, DefaultText: "the first price's", Usage: "prices in `CURRENCY` only"},
			&cli.StringFlag{Name: "market", Destination: &o.market, Value: cost.OnDemand, Usage: "prices on `MARKET` only: " + strings.Join(cost.Markets, ", ")}),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			if err := wished(c); err != nil {
				return err
			}
			if o.spec && c.NArg() > 1 {
				return advisePhases(c.Context, s, o, c.Args().Slice())
			}
			if o.spec {
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
			if o.measure != "" && c.IsSet("rate") {
				return usagef("--rate asks about a service's rate within its limit, and --measure about another figure; leave one out")
			}
			limit, err := o.within(c)
			if err != nil {
				return err
			}
			if o.limit = limit; c.IsSet("rate") {
				return adviseRate(c.Context, s, o)
			}
			return runAdvise(c.Context, s, o)
		},
	}
}

// wishFlags are what may be asked of the answer.
func (o *adviseOptions) wishFlags() []cli.Flag {
	number := func(name, usage string, to *float64) cli.Flag {
		return &cli.Float64Flag{Name: name, Usage: usage, Destination: to, DefaultText: "none"}
	}
	return []cli.Flag{
		&cli.DurationFlag{Name: "deadline", Destination: &o.deadline, DefaultText: "none", Usage: "reach the target within `TIME` from the start, such as 2h or 90m"},
		number("budget", "from start to target for at most `AMOUNT`, in the currency of the prices", &o.wish.Budget),
		&cli.GenericFlag{Name: "min-efficiency", Value: &shareFlag{&o.wish.MinEfficiency}, DefaultText: "none", Usage: "keep an efficiency of `E` or more, such as 50% or 0.5"},
		&cli.GenericFlag{Name: "target", Value: &o.target, DefaultText: "the program's own, else the hardest that runs reached", Usage: "`TARGET` to reach: an accuracy such as 0.75, or loss=2"},
		number("samples", "instead of a target: train on `N` samples", &o.wish.Samples),
		number("rate", "for a service: how many replicas carry `R` requests/s within the study's limit", &o.rate),
		&cli.BoolFlag{Name: "spec", Destination: &o.spec, DisableDefaultText: true, Usage: "ask how much of each resource is enough"},
		&cli.GenericFlag{Name: "loss", Value: &shareFlag{&o.loss}, DefaultText: "5%", Usage: "with --spec: enough means losing at most the share `E` of the throughput, such as 5% or 0.05"},
		&cli.StringSliceFlag{Name: "resource", Destination: &o.resources, DefaultText: "those that differ", Usage: "with --spec: treat the parameter or label `KEY` as a resource; may be repeated"},
		&cli.StringFlag{Name: "measure", Aliases: []string{"m"}, Destination: &o.measure, DefaultText: "time or throughput, or what a service carries", Usage: "decide by the `MEASURE`, such as one that the program reports with a better direction; with --spec, keep this measure"},
	}
}

// limitFlags are the percentiles that can be limited, in place of the study's limit.
func (o *adviseOptions) limitFlags() []cli.Flag {
	var list []cli.Flag
	for _, word := range measure.Percentiles() {
		to := new(time.Duration)
		o.limits[word] = to
		list = append(list, &cli.DurationFlag{Name: limitFlag(word), Destination: to, DefaultText: "the study's limit",
			Usage: "with --rate: this percentile within `TIME`"})
	}
	return list
}

func limitFlag(word string) string { return strings.ReplaceAll(word, "_", "-") }

// within is the limit that is asked for; nil: the study's.
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

// wished refuses a wish for nothing.
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
	adviser, err := o.adviser(ctx, s)
	if err != nil {
		return err
	}
	a, err := adviser.ask(ctx, s, o.curveOptions)
	if err != nil {
		return err
	}
	list, err := adviser.advise(ctx, s, a, o.study)
	if err != nil {
		return err
	}
	if err := s.printAdvice(a, list, adviser.wish); err != nil {
		return err
	}
	a.answered = s.forPeople() && len(list) == 1 && list[0].Workers != nil
	a.warn(s, advice.Doubts(list)...)
	if !slices.ContainsFunc(list, func(a *advice.Advice) bool { return a.Workers != nil }) {
		return errUndecided
	}
	return nil
}

// adviser is what was wished, with the prices for it.
type adviser struct {
	wish   advice.Options
	tariff *pricing.Tariff // nil without prices
}

// adviser refuses wishes that cannot be, before anything is read for them.
func (o *adviseOptions) adviser(ctx context.Context, s *session) (*adviser, error) {
	if !slices.Contains(cost.Markets, o.market) {
		return nil, usagef("--market %q is not known; valid: %s", o.market, strings.Join(cost.Markets, ", "))
	}
	v := &adviser{wish: o.wish}
	v.wish.Deadline, v.wish.Target = o.deadline.Seconds(), o.target.Target
	var err error
	if v.tariff, err = s.tariffOf(ctx, o.study, o.site, o.currency, o.market); err != nil && !errors.Is(err, pricing.ErrNone) {
		return nil, err
	}
	if v.tariff != nil {
		v.wish.Currency = v.tariff.Currency
		v.wish.Cost = func(int, int, float64) (float64, error) { return 0, nil } // that there are prices; each series has its own
	}
	if err := v.wish.Check(); err != nil {
		return nil, &usageError{err: err, hint: hintHelp(appName + " advise")}
	}
	return v, nil
}

// ask reads the curves that advice is made of: those of the measure that is asked for, or
// of what the kind of workload is advised by.
func (v *adviser) ask(ctx context.Context, s *session, o curveOptions) (*analysis, error) {
	if o.measure == "" {
		a, err := s.analyse(ctx, o)
		if err != nil || a.Kind.Trains {
			return a, err
		}
		if o.measure = a.Kind.Advises; o.measure == "" {
			return nil, a.nothing()
		}
	}
	var err error
	if v.wish.Figure, err = s.figure(ctx, o); err != nil {
		return nil, err
	}
	if err := v.wish.Check(); err != nil {
		return nil, &usageError{err: err}
	}
	o.asThroughput(*v.wish.Figure)
	v.tariff, v.wish.Cost = nil, nil
	return s.analyse(ctx, o)
}

// advise answers for each series of the study that the argument means.
func (v *adviser) advise(ctx context.Context, s *session, a *analysis, arg string) ([]*advice.Advice, error) {
	list := []*advice.Advice{}
	more, err := s.measuring(ctx, arg, a.Observations)
	if err != nil {
		return nil, err
	}
	for _, c := range a.Curves {
		wish := v.wish
		largest := 0
		for _, p := range c.Points {
			largest = max(largest, p.Workers)
		}
		wish.Most = more.most(ctx, largest)
		if v.tariff != nil {
			wish.Cost = v.tariff.Like(c, a.Observations)
		}
		if d := a.design; d != nil {
			wish.Confidence, wish.Sure = d.Confidence, d.Confidence
		}
		one, err := advice.Advise(c, a.Observations, wish)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	more.commands(ctx, list, a.Curves)
	return list, nil
}

// printAdvice prints for people the advice of one series; of several the best answer
// and a table of all, and with --verbose each series' own advice.
func (s *session) printAdvice(a *analysis, list []*advice.Advice, wish advice.Options) error {
	curves := a.Curves
	switch s.format {
	case table.FormatJSON:
		text, err := table.EncodeJSON(warned(a, list))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.stdout, text)
		return err
	case table.FormatCSV:
		return s.print(tables.AdviceData(list))
	}
	if len(list) > 1 {
		answers := tables.Answers(curves, list, wish)
		if !s.verbose {
			answers.Notes = append(answers.Notes, "The candidates of one series: --series NAME; of every series: -v.")
		}
		best := cmp.Or(tables.Best(list, wish), "No configuration can be recommended; the reasons are below.")
		if err := s.printSaying(best, answers); err != nil || !s.verbose {
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
		if len(one.Candidates) == 0 { // nothing to put into a table
			if _, err := fmt.Fprintln(s.stdout, s.sentences(sentences)); err != nil {
				return err
			}
			continue
		}
		if err := s.printSaying(sentences, tables.Advice(one, s.verbose)); err != nil {
			return err
		}
	}
	return nil
}

// warned has with each series' advice all warnings that people see: on the study, the series,
// and its points.
func warned(a *analysis, list []*advice.Advice) []*advice.Advice {
	all := make([]*advice.Advice, len(list))
	for i, one := range list {
		with := *one
		with.Warnings = a.lines(one.Series, advice.Doubts([]*advice.Advice{one})...)
		all[i] = &with
	}
	return all
}

// lines are all warnings that people see of a series: on the study, the series and its points; never
// nil. Those of all series are returned for a series that is no curve's.
func (a *analysis) lines(series string, more ...scaling.Remark) []string {
	var remarks []scaling.Remark
	for _, w := range a.Warnings {
		remarks = append(remarks, scaling.Remark{Text: w})
	}
	known := slices.ContainsFunc(a.Curves, func(c scaling.Curve) bool { return c.Series == series })
	for _, c := range a.Curves {
		if c.Series == series || !known {
			remarks = append(remarks, scaling.Remarks([]scaling.Curve{c})...)
		}
	}
	if lines := scaling.Lines(append(remarks, more...), 1); lines != nil {
		return lines
	}
	return []string{}
}

// printSaying prints sentences, for people, and the table that they are about.
func (s *session) printSaying(sentences string, t *table.Table) error {
	if _, err := fmt.Fprintf(s.stdout, "%s\n\n", s.sentences(sentences)); err != nil {
		return err
	}
	return s.print(t)
}

// sentences are they as the format writes them.
func (s *session) sentences(text string) string {
	if text = clean.Line(text); s.format == table.FormatMarkdown {
		text = clean.Markdown(text)
	}
	return text
}
