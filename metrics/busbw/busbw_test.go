package busbw

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/worktest"
)

func known(v float64) *float64 { return &v }

// Measurements survive writing as events and reading back in any order; other figures
// are left alone.
func TestRoundTrip(t *testing.T) {
	want := []Measurement{
		{Op: "all_reduce", Bytes: 8, Iterations: 20, Seconds: known(1e-6), Min: known(9e-7), Mean: known(1.1e-6), P99: known(4e-6), CV: known(0.2), AlgBW: known(8e6), BusBW: known(0)},
		{Op: "all_reduce", Bytes: 1 << 20, Iterations: 20, Seconds: known(1e-3)},
		{Op: "all_reduce", Bytes: 8, InPlace: true, Iterations: 20, Seconds: known(2e-6)},
		{Op: "broadcast", Bytes: 16, Iterations: 20, Seconds: known(3e-6), BusBW: known(16 / 3e-6)},
	}
	other := metrics.Figure{Name: "avg_busbw", Value: 1e9, Unit: "B/s"}
	unsized := metrics.Figure{Name: measure.BusBW, Value: 1, Unit: "B/s", At: map[string]any{"epoch": 1.0}}
	figures := []metrics.Figure{other, unsized}
	for _, m := range want {
		figures = append(figures, m.Figures()...)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(figures), func(i, j int) { figures[i], figures[j] = figures[j], figures[i] })
	for i := range figures {
		e := metrics.Event{Figure: &figures[i]}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(figures[i])
		if err != nil {
			t.Fatal(err)
		}
		figures[i] = metrics.Figure{}
		if err := json.Unmarshal(text, &figures[i]); err != nil {
			t.Fatal(err)
		}
	}
	got, rest := Group(figures)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(rest) != 2 {
		t.Errorf("left over: %+v, want two figures", rest)
	}
}

// A duplicate figure is not added to the measurement.
func TestTwice(t *testing.T) {
	m := Measurement{Bytes: 8, Seconds: known(1)}
	again := Measurement{Bytes: 8, Seconds: known(2)}
	got, rest := Group(append(m.Figures(), again.Figures()...))
	if len(got) != 1 || *got[0].Seconds != 1 || len(rest) != 1 || rest[0].Value != 2 {
		t.Errorf("%+v and %+v", got, rest)
	}
}

func line(alpha, beta, noise float64) []Measurement {
	random := rand.New(rand.NewPCG(3, 4))
	var list []Measurement
	for size := 8.0; size <= 64<<20; size *= 2 {
		s := (alpha + size/beta) * math.Exp(noise*random.NormFloat64())
		list = append(list, Measurement{Op: "all_reduce", Bytes: size, Seconds: &s})
	}
	return list
}

func TestFit(t *testing.T) {
	for _, c := range []struct{ alpha, beta, noise, within float64 }{
		{16e-6, 1.2e9, 0, 1e-9},
		{0.9e-6, 6e9, 0, 1e-9},
		{50e-6, 1e8, 0.05, 0.05},
		{0, 1e9, 0, 1e-9},
	} {
		links, why := Fit(slices.Values(line(c.alpha, c.beta, c.noise)))
		if len(links) != 1 || why != nil {
			t.Fatalf("%v: %v, %v", c, links, why)
		}
		l := links[0]
		if math.Abs(l.Alpha-c.alpha) > c.within*c.alpha+1e-15 || math.Abs(l.Beta/c.beta-1) > c.within || l.Sizes != 24 {
			t.Errorf("%v: fitted %+v", c, l)
		}
		if c.noise == 0 && (l.Low < -1e-9 || l.High > 1e-9) || c.noise > 0 && (l.Low > -c.noise || l.High < c.noise) {
			t.Errorf("%v: said to be off by %g to %g", c, l.Low, l.High)
		}
	}
}

// With other work on the machine, some sizes take many times longer. The typical fit
// must still be right. On such data, least squares of relative errors gave half the
// latency and 2.8 times the bandwidth, or no fit at all.
func TestFitOfDisturbedTimes(t *testing.T) {
	const alpha, beta = 50e-6, 2e8
	random := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct {
		name         string
		noise, share float64 // standard deviation of the logarithm; share of sizes that take 3 to 30 times as long
		within       float64
	}{
		{"noise", 0.3, 0, 0.1},
		{"a quarter of the sizes disturbed", 0.1, 0.25, 0.25},
		{"noise of a factor", 1, 0, 0.3},
	} {
		var alphas, betas []float64
		for range 400 {
			var list []Measurement
			for size := 1024.0; size <= 32<<20; size *= 2 {
				s := (alpha + size/beta) * math.Exp(c.noise*random.NormFloat64())
				if random.Float64() < c.share {
					s *= 3 * math.Pow(10, random.Float64())
				}
				list = append(list, Measurement{Op: "all_reduce", Bytes: size, Seconds: &s})
			}
			links, why := Fit(slices.Values(list))
			if len(links) != 1 {
				t.Fatalf("%s: no fit: %v", c.name, why)
			}
			alphas, betas = append(alphas, links[0].Alpha/alpha), append(betas, links[0].Beta/beta)
		}
		slices.Sort(alphas)
		slices.Sort(betas)
		if a, b := alphas[200], betas[200]; math.Abs(math.Log(a)) > c.within || math.Abs(math.Log(b)) > c.within {
			t.Errorf("%s: half of the latencies are below %.2f of the truth, of the bandwidths below %.2f", c.name, a, b)
		}
	}
}

// Negative latencies are set to 0, and times that do not grow with size give no fit.
func TestFitRefuses(t *testing.T) {
	s := func(size, seconds float64) Measurement { return Measurement{Bytes: size, Seconds: &seconds} }
	links, _ := Fit(slices.Values([]Measurement{s(8, 1e-9), s(16, 1e-6), s(32, 1e-5)}))
	if len(links) != 1 || links[0].Alpha != 0 || links[0].Beta <= 0 {
		t.Errorf("%+v", links)
	}
	for want, list := range map[string][]Measurement{
		"2 sizes":     {s(8, 1), s(16, 2)},
		"do not grow": {s(8, 4), s(16, 2), s(32, 1)},
	} {
		links, why := Fit(slices.Values(list))
		if links != nil || len(why) != 1 || !strings.Contains(why[0], want) || !strings.Contains(why[0], "out of place") {
			t.Errorf("%s: %v, %v", want, links, why)
		}
	}
	if links, why := Fit(slices.Values([]Measurement{{Bytes: 8}, s(16, 0), s(32, math.Inf(1)), s(0, 1)})); links != nil || why != nil {
		t.Errorf("nothing to fit: %v, %v", links, why)
	}
}

// Grouping takes linear time. Comparing each figure with each measurement took minutes
// for a log of many sizes.
func TestManySizes(t *testing.T) {
	worktest.New(t).Linear(t, 1000, func(n int) {
		var figures []metrics.Figure
		for i := range n {
			at := map[string]any{bytesKey: float64(i), placeKey: 0.0}
			figures = append(figures, metrics.Figure{Name: "busbw", Unit: "B/s", Value: 1, At: at}, metrics.Figure{Name: "algbw", Unit: "B/s", Value: 2, At: at})
		}
		list, rest := Group(figures)
		if len(list) != n || len(rest) != 0 || list[1].BusBW == nil || list[1].AlgBW == nil {
			t.Errorf("%d measurements, %d left over", len(list), len(rest))
		}
	})
}
