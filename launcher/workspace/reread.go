package workspace

import (
	"context"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/store"
)

// A question holds the parameters of a point that only say how its runs are evaluated, such as
// targets and FLOPs per token, and the patterns that read its output. They come from
// the present study, which may have changed since the runs were started.
type question struct {
	asked   map[string]any // values of such parameters, by key
	reading framework.Reading
}

// questions returns the question of each point of the plan, by point ID.
func questions(plan *study.Plan) map[string]question {
	asked := map[string]question{}
	for _, p := range plan.Points {
		asked[p.Point.ID] = question{questionsOf(p.Point.Parameters()), framework.ReadingOf(p.Point.Command)}
	}
	return asked
}

// questionsOf returns the parameters of a point that only say how its runs are evaluated
// (measure.QuestionKeys).
func questionsOf(parameters map[string]any) map[string]any {
	asked := map[string]any{}
	for _, key := range measure.QuestionKeys() {
		if v := parameters[key]; v != nil {
			asked[key] = v
		}
	}
	return asked
}

// ask replaces, in a run's recorded parameters, those that questionsOf selects by the present
// ones, asked.
func ask(parameters, asked map[string]any) {
	for _, key := range measure.QuestionKeys() {
		delete(parameters, key)
	}
	maps.Copy(parameters, asked)
}

// ingest stores a run, evaluated by the present study: with its present targets and its
// present patterns for reading output.
func (c *collection) ingest(ctx context.Context, state launcher.State) (store.Report, error) {
	files, err := state.Run.EventFiles()
	if err != nil {
		return store.Report{}, &store.RunError{Run: state.Record.ID, Err: err}
	}
	fact := state.Fact()
	fact.Study, fact.StudyID = c.its.Name, c.its.ID
	asked, planned := c.asked[fact.Point]
	if !planned {
		return c.db.Ingest(ctx, fact, files)
	}
	ask(fact.Parameters, asked.asked)
	if !state.Status.Good() {
		return c.db.Ingest(ctx, fact, files)
	}
	again, err := state.PlanReread(asked.reading, c.options.Again)
	if err != nil {
		return store.Report{}, &store.RunError{Run: fact.ID, Err: err}
	}
	if again == nil {
		return c.db.Ingest(ctx, fact, files)
	}
	return c.reread(ctx, fact, files, again)
}

// reread stores a run with new events, which it gets by reading the program's output again
// with the present patterns. It does not change the run's own event file.
func (c *collection) reread(ctx context.Context, fact metrics.Run, files []metrics.EventFile, again *launcher.Reread) (store.Report, error) {
	from, err := c.db.ReadFrom(ctx, fact.ID, again.Restart)
	if err != nil {
		return store.Report{}, err
	}
	var events []metrics.Event
	if from != again.From() || c.options.Again {
		if events, err = again.Events(); err != nil {
			c.kept[err.Error()]++
			if from != "" { // keep the events of the last reading
				files = withoutFirst(files, again.Restart)
			}
			return c.db.Ingest(ctx, fact, files)
		}
	}
	parameters := again.Parameters()
	ask(parameters, questionsOf(fact.Parameters))
	if exclusive, ok := fact.Parameters[measure.ExclusiveKey]; ok {
		parameters[measure.ExclusiveKey] = exclusive
	}
	fact.Parameters = parameters
	report, err := c.db.Ingest(ctx, fact, withoutFirst(files, again.Restart))
	if err != nil || events == nil {
		return report, err
	}
	c.read++
	read, err := c.db.Reread(ctx, fact, again.Restart, again.From(), events)
	report.Changed, report.Events = true, report.Events+read.Events
	return report, err
}

// withoutFirst returns all event files except the file that rank 0 wrote after the given
// number of restarts.
func withoutFirst(files []metrics.EventFile, restart int) []metrics.EventFile {
	return slices.DeleteFunc(slices.Clone(files), func(f metrics.EventFile) bool {
		return f.Writer == "rank" && f.Rank == 0 && f.Restart == restart
	})
}
