package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// A View is the result of a look for one series.
type View struct {
	*sequential.Look
	Points  map[int][]string  // IDs of the points, by worker count
	Batch   *sequential.Batch // runs to make next; nil if none
	Stopped string            // why no more runs are made for an undecided question; "" otherwise
	Rival   int               // worker count that the answer is compared with; 0 if none
	Ratio   *scaling.Estimate // speed of the larger count divided by the smaller's; nil if unknown
	Price   *float64          // as in metrics.Look

	// For a study with a range of workers: Added are counts next to the answer that must be
	// measured before the question counts as decided. Unlikely are counts next to the answer that
	// cannot be better. Far are all other counts that were not measured.
	Added, Unlikely, Far []int

	question sequential.Question
	// stated is the answer as a sentence, if the question is not how many workers are best. Then there
	// is no Advice, and Runs has one entry, for all points together.
	stated string
	total  int // good runs of all points, with stated
}

// views returns a view for each curve or, if two settings are compared, for each pair of points.
func (s *Study) views(r *Results) ([]View, error) {
	switch {
	case r.Contrast != nil:
		return s.contrasts(r), nil
	case r.Answers != nil:
		return s.answers(r), nil
	}
	of := scaling.ByRun(r.Observations)
	var views []View
	for _, c := range r.Curves {
		v := View{Points: map[int][]string{}}
		hours, runs := map[int]float64{}, map[int]int{}
		for _, p := range c.Points {
			for _, run := range p.Runs {
				o := of[run.ID]
				if o == nil {
					continue
				}
				if !slices.Contains(v.Points[p.Workers], o.Point) {
					v.Points[p.Workers] = append(v.Points[p.Workers], o.Point)
				}
				h := NodeHours(o)
				hours[p.Workers] += h
				runs[p.Workers]++
			}
		}
		v.question = sequential.Question{Wish: r.Wish(c), Design: s.Design, Hours: func(n int) float64 {
			return hours[n] / float64(max(1, runs[n]))
		}}
		var err error
		if v.Look, err = v.question.Look(c, r.Observations, s.closed(v.Points)); err != nil {
			return nil, err
		}
		v.compare(&c)
		s.addBetween(&v, r.Observations)
		views = append(views, v)
	}
	return views, nil
}

// closed returns the worker counts for which no runs are left to make.
func (s *Study) closed(points map[int][]string) map[int]bool {
	left := map[string]bool{}
	for _, p := range s.Plan.Points {
		if !s.Failed[p.Point.Run()] {
			left[p.Point.ID] = true
		}
	}
	closed := map[int]bool{}
	for n, ids := range points {
		closed[n] = !slices.ContainsFunc(ids, func(id string) bool { return left[id] })
	}
	return closed
}

// NodeHours returns the node-hours of a run: from the time of its job, or else from its own time.
func NodeHours(o *scaling.Observation) float64 {
	value := func(name string) float64 {
		if x := o.Known(name); x != nil {
			return *x
		}
		return 0
	}
	seconds := max(value(measure.InitSeconds)+value(measure.TrainSeconds), value(measure.RunSeconds))
	if o.JobSeconds != nil {
		seconds = *o.JobSeconds
	}
	return float64(max(1, o.Nodes)) * seconds / 3600
}

// compare sets Rival, the worker count to compare the answer with, and Ratio, the ratio of the two
// speeds.
func (v *View) compare(c *scaling.Curve) {
	if v.Advice == nil || v.Advice.Workers == nil {
		return
	}
	at := func(n int) *scaling.Point {
		i := slices.IndexFunc(c.Points, func(p scaling.Point) bool { return p.Workers == n })
		if i < 0 {
			return nil
		}
		return &c.Points[i]
	}
	answer := at(*v.Advice.Workers)
	if answer == nil {
		return
	}
	v.Rival = rivalOf(v.Advice, c)
	rival := at(v.Rival)
	if rival == nil {
		return
	}
	if rival.Workers > answer.Workers {
		answer, rival = rival, answer
	}
	if !v.Advice.Limited() {
		price := advice.Price(rival.Workers, answer.Workers)
		v.Price = &price
	}
	v.Ratio = v.Advice.Faster(answer.Workers, rival.Workers)
}

// rivalOf returns the worker count to compare with the answer: the count that may be better, else
// the next smaller count, else the next larger count. It returns 0 if the curve has no other count.
func rivalOf(a *advice.Advice, c *scaling.Curve) int {
	if len(a.Undecided) > 0 {
		return a.Undecided[0].Workers
	}
	if i := slices.IndexFunc(a.Unproven, func(n int) bool { return n != *a.Workers }); i >= 0 {
		return a.Unproven[i]
	}
	smaller, larger := 0, 0
	for _, p := range c.Points {
		switch {
		case p.Workers < *a.Workers:
			smaller = p.Workers
		case p.Workers > *a.Workers && larger == 0:
			larger = p.Workers
		}
	}
	return cmp.Or(smaller, larger)
}

// recorded returns the view in the form that is stored in the record.
func (v *View) recorded(d sequential.Design, now time.Time) metrics.Look {
	l := metrics.Look{Series: v.Series, Unix: metrics.Unix(now), Most: d.Looks[len(d.Looks)-1], Confidence: d.Confidence, Decided: v.Decided}
	if v.stated != "" {
		l.Runs, l.Text = v.total, v.stated
	} else {
		l.Workers, l.Probability, l.Rival, l.Price, l.Text = v.Advice.Workers, v.Advice.Probability, v.Rival, v.Price, v.Advice.Reason[0]
		for _, n := range v.Runs {
			l.Runs += n
		}
	}
	if e := v.Ratio; e != nil {
		l.Ratio = &e.Value
		if e.Interval != nil {
			l.Low, l.High = &e.Interval.Low, &e.Interval.High
		}
	}
	return l
}

// ahead returns a text that says what is measured next.
func (v *View) ahead() string {
	if v.stated != "" {
		return v.aheadOfPoints()
	}
	of := counts(v.Batch.Target)
	workers := list(of) + " workers"
	if len(of) == 1 {
		workers = number.Count(of[0], "worker")
	}
	text := fmt.Sprintf("%s of %s", number.Count(v.Batch.Runs, "more run"), workers)
	if v.Batch.Hours > 0 {
		text += ", " + number.NodeHours(v.Batch.Hours)
	}
	if c := v.Batch.Chance; c != nil {
		text += ", " + advice.Likely(*c) + " likely to decide"
	}
	return text
}

// aheadOfPoints is like ahead for a question that is not about worker counts.
func (v *View) aheadOfPoints() string {
	text := number.Count(v.Batch.Runs, "more run")
	for n := range v.Batch.Target {
		text += " of " + number.Count(len(v.Points[n]), "point")
	}
	if v.Batch.Hours > 0 {
		text += ", " + number.NodeHours(v.Batch.Hours)
	}
	return text
}

// Sentence returns a sentence about the state of the series, for the user.
func (v *View) Sentence() string {
	switch {
	case v.stated != "" && v.Decided:
		return v.stated
	case v.stated != "":
		return v.stated + v.nextSentence()
	case v.Advice == nil:
		return fmt.Sprintf("Too few runs to look at: each count needs %d.", sequential.First)
	case v.Added != nil:
		return fmt.Sprintf("Decided among the counts measured; %s next to the answer may be better. %s%s", list(v.Added), v.Advice.Sentences(), v.nextSentence())
	case v.Decided && v.Advice.Workers == nil:
		return "Decided: no count does what was asked. " + v.Advice.Sentences()
	case v.Decided && len(v.Advice.Equivalent) > 0:
		var same []string
		for _, n := range v.Advice.Equivalent {
			same = append(same, fmt.Sprint(n))
		}
		return fmt.Sprintf("Decided: %s and %s are within 2 %% of each other, either will do. %s", number.Count(*v.Advice.Workers, "worker"), strings.Join(same, ", "), v.Advice.Sentences()) + v.leftOut()
	case v.Decided:
		text := "Decided. " + v.Advice.Sentences() + v.leftOut()
		if v.Batch != nil {
			text += fmt.Sprintf(" Whether %d will do as well: %s.", v.Tie, v.ahead())
		}
		return text
	}
	text := "Undecided. " + v.Advice.Sentences() + v.nextSentence()
	if v.Batch != nil {
		return text
	}
	if runs, hours, ok := v.question.Probable(v.Look); ok {
		text += fmt.Sprintf(" %s, %s, would probably decide.", number.Count(runs, "more run"), number.NodeHours(hours))
	}
	return text
}

// nextSentence returns a sentence that says what is measured next, or why nothing is.
func (v *View) nextSentence() string {
	if v.Batch != nil {
		return " Next: " + v.ahead() + "."
	}
	return " Stopped by " + v.Stopped + "."
}
