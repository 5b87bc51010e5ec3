package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// sequences returns the number of random sequences; with -short, a tenth of it.
func sequences() int {
	if testing.Short() {
		return 200
	}
	return 2000
}

// most returns share plus three standard errors, for a share of that many cases.
func most(share float64, of int) float64 {
	return share*float64(of) + 3*math.Sqrt(share*(1-share)*float64(of))
}

// For independent, correlated and periodic runs: without a change, at most 5 % of sequences show
// one. A step of three standard deviations in the middle is found within 2 runs of its position.
func TestTruthOfChanges(t *testing.T) {
	of := sequences()
	for i, s := range unchanged {
		r := rand.New(rand.NewPCG(uint64(i), 2029))
		wrong := 0
		for range of {
			if len(changePoints(s.draw(r, s.runs(r)))) > 0 {
				wrong++
			}
		}
		t.Logf("%s: %.1f %% of sequences with a false change", s.name, 100*float64(wrong)/float64(of))
		if float64(wrong) > most(0.05, of) {
			t.Errorf("%s: %d of %d with a false change", s.name, wrong, of)
		}
	}
	// Not assuming independence has a price: with 20 runs, fewer changes are found.
	for n, share := range map[int]float64{20: 0.75, 30: 0.9, 50: 0.97, 100: 0.97, 200: 0.97} {
		r := rand.New(rand.NewPCG(uint64(n), 2029))
		found := 0
		for range of {
			if slices.ContainsFunc(changePoints(stepped(r, unchanged[0], n, n/2)), func(at int) bool { return at >= n/2-2 && at <= n/2+2 }) {
				found++
			}
		}
		t.Logf("step in %d runs: found in %.1f %%", n, 100*float64(found)/float64(of))
		if float64(of-found) > most(1-share, of) {
			t.Errorf("step in %d runs: %d of %d found", n, found, of)
		}
	}
}

// stepped has a step of three standard deviations in its last runs.
func stepped(r *rand.Rand, s series, n, last int) []float64 {
	x := s.draw(r, n)
	for i := n - last; i < n; i++ {
		x[i] += 3
	}
	return x
}

// Without a change, at most 2 % of tests raise an alarm. A step of three standard deviations raises
// an alarm, or has become a change point, 3, 5 and 8 runs later.
func TestTruthOfAlarms(t *testing.T) {
	of := sequences()
	alarm := func(x []float64) bool {
		a, _ := Newest(Trace(samplesOf(x), noPrint), 1, 1)
		return a != nil
	}
	for i, s := range unchanged {
		r := rand.New(rand.NewPCG(uint64(i), 2030))
		wrong := 0
		for range of {
			if alarm(s.draw(r, max(14, s.runs(r)))) {
				wrong++
			}
		}
		t.Logf("%s: a false alarm in %.1f %% of looks", s.name, 100*float64(wrong)/float64(of))
		if float64(wrong) > most(0.02, of) {
			t.Errorf("%s: %d false alarms in %d looks", s.name, wrong, of)
		}
	}
	for _, test := range []struct {
		kind, n, last int
		share         float64
	}{
		{0, 20, 5, 0.9}, {0, 30, 5, 0.95}, {0, 50, 5, 0.95}, {0, 200, 5, 0.95}, {0, 50, 3, 0.9}, {0, 50, 8, 0.95},
		{2, 20, 5, 0.65}, {2, 50, 5, 0.75}, {2, 200, 5, 0.75}, {3, 50, 5, 0.55}, {3, 200, 5, 0.5},
	} {
		s := unchanged[test.kind]
		r := rand.New(rand.NewPCG(uint64(test.n), uint64(2031+test.last)))
		seen := 0
		for range of {
			x := stepped(r, s, test.n, test.last)
			if alarm(x) || slices.ContainsFunc(changePoints(x), func(at int) bool { return at >= test.n-test.last-2 }) {
				seen++
			}
		}
		t.Logf("%s, %d runs, a step %d before the end: seen in %.1f %%", s.name, test.n, test.last, 100*float64(seen)/float64(of))
		if float64(of-seen) > most(1-test.share, of) {
			t.Errorf("%s, %d runs, a step %d before the end: seen in %d of %d", s.name, test.n, test.last, seen, of)
		}
	}
}

// A study adds up to 12 runs of a point to 14 or more earlier ones, and tests them after 4, 6, 8,
// 10 and 12 runs. Without a change, at most 2 % of studies raise an alarm at any of these tests.
// With the limit for a single test, more do.
func TestTruthOfAlarmsAtLooks(t *testing.T) {
	of := sequences()
	more := 0
	for i, s := range unchanged {
		r := rand.New(rand.NewPCG(uint64(i), 2040))
		wrong, unadjusted := 0, 0
		for range of {
			n := max(14, s.runs(r)-12)
			x := s.draw(r, n+12)
			once, many := false, false
			for k := 4; k <= 12; k += 2 {
				segments := Trace(samplesOf(x[:n+k]), noPrint)
				a, _ := Newest(segments, 1, 1)
				b, _ := Newest(segments, 1, 5)
				once, many = once || a != nil, many || b != nil
			}
			if once {
				unadjusted++
			}
			if many {
				wrong++
			}
		}
		t.Logf("%s: a false alarm in %.1f %% of studies, %.1f %% with the limit of one look", s.name, share(wrong, of), share(unadjusted, of))
		if float64(wrong) > most(0.02, of) {
			t.Errorf("%s: %d false alarms in %d studies", s.name, wrong, of)
		}
		if float64(unadjusted) > most(0.02, of) {
			more++
		}
	}
	if more == 0 && !testing.Short() { // with -short there are too few studies to show it
		t.Error("the limit of one look would do")
	}
}

func share(n, of int) float64 { return 100 * float64(n) / float64(of) }

// Student's t with 11 degrees of freedom exceeds 3.5 with 0.249 %; of that a fifth, 0.0498 %, is
// beyond 4.44 (the 99.95 % point is 4.437 in printed tables).
func TestLimitAtLooks(t *testing.T) {
	for looks, want := range map[int]float64{0: 3.5, 1: 3.5, 5: 4.44} {
		if got := Limit(looks); math.Abs(got-want) > 0.01 {
			t.Errorf("%d looks: %g, want %g", looks, got, want)
		}
	}
}

var noPrint = []fingerprint.Print{{}}

// samplesOf returns runs with these values, in order.
func samplesOf(values []float64) []Sample { return runs(1, 0, values...) }

// By hand: the earlier runs are 12 values alternating between 99 and 101, so their variance is
// 12/11. Means of 3 neighbours deviate by 1/3, less than the √(12/11/3) of independent values. The
// newest 3 have a mean of 95: 5/√(12/11/3·(1 + 3/12)) = 7.4 standard errors. For a group of the
// newest 2, the third newest counts as an earlier run.
func TestNewest(t *testing.T) {
	before := []float64{99, 101, 99, 101, 99, 101, 99, 101, 99, 101, 99, 101}
	of := func(worse int, more ...float64) (*Alarm, bool) {
		return Newest(Trace(samplesOf(slices.Concat(before, more)), noPrint), worse, 1)
	}
	a, judged := of(-1, 95, 95, 95)
	if !judged || a == nil || a.Runs != 3 || a.Before != 12 || a.Since.Run != 13 || math.Abs(a.Ratio-0.95) > 1e-12 || math.Abs(a.Errors-5/math.Sqrt(12./11/3*15/12)) > 1e-9 {
		t.Errorf("%+v, %v", a, judged)
	}
	if a, _ := Newest(Trace(samplesOf(slices.Concat(before, []float64{95, 95, 95})), noPrint), -1, 5); a == nil {
		t.Error("7.4 standard errors are too few for one of five looks")
	}
	if a, judged := of(1, 95, 95, 95); a != nil || !judged {
		t.Errorf("better runs raise an alarm: %+v, %v", a, judged)
	}
	if a, _ := of(0, 95, 95, 95); a == nil {
		t.Error("no alarm although both directions count")
	}
	if a, judged := of(-1, 95); a != nil || judged {
		t.Errorf("of 13 runs: %+v, %v", a, judged)
	}
	if a, judged := Newest(nil, 1, 1); a != nil || judged {
		t.Errorf("of nothing: %+v, %v", a, judged)
	}
	// Among values without scatter, 2 different ones may be chance, but 3 are not.
	flat := slices.Repeat([]float64{7}, 20)
	if a, _ := Newest(Trace(samplesOf(slices.Concat(flat, []float64{6, 6})), noPrint), -1, 1); a != nil {
		t.Errorf("2 runs: %+v", a)
	}
	if a, _ := Newest(Trace(samplesOf(slices.Concat(flat, []float64{6, 6, 6})), noPrint), -1, 1); a == nil || a.Runs != 3 {
		t.Errorf("3 runs: %+v", a)
	}
}
