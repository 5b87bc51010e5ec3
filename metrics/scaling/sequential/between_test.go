package sequential

import (
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// 1, 2, 4 and 8 workers are worth 100, 135.7, 173.5 and 145.8 at a price of 1.4 a doubling. The
// line through 1 and 2 is at 162.3 for 3 workers: they cannot be 2 % better than 4. For 6 it
// is the line through 2 and 4, 173.5·1.279^0.585 = 200.3. With 16 workers worth 143.2, the
// line through 8 and 16 has 145.8·1.018^0.415 = 146.9 at 6.
func TestBetween(t *testing.T) {
	runs := map[int][]float64{1: {100, 101, 100, 99}, 2: {190, 191, 189, 190}, 4: {340, 341, 339, 340}, 8: {400, 401, 399, 400}}
	flat := map[int][]float64{16: {550, 551, 549, 550}}
	for n, x := range runs {
		flat[n] = x
	}
	limited := func(o advice.Options) advice.Options { o.Samples = 1000; return o }
	for _, test := range []struct {
		name    string
		wish    advice.Options
		runs    map[int][]float64
		of      []int
		add, no []int
	}{
		{"the larger side", advice.Options{}, runs, []int{3, 5, 6, 7}, []int{6}, []int{3}},
		{"the middle of what is left", advice.Options{}, runs, []int{5, 7}, []int{5}, nil},
		{"nothing next to it", advice.Options{}, runs, []int{12}, nil, nil},
		{"no side", advice.Options{}, flat, []int{3, 5, 6, 7, 12}, nil, []int{3, 5, 6, 7}},
		// 1000 samples take 10, 5.3, 2.9 and 2.5 s: 4 workers do it in 4 s, and 3 may.
		{"deadline", limited(advice.Options{Deadline: 4}), runs, []int{3, 5, 6, 7}, []int{3}, nil},
		// 4 workers also keep an efficiency of 60 %, and 3 keep a higher one.
		{"deadline and efficiency", limited(advice.Options{Deadline: 4, MinEfficiency: 0.6}), runs, []int{3, 5, 6, 7}, []int{3}, nil},
		// The efficiencies are 95, 85 and 50 %: the most at 80 % are 4 workers, and 6 may be more.
		{"efficiency", advice.Options{MinEfficiency: 0.8}, runs, []int{3, 5, 6, 7}, []int{6}, nil},
	} {
		q := question(t, test.wish)
		l := lookAt(t, q, test.runs)
		if *l.Advice.Workers != 4 {
			t.Fatalf("%s: answer %d", test.name, *l.Advice.Workers)
		}
		add, no := q.Between(l, test.of)
		if !slices.Equal(add, test.add) || !slices.Equal(no, test.no) {
			t.Errorf("%s: add %v, not %v; want %v, %v", test.name, add, no, test.add, test.no)
		}
	}
}
