package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
	"github.com/scalebench/scalebench/metrics/table"
)

type predictOptions struct {
	curveOptions
	prediction query.Prediction
}

func predictCommand(s *session) *cli.Command {
	var o predictOptions
	return &cli.Command{
		Name:      "predict",
		Usage:     "predict the step time on more workers, with an interval, or say what to measure",
		ArgsUsage: "STUDY",
		Description: "The step time is predicted from runs with the same layout (tp, pp, cp, ep, vp, zero,\n" +
			"micro_batch, checkpointing) at two worker counts or more. The global batch is assumed\n" +
			"to continue as measured: fixed, or in proportion to the workers. `" + appName + " plot\n" +
			"prediction STUDY` draws it.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "workers", Required: true, Destination: &o.prediction.Ask.Workers, Usage: "predict for `N` workers"},
			&cli.StringFlag{Name: "layout", Destination: &o.prediction.Layout, DefaultText: "every measured one", Usage: "only the layout `KEY=VALUE`, such as tp=8,pp=8"},
			&cli.Float64Flag{Name: "global-batch", Destination: &o.prediction.Ask.GlobalBatch, DefaultText: "as measured", Usage: "`B` samples per step, over all workers"},
			&cli.StringFlag{Name: "measure", Aliases: []string{"m"}, Destination: &o.Measure, DefaultText: "step time and throughput", Usage: "predict the `MEASURE`, a rate that the program reports; its unit must end in /s"},
			scalingFlag(&o.prediction.Scaling),
			rackFlag(&o.prediction.Ask.RackSize),
			&cli.StringFlag{Name: "memory", Destination: &o.prediction.Memory, DefaultText: "not checked", Usage: "refuse layouts that need more than `SIZE` of memory per worker, such as 80G"},
			mixFlag(&o.Mix),
			whereFlag(&o.Where),
			&cli.BoolFlag{Name: "unplanned", Destination: &o.Edited, DisableDefaultText: true, Usage: "include points that are not in the study file"},
			&cli.StringSliceFlag{Name: "series", Destination: &o.series, Usage: "only the series `NAME`, as printed in warnings and JSON; may be repeated"},
		},
		Action: func(c *cli.Context) error {
			o.Study = c.Args().First()
			if c.IsSet("global-batch") && !(o.prediction.Ask.GlobalBatch >= 1 && o.prediction.Ask.GlobalBatch < 1e15) {
				return usagef("--global-batch %g: give 1 or more samples", o.prediction.Ask.GlobalBatch)
			}
			return runPredict(c.Context, s, o)
		},
	}
}

func scalingFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "scaling", Destination: to, DefaultText: "as the runs record", Usage: "`weak|strong`: the global batch grows with the workers or is fixed, for runs that do not record it"}
}

func rackFlag(to *int) cli.Flag {
	return &cli.IntFlag{Name: "rack", Destination: to, DefaultText: "unknown", Usage: "`N` nodes share a rack, or a faster network such as NVLink"}
}

func runPredict(ctx context.Context, s *session, o predictOptions) error {
	o.prediction.Question = o.question()
	a, answers, err := s.reader().Predict(ctx, o.prediction)
	if err != nil {
		return err
	}
	if err := s.printPredictions(answers); err != nil {
		return err
	}
	s.warnOn(a, false)
	return nil
}

func (s *session) printPredictions(list []*predict.Answer) error {
	switch s.format {
	case table.FormatJSON:
		return s.printJSON(list)
	case table.FormatCSV:
		return s.print(report.PredictionData(list))
	}
	for i, a := range list {
		sentence := report.PredictionSentence(a)
		if len(list) > 1 {
			sentence = a.Series + ": " + sentence
		}
		if i > 0 {
			fmt.Fprintln(s.stdout)
		}
		var err error
		if len(a.Measured) == 0 {
			_, err = fmt.Fprintln(s.stdout, s.sentences(sentence))
		} else {
			err = s.printSentences(sentence, report.Prediction(a))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
