package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
	"github.com/scalebench/scalebench/metrics/table"
)

type predictOptions struct {
	curveOptions
	layout, scaling, memory string
	predict.Question
}

// most workers that are asked about: far above any machine's.
const mostWorkers = 10_000_000

func predictCommand(s *session) *cli.Command {
	var o predictOptions
	return &cli.Command{
		Name:      "predict",
		Usage:     "predict the step time on more workers, with an interval, or say what to measure",
		ArgsUsage: "STUDY",
		Description: "The step time is predicted from runs with the same layout (tp, pp, cp, ep, vp, zero,\n" +
			"micro_batch, checkpointing), by microbatches, the pipeline's bubble, and the\n" +
			"reduction of gradients over nodes and racks. It takes at least two worker counts. If\n" +
			"they are not enough, the answer says what to measure. The global batch is assumed to\n" +
			"continue as measured: fixed, or in proportion to the workers. `" + appName + " plot\n" +
			"prediction STUDY` draws it.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "workers", Required: true, Destination: &o.Workers, DefaultText: "none", Usage: "predict for `N` workers"},
			&cli.StringFlag{Name: "layout", Destination: &o.layout, DefaultText: "every measured one", Usage: "only the layout `KEY=VALUE`, such as tp=8,pp=8"},
			&cli.Float64Flag{Name: "global-batch", Destination: &o.GlobalBatch, DefaultText: "as measured", Usage: "`B` samples a step, over all workers"},
			scalingFlag(&o.scaling),
			rackFlag(&o.RackSize),
			&cli.StringFlag{Name: "memory", Destination: &o.memory, DefaultText: "not checked", Usage: "refuse layouts that need more than `SIZE` of memory per worker, such as 80G"},
			mixFlag(&o.mix),
			whereFlag(&o.where),
			&cli.BoolFlag{Name: "unplanned", Destination: &o.edited, DisableDefaultText: true, Usage: "include points that are not in the study file"},
			&cli.StringSliceFlag{Name: "series", Destination: &o.series, Usage: "only the series `NAME`, as in JSON and warnings; may be repeated"},
		},
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			if c.IsSet("global-batch") && !(o.GlobalBatch >= 1 && o.GlobalBatch < 1e15) {
				return usagef("--global-batch %g: give 1 or more samples", o.GlobalBatch)
			}
			return runPredict(c.Context, s, o)
		},
	}
}

func scalingFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "scaling", Destination: to, DefaultText: "as the runs record", Usage: "`weak|strong`: the global batch grows with the workers (weak) or is fixed (strong), for runs that do not record it"}
}

func rackFlag(to *int) cli.Flag {
	return &cli.IntFlag{Name: "rack", Destination: to, DefaultText: "unknown", Usage: "`N` nodes share a rack, or a faster network such as NVLink"}
}

func runPredict(ctx context.Context, s *session, o predictOptions) error {
	switch {
	case o.Workers < 1 || o.Workers > mostWorkers:
		return usagef("--workers %d is out of range; want 1 to %d", o.Workers, mostWorkers)
	case o.RackSize < 0:
		return usagef("--rack %d: a rack has 1 node or more", o.RackSize)
	}
	if o.memory != "" {
		var bytes study.Bytes
		if err := bytes.UnmarshalText([]byte(o.memory)); err != nil {
			return usagef("--memory: %v", err)
		}
		o.Memory = float64(bytes)
	}
	asked, err := layoutOf(o.layout)
	if err != nil {
		return err
	}
	a, list, err := s.layouts(ctx, o.curveOptions, o.scaling)
	if err != nil {
		return err
	}
	exhausted, err := s.exhausted(ctx, o.curveOptions)
	if err != nil {
		return err
	}
	answers := []*predict.Answer{}
	var measured []string
	for _, one := range list {
		if text := predict.Text(one.Values); !slices.Contains(measured, text) {
			measured = append(measured, text)
		}
		if !asked.of(one.Values) {
			continue
		}
		answer, err := one.ask(o.Question)
		if err != nil {
			return &usageError{err: fmt.Errorf("series %q: %w", one.Name, err)}
		}
		if why := predict.Ended(exhausted, one.Values, o.Workers); why != "" {
			answer.Refused, answer.Next = why+": it does not fit", "another layout: more tp or pp, a smaller micro_batch, or checkpointing"
			answer.Rate, answer.Step = nil, nil
		}
		answers = append(answers, answer)
	}
	if len(answers) == 0 && len(asked) > 0 {
		return &usageError{err: fmt.Errorf("no run has the layout %s; measured: %s", o.layout, strings.Join(measured, "; ")),
			hint: "Another layout changes what a microbatch takes, which no other layout tells: measure this one on two worker counts."}
	}
	if err := s.printPredictions(answers); err != nil {
		return err
	}
	a.warn(s)
	return nil
}

// laidOut is a series, or why its runs say nothing.
type laidOut struct {
	*predict.Series
	refusal *predict.Refusal
}

func (l laidOut) ask(q predict.Question) (*predict.Answer, error) {
	if l.refusal == nil {
		return predict.Ask(l.Series, q)
	}
	return &predict.Answer{Series: l.Name, Layout: l.Values, Workers: q.Workers, Unit: l.Unit, Confidence: 0.95, Measured: []predict.Row{},
		Refused: l.refusal.Why, Next: l.refusal.Next}, nil
}

// layouts are the series of a study's trainings, told apart by their layout but not by
// what follows from it and the number of workers.
func (s *session) layouts(ctx context.Context, o curveOptions, kind string) (*analysis, []laidOut, error) {
	if kind != "" && kind != "weak" && kind != "strong" {
		return nil, nil, usagef("--scaling %q is not known; valid: weak, strong", kind)
	}
	o.prepare = func(obs []scaling.Observation, planned []scaling.Planned) {
		for i := range obs {
			batch := predict.Batch(&obs[i])
			obs[i].Parameters = withoutFollowing(obs[i].Parameters)
			if batch > 0 {
				obs[i].Parameters["global_batch"] = batch
			}
		}
		for i := range planned {
			planned[i].Parameters = withoutFollowing(planned[i].Parameters)
		}
	}
	a, err := s.trainings(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	var list []laidOut
	for _, c := range a.Curves {
		one, err := predict.Of(c, a.Observations, kind)
		var refusal *predict.Refusal
		if err != nil && !errors.As(err, &refusal) {
			return nil, nil, &usageError{err: fmt.Errorf("series %q: %w", c.Series, err),
				hint: "Say it: `" + appName + " predict --scaling weak` (the batch of each worker is fixed) or strong (the global batch is); or import the runs with --label global_batch=COLUMN or --set workload.scaling=weak."}
		}
		list = append(list, laidOut{one, refusal})
	}
	return a, list, nil
}

func withoutFollowing(parameters map[string]any) map[string]any {
	parameters = maps.Clone(parameters)
	maps.DeleteFunc(parameters, func(key string, _ any) bool { return predict.Follows(key) })
	return parameters
}

// layoutKeys are what a layout was asked to be.
type layoutKeys map[string]string

func layoutOf(text string) (layoutKeys, error) {
	keys := layoutKeys{}
	if text == "" {
		return keys, nil
	}
	for _, part := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value == "" || !slices.Contains(predict.Keys(), key) {
			return nil, usagef("--layout %q: write it like tp=8,pp=8; its keys are %s", part, strings.Join(predict.Keys(), ", "))
		}
		keys[key] = value
	}
	return keys, nil
}

func (k layoutKeys) of(values map[string]any) bool {
	for key, value := range k {
		if scaling.ValueOf(values[key]).String() != value {
			return false
		}
	}
	return true
}

func (s *session) printPredictions(list []*predict.Answer) error {
	switch s.format {
	case table.FormatJSON:
		text, err := table.EncodeJSON(list)
		if err == nil {
			_, err = fmt.Fprintln(s.stdout, text)
		}
		return err
	case table.FormatCSV:
		return s.print(tables.PredictionData(list))
	}
	for i, a := range list {
		sentence := tables.PredictionSentence(a)
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
			err = s.printSaying(sentence, tables.Prediction(a))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
