package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/spelling"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

type plotOptions struct {
	curveOptions
	kind, output, title, site string
	by                        string // parameter of panels; "" for one plot
	target                    float64
}

// plotKinds are all that can be drawn: what follows from the curves, the ranks
// of single runs, and what needs prices.
func plotKinds() []string { return append(figure.Kinds(), "ranks", "cost", "normalised", "busbw") }

func plotCommand(s *session) *cli.Command {
	var o plotOptions
	return &cli.Command{
		Name:      "plot",
		Usage:     "draw " + strings.Join(plotKinds(), ", "),
		ArgsUsage: "FIGURE STUDY",
		Description: "STUDY is a study's name or the path of its file. FIGURE is one of\n" +
			"  throughput, speedup, efficiency  against workers\n" +
			"  accuracy, samples                accuracy against time, and against samples trained on\n" +
			"  tta                              time to accuracy against workers\n" +
			"  breakdown                        where the time of a step goes\n" +
			"  ranks                            step times of each rank, at the most workers\n" +
			"  cost, normalised                 cost against time, and both over the smallest worker\n" +
			"                                   count's; prices stand in the site file ([[prices]])\n" +
			"  busbw                            bus bandwidth of collectives against their size\n" +
			"or any measure, such as step_p95, to_0.75 or one that runs report: against\n" +
			"workers, or -x KEY. Numbers give lines, words columns.\n" +
			"Every run is a dot; medians have an interval where there are runs enough for one.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Destination: &o.output,
				Usage: "write `FILE`, whose extension says the format: " + strings.Join(figure.Formats(), ", ")},
			siteFlag(&o.site), o.axisFlag(),
			&cli.StringFlag{Name: "by", Usage: "a panel for each value of the parameter `KEY`, such as framework, all with the same axes", Destination: &o.by},
			&cli.Float64Flag{Name: "target", Usage: "the time to accuracy `T`, a fraction; FIGURE is tta", Destination: &o.target},
			&cli.StringFlag{Name: "title", Usage: "`TEXT` above the plot", Destination: &o.title},
		}, o.flags()...),
		Action: func(c *cli.Context) error {
			o.kind, o.study = c.Args().Get(0), c.Args().Get(1)
			return runPlot(c.Context, s, o)
		},
	}
}

func runPlot(ctx context.Context, s *session, o plotOptions) error {
	// All that can be refused is, before the database is read.
	if o.kind == "tta" && o.target > 0 {
		o.kind = measure.To(o.target).Name
	} else if o.target != 0 {
		return usagef("--target is for the figure tta, a fraction above 0")
	}
	if _, err := figure.Format(o.output); err != nil {
		return &usageError{err: err}
	}
	if o.kind == "busbw" {
		return s.plotBusBW(ctx, o)
	}
	a, err := s.analyse(ctx, o.curveOptions)
	if err != nil {
		return err
	}
	if err := a.drawable(o.kind); err != nil {
		return err
	}
	f, err := s.draw(ctx, o, a)
	if err != nil {
		a.warn(s)
		if a.noBase != nil && slices.Contains(figure.Kinds(), o.kind) {
			return a.noBase // it says what to run
		}
		return &usageError{err: err}
	}
	if err := f.Save(o.output); err != nil {
		return err
	}
	s.note("%s: %s", o.output, f.Caption())
	a.warn(s)
	return nil
}

// drawable refuses a name that is neither a figure nor a measure.
func (a *analysis) drawable(kind string) error {
	if _, err := scaling.Find(a.curves, kind); err == nil || slices.Contains(plotKinds(), kind) {
		return nil
	}
	measures := a.measures()
	return &usageError{err: fmt.Errorf("unknown figure %q; choose one of %s, or a measure: %s", kind, strings.Join(plotKinds(), ", "), strings.Join(measures, ", ")),
		hint: spelling.Hint(kind, slices.Compact(slices.Sorted(slices.Values(append(plotKinds(), measures...)))))}
}

func (s *session) draw(ctx context.Context, o plotOptions, a *analysis) (*figure.Figure, error) {
	options := figure.Options{Title: o.title}
	switch {
	case o.kind == "ranks":
		db, err := s.openStore()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		runs, err := rankSteps(ctx, db, a.curves)
		if err != nil {
			return nil, err
		}
		return figure.DrawRanks(runs, options)
	case o.kind == "cost" || o.kind == "normalised":
		bill, err := s.priced(a, o.study, o.site, o.mix)
		if err != nil {
			return nil, err
		}
		if o.kind == "cost" {
			return bill.against(options)
		}
		return bill.normalised(options)
	case o.by != "":
		by, err := axisKey(o.by, a.observations, nil)
		if err != nil {
			return nil, err
		}
		return figure.DrawBy(by, o.kind, a.curves, a.observations, options)
	}
	return figure.Draw(o.kind, a.curves, a.observations, options)
}

// rankSteps are the step times of the ranks of one run of each series: the one
// with the median throughput at the most workers.
func rankSteps(ctx context.Context, db *store.Store, curves []scaling.Curve) ([]figure.RankSteps, error) {
	var list []figure.RankSteps
	for _, c := range curves {
		for _, p := range slices.Backward(c.Points) {
			run := p.MedianRun()
			if run == nil {
				continue
			}
			ranks, err := db.StepTimes(ctx, run.ID)
			if err != nil {
				return nil, err
			}
			if ranks != nil {
				list = append(list, figure.RankSteps{Run: run.ID, Series: c.Series, Workers: p.Workers, Ranks: ranks})
			}
			break
		}
	}
	return list, nil
}
