package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

type extractOptions struct {
	logOptions
	study, site string
	dry         bool
}

// logOptions supply what a log does not state.
type logOptions struct {
	log        workspace.LogInfo
	firstEpoch int
	maps, at   cli.StringSlice
}

// asked returns what the options say about logs.
func (o *logOptions) asked() workspace.LogInfo {
	l := o.log
	l.Maps, l.At = o.maps.Value(), o.at.Value()
	return l
}

func (o *logOptions) flags(also ...string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Destination: &o.log.From, Usage: "`FORMAT` of the logs: " + strings.Join(slices.Concat(also, extract.Names()), ", ")},
		&cli.IntFlag{Name: "workers", Destination: &o.log.Workers, DefaultText: "what the log says", Usage: "the run had `N` workers"},
		&cli.IntFlag{Name: "worker-batch", Destination: &o.log.Batch, DefaultText: "unknown", Usage: "each worker had `N` samples per step; converts steps/s to samples/s"},
		&cli.StringFlag{Name: "mfu", Destination: &o.log.Model, Usage: "for logs with tokens/s: add the MFU by each convention, for the model and device described in `FILE`"},
		&cli.IntFlag{Name: "first-epoch", Destination: &o.firstEpoch, DefaultText: "as in the format", Usage: "the log calls the first epoch `N`"},
		&cli.StringSliceFlag{Name: "map", Destination: &o.maps, Usage: "`OURS=THEIRS`, such as accuracy=val_acc or throughput=img_s: use the log's column or tag THEIRS; may be repeated"},
		&cli.StringSliceFlag{Name: "at", Destination: &o.at, Usage: "`KEY=VALUE` of a load that the log does not state: threads (requests in flight), rate or batch; may be repeated"},
	}
}

// formatIsFrom lets --format name the format of the logs if --from is unset. This is
// unambiguous, since no output format except csv has the name of an extractor.
func (o *logOptions) formatIsFrom(s *session, alsoCSV bool) cli.BeforeFunc {
	return func(c *cli.Context) error {
		if c.IsSet("first-epoch") {
			o.log.FirstEpoch = &o.firstEpoch
		}
		if o.log.From != "" {
			return nil
		}
		if _, err := extract.Find(s.format); err == nil || alsoCSV && s.format == table.FormatCSV {
			o.log.From, s.format = s.format, table.FormatTable
		}
		return nil
	}
}

func extractCommand(s *session) *cli.Command {
	var o extractOptions
	return &cli.Command{
		Name:      "extract",
		Usage:     "read figures from another program's log, without storing them",
		ArgsUsage: "LOG",
		Description: "--from names the format of the log. --study names a study file with extractors and\n" +
			"[[extract]] patterns instead. With --dry-run the output is a table of the figures;\n" +
			"otherwise it is the events of a run, as JSON lines.",
		Flags: append(o.flags(),
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dry, DisableDefaultText: true, Usage: "print a table of the figures found"},
			&cli.StringFlag{Name: "study", Destination: &o.study, Usage: "use the extractors of the study `FILE`"},
			siteFlag(&o.site)),
		Before: o.formatIsFrom(s, false),
		Action: func(c *cli.Context) error {
			return runExtract(c.Context, s, o, c.Args().First())
		},
	}
}

func runExtract(ctx context.Context, s *session, o extractOptions, file string) error {
	spareMemory()
	list, err := o.extractors(ctx, s, file)
	if err != nil {
		return err
	}
	log := o.asked()
	options, err := log.Extraction(file)
	if err != nil {
		return err
	}
	var contents []extract.Content
	var notes []string
	for _, e := range list {
		r, err := workspace.ReadLog(e, file, options)
		if err != nil {
			return err
		}
		contents, notes = append(contents, r), append(notes, r.Notes...)
	}
	if s.forPeople() && !s.verbose {
		notes = slices.DeleteFunc(notes, func(n string) bool { return scaling.SeverityOf(n) == scaling.Remarkable })
	}
	if o.dry {
		shown := report.ShownRows
		if !s.forPeople() {
			shown = math.MaxInt
		}
		if err := s.print(report.Findings(contents, notes, shown)); err != nil || s.forPeople() {
			return err
		}
		s.noteAll(notes)
		return nil
	}
	w := bufio.NewWriter(s.stdout)
	for i := range contents {
		for e := range contents[i].Events() {
			line, err := table.EncodeJSON(e)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, line) // Flush reports errors
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	s.noteAll(notes)
	return nil
}

// noteAll prints notes on standard error, because CSV and JSON tables have no notes.
func (s *session) noteAll(notes []string) {
	for _, n := range notes {
		s.note("%s", n)
	}
}

// extractors returns the extractors that the options name.
func (o extractOptions) extractors(ctx context.Context, s *session, file string) ([]extract.Extractor, error) {
	switch {
	case (o.log.From == "") == (o.study == ""):
		return nil, usagef("give either --from FORMAT or --study FILE; %s", workspace.Formats(file))
	case o.log.From != "":
		e, err := o.log.Extractor()
		if err != nil {
			return nil, err
		}
		return []extract.Extractor{e}, nil
	}
	w, err := s.workspace().Load(ctx, workspace.Request{Study: o.study, Site: o.site})
	if err != nil {
		return nil, err
	}
	list, err := w.Extractors()
	if err == nil && len(list) == 0 {
		return nil, usagef("%s has neither command.extract nor [[extract]]", o.study)
	}
	return list, err
}
