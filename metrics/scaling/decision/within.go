package decision

import (
	"cmp"
	"slices"
)

// If there are limits, the answer must meet them and be Close to the best option with a
// probability of at least likely. Its expected worth must be at least the share worthy of the best
// option's worth.
const (
	likely = 0.5
	worthy = 0.8
)

// A prospect is an option that may meet the limits.
type prospect struct {
	option int
	keeps  float64
	worth  float64
}

// within chooses an option if there are limits. Of the options that are likely to be good enough,
// it chooses the one with the highest expected worth (Raiffa & Schlaifer, Applied Statistical
// Decision Theory, 1961).
func (q *Question) within(r *Result) {
	var all, open []prospect
	for i := range q.Options {
		o := &q.Options[i]
		if o.Keeps == nil || q.UpTo > 0 && o.Size > q.UpTo {
			continue
		}
		all = append(all, prospect{i, *o.Keeps, o.Worth})
	}
	for _, p := range all {
		switch {
		case q.Beats == nil || !slices.ContainsFunc(all, func(o prospect) bool {
			return o.option != p.option && o.keeps >= p.keeps && q.Beats(o.option, p.option)
		}):
			open = append(open, p)
		case p.keeps > 0.5:
			r.Passed = p.option
		}
	}
	slices.SortStableFunc(open, func(a, b prospect) int { return cmp.Compare(b.keeps, a.keeps) })
	most := 0.0
	for _, p := range open {
		good, share := expected(p, open)
		switch {
		case q.Least > 0:
			if p.keeps >= q.Least-1e-12 && p.worth > most {
				most, r.Chosen, r.Probability = p.worth, p.option, &good
			}
		case share > most && share >= worthy-1e-12 && good >= likely:
			most, r.Chosen, r.Probability = share, p.option, &good
		}
	}
	if r.Chosen < 0 {
		return
	}
	// Options that may be better by more than Close and, if the answer is not sure, options that
	// are safer.
	chosen := all[slices.IndexFunc(all, func(p prospect) bool { return p.option == r.Chosen })]
	for _, p := range open {
		if q.rivals(p, chosen) {
			r.Undecided = append(r.Undecided, Contender{p.option, p.keeps})
		}
	}
	slices.SortStableFunc(r.Undecided, func(a, b Contender) int {
		return cmp.Compare(q.Options[b.Option].Worth*b.Probability, q.Options[a.Option].Worth*a.Probability)
	})
}

// rivals reports whether p may be the better choice.
func (q *Question) rivals(p, chosen prospect) bool {
	if q.Least > 0 {
		return p.worth > chosen.worth && p.keeps > 1-q.Least
	}
	better := p.worth*(1-Close) > chosen.worth && p.keeps > 1-q.sure()
	return better || chosen.keeps < q.sure() && p.keeps >= q.sure()
}

// expected returns the probability that p keeps the limits and is Close to the best of those that
// do, and its expected worth, as a share of the worth of that best option; it is 0 where it breaks
// a limit. The errors of the options are correlated, because they share runs, model and base. So
// the model is: for a uniform random u, an option keeps the limits if its probability is at least
// u. all must be sorted by this probability, highest first.
func expected(p prospect, all []prospect) (good, share float64) {
	best := 0.0
	for i, o := range all {
		best = max(best, o.worth)
		next := 0.0
		if i+1 < len(all) {
			next = all[i+1].keeps
		}
		top := min(o.keeps, p.keeps)
		if top <= next {
			continue
		}
		share += (top - next) * p.worth / best
		if p.worth >= best*(1-Close) {
			good += top - next
		}
	}
	return good, share
}
