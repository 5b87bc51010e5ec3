package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// queues returns runs of M/M/1 replicas that serve 1000 requests/s each. Latency is exponential, so
// P95 is ln(20)/(1000 - λ) seconds, 20 ms at λ = 850.2. Runs differ by scatter. within is the rate
// that each run found for the study's limit of P95 = 10 ms; 0: no search. With apart, each load is
// a separate run.
func queues(rates []float64, runs int, scatter, within float64, apart bool) []scaling.Observation {
	r := rand.New(rand.NewPCG(1, 2))
	var obs []scaling.Observation
	for replicas := 1; replicas <= 2; replicas++ {
		for i := range runs {
			run := scaling.Observation{Run: fmt.Sprintf("r%d-%d", replicas, i), Study: "s", Point: fmt.Sprint("p", replicas), Repeat: i + 1, Kind: "serve", Framework: "native", Workers: replicas,
				Parameters: map[string]any{"workload.kind": "serve", "workers": int64(replicas), "workload.limit": "p95=10ms"}}
			if within > 0 {
				run.Places = append(run.Places, measure.Place{At: map[string]any{measure.Batch: 1.0}, Values: map[string]float64{measure.RateWithinLimit: within * float64(replicas)}})
			}
			for _, rate := range rates {
				place := measure.Place{At: map[string]any{measure.Batch: 1.0, measure.Rate: rate * float64(replicas)},
					Values: map[string]float64{measure.LatencyP95: math.Log(20) / (1000 - rate) * math.Exp(scatter*r.NormFloat64()), measure.RequestsPerSecond: rate * float64(replicas), measure.Errors: 0}}
				if apart {
					one := run
					one.Run, one.Places = fmt.Sprint(run.Run, "-", rate), []measure.Place{place}
					obs = append(obs, one)
					continue
				}
				run.Places = append(run.Places, place)
			}
			if !apart {
				obs = append(obs, run)
			}
		}
	}
	return obs
}

func ask(t *testing.T, obs []scaling.Observation, limit string, demand float64) Answer {
	t.Helper()
	l, err := measure.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	along := func(name string) []scaling.Curve {
		m, err := measure.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		curves, err := scaling.Analyse(obs, scaling.Options{Measure: m, Axis: scaling.Workers})
		if err != nil {
			t.Fatal(err)
		}
		return curves
	}
	list := WithinLimit(along(measure.LatencyP95), along(measure.RateWithinLimit), l, Load{Rate: demand}, nil)
	if len(list) != 1 {
		t.Fatalf("%d answers", len(list))
	}
	return list[0]
}

func TestWithin(t *testing.T) {
	rates := []float64{100, 400, 800, 900}
	for _, tt := range []struct {
		name                      string
		obs                       []scaling.Observation
		limit                     string
		demand                    float64
		replicas, atLeast         int
		low, high                 float64 // 0: no measured rate broke the limit
		why, inTheSentence, doubt string
	}{
		{"measured, and held", queues(rates, 6, 0.01, 0, false), "p95=20ms", 800, 1, 1, 800, 900, "", "within p95=20ms (98 % likely to carry it): 1 replica carried 800 [800, 900] requests/s in 6 runs.", ""},
		{"the same, a load a run", queues(rates, 6, 0.01, 0, true), "p95=20ms", 800, 1, 1, 800, 900, "", "1 replica carried 800 [800, 900] requests/s in 6 runs.", ""},
		{"between two rates: not guessed", queues(rates, 6, 0.01, 0, false), "p95=20ms", 850, 2, 1, 1600, 1800, "", "Provisional: use 2 replicas of native for 850 requests/s within p95=20ms (over 99 % likely to carry it): 2 replicas carried 1600 [1600, 1800] requests/s in 6 runs. Provisional because 1 may be enough: rates between the measured ones are unknown.", ""},
		{"nothing broke it", queues(rates, 6, 0.01, 0, false), "p95=1s", 900, 1, 1, 900, 0, "", "1 replica carried 900 [900 or more] requests/s", ""},
		{"nothing kept it", queues(rates, 6, 0.01, 0, false), "p95=3ms", 50, 0, 0, 0, 200, "no measured rate is shown to keep the limit with 2 replicas", "", ""},
		{"too far", queues(rates, 6, 0.01, 0, false), "p95=20ms", 9000, 0, 0, 1600, 1800, "not even 8, 4 times as many, are sure to carry 9000", "", ""},
		{"few runs", queues(rates, 5, 0.01, 0, false), "p95=20ms", 800, 0, 0, 0, 0, "at 2 replicas no rate has 6 runs", "", ""},
		{"another time", queues(rates, 6, 0.01, 0, false), "ttft_p95=20ms", 800, 0, 0, 0, 0, "no run has ttft_p95 at a rate", "", ""},
		{"the study's own", queues(nil, 6, 0, 700, false), "p95=10ms", 650, 1, 1, 700, 700, "", "within p95=10ms (over 99 % likely to carry it): 1 replica carried 700 [700, 700]", ""},
		{"a stricter search", queues(nil, 6, 0, 700, false), "p95=20ms", 800, 2, 1, 1400, 0, "", "2 replicas carried 1400 [1400 or more]", ""},
		{"a stricter search beside rates", queues([]float64{100, 900}, 6, 0.01, 700, false), "p95=20ms", 650, 1, 1, 700, 900, "", "carried 700 [700, 900]", ""},
	} {
		a := ask(t, tt.obs, tt.limit, tt.demand)
		high := 0.0
		if a.High != nil {
			high = *a.High
		}
		if a.Replicas != tt.replicas || a.AtLeast != tt.atLeast || a.Low != tt.low || high != tt.high || !strings.Contains(a.Why, tt.why) || tt.why == "" && a.Why != "" ||
			!strings.Contains(a.Sentence(), tt.inTheSentence) || !strings.Contains(strings.Join(a.Caveats, " "), tt.doubt) {
			t.Errorf("%s: %+v, high %g\n%s", tt.name, a, high, a.Sentence())
		}
	}
}

// A rate at which a run has no percentile, or that no run measured, ends the range of rates that
// keep the limit: 800 keeps it, but 400 is unknown.
func TestUnknown(t *testing.T) {
	obs := queues([]float64{100, 400, 800}, 6, 0.01, 0, false)
	for i := range obs {
		for _, p := range obs[i].Places {
			if p.At[measure.Rate] == 400*float64(obs[i].Workers) {
				delete(p.Values, measure.LatencyP95)
			}
		}
	}
	if a := ask(t, obs, "p95=20ms", 90); a.Low != 100 || a.High != nil {
		t.Errorf("%+v", a)
	}
	obs = queues([]float64{100, 800}, 6, 0.01, 0, false)
	for i := range obs {
		obs[i].Parameters["workload.rate"] = []any{100.0, 400.0, 800.0}
	}
	if a := ask(t, obs, "p95=20ms", 90); a.Low != 100 {
		t.Errorf("%+v", a)
	}
	// One of six runs without a percentile, or with too many errors, is enough.
	obs = queues([]float64{100, 400}, 6, 0.01, 0, false)
	obs[2].Places = obs[2].Places[:1]
	if a := ask(t, obs, "p95=20ms", 90); a.Low != 100 {
		t.Errorf("%+v", a)
	}
	obs = queues([]float64{100, 400}, 6, 0.01, 0, false)
	obs[2].Places[1].Values[measure.Errors] = 0.01
	if a := ask(t, obs, "p95=20ms", 90); a.Low != 100 {
		t.Errorf("%+v", a)
	}
}

// The true rate for 20 ms, 850.2, lies in the reported range, however the runs scatter.
func TestTruthOfWithin(t *testing.T) {
	truth := 1000 - math.Log(20)/0.02
	r := rand.New(rand.NewPCG(7, 7))
	inside, given := 0, 0
	for range 500 {
		var rates []float64
		for x := 200 + 600*r.Float64(); x < 990; x *= 1.02 + 0.2*r.Float64() {
			rates = append(rates, x)
		}
		runs := []int{6, 10, 20}[r.IntN(3)]
		scatter := 0.3 * r.Float64()
		obs := queues(rates, runs, 0, 0, false)
		for i := range obs {
			whole := math.Exp(scatter / 2 * r.NormFloat64())
			for _, p := range obs[i].Places {
				p.Values[measure.LatencyP95] *= whole * math.Exp(scatter*r.NormFloat64())
			}
		}
		a := ask(t, obs, "p95=20ms", 10)
		if a.Low == 0 {
			continue
		}
		given++
		if a.Low <= truth && (a.High == nil || truth <= *a.High) {
			inside++
		}
	}
	t.Logf("%d of %d hold the truth", inside, given)
	if share := float64(inside) / float64(given); given < 300 || share < 0.95 {
		t.Errorf("%d of %d hold the truth", inside, given)
	}
}
