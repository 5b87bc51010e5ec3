package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// A Prediction is a request for a prediction: what to predict, and from which runs.
type Prediction struct {
	Question
	Layout  string // KEY=VALUE,... layout of the runs; "" for every measured layout
	Scaling string // weak or strong, if runs do not record their global batch
	Memory  string // memory per worker; "" for no limit
	Ask     predict.Question
}

// maxWorkers is the largest worker count that can be predicted. It is far above any
// machine's.
const maxWorkers = 10_000_000

func (o *Prediction) check() error {
	switch {
	case o.Ask.Workers < 1 || o.Ask.Workers > maxWorkers:
		return workspace.Errorf("--workers %d is out of range; want 1 to %d", o.Ask.Workers, maxWorkers)
	case o.Ask.RackSize < 0:
		return workspace.Errorf("--rack %d: a rack has 1 node or more", o.Ask.RackSize)
	case o.Memory != "":
		var bytes study.Bytes
		if err := bytes.UnmarshalText([]byte(o.Memory)); err != nil {
			return workspace.Errorf("--memory: %v", err)
		}
		o.Ask.Memory = float64(bytes)
	}
	return nil
}

// Predict returns a prediction of the step time for each series. If the runs of a series
// allow none, its Answer says what to measure first.
func (r *Reader) Predict(ctx context.Context, o Prediction) (*Analysis, []*predict.Answer, error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	asked, err := layoutOf(o.Layout)
	if err != nil {
		return nil, nil, err
	}
	a, list, err := r.layouts(ctx, o.Question, o.Scaling)
	if err != nil {
		return nil, nil, err
	}
	exhausted, err := r.exhausted(ctx, o.Question)
	if err != nil {
		return nil, nil, err
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
		answer, err := one.ask(o.Ask)
		if err != nil {
			return nil, nil, &workspace.Error{Err: fmt.Errorf("series %q: %w", one.Name, err)}
		}
		if why := predict.Ended(exhausted, one.Values, o.Ask.Workers); why != "" {
			answer.Refused, answer.Next = why+": it does not fit", "another layout: more tp or pp, a smaller micro_batch, or checkpointing"
			answer.Rate, answer.Step = nil, nil
		}
		answer.Caveats = append(answer.Caveats, one.doubts...)
		if one.imported {
			answer.Next = ""
		}
		answers = append(answers, answer)
	}
	if len(answers) == 0 && len(asked) > 0 {
		return nil, nil, &workspace.Error{Err: fmt.Errorf("no run has the layout %s; measured: %s", o.Layout, strings.Join(measured, "; ")),
			Hint: "The time of a microbatch depends on the layout: measure this layout at two worker counts."}
	}
	return a, answers, nil
}

// laidOut holds a series of runs with the same parallel layout, or the reason why its runs
// allow no prediction.
type laidOut struct {
	*predict.Series
	refusal  *predict.Refusal
	doubts   []string
	imported bool // all runs were: no more of them are suggested
}

func (l laidOut) ask(q predict.Question) (*predict.Answer, error) {
	if l.refusal == nil {
		return predict.Ask(l.Series, q)
	}
	return &predict.Answer{Series: l.Name, Layout: l.Values, Workers: q.Workers, Unit: l.Unit, Confidence: 0.95, Measured: []predict.Row{}, Caveats: []string{},
		Refused: l.refusal.Why, Next: l.refusal.Next}, nil
}

// layouts returns the trainings of a study as series of equal layout. Parameters that follow
// from the layout and the number of workers may differ within a series.
func (r *Reader) layouts(ctx context.Context, o Question, kind string) (*Analysis, []laidOut, error) {
	if kind != "" && kind != "weak" && kind != "strong" {
		return nil, nil, workspace.Errorf("--scaling %q is not known; valid: weak, strong", kind)
	}
	var figure *measure.Measure
	if o.Measure != "" {
		m, err := r.workRate(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		figure = m
		o.Measure = measure.Throughput
	}
	o.Prepare = func(obs []scaling.Observation, planned []scaling.Planned) {
		if figure != nil {
			scaling.AsThroughput(obs, *figure)
		}
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
	a, err := r.trainings(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	var list []laidOut
	for _, c := range a.Curves {
		one, err := predict.NewSeries(c, c.Observed(a.Observations), kind, figure)
		var refusal *predict.Refusal
		if err != nil && !errors.As(err, &refusal) {
			return nil, nil, &workspace.Error{Err: fmt.Errorf("series %q: %w", c.Series, err),
				Hint: "Add --scaling weak (the batch of each worker is fixed) or --scaling strong (the global batch is); or import the runs with --label global_batch=COLUMN or --set workload.scaling=weak."}
		}
		doubts := a.decisive(c.Series)
		if c.MeasuredApart(measure.Throughput) {
			doubts = append(doubts, "the worker counts were measured at different times, and a drift of the machine would look like scaling")
		}
		list = append(list, laidOut{one, refusal, doubts, scaling.AllImported(c.Observed(a.Observations))})
	}
	return a, list, nil
}

// workRate returns the measure to predict. It must be a rate of work, such as tokens/s,
// because only rates follow from the step time, which the model predicts.
func (r *Reader) workRate(ctx context.Context, o Question) (*measure.Measure, error) {
	m, err := r.figure(ctx, o)
	if err != nil {
		return nil, err
	}
	if m.Better != measure.Higher || !strings.HasSuffix(m.Unit, "/s") {
		unit := "has no unit"
		if m.Unit != "" {
			unit = "is in " + m.Unit
		}
		return nil, &workspace.Error{Err: fmt.Errorf("--measure %s: only a rate of work can be predicted, in a unit such as samples/s, of which more is better; %s %s", m.Name, m.Name, unit),
			Hint: "`scalebench advise STUDY -m " + m.Name + "` compares what was measured. To predict, let the program print work per second, and give its [[extract]] a unit that ends in /s and better = \"higher\"."}
	}
	return m, nil
}

func withoutFollowing(parameters map[string]any) map[string]any {
	parameters = maps.Clone(parameters)
	maps.DeleteFunc(parameters, func(key string, _ any) bool { return predict.Follows(key) })
	return parameters
}

// layoutKeys are the values that a layout must have to be selected, by key.
type layoutKeys map[string]string

func layoutOf(text string) (layoutKeys, error) {
	keys := layoutKeys{}
	if text == "" {
		return keys, nil
	}
	for _, part := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value == "" || !slices.Contains(predict.Keys(), key) {
			return nil, workspace.Errorf("--layout %q: write it like tp=8,pp=8; its keys are %s", part, strings.Join(predict.Keys(), ", "))
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
