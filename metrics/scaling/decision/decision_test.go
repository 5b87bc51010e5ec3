package decision

import (
	"math"
	"testing"
)

// exact returns a comparison without error.
func exact(x float64) Comparison {
	return Comparison{Value: x, Belief: &Belief{x, x, x, 0.95}}
}

// about returns a comparison whose 95 % interval extends by a factor to either side.
func about(x, factor float64) Comparison {
	return Comparison{Value: x, Belief: &Belief{x, x / factor, x * factor, 0.95}}
}

func options(sizes ...int) (list []Option) {
	for _, n := range sizes {
		list = append(list, Option{Size: n, Runs: 6, Measured: true})
	}
	return list
}

// speeds returns the default question: more workers must be 1.4 times as fast per doubling.
func speeds(sizes []int, x []float64, factor float64) Question {
	return Question{Options: options(sizes...), Over: func(i, j int) Comparison {
		return about(x[i]/x[j]*math.Pow(1.4, math.Log2(float64(sizes[j])/float64(sizes[i]))), factor)
	}}
}

// 100 to 640 samples/s on 1 to 32 workers. Divided by 1.4 per doubling, these are 100, 136, 179,
// 109, 117 and 119. So the answer is 4 workers, and neither 16 nor 32, although the gains from 8 to
// 16 and from 16 to 32 are 1.5 and 1.42.
func TestPlateauDoesNotCountAsDoublings(t *testing.T) {
	r := Decide(speeds([]int{1, 2, 4, 8, 16, 32}, []float64{100, 190, 350, 300, 450, 640}, 1.02))
	if r.Chosen != 2 || r.Provisional || r.Probability == nil || *r.Probability < 0.99 {
		t.Errorf("%+v", r)
	}
}

// A doubling of 1.5 times over the threshold of 1.4 is 7.1 % better. Where the interval reaches
// 10 % to either side, a standard deviation is log(1.1)/1.96 = 0.0486 and no more than 2 % worse are
// log(1.0714/0.98)/0.0486 = 1.83 of them away: 96.7 %. At 20 %, 0.96 of them: 83.1 %.
func TestProbability(t *testing.T) {
	for _, test := range []struct {
		factor, want float64
		decided      bool
	}{{1.1, 0.967, true}, {1.2, 0.831, false}} {
		r := Decide(speeds([]int{1, 2}, []float64{1, 1.5}, test.factor))
		if r.Chosen != 1 || math.Abs(*r.Probability-test.want) > 0.001 || r.Provisional == test.decided || len(r.Undecided) == 0 == !test.decided {
			t.Errorf("%g: %+v, probability %g", test.factor, r, *r.Probability)
		}
	}
}

// If two options are within 2 %, either will do, and nothing is undecided.
func TestEquivalent(t *testing.T) {
	r := Decide(speeds([]int{1, 2}, []float64{1, 1.4 * 1.004}, 1.01))
	if r.Chosen != 1 || r.Provisional || len(r.Equivalent) != 1 || r.Equivalent[0] != 0 {
		t.Errorf("%+v", r)
	}
}

// Without intervals the values decide, without a probability; each doubt is reported once.
func TestWithoutIntervals(t *testing.T) {
	d := Caveat{Order, "made at other times", true}
	x := []float64{1, 1.9, 3.5}
	r := Decide(Question{Options: options(1, 2, 4), Over: func(i, j int) Comparison {
		return Comparison{Value: x[i] / x[j] * math.Pow(1.4, float64(j-i)), Caveat: &d}
	}})
	if r.Chosen != 2 || !r.Provisional || r.Probability != nil || len(r.Caveats) != 1 {
		t.Errorf("%+v", r)
	}
	// A count with too few runs does not raise a doubt if it is far worse: 4 compared with 1 is
	// 1.79 at that price.
	few := Caveat{FewRuns, "1 worker has 3", true}
	r = Decide(Question{Options: options(1, 2, 4), Over: func(i, j int) Comparison {
		c := exact(x[i] / x[j] * math.Pow(1.4, float64(j-i)))
		if i == 0 || j == 0 {
			c.Belief, c.Caveat = nil, &few
		}
		return c
	}})
	if r.Chosen != 2 || r.Provisional || len(r.Caveats) != 1 || r.Caveats[0].Changes {
		t.Errorf("%+v", r)
	}
}

// Three options are worth 4, 2 and 1, and keep the limit with 60, 90 and 100 %. The
// first is the best wherever it keeps it, 0.6. The second is half of it there, and the
// best in 0.3 more: 0.6. The last is a quarter of the first in 0.6, half of the second
// in 0.3 and alone in 0.1: 0.4. Within 10 % of the best they are in 0.6, 0.3 and 0.1.
func TestExpected(t *testing.T) {
	all := []prospect{{keeps: 1, worth: 1}, {keeps: 0.9, worth: 2}, {keeps: 0.6, worth: 4}}
	for i, want := range [][2]float64{{0.1, 0.4}, {0.3, 0.6}, {0.6, 0.6}} {
		if good, share := expected(all[i], all); math.Abs(share-want[1]) > 1e-12 || math.Abs(good-want[0]) > 1e-12 {
			t.Errorf("%d: %g and %g, want %v", i, good, share, want)
		}
	}
}

func TestWithin(t *testing.T) {
	keep := func(sizes []int, keeps ...float64) (list []Option) {
		for i, n := range sizes {
			list = append(list, Option{Size: n, Keeps: &keeps[i], Worth: 1 / float64(n)})
		}
		return list
	}
	for _, test := range []struct {
		name string
		q    Question
		want int
	}{
		{"the fewest that are sure", Question{Options: keep([]int{1, 2, 4}, 0, 0.98, 1)}, 1},
		{"not enough to tell", Question{Options: keep([]int{1, 2, 4}, 0, 0.6, 1)}, -1},
		{"none", Question{Options: keep([]int{1, 2}, 0, 0.1)}, -1},
		{"not above", Question{Options: keep([]int{1, 2, 4}, 0, 0.1, 1), UpTo: 2}, -1},
	} {
		test.q.Limits = true
		if r := Decide(test.q); r.Chosen != test.want {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
	// If the choice is not sure, a safer option is listed. 2 meets the limit with 85 % and has an
	// expected worth of 0.85; 3 surely meets it, with a worth of 2/3.
	unsure := Decide(Question{Limits: true, Options: keep([]int{2, 3}, 0.85, 0.99)})
	if unsure.Chosen != 0 || len(unsure.Undecided) != 1 || unsure.Undecided[0].Option != 1 || !unsure.Provisional {
		t.Errorf("%+v", unsure)
	}
	// A larger option that a smaller one beats is not chosen, but named.
	q := Question{Limits: true, Options: keep([]int{1, 2}, 1, 1), Beats: func(i, j int) bool { return i == 0 }}
	q.Options[1].Worth = 2
	if r := Decide(q); r.Chosen != 0 || r.Passed != 1 {
		t.Errorf("%+v", r)
	}
}

// With a minimum probability, the answer is the best option that reaches it, although 2 has a
// higher expected worth. Other options that may meet the limit are undecided.
func TestLeastProbability(t *testing.T) {
	keeps := []float64{0.01, 0.9, 0.98, 1}
	q := Question{Limits: true, Least: 0.975}
	for i, n := range []int{1, 2, 4, 8} {
		q.Options = append(q.Options, Option{Size: n, Keeps: &keeps[i], Worth: 1 / float64(n)})
	}
	r := Decide(q)
	if r.Chosen != 2 || len(r.Undecided) != 1 || r.Undecided[0] != (Contender{1, 0.9}) || !r.Provisional || math.Abs(*r.Probability-0.08) > 1e-12 {
		t.Errorf("%+v", r)
	}
	if q.UpTo = 2; Decide(q).Chosen >= 0 {
		t.Error("2 are 90 % likely, which is too little")
	}
}

// The exact 95 % interval of a median has the ranks 1, 1, 1, 2, 2, 2, 3 of n at 6 to 12 runs
// (David & Nagaraja, 7.1: twice the binomial tail of l-1 successes is at most 5 %: 2·(1+9)/512 = 3.9 % at 9,
// and 2·(1+8)/256 = 7 % at 8; 2·(1+12+66)/4096 = 3.9 % at 12).
func TestNarrower(t *testing.T) {
	for n, want := range map[int]int{1: 6, 3: 6, 5: 6, 6: 9, 7: 9, 8: 9, 9: 12, 11: 12} {
		if got := Narrower(n, 0.95); got != want {
			t.Errorf("%d runs: %d, want %d", n, got, want)
		}
	}
}

// From 6 runs, whose interval reaches 10 % of the value on the logarithm: to 9 % takes 9 (3 more), to
// 7 % 6·(10/7)² = 12.2, where 12 is the last to narrow; never more than twice as many.
func TestMoreRuns(t *testing.T) {
	for _, test := range []struct {
		n              int
		half, distance float64
		want           int
	}{{6, 0.10, 0.09, 3}, {6, 0.10, 0.07, 6}, {6, 0.10, 0.001, 6}, {6, math.Inf(1), 0.1, 6}, {3, 0.1, 0.05, 3}, {8, 0.10, 0.0999, 1}} {
		if got := More(test.n, test.half, test.distance, 0.95); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// Without an interval, twice as good is a clear lead only if the runs of the two do not overlap.
func TestClearLead(t *testing.T) {
	few := Caveat{FewRuns, "2 runs", true}
	for _, overlaps := range []bool{false, true} {
		r := Decide(Question{Options: options(1, 2), Over: func(i, j int) Comparison {
			return Comparison{Value: math.Pow(2, float64(i-j)), Caveat: &few, Overlaps: overlaps}
		}})
		if r.Chosen != 1 || r.Provisional != overlaps || (len(r.Unproven) > 0) != overlaps {
			t.Errorf("overlaps %v: %+v", overlaps, r)
		}
	}
}

// Two options are equivalent if each is surely at most 2 % better than the other.
func TestEquivalentBounds(t *testing.T) {
	for _, test := range []struct {
		ratio, factor float64
		equivalent    bool
		undecided     bool
	}{
		{1, 1.01, true, false},
		{1.015, 1.002, true, false},
		{1.03, 1.002, false, false}, // surely better by more
		{1.001, 1.1, false, true},   // either may be better by more
		{1.015, 1.02, false, false}, // surely no worse, and may be better by more
	} {
		r := Decide(Question{Options: options(1, 2), Over: func(i, j int) Comparison {
			if i == 1 {
				return about(test.ratio, test.factor)
			}
			return about(1/test.ratio, test.factor)
		}})
		if got := len(r.Equivalent) == 1; got != test.equivalent || len(r.Undecided) > 0 != test.undecided {
			t.Errorf("%g within %g: chosen %d, equivalent %v, undecided %v", test.ratio, test.factor, r.Chosen, r.Equivalent, r.Undecided)
		}
	}
}
