package scaling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

func TestReached(t *testing.T) {
	inf := math.Inf(1)
	twenty := func(misses int) []float64 {
		var xs []float64
		for i := range 20 {
			if i < misses {
				xs = append(xs, inf)
			} else {
				xs = append(xs, float64(i-misses+1))
			}
		}
		return xs
	}
	for _, tt := range []struct {
		name       string
		xs         []float64
		median     float64 // 0: none
		low, high  float64 // 0: no interval
		atLeast    float64 // 0: none
		why, noBar string
	}{
		{"all reach it", []float64{6, 5, 4, 3, 2, 1}, 3.5, 1, 6, 0, "", ""},
		{"few that all reach it", []float64{30, 10}, 20, 0, 0, 0, "", "too few runs for an interval (2 of 6 needed)"},
		{"few of which one misses", []float64{30, 10, inf}, 30, 0, 0, 0, "", "too few runs for an interval (3 of 6 needed)"},
		{"two of four miss", []float64{30, 10, inf, inf}, 0, 0, 0, 0, halfMiss, ""},
		{"one in six misses", []float64{1, 2, 3, 4, 5, inf}, 3.5, 0, 0, 1, "", noUpperEnd},
		// The 6th and the 15th of 20; the median is between the 10th and the 11th.
		{"one in twenty misses", twenty(1), 10.5, 6, 15, 0, "", ""},
		{"five in twenty miss", twenty(5), 10.5, 6, 15, 0, "", ""},
		{"six in twenty miss", twenty(6), 10.5, 0, 0, 6, "", noUpperEnd},
		{"nine in twenty miss", twenty(9), 10.5, 0, 0, 6, "", noUpperEnd},
		// Of 9 the 2nd and the 8th: 2·(1+9)/2⁹ = 3.9 % may lie outside; of 8 the 1st and
		// the 8th, since 2·(1+8)/2⁸ = 7.0 % may not.
		{"one in nine misses", []float64{8, 7, inf, 6, 5, 4, 3, 2, 1}, 5, 2, 8, 0, "", ""},
		{"one in eight misses", []float64{7, inf, 6, 5, 4, 3, 2, 1}, 4.5, 0, 0, 1, "", noUpperEnd},
		{"no runs", nil, 0, 0, 0, 0, "", ""},
		{"half miss", twenty(10), 0, 0, 0, 6, halfMiss, ""},
		{"all miss", twenty(20), 0, 0, 0, 0, halfMiss, ""},
	} {
		r, err := ReachOf(tt.xs, nil, 0, measure.Lower, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		var median, low, high, atLeast float64
		noBar := ""
		if r.Median != nil {
			median, noBar = r.Median.Value, r.Median.Why
			if in := r.Median.Interval; in != nil {
				low, high = in.Low, in.High
			}
		}
		if r.AtLeast != nil {
			atLeast = *r.AtLeast
		}
		if median != tt.median || low != tt.low || high != tt.high || atLeast != tt.atLeast || r.Why != tt.why || noBar != tt.noBar {
			t.Errorf("%s: %+v, median %+v", tt.name, r, r.Median)
		}
	}
	for _, xs := range [][]float64{{1, math.NaN()}, {1, math.Inf(-1)}} {
		if _, err := ReachOf(xs, nil, 0, measure.Lower, false, 0); err == nil {
			t.Errorf("%g has a median", xs)
		}
	}
	if _, err := ReachOf([]float64{1}, nil, 0, measure.Lower, false, 2); err == nil {
		t.Error("a confidence of 2")
	}
}

// Runs of a point miss the target by chance, or because they are too slow for their time limit. In
// 95 % of the samples, the interval contains the median time of all runs, which is infinite if half
// of them miss; an open end counts as unlimited. If half of all runs miss, at most one in 40
// samples has an interval with both ends.
func TestTruthOfMisses(t *testing.T) {
	trials := 4000
	if testing.Short() {
		trials /= 10
	}
	r := rand.New(rand.NewPCG(17, 4))
	for _, bySpeed := range []bool{false, true} {
		for _, n := range []int{6, 10, 20} {
			for _, share := range []float64{0, 0.1, 0.3, 0.45, 0.6} {
				held, given, short := 0, 0, 0.0
				spread := 0.0
				for range trials {
					spread = 0.02 * math.Exp(r.Float64()*math.Log(20))
					time := func(q float64) float64 { return 100 * math.Exp(spread*normal(q)) }
					truth := math.Inf(1)
					switch {
					case bySpeed && share < 0.5:
						truth = time(0.5)
					case share < 0.5:
						truth = time(0.5 / (1 - share))
					}
					obs := runs(1, slices.Repeat([]float64{100}, n)...)
					for i := range obs {
						q := r.Float64()
						x := time(q)
						if bySpeed && q > 1-share || !bySpeed && r.Float64() < share {
							x = math.Inf(1)
						}
						obs[i].Values["to_0.75"] = x
					}
					curves, err := Analyse(obs, Options{})
					if err != nil {
						t.Fatal(err)
					}
					s := curves[0].Points[0].Of("to_0.75")
					low, high := 0.0, math.Inf(1)
					switch {
					case s.Median != nil && s.Median.Interval != nil:
						low, high = s.Median.Interval.Low, s.Median.Interval.High
						given++
						short += math.Log(s.Median.Value / min(truth, 1e9))
					case s.AtLeast != nil:
						low = *s.AtLeast
					}
					if low <= truth && truth <= high {
						held++
					}
				}
				percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
				t.Logf("%d runs, %2.0f %% miss (too slow: %v): held %.1f %%; both ends in %.1f %%, the median then by %+.1f %%", n, 100*share, bySpeed, percent(held, trials), percent(given, trials), 100*(math.Exp(short/float64(max(1, given)))-1))
				if least := 0.95*float64(trials) - 3*math.Sqrt(0.05*0.95*float64(trials)); float64(held) < least {
					t.Errorf("%d runs of which %g miss: held in %d of %d", n, share, held, trials)
				}
				if most := 0.025*float64(trials) + 3*math.Sqrt(0.025*float64(trials)); share > 0.5 && float64(given) > most {
					t.Errorf("%d runs of which %g miss: both ends in %d of %d", n, share, given, trials)
				}
			}
		}
	}
}

// normal returns a quantile of the standard normal distribution.
func normal(q float64) float64 { return math.Sqrt2 * math.Erfinv(2*q-1) }

// A speedup of the time to a target has an interval if both medians have one, even if runs miss the
// target: here one of 20.
func TestSpeedupWithMisses(t *testing.T) {
	var obs []Observation
	for _, workers := range []int{1, 2} {
		list := runs(workers, slices.Repeat([]float64{100}, 20)...)
		for i := range list {
			list[i].Values["to_0.75"] = (100 + float64(i)) / float64(workers)
		}
		list[0].Values["to_0.75"] = math.Inf(1)
		obs = append(obs, list...)
	}
	c := analyse(t, obs, Options{})[0]
	g := c.Points[1].Of("to_0.75").Gain()
	if g == nil || g.Value != 2 || g.Interval == nil || !(g.Interval.Low < 2 && g.Interval.High > 2) {
		t.Errorf("%+v", g)
	}
	if r := Rows([]Curve{c})[1].TimeToAccuracy["0.75"]; r.Reached != 19 || r.Runs != 20 || r.Seconds == nil || r.SecondsHigh == nil {
		t.Errorf("%+v", r)
	}
	for i := range obs {
		if obs[i].Repeat <= 8 {
			obs[i].Values["to_0.75"] = math.Inf(1)
		}
	}
	// Times of 108 … 119 s, half as long with two workers, and eight misses: the median is 117.5 s,
	// the mean of the tenth and eleventh, and the interval starts at the sixth, 113 s.
	c = analyse(t, obs, Options{})[0]
	r := Rows([]Curve{c})[1].TimeToAccuracy["0.75"]
	ratio := c.Points[1].Of("to_0.75").Ratio(c.Points[0].Of("to_0.75"))
	if r.Reached != 12 || r.Seconds == nil || *r.Seconds != 117.5/2 || r.SecondsLow == nil || *r.SecondsLow != 113.0/2 || r.SecondsHigh != nil || *r.Speedup != 2 || r.SpeedupLow != nil || ratio.Refusal != Missing {
		t.Errorf("%+v, %+v", r, ratio)
	}
	for i := range obs {
		if obs[i].Repeat <= 10 {
			obs[i].Values["to_0.75"] = math.Inf(1)
		}
	}
	c = analyse(t, obs, Options{})[0]
	if r := Rows([]Curve{c})[1].TimeToAccuracy["0.75"]; r.Reached != 10 || r.Seconds != nil || r.SecondsLow == nil || c.Points[1].Of("to_0.75").Gain() != nil {
		t.Errorf("%+v", r)
	}
}
