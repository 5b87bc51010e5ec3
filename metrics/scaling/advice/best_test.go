package advice

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Answers are ranked by higher target, then by time or, with a deadline, by cost. Series without an
// answer are left out.
func TestRanked(t *testing.T) {
	at := func(series string, target float64, workers int, seconds, cost, rate float64) *Advice {
		a := &Advice{Series: series, Workers: &workers, Candidates: []Candidate{{Workers: workers + 1}, {Workers: workers}}}
		c := &a.Candidates[1]
		if target > 0 {
			a.Target, a.Goal = new(measure.Accuracy(target)), "to_x"
			c.Seconds = &Estimate{Value: seconds}
		}
		if cost > 0 {
			c.Cost = &Estimate{Value: cost}
		}
		c.Throughput = &Estimate{Value: rate}
		return a
	}
	none := &Advice{Series: "none"}
	for name, test := range map[string]struct {
		list []*Advice
		wish Options
		want string
	}{
		"soonest":             {[]*Advice{at("a", 0.7, 1, 9, 0, 1), none, at("b", 0.7, 2, 8, 0, 1)}, Options{}, "b a"},
		"higher target first": {[]*Advice{at("a", 0.5, 1, 1, 0, 1), at("b", 0.7, 2, 8, 0, 1), at("c", 0, 2, 0, 0, 99)}, Options{}, "b a c"},
		"cheapest in time":    {[]*Advice{at("a", 0.7, 1, 1, 5, 1), at("b", 0.7, 2, 8, 4, 1)}, Options{Deadline: 10}, "b a"},
		"held without prices": {[]*Advice{at("a", 0.7, 8, 2, 0, 1), at("b", 0.7, 2, 7, 0, 1)}, Options{Deadline: 10}, "b a"}, // 16 and 14 worker-seconds
		"fastest in budget":   {[]*Advice{at("a", 0.7, 1, 1, 5, 1), at("b", 0.7, 2, 8, 4, 1)}, Options{Budget: 10}, "a b"},
		"throughput":          {[]*Advice{at("a", 0, 1, 0, 0, 10), at("b", 0, 2, 0, 0, 30), at("c", 0, 2, 0, 0, 20)}, Options{}, "b c a"},
		"nothing":             {[]*Advice{none}, Options{}, ""},
	} {
		var got []string
		for _, a := range Ranked(test.list, test.wish) {
			got = append(got, a.Series)
			if a.Candidate.Workers != *a.Advice.Workers {
				t.Errorf("%s: the candidate of %s has %d workers", name, a.Series, a.Candidate.Workers)
			}
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%s: %q, want %q", name, s, test.want)
		}
	}
}

func TestCompare(t *testing.T) {
	within := func(low, high float64) Answer {
		return Answer{Candidate: Candidate{Seconds: &Estimate{Value: (low + high) / 2, Low: &low, High: &high}}}
	}
	if got := Compare(within(1, 2), within(3, 4)); got != Apart {
		t.Errorf("1 to 2 and 3 to 4: %v", got)
	}
	if got := Compare(within(1, 3), within(2, 4)); got != Overlap {
		t.Errorf("1 to 3 and 2 to 4: %v", got)
	}
	if got := Compare(within(1, 2), Answer{Candidate: Candidate{Seconds: &Estimate{Value: 9}}}); got != Unproven {
		t.Errorf("without an interval: %v", got)
	}
}
