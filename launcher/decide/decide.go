// Package decide measures a study until its question is decided. It looks at the results,
// measures a batch of runs, and looks again. All it knows is on disk: the runs, and the
// looks in looks.json, so that a repeated command continues where an earlier one ended.
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

// A Run identifies a planned run.
type Run struct {
	Point  string
	Repeat int
}

// Results are the good runs of a study as curves made with a design's options.
type Results struct {
	Curves       []scaling.Curve
	Observations []scaling.Observation
	Wish         func(scaling.Curve) advice.Options // the requirements for a curve's advice
}

// A Study is measured until its question is decided. The functions do what only the caller
// can do; all must be set.
type Study struct {
	Folder    rundir.Study
	Plan      *study.Plan // every run that may be made: Design's most of each point
	Design    sequential.Design
	NodeHours float64   // maximum for the study's runs, earlier ones included; 0 means no limit
	By        time.Time // no batch begins later; zero: no limit
	Once      bool      // measure one batch and do not wait for its end

	Done    func(context.Context) (map[Run]bool, error) // runs with a good result
	Results func(context.Context, sequential.Design) (*Results, error)
	Measure func(context.Context, *study.Plan) error // makes those runs of a plan that have no good result
	Collect func(context.Context) error              // reads results, and looks.json, into the database
	Spent   func(context.Context) (float64, error)   // node-hours that runs have taken, failed ones included
	Tell    func(format string, a ...any)
	Now     func() time.Time

	from map[string]int // as in Record

	// Failed are runs without a good result that are not made again; Run adds those that it
	// made itself.
	Failed map[Run]bool
}

// An Outcome is the state of a study after a look or a batch.
type Outcome struct {
	Views   []View // by series
	Decided bool   // the questions of all series are
	Stopped string // why undecided questions are not measured further; "" if they are decided, or jobs are under way
	Next    *study.Plan
}

// Run measures until the question is decided. It returns errors of the functions, and of reading or writing
// files.
func (s *Study) Run(ctx context.Context) (*Outcome, error) {
	if s.Failed == nil {
		s.Failed = map[Run]bool{}
	}
	record, err := Read(s.Folder)
	if err != nil {
		return nil, err
	}
	s.from = record.From
	s.addRepeats()
	if s.Once && len(record.Target) > 0 { // runs that an earlier command submitted may have ended
		if err := s.Collect(ctx); err != nil {
			return nil, err
		}
	}
	target := record.Target // of a command that did not come to its next look
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

// begin records what to measure and measures it; the outcome is nil if all of it has ended.
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

// lookAhead analyses the results and records the look and what to measure next.
func (s *Study) lookAhead(ctx context.Context, record *Record, done map[Run]bool) (*ahead, error) {
	views, err := s.look(ctx, record)
	if err != nil {
		return nil, err
	}
	spent, err := s.Spent(ctx)
	if err != nil {
		return nil, err
	}
	o := s.outcome(views, done, spent)
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

// first returns the target before the first look: every point gets the fewest runs, except
// those between the doublings of a range of workers.
func (s *Study) first() map[string]int {
	target := map[string]int{}
	for _, p := range s.Plan.Points {
		if !p.Between {
			target[p.Point.ID] = sequential.First
		}
	}
	return target
}

// plan returns the runs that bring each point to its target, the lowest repeats first. The same command does
// not repeat a failed run, and a point with two more failed than good runs gets no further one.
func (s *Study) plan(target map[string]int, done map[Run]bool) *study.Plan {
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
		r := Run{p.Point.ID, p.Point.Repeat}
		if r.Repeat >= s.from[r.Point] && have[r.Point] < target[r.Point] && lost[r.Point] > -sequential.First && !done[r] && !s.Failed[r] {
			have[r.Point]++
			plan.Points = append(plan.Points, p)
		}
	}
	return &plan
}

// measure makes the runs of a plan and records failures: all runs of a point if none of its runs in the batch
// is good. ended is false if some are still under way.
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
		r := Run{p.Point.ID, p.Point.Repeat}
		good[r.Point] = good[r.Point] || done[r]
		s.Failed[r] = !done[r]
	}
	for _, p := range s.Plan.Points { // other repeats of what only failed would fail, too
		if was, tried := good[p.Point.ID]; tried && !was {
			s.Failed[Run{p.Point.ID, p.Point.Repeat}] = true
		}
	}
	return true, nil
}

// look looks at the results and notes it in the record.
func (s *Study) look(ctx context.Context, record *Record) ([]View, error) {
	results, err := s.Results(ctx, s.Design)
	if err != nil {
		return nil, err
	}
	views, err := s.views(results)
	if err != nil {
		return nil, err
	}
	record.Most = s.most()
	for _, v := range views {
		if v.Advice != nil {
			record.add(v.recorded(s.Design, s.Now()))
		}
	}
	return views, nil
}

// Look looks at the results without measuring anything.
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
	o.Next = s.plan(o.target, done)
	return &o.Outcome, nil
}

// outcome judges the views of a look and chooses what to measure next.
func (s *Study) outcome(views []View, done map[Run]bool, spent float64) *ahead {
	o := &ahead{Outcome: Outcome{Views: views, Decided: true}}
	left := -1.0
	if s.NodeHours > 0 {
		left = max(0, s.NodeHours-spent)
	}
	target := map[string]int{}
	for i := range views {
		v := &views[i]
		if v.Decided { // with a tie, more runs may show that either will do
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
					target[id] = runs
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

// judge sets what is measured next of an open view, or why nothing is. A left below 0 is no
// limit of node-hours.
func (s *Study) judge(v *View, left float64) {
	b, unaffordable := s.next(v, left)
	switch {
	case v.Advice != nil && len(v.Advice.Candidates) == 0:
		v.Stopped = "the results: no run says how fast it was"
	case v.Added == nil && v.Doubt != "":
		v.Stopped = "a doubt that more runs do not remove: " + v.Doubt
	case v.Added == nil && len(v.Open) == 0:
		v.Stopped = "failures: a count that may change the answer has no further run to make"
	case unaffordable:
		v.Stopped = fmt.Sprintf("max_node_hours: the next runs take more than the %.3g node-hours left", left)
	case b == nil && v.Futile:
		v.Stopped = fmt.Sprintf("the limit: a count is so near to it that %s of each would probably not decide", number.Count(s.most(), "run"))
	case b == nil:
		v.Stopped = fmt.Sprintf("max_repeats: each count that may change the answer has %d runs", s.most())
	default:
		v.Batch = b
	}
}

// ahead is an outcome with the target of the next batch; nil means that the study ends.
type ahead struct {
	Outcome
	target map[string]int
}

// batch describes the next batch.
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

// counts lists the counts of a target.
func counts(target map[int]int) []int { return slices.Sorted(maps.Keys(target)) }
