package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/mattn/go-sixel"
	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

type plotOptions struct {
	curveOptions
	figure   query.Figure
	output   string
	terminal bool
	sixel    bool
	target   targetFlag
}

func plotCommand(s *session) *cli.Command {
	var o plotOptions
	return &cli.Command{
		Name:      "plot",
		Usage:     "draw a figure, such as speedup or cost, or any measure",
		ArgsUsage: "FIGURE STUDY",
		Description: "STUDY is a study's name or the path of its file; for utilisation, a run as for show.\n" +
			"FIGURE is one of\n" +
			figureHelp() +
			"or any measure, such as step_p95, to_0.75 or one that runs report: along workers, or\n" +
			"along -x KEY, which may be another measure: plot latency_p95 STUDY -x\n" +
			"requests_per_second. Measures of one unit may share a figure: latency_p50,latency_p95.\n" +
			"--baseline shows how many times better each configuration is. Each run is a dot;\n" +
			"medians have an interval from 6 runs on.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.output, DefaultText: "STUDY-FIGURE.svg",
				Usage: "write `FILE`; its extension gives the format: " + strings.Join(figure.Formats(), ", ")},
			&cli.BoolFlag{Name: "terminal", Destination: &o.terminal, DisableDefaultText: true, Usage: "draw the figure on the terminal, instead of into a file: as text, or in pixels if the terminal draws Sixel graphics"},
			&cli.BoolFlag{Name: "sixel", Destination: &o.sixel, DisableDefaultText: true, Usage: "with --terminal: print Sixel graphics without asking the terminal, as through a pipe"},
			siteFlag(&o.figure.Site), o.axisFlag(), atFlag(&o.at),
			&cli.StringFlag{Name: "along", Usage: "with a measure as -x: join points along the parameter `KEY`", DefaultText: "the load that has most values", Destination: &o.Along},
			&cli.StringFlag{Name: "by", Usage: "a panel for each value of the parameter `KEY`, such as framework", Destination: &o.figure.By},
			&cli.GenericFlag{Name: "target", Value: &o.target, DefaultText: "speedup: the program's own or the hardest; tta: all; others: whole runs", Usage: "for " + number.List(targetFigures(), "and") + ": time to `TARGET`, an accuracy such as 0.75 or loss=2"},
			baselineFlag(&o.baseline),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` above the plot", Destination: &o.figure.Title},
		}, o.flags()...),
		Action: func(c *cli.Context) error {
			o.figure.Kind, o.Study = c.Args().Get(0), c.Args().Get(1)
			return runPlot(c.Context, s, o)
		},
	}
}

// figureHelp returns a line for each figure.
func figureHelp() string {
	var b strings.Builder
	for _, k := range figure.Presets() {
		fmt.Fprintf(&b, "  %-18s %s\n", k.Name, k.About)
	}
	return b.String()
}

// targetFigures returns the figures that accept a target.
func targetFigures() []string {
	return figure.NamesOf(func(k figure.Preset) bool { return k.Target != figure.NoTarget })
}

func runPlot(ctx context.Context, s *session, o plotOptions) error {
	preset, _ := figure.Find(o.figure.Kind)
	if preset.Target == figure.TimeToGoal && o.target.Target != nil {
		o.figure.Kind = o.target.Time().Name
		preset = figure.Preset{}
	} else if err := o.refused(preset); err != nil {
		return err
	}
	switch {
	case o.terminal && o.output != "":
		return usagef("--terminal draws the figure as text, and --output names a file; leave one out")
	case o.sixel && !o.terminal:
		return usagef("--sixel goes with --terminal")
	}
	if o.output != "" {
		if _, err := figure.Format(o.output); err != nil {
			return &usageError{err: err}
		}
	}
	o.figure.Question, o.figure.Target = o.question(), o.target.Target
	p, err := s.reader().Picture(ctx, preset.Input, o.figure)
	if p == nil {
		return err
	}
	var f *figure.Drawing
	if err == nil {
		f, err = figure.Draw(o.figure.Kind, p.Data, p.Options)
	}
	if err == nil {
		return s.showFigure(f, o, p)
	}
	if p.Analysis != nil {
		s.warnOn(p.Analysis, false)
		if p.Analysis.BaseError != nil && preset.NeedsOnlyCurves() {
			return p.Analysis.BaseError // the error says which run is missing
		}
	}
	return &usageError{err: err}
}

// refused says which options the figure does not accept, before the database is read.
func (o *plotOptions) refused(k figure.Preset) error {
	switch {
	case o.target.Target != nil && k.Target == figure.NoTarget:
		return usagef("--target is for the figures %s", number.List(targetFigures(), "and"))
	case o.target.Target != nil && k.Target == figure.ShowsGoal && (o.Axis != "" || len(o.baseline.Value()) > 0):
		return usagef("--target with %s is over workers and divides by the smallest count: leave out --axis and --baseline", o.figure.Kind)
	case o.Axis != "" && k.Input == figure.OfPrices:
		return usagef("--axis is for measures, and %s has its own axis; --by KEY draws a panel for each value", o.figure.Kind)
	case o.Along != "" && o.Axis == "":
		return usagef("--along is for a measure over another one, such as -x requests_per_second")
	case k.Whole != "" && (o.Axis != "" || o.figure.By != "" || len(o.baseline.Value()) > 0):
		return usagef("%s %s", o.figure.Kind, k.Whole)
	}
	return nil
}

// drawHere prints a figure with its caption on the terminal. Only a terminal is asked whether it draws
// Sixel graphics.
func (s *session) drawHere(f *figure.Drawing, pixels bool) error {
	on := screenOf(s.stdout)
	if pixels || on.Bold && onTerminal(s.stdin) && sixel.IsSupported() {
		if err := f.Sixel(s.stdout, sixelWidth); err != nil {
			return err
		}
		_, err := fmt.Fprintln(s.stdout)
		return err
	}
	text := f.Text(figure.Terminal{Width: cmp.Or(on.Width, 80), Colour: on.Bold, ASCII: !figure.UTF8(os.Getenv)})
	_, err := fmt.Fprintf(s.stdout, "%s%s\n", text, on.Wrap(f.Caption()))
	return err
}

// sixelWidth is the width of a figure on a terminal, in pixels. It fits a terminal of 80 columns.
const sixelWidth = 640

// showFigure writes or prints a figure and says what it shows.
func (s *session) showFigure(f *figure.Drawing, o plotOptions, p *query.Picture) error {
	if o.terminal {
		if err := s.drawHere(f, o.sixel); err != nil {
			return err
		}
	} else {
		if o.output == "" {
			o.output = p.Name + "-" + query.Slug(o.figure.Kind) + ".svg"
		}
		if err := f.Save(o.output, s.put); err != nil {
			return err
		}
		s.note("%s: %s", o.output, f.Caption())
	}
	if a := p.Analysis; a != nil {
		s.warnOn(a, strings.Contains(f.Caption(), scaling.DecisiveNote(a.Curves)))
	}
	s.warnStudySorted(o.Study, p.Warnings...)
	return nil
}
