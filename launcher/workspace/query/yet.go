package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// single returns an error if the wish asks several questions at once.
func (o *Wish) single() error {
	var asked []string
	add := func(is bool, name string) {
		if is {
			asked = append(asked, name)
		}
	}
	add(o.Contrast != "", "--compare, which setting is better")
	add(o.Spec, "--spec, how much of each resource is enough")
	add(o.Rate != 0, "--rate, how many replicas are needed")
	add(o.Options.Deadline > 0 || o.Options.Budget > 0 || o.Options.MinEfficiency > 0, "--deadline, --budget and --min-efficiency, how many workers are best")
	if len(asked) > 1 {
		return workspace.Errorf("two questions: %s; ask one of them", strings.Join(asked, ", and "))
	}
	return nil
}

// enoughYet returns, for each series, whether the runs decide how much of each resource is enough.
func (r *Reader) enoughYet(ctx context.Context, o Wish) (*decide.Results, error) {
	n, err := r.Needs(ctx, o)
	if err != nil {
		return nil, err
	}
	results := &decide.Results{Observations: n.obs, Answers: []decide.Answer{}}
	for _, a := range n.Answers {
		one := decide.Answer{Series: a.Series, Text: report.SpecSentence(a)}
		for _, m := range a.Open() {
			one.Open = append(one.Open, m.Points...)
		}
		one.Decided = a.Spec != nil && !a.Provisional && one.Open == nil
		if names := a.LeftOut(); names != nil {
			one.Text += " Left out as clearly too little: " + strings.Join(names, ", ") + "."
		}
		switch {
		case one.Decided:
		case len(a.Because) > 0:
			one.Open, one.Caveat = nil, sequential.Unremoved(a.Because[0])
		case one.Open == nil:
			one.Caveat = n.unmeasured(a)
		}
		results.Answers = append(results.Answers, one)
	}
	return results, nil
}

// unmeasured returns the reason why more runs of the study's points do not decide.
func (n *Needed) unmeasured(a sensitivity.Answer) string {
	for _, m := range a.Next {
		if m.Verdict != "" {
			continue
		}
		text := "amounts that are enough one by one must be measured together"
		if command := n.Command(a, m.At); command != "" {
			text += ": `" + command + "`"
		}
		return text
	}
	return a.Why
}

// replicasYet returns, for each series of a service, whether the runs decide how many replicas are
// needed.
func (r *Reader) replicasYet(ctx context.Context, o Wish) (*decide.Results, error) {
	rated, err := r.Replicas(ctx, o)
	if none := (*workspace.Error)(nil); errors.Is(err, errNoRate) && errors.As(err, &none) {
		text := none.Error()
		return &decide.Results{Answers: []decide.Answer{{Series: o.Study, Text: strings.ToUpper(text[:1]) + text[1:] + ". " + none.Hint, Caveat: "no run has found a rate"}}}, nil
	}
	if err != nil {
		return nil, err
	}
	results := &decide.Results{Observations: rated.Observations, Curves: rated.Curves, Answers: []decide.Answer{}}
	for _, a := range rated.Answers {
		one := decide.Answer{Series: a.Series, Text: a.Sentence(), Decided: a.Replicas > 0 && !a.Provisional}
		if doubts := rated.decisive(a.Series); len(doubts) > 0 {
			one.Decided, one.Caveat = false, sequential.Unremoved(doubts[0])
		} else if one.Open = rated.open(a); one.Open == nil {
			one.Caveat = whyProvisional(a)
		}
		if one.Decided {
			one.Open, one.Caveat = nil, ""
		}
		results.Answers = append(results.Answers, one)
	}
	return results, nil
}

// open returns the IDs of the points of which more runs may change an answer.
func (r *Rated) open(a capacity.Answer) (ids []string) {
	runs := map[string]bool{} // of these points
	for _, c := range r.Curves {
		if c.Series != a.Series {
			continue
		}
		for _, i := range openReplicas(c, a) {
			for _, run := range c.Points[i].Runs {
				runs[run.ID] = true
			}
		}
	}
	for _, run := range r.Observations {
		if runs[run.Run] && !slices.Contains(ids, run.Point) {
			ids = append(ids, run.Point)
		}
	}
	return ids
}

// openReplicas returns the indices of the points of a curve of which more runs may change the
// answer. With an answer, these are the numbers of replicas that may be enough, and the answer
// itself. Without one, they are all numbers that have no interval yet, unless each run is clearly
// (decision.Clear) above or below the demand.
func openReplicas(c scaling.Curve, a capacity.Answer) (list []int) {
	demand := a.Demand
	if a.SeriesDemand > 0 {
		demand = a.SeriesDemand
	}
	for i := range c.Points {
		p := &c.Points[i]
		rate := p.Of(measure.RateWithinLimit)
		if rate.Median == nil || len(rate.Values) == 0 {
			continue
		}
		if _, _, ok := rate.Median.Ends(); !ok {
			low, high := rate.Values[0], rate.Values[len(rate.Values)-1]
			if high*decision.Clear <= demand { // too little
				continue
			}
			list = append(list, i)
			if low >= demand*decision.Clear { // enough: more replicas are not needed
				return list
			}
			continue
		}
		may := func(u capacity.Contender) bool { return u.Replicas == p.Workers }
		if p.Workers == a.Replicas || slices.ContainsFunc(a.Undecided, may) {
			list = append(list, i)
		}
	}
	if len(a.Because) > 0 || len(list) == 1 && c.Points[list[0]].Workers == a.Replicas {
		return nil // other replicas were not measured, or a warning remains
	}
	return list
}

// whyProvisional returns the reason why more runs of the measured replicas do not decide.
func whyProvisional(a capacity.Answer) string {
	switch {
	case len(a.Because) > 0:
		return a.Because[0]
	case a.Next != nil && a.Next.Command != "":
		return fmt.Sprintf("%s must be measured: `%s`", a.Next.Sentence(), a.Next.Command)
	case a.Why != "":
		return a.Why
	}
	return "other numbers of replicas must be measured"
}
