package figure

import (
	"fmt"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Words keep the parameter's order, although the first series lacks the first of them.
func TestWordsAreCounted(t *testing.T) {
	var obs []scaling.Observation
	for framework, platforms := range map[string][]string{"a": {"cpu16", "cpu64"}, "b": {"cpu16", "cpu8"}} {
		for _, platform := range platforms {
			obs = append(obs, scaling.Observation{Run: framework + platform, Point: framework + platform, Framework: framework, Workers: 1, Kind: "train",
				Parameters: map[string]any{"platform": platform, "workload.scaling": "weak"}, Values: map[string]float64{"throughput": 100}})
		}
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Axis: "platform", Base: &scaling.Value{Word: "cpu16"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Draw("throughput", Data{Curves: curves, Observations: obs}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.panels[0].chart.x.names; !slices.Equal(got, []string{"cpu8", "cpu16", "cpu64"}) {
		t.Errorf("columns %v", got)
	}
	curves, err = scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = Draw("throughput", Data{Curves: curves, Observations: obs}, Options{By: "platform"}); err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, p := range f.panels {
		titles = append(titles, p.chart.title)
	}
	if got := fmt.Sprint(titles); got != "[platform cpu8 platform cpu16 platform cpu64]" && got != "[cpu8 cpu16 cpu64]" {
		t.Errorf("panels %s", got)
	}
}
