package figure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// made is a synthetic study: series by batch whose serial part differs, and trainings that
// approach their final accuracy.
type made struct {
	workers []int
	batches []int
	runs    int
	targets []float64
	noise   float64 // relative standard deviation of a run's throughput
	misses  bool    // larger batches end below the second target
	rate    float64 // samples/s of one worker
}

func (s made) observations() []scaling.Observation {
	r := rand.New(rand.NewPCG(11, 12))
	var list []scaling.Observation
	for b, batch := range s.batches {
		for _, n := range s.workers {
			serial := 0.02 + 0.03*float64(b)
			x := s.rate * (1 + 0.15*float64(b)) / (serial + (1-serial)/float64(n))
			for k := range s.runs {
				x := x * math.Exp(s.noise*r.NormFloat64())
				o := scaling.Observation{
					Run:   fmt.Sprintf("s/b%d-w%d-r%02d-a1", batch, n, k+1),
					Point: fmt.Sprintf("b%d-w%d", batch, n), Study: "s", Repeat: k + 1, Framework: "native", Workers: n, Nodes: 1,
					Parameters: map[string]any{"workload.batch": int64(batch), "workload.scaling": "weak"},
					Values:     map[string]float64{"throughput": x},
				}
				share := 0.08 * math.Log2(float64(n))
				o.Values["data_wait"], o.Values["communication"] = 0.05, share
				if n < 8 || b == 0 {
					o.Values["compute"] = 0.9 - share
				}
				final := 0.86 - 0.01*math.Log2(float64(n)) + 0.01*r.NormFloat64()
				if s.misses {
					final -= 0.03 * float64(b)
				}
				for e := range 13 {
					o.Evaluations = append(o.Evaluations, scaling.Evaluation{
						Seconds: float64(e) * 50000 / x, Epoch: e, Samples: int64(e) * 50000,
						Accuracy: final - (final-0.1)*math.Exp(-float64(e)/3),
					})
				}
				for _, target := range s.targets {
					name := measure.Accuracy(target).Time().Name
					o.Values[name] = math.Inf(1)
					for _, e := range o.Evaluations {
						if e.Accuracy >= target {
							o.Values[name] = e.Seconds
							break
						}
					}
				}
				list = append(list, o)
			}
		}
	}
	return list
}

func (s made) draw(t testing.TB, kind string, o Options) *Drawing {
	t.Helper()
	obs := s.observations()
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Draw(kind, Data{Curves: curves, Observations: obs}, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var studies = map[string]made{
	"small":  {workers: []int{1, 2, 4}, batches: []int{64}, runs: 1, targets: []float64{0.75}, noise: 0.02, rate: 812.5},
	"two":    {workers: []int{1, 2, 4, 8}, batches: []int{64, 256}, runs: 8, targets: []float64{0.75, 0.82}, noise: 0.03, rate: 812.5, misses: true},
	"six":    {workers: []int{1, 2, 4, 8}, batches: []int{32, 64, 128, 256, 512, 1024}, runs: 3, targets: []float64{0.75}, noise: 0.03, rate: 812.5},
	"uneven": {workers: []int{1, 2, 4, 8, 12, 64}, batches: []int{64}, runs: 6, targets: []float64{0.5, 0.7}, noise: 0.05, rate: 812.5},
	"twelve": {workers: []int{1, 2, 4, 8, 12, 64}, batches: []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}, runs: 4, targets: []float64{0.7}, noise: 0.03, rate: 812.5},
	"one":    {workers: []int{4}, batches: []int{64}, runs: 3, targets: []float64{0.5}, noise: 0.01, rate: 812.5},
}

// curveKinds lists the figures that need only curves.
func curveKinds() []string {
	var names []string
	for _, k := range Presets() {
		if k.NeedsOnlyCurves() {
			names = append(names, k.Name)
		}
	}
	return names
}

// A figure may be shown without its table, so the most serious drift warning is below it,
// once, in the table's words.
func TestWarningsBelowTheFigure(t *testing.T) {
	machine := func(rise map[int]float64) ([]scaling.Curve, []scaling.Observation) {
		var obs []scaling.Observation
		for batch, each := range rise {
			for repeat := range 12 {
				for _, workers := range []int{1, 2} {
					step := 2*repeat + (workers+repeat)%2
					obs = append(obs, scaling.Observation{Run: fmt.Sprintf("b%d-w%d-r%d", batch, workers, repeat), Repeat: repeat + 1, Framework: "native", Workers: workers,
						BeganUnix: 1.79e9 + 60*float64(step), Parameters: map[string]any{"workload.batch": int64(batch), "workload.scaling": "weak"},
						Values: map[string]float64{"throughput": 100 * float64(workers) * math.Pow(each, float64(step))}})
				}
			}
		}
		curves, err := scaling.Analyse(obs, scaling.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return curves, obs
	}
	for _, tt := range []struct {
		rise map[int]float64
		want string // "": no warning
	}{
		{map[int]float64{32: 1}, ""},
		{map[int]float64{32: 0.9}, "from the first to the second half of the runs (p = 0.001), so medians depend on when runs were made."},
		{map[int]float64{32: 1, 64: 0.9}, "so medians depend on when runs were made (native batch=64)."},
		{map[int]float64{32: 0.9, 64: 0.9}, "so medians depend on when runs were made (native batch=32; 1 more has a drift warning)."},
	} {
		curves, obs := machine(tt.rise)
		for _, kind := range []string{"throughput", "speedup"} {
			f, err := Draw(kind, Data{Curves: curves, Observations: obs}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			if tt.want == "" {
				want = 0
			}
			if strings.Count(f.Caption(), "Drift: throughput fell by ") != want || !strings.Contains(f.Caption(), tt.want) {
				t.Errorf("%s of %v: %s", kind, tt.rise, f.Caption())
			}
		}
	}
}
