package advice

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// Of studies on a stable machine, in blocks or shuffled, with 6 or more runs at each count, at most 5 % have an answer
// with a warning, or with a doubt about the data: that more runs or counts are needed is none.
func TestSoundStudiesAreSilent(t *testing.T) {
	studies := 200
	if testing.Short() {
		studies = 40
	}
	r := rand.New(rand.NewPCG(35, 2027))
	asked, warned := 0, 0
	texts := map[string]int{}
	for _, f := range simulate.Sound() {
		for range studies {
			var obs []scaling.Observation
			for _, m := range f.Draw(r).Draw(r) {
				obs = append(obs, scaling.Observation{Run: fmt.Sprintf("s/w%d-r%d-a1", m.Workers, m.Repeat), Study: "s", Point: fmt.Sprint("w", m.Workers), Repeat: m.Repeat,
					Framework: "native", Workers: m.Workers, Nodes: m.Workers, Parameters: map[string]any{"workload.scaling": "weak"},
					BeganUnix: m.Began, Hosts: m.Nodes, Values: map[string]float64{measure.Throughput: m.Throughput}})
			}
			curves, err := scaling.Analyse(obs, scaling.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := Advise(curves[0], obs, Options{})
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, remark := range append(scaling.Remarks(curves), Warnings([]*Advice{a})...) {
				if remark.Severity() < scaling.Remarkable {
					said = remark.Text
				}
			}
			for _, doubt := range a.Caveats {
				if doubt.Kind == decision.Data || doubt.Kind == decision.Drift || doubt.Kind == decision.Order || doubt.Kind == decision.Constant {
					said = doubt.Text
				}
			}
			if asked++; said != "" {
				warned++
				texts[said]++
			}
		}
	}
	t.Logf("%d of %d answers about sound studies have a warning (%.1f %%): %v", warned, asked, 100*float64(warned)/float64(asked), texts)
	if asked != 2*studies {
		t.Fatalf("%d studies were simulated, want %d", asked, 2*studies)
	}
	if warned*20 > asked {
		t.Errorf("%d of %d answers about sound studies have a warning; at most 5 %% may", warned, asked)
	}
}
