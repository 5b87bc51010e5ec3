package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// addBetween adds worker counts to a study with a range of workers, once the question is
// decided among the measured counts. It adds counts next to the answer that may be better,
// and the question is open again until they are measured. It leaves out all other counts.
func (s *Study) addBetween(v *View, runs []scaling.Observation) {
	of := s.between(v)
	if !v.Decided || len(of) == 0 {
		return
	}
	add, no := v.question.Between(v.Look, workersOf(of))
	v.Unlikely, v.Added = no, add
	for _, n := range workersOf(of) {
		if !slices.Contains(no, n) && !slices.Contains(add, n) {
			v.Far = append(v.Far, n)
		}
	}
	if len(add) == 0 {
		return
	}
	v.Decided, v.Tie = false, 0
	for _, n := range add {
		v.Points[n] = of[n]
	}
	from := nextRepeat(v.Points, runs)
	if s.from == nil {
		s.from = map[string]int{}
	}
	for _, ids := range v.Points {
		for _, id := range ids {
			s.from[id] = from
		}
	}
}

// between returns the points of a view's curve that lie between two doublings and have no
// runs yet: their IDs, by worker count.
func (s *Study) between(v *View) map[int][]string {
	curves := map[int]bool{}
	for _, p := range s.Plan.Points {
		if slices.Contains(v.Points[p.Point.Workers], p.Point.ID) {
			curves[p.Curve] = true
		}
	}
	of := map[int][]string{}
	for _, p := range s.Plan.Points {
		n := p.Point.Workers
		if p.Between && curves[p.Curve] && v.Runs[n] == 0 && !s.Failed[p.Point.Run()] && !slices.Contains(of[n], p.Point.ID) {
			of[n] = append(of[n], p.Point.ID)
		}
	}
	return of
}

func workersOf(of map[int][]string) []int {
	list := make([]int, 0, len(of))
	for n := range of {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// nextRepeat returns the number that follows the largest repeat number among the runs of the
// given points.
func nextRepeat(points map[int][]string, runs []scaling.Observation) int {
	last := 0
	for i := range runs {
		for _, ids := range points {
			if slices.Contains(ids, runs[i].Point) {
				last = max(last, runs[i].Repeat)
			}
		}
	}
	return last + 1
}

// addRepeats adds further repeats to the plan of a study with a range of workers. They are
// needed because counts that are added later start with a new repeat number, together with
// the counts measured before.
func (s *Study) addRepeats() {
	if !slices.ContainsFunc(s.Plan.Points, func(p study.Planned) bool { return p.Between }) {
		return
	}
	plan := *s.Plan
	plan.Points = nil
	for i, p := range s.Plan.Points {
		plan.Points = append(plan.Points, p)
		if i+1 < len(s.Plan.Points) && s.Plan.Points[i+1].Point.ID == p.Point.ID {
			continue
		}
		for range 2 * s.most() {
			p.Point.Repeat++
			p.Point.Seed++
			plan.Points = append(plan.Points, p)
		}
	}
	s.Plan = &plan
}

// next returns which runs to make next for a view, like Question.Next. Counts that were added
// run in the same blocks as the answer.
func (s *Study) next(v *View, left float64) (b *sequential.Batch, unaffordable bool) {
	if v.Added == nil {
		b, unaffordable = v.question.Next(v.Look, left)
		if b == nil || unaffordable {
			return b, unaffordable
		}
		if v.stated != "" { // each point gets as many
			for n := range b.Target {
				b.Runs *= len(v.Points[n])
			}
			return b, false
		}
	} else {
		b = &sequential.Batch{Target: map[int]int{}}
		for _, n := range v.Added {
			b.Target[n] = sequential.First
			b.Runs += sequential.First
			b.Hours += sequential.First * v.question.Hours(*v.Advice.Workers)
		}
	}
	s.wholeBlocks(v, b)
	if left >= 0 && b.Hours > left {
		return nil, true
	}
	return b, false
}

// wholeBlocks changes a batch, once counts were added, so that the answer and all open counts
// get the same number of further runs. Counts that are compared must run at the same time.
func (s *Study) wholeBlocks(v *View, b *sequential.Batch) {
	if len(s.from) == 0 || v.Advice == nil || v.Advice.Workers == nil {
		return
	}
	more := 0
	for n, target := range b.Target {
		more = max(more, target-v.Runs[n])
	}
	for _, n := range append(slices.Clone(v.Open), *v.Advice.Workers) {
		has := max(v.Runs[n], b.Target[n])
		if want := min(s.most(), v.Runs[n]+more); want > has {
			b.Target[n] = want
			b.Runs += want - has
			b.Hours += float64(want-has) * v.question.Hours(n)
		}
	}
}

// leftOut returns a text that says which counts of a range of workers were not measured, and
// why; "" if all were measured.
func (v *View) leftOut() string {
	var parts []string
	if len(v.Unlikely) > 0 {
		parts = append(parts, fmt.Sprintf("%s cannot be better than %d by more than 2 %%, as the counts around them show", list(v.Unlikely), *v.Advice.Workers))
	}
	if len(v.Far) > 0 {
		parts = append(parts, list(v.Far)+" not next to the answer")
	}
	if parts == nil {
		return ""
	}
	return " Left out: " + strings.Join(parts, "; ") + "."
}

func list(counts []int) string {
	words := make([]string, len(counts))
	for i, n := range counts {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, ", ")
}
