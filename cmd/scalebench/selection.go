package main

import (
	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/measure"
)

// selectionFlags select runs of a study, or of the whole history.
func selectionFlags(o *query.Selection) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "framework", Usage: "only runs with framework `NAME`", Destination: &o.Framework},
		&cli.IntFlag{Name: "workers", DefaultText: "any", Usage: "only runs with `N` workers", Destination: &o.Workers},
		sinceFlag(&o.Since),
		&cli.StringFlag{Name: "until", Usage: "only runs recorded before `TIME`, written as for --since", Destination: &o.Until},
		&cli.StringFlag{Name: "commit", Usage: "only runs whose study folder was at git `COMMIT`; its first digits are enough", Destination: &o.Commit},
		&cli.StringFlag{Name: "files", Usage: "only runs that used a file of yours whose SHA-256 begins with `DIGITS`", Destination: &o.Files},
		whereFlag(&o.Where),
	}
}

func sinceFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "since", Usage: "only runs recorded at `TIME` or later: 2026-11-21 (its first moment, local time), 2026-11-21T15:04:05Z, or how long ago: 12h, 7d", Destination: to}
}

// metricFlag returns the flag that names the measure to follow.
func metricFlag(name *string) cli.Flag {
	return &cli.StringFlag{Name: "measure", Aliases: []string{"m"}, Destination: name, Value: measure.Throughput, Usage: "the `MEASURE`, such as throughput, step_p95 or to_0.75; scalebench help measures lists them"}
}
