package advice

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Each clause of an answer names what it compares: the time to the target if that decides, else the
// throughput.
func TestSentencesNameWhatIsCompared(t *testing.T) {
	perWorker := func(batch float64) float64 { return 36000 * batch } // as many samples per worker: always 3600 s
	longer := func(batch float64) float64 { return 72 * batch * batch * batch }
	// 3600 s + 10 s of initialisation on 1, and 3600/1.2 + 10 s on 2 workers: 1.2×.
	little := func(batch float64) float64 {
		if batch == 200 {
			return 3.6e6 * 2 / 1.2
		}
		return 3.6e6
	}
	flat := func(n float64) float64 { return 1000 * math.Min(n, 1) }
	for _, tt := range []struct {
		name    string
		counts  []int
		x, took func(float64) float64
		o       Options
		want    string
		not     string
	}{
		{"no sooner at twice the throughput", []int{1, 2}, linear, perWorker, Options{},
			": 2 reach 75 % accuracy no faster than 1 with initialisation (at most ", ""},
		{"which is said", []int{1, 2}, linear, perWorker, Options{}, ", although their throughput is 2× as high.", ""},
		{"later", []int{1, 2}, linear, longer, Options{}, ": 2 workers reach 75 % accuracy more slowly than 1 with initialisation (at most ", ""},
		{"a little sooner", []int{1, 2}, linear, little, Options{}, ": 2 would reach 75 % accuracy 1.2× as fast with initialisation (at most ", ""},
		{"sooner", []int{1, 2}, linear, fixed, Options{}, ": doubling from 1 reaches 75 % accuracy 1.99× as fast with initialisation (at least ", "throughput"},
		{"neither sooner nor faster", []int{1, 2}, flat, fixed, Options{}, "2 reach 75 % accuracy no faster than 1", "although"},
		{"throughput", []int{1, 2}, linear, nil, Options{}, ": doubling from 1 brings 2× the throughput (at least ", "accuracy"},
		{"no more of it", []int{1, 2}, flat, nil, Options{}, ": 2 have no more throughput than 1 (at most ", "although"},
		{"fastest that is efficient", []int{1, 2}, linear, longer, Options{MinEfficiency: 0.5}, "; 2 would reach 75 % accuracy no faster.", ""},
		{"for so many samples", []int{1, 2}, flat, nil, Options{MinEfficiency: 0.1, Samples: 5000}, "; 2 would train 5000 samples no faster", ""},
	} {
		s := series{counts: tt.counts, runs: 6, x: tt.x, took: tt.took}
		a := s.advise(t, tt.o)
		text, _, _ := strings.Cut(a.Reason[0], " Provisional because")
		if !strings.Contains(text, tt.want) || tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: %q, want %q and not %q", tt.name, a.Reason[0], tt.want, tt.not)
		}
	}
}

// The sentence about a contender says by which measure it may be better, and in which
// direction.
func TestContenderNamesWhatIsCompared(t *testing.T) {
	// With a gain of 1.4× and a scatter of 4 %, it is undecided whether more than 1 are worth it.
	near := func(n float64) float64 { return 1000 * math.Pow(1.4, math.Log2(n)) }
	change := func(o *scaling.Observation) {
		o.Values["throughput"] *= 1 + 0.02*(float64((o.Repeat*5+o.Workers)%6)-2.5)
		o.BeganUnix = 1e9 + 1000*float64(o.Repeat) + float64(o.Workers) // in blocks of one run per count
	}
	a := series{counts: octaves, runs: 6, x: near, change: change}.advise(t, Options{})
	if !strings.Contains(a.Reason[0], "1 worker may be enough by throughput (") {
		t.Errorf("%q", a.Reason[0])
	}
}
