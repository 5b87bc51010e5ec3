package study

import (
	"slices"
	"strings"
	"testing"
)

func TestWorkerRange(t *testing.T) {
	for _, test := range []struct {
		r              workerRange
		first, between []int
	}{
		{workerRange{1, 16}, []int{1, 2, 4, 8, 16}, []int{3, 5, 6, 7, 10, 12, 14}},
		{workerRange{4, 20}, []int{4, 8, 16, 20}, []int{5, 6, 7, 10, 12, 14, 17, 18, 19}},
		{workerRange{3, 4}, []int{3, 4}, nil},
	} {
		if got := test.r.doublings(); !slices.Equal(got, test.first) {
			t.Errorf("%s: doublings %v", test.r, got)
		}
		if got := test.r.between(); !slices.Equal(got, test.between) {
			t.Errorf("%s: between %v", test.r, got)
		}
	}
}

const ranged = `[study]
name = "r"
repeats = REPEATS
[workload]
model = "cnn"
batch = 96
scaling = "strong"
epochs = 1
[data]
kind = "synthetic"
[sweep]
workers = WORKERS
precision = ["fp32", "bf16"]
`

func rangedStudy(workers, repeats string) (*Study, error) {
	text := strings.NewReplacer("WORKERS", workers, "REPEATS", repeats).Replace(ranged)
	return Parse("study.toml", []byte(text), []Framework{{Name: "native"}})
}

// A batch of 96 divides among 1, 2, 3, 4, 6, 8, 12, 16 and so on, not among 64 or 5.
func TestPlanOfRange(t *testing.T) {
	for _, test := range []struct {
		repeats             string
		first, later, unfit []int
	}{
		{`2`, []int{1, 2, 4, 8, 16, 32}, nil, []int{64}},
		{`"until-decided"`, []int{1, 2, 4, 8, 16, 32}, []int{3, 6, 12, 24, 48}, []int{5, 7, 10, 14, 20, 28, 40, 56, 64}},
	} {
		s, err := rangedStudy(`"1..64"`, test.repeats)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		first, later := map[int][]int{}, map[int][]int{} // by curve
		for _, p := range plan.Points {
			of := first
			if p.Between {
				of = later
			}
			if !slices.Contains(of[p.Curve], p.Point.Workers) {
				of[p.Curve] = append(of[p.Curve], p.Point.Workers)
			}
		}
		if len(first) != 2 {
			t.Errorf("%s: %d curves, want one for each precision", test.repeats, len(first))
		}
		for curve, counts := range first {
			if !slices.Equal(counts, test.first) || !slices.Equal(later[curve], test.later) {
				t.Errorf("%s: %v, then %v", test.repeats, counts, later[curve])
			}
		}
		var unfit []int
		for _, u := range plan.Unfit {
			unfit = append(unfit, u.Workers)
			if !strings.Contains(u.Why, "do not divide") {
				t.Errorf("%d: %s", u.Workers, u.Why)
			}
		}
		if !slices.Equal(unfit, test.unfit) {
			t.Errorf("%s: left out %v", test.repeats, unfit)
		}
	}
}

func TestWrongRange(t *testing.T) {
	for workers, want := range map[string]string{
		`"8..1"`:       `want a range from 1 or more to a larger count of at most 1048576, got "8..1"`,
		`"0..4"`:       `want a range from 1 or more`,
		`"1..2000000"`: `want a range from 1 or more`,
		`"1-8"`:        `want a list of counts like [1, 2, 4, 8], or a range like "1..64", got "1-8"`,
		`["x"]`:        `want a list of counts`,
		`["1..2", 4]`:  `want a whole number`,
		`"5..7"`:       `do not divide`, // neither 5 nor 7 divides the batch of 96
	} {
		_, err := rangedStudy(workers, "1")
		if workers == `"5..7"` {
			s, _ := rangedStudy(`"5..7"`, "1")
			_, err = s.Plan(nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "batch") && !strings.Contains(err.Error(), "sweep.workers") {
			t.Errorf("%s: %v", workers, err)
		}
	}
}
