package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/export"
	"github.com/scalebench/scalebench/metrics/number"
)

type exportOptions struct {
	query.Selection
	to, output string
	states     cli.StringSlice
	replace    bool
}

func exportCommand(s *session) *cli.Command {
	var o exportOptions
	return &cli.Command{
		Name:      "export",
		Usage:     "write runs for other programs, such as pandas, Prometheus or MLflow",
		ArgsUsage: "STUDY|RUN",
		Description: "EXPORT is one of\n" + exportHelp() +
			"Values are in base units, as `runs --format json` prints them. Runs that failed are\n" +
			"marked, or left out with a note.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "write for `EXPORT`", Destination: &o.to, Required: true},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.output, DefaultText: "the study's name and the format",
				Usage: "write the file or folder `PATH`; - prints a file"},
			&cli.BoolFlag{Name: "replace", Destination: &o.replace, DisableDefaultText: true, Usage: "replace the file if it exists; folders are never replaced"},
			&cli.StringSliceFlag{Name: "state", Usage: "only runs in `STATE`; may be repeated", Destination: &o.states},
		}, selectionFlags(&o.Selection)...),
		Action: func(c *cli.Context) error {
			o.Study = c.Args().First()
			return runExport(c.Context, s, o)
		},
	}
}

// exportHelp returns a line for each format.
func exportHelp() string {
	var b strings.Builder
	for _, f := range export.Formats {
		fmt.Fprintf(&b, "  %-12s %s\n", f.Name, f.About)
	}
	return b.String()
}

func runExport(ctx context.Context, s *session, o exportOptions) error {
	format, err := export.Find(o.to)
	if err != nil {
		return &usageError{err: fmt.Errorf("--to: %w", err)}
	}
	if o.output == "-" && format.Folder() {
		return usagef("--output -: %s is a folder of files; name a folder", format.Name)
	}
	o.States = o.states.Value()
	source, err := s.reader().Export(ctx, o.Selection, format.OneRun)
	if err != nil {
		return err
	}
	defer source.DB.Close()
	if o.output == "-" {
		w := bufio.NewWriter(s.stdout)
		err = errors.Join(format.Write(ctx, source, w), w.Flush())
	} else {
		o.output = cmp.Or(o.output, query.Slug(source.Name)+format.Suffix)
		s.deferInterrupts() // an interrupt removes the temporary files
		err = format.Save(ctx, source, o.output, o.replace)
	}
	switch {
	case errors.Is(err, export.ErrExists) && format.Folder():
		return &usageError{err: err, hint: "Remove the folder, or name another one with --output."}
	case errors.Is(err, export.ErrExists):
		return &usageError{err: err, hint: "--replace replaces it; --output names another one."}
	case err != nil:
		return err
	}
	if o.output != "-" {
		s.note("%s: %s", o.output, number.Count(len(source.Runs), "run"))
	}
	for _, note := range source.Notes {
		s.note("%s", note)
	}
	return nil
}

// junitFlag returns the flag of commands that can fail a CI's build.
func junitFlag(path *string) cli.Flag {
	return &cli.StringFlag{Name: "junit", Destination: path, Usage: "also write each line as a test case to `FILE`, a JUnit report for a CI; an existing file is replaced"}
}

// saveChecks writes a JUnit report, unless the path is empty.
func (s *session) saveChecks(path, name string, list []export.Check) error {
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := export.WriteChecks(&b, name, list); err != nil {
		return err
	}
	return s.put(path, b.Bytes())
}
