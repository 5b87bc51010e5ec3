package sequential

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// At 95 % the interval of 6 runs is their range, which misses the median with 2/64. At 9 runs it
// leaves out the outermost two: it misses, too, where one of the first six runs lies below
// the median and none of the next three does, 2 · 6/64 · 1/8, and more are the same twice.
func TestMisses(t *testing.T) {
	for _, test := range []struct {
		looks []int
		want  float64
	}{
		{[]int{2, 4}, 0},
		{[]int{6}, 2.0 / 64},
		{[]int{6, 8}, 2.0 / 64}, // the range of 8 runs holds that of 6
		{[]int{6, 9}, 2.0/64 + 2*6.0/64/8},
		{[]int{9}, 2 * 10.0 / 512},
	} {
		if got := misses(test.looks, 0.95); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%v: %g, want %g", test.looks, got, test.want)
		}
	}
}

func TestNewDesign(t *testing.T) {
	for _, test := range []struct {
		most  int
		looks []int
	}{{2, []int{2}}, {5, []int{2, 4, 5}}, {12, []int{2, 4, 6, 8, 10, 12}}, {20, []int{2, 4, 6, 8, 10, 12, 14, 16, 18, 20}}, {40, []int{2, 4, 6, 8, 10, 12, 14, 16, 18, 21, 24, 28, 32, 37, 40}}} {
		d, err := NewDesign(test.most)
		if err != nil || !slices.Equal(d.Looks, test.looks) {
			t.Errorf("%d: %v, %v", test.most, d.Looks, err)
		}
		if d.Confidence < Level || misses(d.Looks, d.Confidence) > 1-Level {
			t.Errorf("%d: %g at each look misses %g", test.most, d.Confidence, misses(d.Looks, d.Confidence))
		}
		// A level of 0.01 % less is not enough, or is below the level of one look.
		if less := d.Confidence - 0.0001; less >= Level && misses(d.Looks, less) <= 1-Level {
			t.Errorf("%d: %g would do, too", test.most, less)
		}
	}
	for _, most := range []int{1, 1001} {
		if _, err := NewDesign(most); err == nil {
			t.Errorf("%d runs have a design", most)
		}
	}
}

// For simulated runs, the share of studies in which an interval misses the median at some look
// equals the result of misses.
func TestMissesOfDrawnRuns(t *testing.T) {
	d, _ := NewDesign(20)
	r := rand.New(rand.NewPCG(1, 40))
	const walks = 20000
	out := 0
	for range walks {
		below, n := 0, 0
		for _, look := range d.Looks {
			for ; n < look; n++ {
				below += r.IntN(2)
			}
			tail, outside := math.Exp2(-float64(n)), 0.0 // of exactly 0, 1, ... runs below the median
			rank := 0
			for ; 2*(outside+tail) <= 1-d.Confidence; rank++ {
				outside += tail
				tail *= float64(n-rank) / float64(rank+1)
			}
			if below < rank || n-below < rank {
				out++
				break
			}
		}
	}
	want := misses(d.Looks, d.Confidence)
	if got := float64(out) / walks; math.Abs(got-want) > 4*math.Sqrt(want/walks) {
		t.Errorf("%g, want %g", got, want)
	}
}

func TestNext(t *testing.T) {
	d, _ := NewDesign(7)
	for n, want := range map[int]int{0: 2, 1: 2, 2: 4, 3: 4, 6: 7, 7: 7, 9: 9} {
		if got := d.Next(n); got != want {
			t.Errorf("after %d: %d, want %d", n, got, want)
		}
	}
}

// Pocock's limits for 2, 3 and 5 looks after as many runs each are 2.178, 2.289 and 2.413 standard
// deviations (Biometrika 64, 1977, table 1), and of one look 1.960.
func TestCrossing(t *testing.T) {
	for k, limit := range map[int]float64{1: 1.960, 2: 2.178, 3: 2.289, 5: 2.413} {
		var looks []int
		for i := range k {
			looks = append(looks, 4*(i+1))
		}
		if got := crossing(looks, limit); math.Abs(got-0.05) > 0.0005 {
			t.Errorf("%d looks: %g", k, got)
		}
	}
	// Looks at 4 and 8 runs: 2·(1 − Φ(2.178)) = 0.0294.
	if got := (Design{Looks: []int{2, 4, 8}}).TestConfidence(); math.Abs(got-(1-0.0294)) > 0.0005 {
		t.Errorf("%g", got)
	}
}
