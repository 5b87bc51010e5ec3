package sequential

import (
	"math"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// More runs may decide about the answer and the counts that may be better. If only the answer itself
// is uncertain, they are all counts that can be measured.
func TestOpenCounts(t *testing.T) {
	four := 4
	candidates := []advice.Candidate{{Workers: 1}, {Workers: 2}, {Workers: 4}, {Workers: 8}}
	undecided := func(counts ...int) (list []advice.Contender) {
		for _, n := range counts {
			list = append(list, advice.Contender{Workers: n})
		}
		return list
	}
	for _, c := range []struct {
		name   string
		a      advice.Advice
		counts []int
		want   []int
	}{
		{"against one", advice.Advice{Workers: &four, Undecided: undecided(2), Candidates: candidates}, []int{1, 2, 4, 8}, []int{2, 4}},
		{"against what is unproven", advice.Advice{Workers: &four, Unproven: []int{8}, Candidates: candidates}, []int{1, 2, 4, 8}, []int{4, 8}},
		{"once each", advice.Advice{Workers: &four, Undecided: undecided(8, 2), Unproven: []int{8}, Candidates: candidates}, []int{1, 2, 4, 8}, []int{2, 4, 8}},
		{"the answer alone", advice.Advice{Workers: &four, Candidates: candidates}, []int{1, 2, 4, 8}, []int{1, 2, 4, 8}},
		{"no answer", advice.Advice{Candidates: candidates}, []int{1, 2, 4, 8}, []int{1, 2, 4, 8}},
		{"one that is closed", advice.Advice{Workers: &four, Undecided: undecided(2, 8), Candidates: candidates}, []int{1, 4, 8}, []int{4, 8}},
		{"all others closed", advice.Advice{Workers: &four, Undecided: undecided(2), Candidates: candidates}, []int{4}, nil},
		{"the only one left", advice.Advice{Workers: &four, Candidates: candidates}, []int{4}, nil},
		{"no candidates", advice.Advice{Workers: &four, Undecided: undecided(2)}, []int{2, 4}, nil},
	} {
		l := &Look{Counts: c.counts}
		l.open(&c.a, 0.05)
		if !slices.Equal(l.Open, c.want) {
			t.Errorf("%s: %v, want %v", c.name, l.Open, c.want)
		}
	}
}

// An efficiency is relative to the base, whose runs then matter too.
func TestOpenBase(t *testing.T) {
	for _, c := range []struct {
		name   string
		least  float64
		base   *scaling.RowBase
		counts []int
		open   []int
		want   []int
	}{
		{"an efficiency", 0.5, &scaling.RowBase{Workers: 1}, []int{1, 4, 8}, []int{4, 8}, []int{1, 4, 8}},
		{"none", 0, &scaling.RowBase{Workers: 1}, []int{1, 4, 8}, []int{4, 8}, []int{4, 8}},
		{"already open", 0.5, &scaling.RowBase{Workers: 4}, []int{1, 4, 8}, []int{4, 8}, []int{4, 8}},
		{"nothing open", 0.5, &scaling.RowBase{Workers: 1}, []int{1, 4, 8}, nil, nil},
		{"no base", 0.5, nil, []int{1, 4, 8}, []int{4, 8}, []int{4, 8}},
		{"a base that is closed", 0.5, &scaling.RowBase{Workers: 1}, []int{4, 8}, []int{4, 8}, []int{4, 8}},
	} {
		l := &Look{Counts: c.counts, Open: c.open, Advice: &advice.Advice{Base: c.base}}
		l.compareWithBase(advice.Options{MinEfficiency: c.least})
		if !slices.Equal(l.Open, c.want) {
			t.Errorf("%s: %v, want %v", c.name, l.Open, c.want)
		}
	}
}

// The caveat that more runs do not remove is the first warning about the runs that can change the
// answer, even if runs may still remove other doubts; otherwise that all runs of a count are equal.
func TestLastingCaveat(t *testing.T) {
	four := 4
	data := decision.Caveat{Kind: decision.Data, Text: "crowded", Changes: true}
	drift := decision.Caveat{Kind: "drift", Text: "drift", Changes: true}
	order := decision.Caveat{Kind: "order", Text: "order", Changes: true}
	equal := decision.Caveat{Kind: decision.Constant, Text: "equal runs", Changes: true}
	small := decision.Caveat{Kind: "note", Text: "a note"}
	for _, c := range []struct {
		name string
		a    advice.Advice
		want string
	}{
		{"one", advice.Advice{Workers: &four, Caveats: []decision.Caveat{data}}, "crowded"},
		{"the first", advice.Advice{Workers: &four, Caveats: []decision.Caveat{data, {Kind: decision.Data, Text: "later", Changes: true}}}, "crowded"},
		{"after one that changes nothing", advice.Advice{Workers: &four, Caveats: []decision.Caveat{small, data}}, "crowded"},
		{"with another that runs may remove", advice.Advice{Workers: &four, Caveats: []decision.Caveat{drift, data}}, "crowded"},
		{"only such", advice.Advice{Workers: &four, Caveats: []decision.Caveat{order}}, ""},
		{"no answer", advice.Advice{Caveats: []decision.Caveat{data}}, "crowded"},
		{"undecided", advice.Advice{Workers: &four, Undecided: []advice.Contender{{Workers: 2}}, Caveats: []decision.Caveat{data}}, "crowded"},
		{"unproven", advice.Advice{Workers: &four, Unproven: []int{8}, Caveats: []decision.Caveat{data}}, "crowded"},
		{"none", advice.Advice{Workers: &four}, ""},
		{"equal runs, unproven", advice.Advice{Workers: &four, Unproven: []int{8}, Caveats: []decision.Caveat{order, equal}}, "equal runs"},
		{"equal runs, no answer", advice.Advice{Caveats: []decision.Caveat{equal}}, ""},
	} {
		if got := lasting(&c.a); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// One look is a test of a normal value: 5 % are beyond 1.96. Two samples of 4 runs or more can
// be tested.
func TestOneLook(t *testing.T) {
	for _, looks := range [][]int{{4}, {9}, {100}} {
		if p := crossing(looks, 1.959964); math.Abs(p-0.05) > 1e-4 {
			t.Errorf("%v: %.5f, want 0.05", looks, p)
		}
	}
	if got := (Design{Looks: []int{3, 4, 5, 9}}).Tests(); !slices.Equal(got, []int{4, 5, 9}) {
		t.Errorf("looks %v", got)
	}
	// Pocock's constants for 2 and 3 equal looks at 5 %: 2.178 and 2.289.
	for _, c := range []struct {
		looks []int
		limit float64
	}{{[]int{4, 8}, 2.178}, {[]int{4, 8, 12}, 2.289}} {
		if p := crossing(c.looks, c.limit); math.Abs(p-0.05) > 1e-3 {
			t.Errorf("%v at %g: %.5f, want 0.05", c.looks, c.limit, p)
		}
	}
}
