package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/table"
)

type importOptions struct {
	logOptions
	workspace.ImportOptions
	sets, labels cli.StringSlice
	dry          bool
}

func importCommand(s *session) *cli.Command {
	var o importOptions
	return &cli.Command{
		Name:      "import",
		Usage:     "store runs from other programs' logs and tables",
		ArgsUsage: "FILE...",
		Description: "--from names the format of the files: csv for a table with a run per row, or a log\n" +
			"format with a run per file. Importing a file again changes nothing.\n" +
			"\n" +
			"A table's columns must have these names (docs/import.md explains them). --map\n" +
			"OURS=THEIRS maps a column with another name. All runs: study, workers (or replicas),\n" +
			"nodes, framework, started, order, block. Trainings:\n" +
			strings.Join(extract.TrainFigures[:9], ", ") + ",\n" +
			strings.Join(extract.TrainFigures[9:], ", ") + ". Services: batch, rate,\n" +
			"threads and the figures of docs/serving.md, such as latency_p95.\n" +
			"\n" +
			"  scalebench import r*.log --from horovod-synthetic --set study=old --set platform=cpu8\n" +
			"  scalebench import t.csv --from csv --set study=old --map workers=gpus \\\n" +
			"    --map throughput=img_s --map elapsed=seconds",
		Flags: append(o.flags(table.FormatCSV),
			&cli.StringSliceFlag{Name: "set", Destination: &o.sets, Usage: "`KEY=VALUE` for all runs: study, workers, framework, nodes, or a label; may be repeated"},
			&cli.StringSliceFlag{Name: "label", Destination: &o.labels, Usage: "for CSV files: use a column as a label, `KEY=COLUMN`; may be repeated"},
			&cli.StringFlag{Name: "decimal", Destination: &o.Decimal, Usage: "decimal `SEPARATOR` of CSV files, comma or point; the other one may separate thousands"},
			&cli.StringFlag{Name: "sum", Destination: &o.Sum, Usage: "add up the rates of CSV rows that differ only in `COLUMN`"},
			&cli.BoolFlag{Name: "replace", Destination: &o.Replace, DisableDefaultText: true, Usage: "replace earlier imports of these files that had other settings"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dry, DisableDefaultText: true, Usage: "print what would be stored, but store nothing"}),
		Before: o.formatIsFrom(s, true),
		Action: func(c *cli.Context) error {
			return runImport(c.Context, s, o, c.Args().Slice())
		},
	}
}

func runImport(ctx context.Context, s *session, o importOptions, files []string) error {
	spareMemory()
	o.LogInfo, o.Sets, o.Labels = o.asked(), o.sets.Value(), o.labels.Value()
	listed := report.NewImported(!s.forPeople())
	var err error
	if o.dry {
		err = workspace.DryRunImport(s.workspace(), o.ImportOptions, files, func(r workspace.ImportedRun) { listed.Add(r.Imported, &r.Result, "", "not stored") })
	} else {
		err = workspace.Import(ctx, s.workspace(), o.ImportOptions, files, func(r workspace.ImportedRun, id string, changed bool) {
			outcome := "unchanged"
			if changed {
				outcome = "stored"
			}
			listed.Add(r.Imported, &r.Result, id, outcome)
		})
	}
	if err != nil {
		return err
	}
	return s.print(listed.Table())
}
