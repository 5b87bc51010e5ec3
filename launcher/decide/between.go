package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// addBetween adds counts next to a decided answer, of a study with a range of workers: the
// question is open until they are measured. The others are left out.
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
	from := s.nextRepeat(v.Points[*v.Advice.Workers], runs)
	for n, ids := range of {
		if !slices.Contains(add, n) {
			continue
		}
		v.Points[n] = ids
		for _, id := range ids {
			if s.from == nil {
				s.from = map[string]int{}
			}
			s.from[id] = from
		}
	}
}

// between returns the points of a view's curve that lie between doublings and are not
// measured yet, by their workers.
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
		if p.Between && curves[p.Curve] && v.Runs[n] == 0 && !s.Failed[Run{p.Point.ID, p.Point.Repeat}] && !slices.Contains(of[n], p.Point.ID) {
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

// nextRepeat returns the repeat after the last one of some points, early enough that a
// ratio can have an interval.
func (s *Study) nextRepeat(points []string, runs []scaling.Observation) int {
	last := 0
	for i := range runs {
		if slices.Contains(points, runs[i].Point) {
			last = max(last, runs[i].Repeat)
		}
	}
	return max(1, min(last+1, s.most()-scaling.LeastSeparate+1))
}

// next returns what to measure next of an open view, as Question.Next does. Added counts
// run in blocks with as many runs of the answer.
func (s *Study) next(v *View, left float64) (b *sequential.Batch, unaffordable bool) {
	if v.Added == nil {
		b, unaffordable = v.question.Next(v.Look, left)
		if b == nil || unaffordable {
			return b, unaffordable
		}
	} else {
		b = &sequential.Batch{Target: map[int]int{}}
		for _, n := range v.Added {
			b.Target[n] = sequential.First
			b.Runs += sequential.First
			b.Hours += sequential.First * v.question.Hours(*v.Advice.Workers)
		}
	}
	s.repeatAnswer(v, b)
	if left >= 0 && b.Hours > left {
		return nil, true
	}
	return b, false
}

// repeatAnswer gives the answer as many more runs as the counts have that were added later.
func (s *Study) repeatAnswer(v *View, b *sequential.Batch) {
	if v.Advice == nil || v.Advice.Workers == nil {
		return
	}
	answer, more := *v.Advice.Workers, 0
	for n, target := range b.Target {
		if slices.ContainsFunc(v.Points[n], func(id string) bool { return s.from[id] > 0 }) {
			more = max(more, target-v.Runs[n])
		}
	}
	has := max(v.Runs[answer], b.Target[answer])
	if want := min(s.most(), v.Runs[answer]+more); want > has {
		b.Target[answer] = want
		b.Runs += want - has
		b.Hours += float64(want-has) * v.question.Hours(answer)
	}
}

// leftOut says which counts of a range of workers were not measured, and why; "" if all were.
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
