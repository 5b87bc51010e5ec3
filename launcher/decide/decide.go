// Package decide measures a study until its question, such as the best number of workers, has a
// sufficiently certain answer. It makes a batch of runs, analyses all results, and repeats. Such an
// interim analysis is called a look. The state is on disk: the runs, and the looks in looks.json.
// So a command that is started again continues where the earlier one ended.
package decide

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// Results are the good runs of a study, as curves with the confidence level of a design.
type Results struct {
	Curves       []scaling.Curve
	Observations []scaling.Observation
	Wish         func(scaling.Curve) advice.Options // the user's requirements for the advice about a curve
	Contrast     *Contrast                          // set if the question is which of two settings is better
	Answers      []Answer                           // set if the question is neither that nor the best number of workers
}

// A Study is a study that is measured until its question is decided. The caller provides the
// functions; all must be set.
type Study struct {
	Folder    rundir.Study
	Plan      *study.Plan // all runs that may be made: for each point as many as Design allows
	Design    sequential.Design
	NodeHours float64           // maximum for all runs of the study, including earlier runs; 0 means no limit
	By        time.Time         // time after which no batch is started; zero: no limit
	Question  map[string]string // as in Record
	Compares  bool              // the question is which of two settings is better, not how many workers are best
	Once      bool              // start one batch and do not wait for its end

	Done    func(context.Context) (map[study.Run]bool, error) // runs with a good result
	Results func(context.Context, sequential.Design) (*Results, error)
	Measure func(context.Context, *study.Plan) error // makes the runs of a plan that have no good result
	Collect func(context.Context) error              // reads results, and looks.json, into the database
	Spent   func(context.Context) (float64, error)   // node-hours that runs have used, including failed runs
	Tell    func(format string, a ...any)
	Now     func() time.Time

	from map[string]int // as in Record

	// Failed are runs without a good result that must not be repeated. Run adds the runs that
	// failed while it ran.
	Failed map[study.Run]bool
}

// An Outcome is the state of a study after a look or a batch.
type Outcome struct {
	Views   []View // one per series
	Decided bool   // the questions of all series are decided
	Stopped string // why no more runs are made for undecided questions; "" if all are decided, or jobs are still in progress
	Next    *study.Plan
	Scatter string // how much runs of a point differ, and whether nodes, jobs or days do; "" if unknown
	Savings string // how many runs were not made, and why; "" if all were
}

// Answers returns a sentence for each series.
func (o *Outcome) Answers() (list []string) {
	for _, v := range o.Views {
		text := v.Sentence()
		if len(o.Views) > 1 {
			text = v.Series + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// Run makes runs until the question is decided or no more runs can be made, and returns the
// outcome. An error comes from one of the functions of the Study, or from reading or writing files.
func (s *Study) Run(ctx context.Context) (*Outcome, error) {
	if s.Failed == nil {
		s.Failed = map[study.Run]bool{}
	}
	record, err := Read(s.Folder)
	if err != nil {
		return nil, err
	}
	s.from, record.Question = record.From, s.Question
	s.addRepeats()
	if s.Once && len(record.Target) > 0 { // runs that an earlier command submitted may have ended by now
		if err := s.Collect(ctx); err != nil {
			return nil, err
		}
	}
	target := record.Target // set by an earlier command that ended before its next look
	if len(target) == 0 {
		target = s.first()
	}
	for {
		done, err := s.Done(ctx)
		if err != nil {
			return nil, err
		}
		if plan := s.plan(target, done); len(plan.Points) > 0 {
			record.Target, record.Most = target, s.most()
			if o, err := s.begin(ctx, record, plan); o != nil || err != nil {
				return o, err
			}
			continue // a run that failed is replaced by another repeat
		}
		other, err := s.overtaken(record, target)
		if err != nil {
			return nil, err
		}
		if other != nil { // take part in the batch of the other command, instead of looking twice
			target = other
			continue
		}
		o, err := s.lookAhead(ctx, record, done)
		if err != nil {
			return nil, err
		}
		if o.target == nil {
			return &o.Outcome, s.Collect(ctx)
		}
		target = o.target
		s.Tell("%s", o.batch())
	}
}

// overtaken reads the looks that another command has recorded meanwhile. If that command has already
// looked at these runs, overtaken returns the target of its next batch; otherwise nil.
func (s *Study) overtaken(record *Record, target map[string]int) (map[string]int, error) {
	now, err := Read(s.Folder)
	if err != nil {
		return nil, err
	}
	looked := len(now.Looks) > len(record.Looks)
	record.Looks = now.Looks
	if !looked || len(now.Target) == 0 || maps.Equal(now.Target, target) {
		return nil, nil
	}
	s.from, record.From = now.From, now.From
	return now.Target, nil
}

// begin records which runs to make, and makes them. The outcome is nil if all of them have ended,
// so that the next look can follow.
func (s *Study) begin(ctx context.Context, record *Record, plan *study.Plan) (*Outcome, error) {
	if late := s.late(); late != "" {
		return &Outcome{Stopped: late}, nil
	}
	if err := record.write(s.Folder); err != nil {
		return nil, err
	}
	if ended, err := s.measure(ctx, plan); err != nil || !ended {
		return &Outcome{Next: plan}, err
	}
	return nil, nil
}

// lookAhead analyses the results, chooses what to measure next, and records both.
func (s *Study) lookAhead(ctx context.Context, record *Record, done map[study.Run]bool) (*ahead, error) {
	views, scatter, err := s.look(ctx, record)
	if err != nil {
		return nil, err
	}
	spent, err := s.Spent(ctx)
	if err != nil {
		return nil, err
	}
	o := s.outcome(views, done, spent)
	o.Scatter = scatter
	record.Target, record.From = o.target, s.from
	return o, record.write(s.Folder)
}

func (s *Study) most() int { return s.Design.Looks[len(s.Design.Looks)-1] }

func (s *Study) late() string {
	if !s.By.IsZero() && !s.Now().Before(s.By) {
		return "stop_by has passed: " + s.By.Format(time.DateTime)
	}
	return ""
}

// first returns the number of runs that each point needs before the first look. It is the smallest
// number for every point, except for those between two doublings of a range of workers, which need
// none.
func (s *Study) first() map[string]int {
	target := map[string]int{}
	for _, p := range s.Plan.Points {
		if !p.Between {
			target[p.Point.ID] = sequential.First
		}
	}
	return target
}

// First returns the plan of the runs that are needed before the first look.
func (s *Study) First() *study.Plan { return s.plan(s.first(), nil) }

// plan returns the runs that are missing until each point has as many good runs as target says,
// lowest repeat numbers first. The same command does not repeat a failed run. A point with at least
// two more failed than good runs gets no further run.
func (s *Study) plan(target map[string]int, done map[study.Run]bool) *study.Plan {
	have := map[string]int{}
	for r := range done {
		have[r.Point]++
	}
	lost := maps.Clone(have)
	for r, failed := range s.Failed {
		if failed && !done[r] {
			lost[r.Point]--
		}
	}
	plan := *s.Plan
	plan.Points = nil
	for _, p := range s.Plan.Points {
		r := p.Point.Run()
		if r.Repeat >= s.from[r.Point] && have[r.Point] < target[r.Point] && lost[r.Point] > -sequential.First && !done[r] && !s.Failed[r] {
			have[r.Point]++
			plan.Points = append(plan.Points, p)
		}
	}
	return &plan
}

// measure makes the runs of a plan and records failed runs in s.Failed. If all runs of a point in
// this batch failed, it records all further runs of the point, too. ended is false if some runs are
// still in progress.
func (s *Study) measure(ctx context.Context, plan *study.Plan) (ended bool, err error) {
	if err := s.Measure(ctx, plan); err != nil || s.Once {
		return false, err
	}
	if err := s.Collect(ctx); err != nil {
		return false, err
	}
	done, err := s.Done(ctx)
	if err != nil {
		return false, err
	}
	good := map[string]bool{} // points with a good run in this batch
	for _, p := range plan.Points {
		r := p.Point.Run()
		good[r.Point] = good[r.Point] || done[r]
		s.Failed[r] = !done[r]
	}
	for _, p := range s.Plan.Points { // if all runs of a point failed, further repeats would fail, too
		if was, tried := good[p.Point.ID]; tried && !was {
			s.Failed[p.Point.Run()] = true
		}
	}
	return true, nil
}

// look analyses the results and adds the look to the record. It returns one view per series, and
// the text of Outcome.Scatter.
func (s *Study) look(ctx context.Context, record *Record) ([]View, string, error) {
	results, err := s.Results(ctx, s.Design)
	if err != nil {
		return nil, "", err
	}
	views, err := s.views(results)
	if err != nil {
		return nil, "", err
	}
	record.Most = s.most()
	for _, v := range views {
		if v.Advice != nil || v.stated != "" {
			record.add(v.recorded(s.Design, s.Now()))
		}
	}
	return views, results.scatter(), nil
}

// Look analyses the present results and returns the outcome, without making any run.
func (s *Study) Look(ctx context.Context) (*Outcome, error) {
	record, err := Read(s.Folder)
	if err != nil {
		return nil, err
	}
	s.from = record.From
	s.addRepeats()
	done, err := s.Done(ctx)
	if err != nil {
		return nil, err
	}
	results, err := s.Results(ctx, s.Design)
	if err != nil {
		return nil, err
	}
	views, err := s.views(results)
	if err != nil {
		return nil, err
	}
	spent, err := s.Spent(ctx)
	if err != nil {
		return nil, err
	}
	o := s.outcome(views, done, spent)
	o.Next, o.Scatter = s.plan(o.target, done), results.scatter()
	return &o.Outcome, nil
}

// outcome decides from the views whether all questions are decided, and chooses what to measure
// next. spent are the node-hours used so far.
func (s *Study) outcome(views []View, done map[study.Run]bool, spent float64) *ahead {
	o := &ahead{Outcome: Outcome{Views: views, Decided: true, Savings: s.savings(views, done)}}
	left := -1.0
	if s.NodeHours > 0 {
		left = max(0, s.NodeHours-spent)
	}
	target := map[string]int{}
	for i := range views {
		v := &views[i]
		if v.Decided { // if the answer has a tie, more runs may show that both counts are equally good
			v.Batch, _ = s.next(v, left)
		} else {
			o.Decided = false
			s.judge(v, left)
		}
		if v.Batch != nil {
			if left >= 0 {
				left = max(0, left-v.Batch.Hours)
			}
			for n, runs := range v.Batch.Target {
				for _, id := range v.Points[n] {
					target[id] = max(target[id], runs) // a point may be compared with several
				}
			}
		}
		o.Stopped = v.Stopped
	}
	if len(s.plan(target, done).Points) == 0 {
		if !o.Decided && o.Stopped == "" {
			o.Stopped = "failures: the points that may change the answer have no further run to make"
		}
		return o
	}
	if late := s.late(); late != "" {
		o.Stopped = late
		return o
	}
	o.Stopped, o.target = "", target
	return o
}

// judge sets which runs are made next for an undecided view, or why none are. left are the
// remaining node-hours; below 0 there is no limit.
func (s *Study) judge(v *View, left float64) {
	b, unaffordable := s.next(v, left)
	switch {
	case v.Advice != nil && len(v.Advice.Candidates) == 0:
		v.Stopped = "the results: no run says how fast it was"
	case v.Added == nil && v.Caveat != "":
		v.Stopped = "a doubt that more runs do not remove: " + v.Caveat
	case v.Added == nil && len(v.Open) == 0:
		v.Stopped = "failures: a count that may change the answer has no further run to make"
	case unaffordable:
		v.Stopped = fmt.Sprintf("max_node_hours: the next runs take more than the %.3g node-hours left", left)
	case b == nil && v.Futile:
		v.Stopped = fmt.Sprintf("the limit: a count is so near to it that %s of each would probably not decide", number.Count(s.most(), "run"))
	case b == nil:
		v.Stopped = fmt.Sprintf("max_repeats: each count that may change the answer has %s", number.Count(s.most(), "run"))
	default:
		v.Batch = b
	}
}

// ahead is an outcome with the number of good runs that each point needs before the next look. If
// target is nil, the study ends.
type ahead struct {
	Outcome
	target map[string]int
}

// batch returns a text that describes the next batch of runs.
func (o *ahead) batch() string {
	text := ""
	for _, v := range o.Views {
		if v.Batch == nil {
			continue
		}
		if text != "" {
			text += "; "
		}
		if len(o.Views) > 1 {
			text += v.Series + ": "
		}
		text += v.ahead()
	}
	return text
}

// counts returns the worker counts in a target, ascending.
func counts(target map[int]int) []int { return slices.Sorted(maps.Keys(target)) }
