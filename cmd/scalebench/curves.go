package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// curveOptions select runs of a study and say how they become curves.
type curveOptions struct {
	query.Question
	series, baseline, at cli.StringSlice
}

// question returns the question that the options express.
func (o *curveOptions) question() query.Question {
	q := o.Question
	q.Series, q.Baseline, q.At = o.series.Value(), o.baseline.Value(), o.at.Value()
	return q
}

func (o *curveOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "base", Destination: &o.Base, DefaultText: "the smallest of each series",
			Usage: "compute speedups relative to `N` workers, or to the value N of another axis"},
		mixFlag(&o.Mix),
		whereFlag(&o.Where),
		&cli.BoolFlag{Name: "unplanned", Destination: &o.Edited, DisableDefaultText: true, Usage: "include points that are not in the study file"},
		&cli.StringSliceFlag{Name: "series", Destination: &o.series, Usage: "only the series `NAME`, as printed in warnings and JSON, such as \"native batch=64\"; may be repeated"},
	}
}

// axisFlag is for commands that draw or print along any parameter.
func (o *curveOptions) axisFlag() cli.Flag {
	return &cli.StringFlag{Name: "axis", Aliases: []string{"x"}, Destination: &o.Axis, DefaultText: "workers, or the measure's own axis within a run", Usage: "draw or list along the parameter `KEY`, such as workload.batch"}
}

func atFlag(list *cli.StringSlice) cli.Flag {
	return &cli.StringSliceFlag{Name: "at", Destination: list, Usage: "only a run's values at `KEY=VALUE`, such as op=all_reduce or bytes=1048576; may be repeated"}
}

func baselineFlag(list *cli.StringSlice) cli.Flag {
	return &cli.StringSliceFlag{Name: "baseline", Destination: list,
		Usage: "divide by the otherwise equal configuration with `KEY=VALUE`, such as workers=1 or platform=cpu8; repeat to narrow it down"}
}

func mixFlag(mix *bool) cli.Flag {
	return &cli.BoolFlag{Name: "mix", Destination: mix, DisableDefaultText: true,
		Usage: "join runs on different hardware, drivers or versions into one curve"}
}

// warnOn prints the warnings on a study, its series and points, and more. answered says
// that the printed answer already has the decisive warnings.
func (s *session) warnOn(a *query.Analysis, answered bool, more ...scaling.Remark) {
	var remarks []scaling.Remark
	for _, w := range a.Warnings {
		remarks = append(remarks, scaling.Remark{Text: w})
	}
	remarks = slices.Concat(remarks, scaling.Remarks(a.Curves), more)
	if answered && !s.verbose {
		remarks = slices.DeleteFunc(remarks, func(r scaling.Remark) bool { return r.Severity() == scaling.Decisive })
	}
	s.warnStudy(a.Study, s.linesOf(remarks, len(a.Curves))...)
}
