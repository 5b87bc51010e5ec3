package scaling

import (
	"slices"
	"strings"
	"testing"
)

// One worker takes 100 s per epoch, four take 25 s, and epoch 8 reaches 0.75: after 800 s and 200
// s, a speedup of 4. If four workers evaluate only after every fifth epoch, they notice it after
// 250 s, and the speedup is 3.2. It is only known that they reached it after the 125 s of epoch 5,
// so up to half of the 250 s may be delay.
func TestDifferentCadence(t *testing.T) {
	study := func(every int, samples bool) []Observation {
		var obs []Observation
		for _, n := range []int{1, 4} {
			list := runs(n, 100*float64(n), 101*float64(n))
			for i := range list {
				for epoch := 1; epoch <= 10; epoch++ {
					if n == 4 && epoch%every != 0 {
						continue
					}
					e := Evaluation{Seconds: 100 * float64(epoch) / float64(n), Epoch: epoch, Samples: -1, Accuracy: 0.70}
					if samples {
						e.Samples = int64(epoch) * 50_000
					}
					if epoch >= 8 {
						e.Accuracy = 0.76
						if list[i].Values["to_0.75"] == 0 {
							list[i].Values["to_0.75"] = e.Seconds
						}
					}
					list[i].Evaluations = append(list[i].Evaluations, e)
				}
			}
			obs = append(obs, list...)
		}
		return obs
	}
	for _, tt := range []struct {
		name    string
		every   int
		samples bool
		want    string
	}{
		{"epochs", 5, false, "target 0.75: evaluated every 5 epochs with 4 workers, and every epoch with 1 worker: up to 50.0 % and 12.5 % of these times may be delay"},
		{"samples", 5, true, "target 0.75: evaluated every 250000 samples with 4 workers, and every 50000 samples with 1 worker: up to 50.0 % and 12.5 %"},
		{"alike", 1, true, ""},
	} {
		curves, err := Analyse(study(tt.every, tt.samples), Options{})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(slices.DeleteFunc(slices.Clone(curves[0].Warnings), func(w string) bool { return !strings.Contains(w, "evaluat") }), "\n")
		if !strings.HasPrefix(said, tt.want) || tt.want == "" && said != "" {
			t.Errorf("%s: got %q, want %q", tt.name, said, tt.want)
		}
	}
}

// A target that the initial parameters reach says nothing about speed.
func TestReachedUntrained(t *testing.T) {
	obs := slices.Concat(runs(1, 100, 101), runs(2, 200, 201))
	for i := range obs {
		obs[i].Values["to_0.1"] = 0
		obs[i].Values["to_0.2"] = 10 / float64(obs[i].Workers)
	}
	curves, err := Analyse(obs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(curves[0].Warnings, "\n")
	if !strings.Contains(said, "target 0.1: reached at 0 s, before any training, by 4 of 4 runs: too easy") || strings.Contains(said, "target 0.2: reached at 0 s") {
		t.Error(said)
	}
}
