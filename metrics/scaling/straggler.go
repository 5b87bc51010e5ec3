package scaling

// straggler finds the rank that was the slowest in most steady steps of the
// runs together: a slow GPU or node shows as one rank, noise as all of them in
// turn. Runs whose records are not of so many ranks are left out.
func straggler(workers int, runs []*Observation) *Straggler {
	if workers < 2 {
		return nil
	}
	var count []int
	steps := 0
	for _, o := range runs {
		if len(o.Slowest) != workers {
			continue
		}
		if count == nil {
			count = make([]int, workers) // as long as what was recorded
		}
		for rank, n := range o.Slowest {
			count[rank] += n
			steps += n
		}
	}
	if steps == 0 {
		return nil
	}
	rank := 0
	for r, n := range count {
		if n > count[rank] {
			rank = r
		}
	}
	return &Straggler{Rank: rank, Steps: steps, Share: float64(count[rank]) / float64(steps)}
}

// persistent reports whether one rank is the slowest so often that it is no
// chance: more than halfway from its fair share, 1/N, to every step.
func (s *Straggler) persistent(workers int) bool {
	return s != nil && s.Share > (1+1/float64(workers))/2
}
