package scaling

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Whether a figure of the user's program, such as points/s, is of a training that exchanges gradients is unknown,
// so the warnings about trainings are not given; those about samples/s are.
func TestOwnFigureIsNoTraining(t *testing.T) {
	for unit, want := range map[string]bool{"Mpoints/s": false, "samples/s": true} {
		var runs []Observation
		for n := 1; n <= 2; n++ {
			runs = append(runs, Observation{Run: string(rune('a' + n)), Point: string(rune('a' + n)), Framework: "command", Workers: n, Nodes: 1,
				Parameters: map[string]any{"framework": "command", "workers": n},
				Reported:   []measure.Measure{measure.Reported("pi_rate", unit, measure.Higher)}, Values: map[string]float64{"pi_rate": float64(10 * n)}})
		}
		AsThroughput(runs, measure.Reported("pi_rate", unit, measure.Higher))
		curves, err := Analyse(runs, Options{Measure: measure.Measure{Name: measure.Throughput}})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(curves[0].Warnings, "\n")
		if got := strings.Contains(all, "weak or strong") && strings.Contains(all, "exchanges no gradients"); got != want {
			t.Errorf("%s: %q", unit, all)
		}
	}
}
