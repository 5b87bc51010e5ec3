package summary

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// losing returns a run whose training starts at 10 s and that records its training
// loss every second.
func losing(losses ...float64) Input {
	began := 10.0
	in := Input{Kind: "train", Workers: 1, World: 1, Restarts: []int{0}, Ranks: []Rank{{World: 1, TrainTime: &began, Train: &metrics.Train{}}},
		Targets: []measure.Target{{Of: measure.OfLoss, Value: 2, Better: measure.Lower}, {Of: measure.OfPerplexity, Value: 20, Better: measure.Lower}}}
	for i, x := range losses {
		in.State(began+float64(i+1), metrics.Figure{Name: metrics.FigureLoss, Value: x, At: map[string]any{"step": float64(i + 1)}})
	}
	return in
}

func TestTimeToLoss(t *testing.T) {
	at := func(in Input, seconds, loss float64) Input {
		in.State(10+seconds, metrics.Figure{Name: metrics.FigureEvalLoss, Value: loss, At: map[string]any{"step": seconds}})
		return in
	}
	evaluated := func(in Input, seconds, loss float64) Input {
		in.Evaluations = append(in.Evaluations, Evaluation{Time: 10 + seconds, Step: 1, Accuracy: 0.5, Loss: &loss})
		return in
	}
	clockless := losing(4, 3.5, 3, 2.5, 2.1, 1.9, 1.8, 1.7, 1.6)
	clockless.Ranks[0].TrainTime, clockless.Ranks[0].Train = nil, nil
	missing := math.Inf(1)
	for name, c := range map[string]struct {
		in               Input
		loss, perplexity float64 // seconds; -1: none, for a reason
		why              string
	}{
		// Medians of the latest 5: 3 (4, 3.5, 3, 2.5, 2.1) at 5 s, 2.5, 2.1, 1.9 at 8 s.
		// e^3 = 20.09 and e^2.5 = 12.2: the perplexity is there at 6 s.
		"training loss":   {losing(4, 3.5, 3, 2.5, 2.1, 1.9, 1.8, 1.7, 1.6), 8, 6, ""},
		"a spike down":    {losing(4, 4, 4, 0.1, 4, 4, 4, 4, 4), missing, missing, ""},
		"not reached":     {losing(4, 4, 4, 4, 4), missing, missing, ""},
		"too few":         {losing(4, 3, 2, 1), -1, -1, "recorded 4 times"},
		"none":            {losing(), -1, -1, "no loss was recorded"},
		"out of order":    {at(at(losing(4, 1, 1, 1, 1, 1, 1), 6, 1.5), 3, 1.9), 3, 3, ""},
		"before training": {at(at(losing(4, 1, 1, 1, 1, 1, 1), -5, 1.5), 4, 1.9), 4, 4, ""},
		"as it begins":    {at(losing(4, 1, 1, 1, 1, 1, 1), 0, 1.5), 0, 0, ""},
		"an evaluation's": {at(at(losing(4, 1, 1, 1, 1, 1, 1), 3, 2.5), 6, 1.5), 6, 3, ""},
		"of an event":     {evaluated(evaluated(losing(1, 1, 1, 1, 1), 4, 2.9), 9, 2), 9, 4, ""},
		"no clock":        {clockless, -1, -1, "unknown time"},
	} {
		r := Summarize(c.in)
		for target, want := range map[string]float64{"to_loss_2": c.loss, "to_perplexity_20": c.perplexity} {
			got, ok := r.Values[target]
			if want < 0 && (ok || !strings.Contains(r.Why[target], c.why)) || want >= 0 && (!ok || got != want && math.Abs(got-want) > 1e-9) {
				t.Errorf("%s, %s: %g %t %q, want %g", name, target, got, ok, r.Why[target], want)
			}
		}
		smoothed := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "smoothed") })
		if want := name == "training loss" || name == "a spike down" || name == "not reached" || name == "no clock"; smoothed != want {
			t.Errorf("%s: warnings %q", name, r.Warnings)
		}
	}
	// A user's figure is judged unsmoothed, in its own direction.
	in := losing()
	in.Targets = []measure.Target{{Of: "bleu", Value: 25, Better: measure.Higher}, {Of: "wer", Value: 0.1, Better: measure.Lower}}
	for i, x := range []float64{10, 26, 24} {
		in.State(float64(20+i), metrics.Figure{Name: "bleu", Value: x, At: map[string]any{"epoch": float64(i)}})
	}
	if r := Summarize(in); r.Values["to_bleu_above_25"] != 11 || !strings.Contains(r.Why["to_wer_below_0.1"], "no wer was recorded") {
		t.Error(r.Values, r.Why)
	}
}

// The smoothing of training losses, on losses that fall as E + A·t^-a and whose time
// to a target is therefore known. Two runs of a pair differ in speed alone, by a
// factor of 1 to 8. The same runs are judged by the first value below the target.
func TestTruthOfSmoothedLoss(t *testing.T) {
	pairs := 1000
	if testing.Short() {
		pairs = 300
	}
	type world struct {
		name              string
		scatter           float64 // of a value, in nats
		spikes            float64 // share of values that are up to 3 nats off, either way
		diverges, resumes bool    // the loss rises from some step on; it later falls again
		values            int
		error, speedup    float64 // largest permitted 95 % quantile of each
	}
	for _, w := range []world{
		{"clean", 0, 0, false, false, 1000, 0.07, 0.02},
		{"noise", 0.03, 0, false, false, 1000, 0.20, 0.20},
		{"much noise", 0.10, 0, false, false, 3000, 0.35, 0.40},
		{"spikes", 0.03, 0.05, false, false, 1000, 0.20, 0.20},
		{"diverges behind the target", 0.03, 0.01, true, false, 1000, 0.20, 0.20},
		{"a bump before the target", 0.03, 0.01, false, true, 1000, 0.25, 0.25},
		{"few values", 0.03, 0, false, false, 60, 0.30, 0.30},
	} {
		random := rand.New(rand.NewPCG(15, uint64(len(w.name))))
		var errors, ratios, naive, naiveRatios []float64
		missed := 0
		for range pairs {
			e, a, decay := 1.5+random.Float64(), 5+3*random.Float64(), 0.2+0.3*random.Float64()
			crossing := (0.3 + 0.5*random.Float64()) * float64(w.values) // value at which the truth reaches the target
			target := measure.Target{Of: measure.OfLoss, Value: e + a*math.Pow(crossing, -decay), Better: measure.Lower}
			var found, first [2]float64
			ok := true
			for k := range found {
				in := Input{Targets: []measure.Target{target}}
				step := 1 + random.Float64()*7
				bump := (0.3 + 0.4*random.Float64()) * crossing
				for i := 1; i <= w.values; i++ {
					x := e + a*math.Pow(float64(i), -decay) + w.scatter*random.NormFloat64()
					if random.Float64() < w.spikes {
						x += 6*random.Float64() - 3
					}
					if w.diverges && float64(i) > 1.15*crossing {
						x += 5
					}
					if w.resumes && float64(i) > bump && float64(i) < 1.05*bump {
						x += 2
					}
					in.State(step*float64(i), metrics.Figure{Name: metrics.FigureLoss, Value: x, At: map[string]any{"step": float64(i)}})
					if first[k] == 0 && target.Reached(x) {
						first[k] = float64(i) / crossing
					}
				}
				began := 0.0
				in.Ranks = []Rank{{TrainTime: &began}}
				r := Outcome{Values: map[string]float64{}, Why: map[string]string{}}
				r.reach(in)
				v := r.Known(target.Time().Name)
				if v == nil {
					ok = false
					continue
				}
				found[k] = *v / step / crossing // relative to the true time, so 1 is exact
				errors = append(errors, math.Abs(found[k]-1))
				naive = append(naive, math.Abs(first[k]-1))
			}
			if !ok {
				missed++
				continue
			}
			ratios = append(ratios, math.Abs(found[0]/found[1]-1))
			naiveRatios = append(naiveRatios, math.Abs(first[0]/first[1]-1))
		}
		at := func(list []float64, p float64) float64 {
			slices.Sort(list)
			return percentile(list, p)
		}
		t.Logf("%-28s time off by %4.1f %% (median), %4.1f %% (95 %%); speedup %4.1f, %4.1f %%; first value below: time %4.1f, %4.1f %%, speedup %4.1f, %4.1f %%; missed %d of %d",
			w.name, 100*at(errors, 0.5), 100*at(errors, 0.95), 100*at(ratios, 0.5), 100*at(ratios, 0.95),
			100*at(naive, 0.5), 100*at(naive, 0.95), 100*at(naiveRatios, 0.5), 100*at(naiveRatios, 0.95), missed, pairs)
		if at(errors, 0.95) > w.error || at(ratios, 0.95) > w.speedup || missed > pairs/100 {
			t.Errorf("%s: more than %g of the time, %g of the speedup, or missed", w.name, w.error, w.speedup)
		}
	}
}
