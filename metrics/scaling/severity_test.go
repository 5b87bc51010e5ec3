package scaling

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

func TestSeverity(t *testing.T) {
	for text, want := range map[string]Severity{
		"4 ranks on n01 compute with 4 threads on 2 CPUs":                                    Decisive,
		"1 rank on n01 computes with 8 threads on 1 CPU":                                     Decisive,
		"2 ranks on n01 share GPU GPU-1234":                                                  Decisive,
		"the ranks ended with 2 different sets of parameters: they did not train one model":  Decisive,
		"the ranks report a world size of 2, the plan asks for 4 workers":                    Decisive,
		"rank 1 reports a world size of 2, others 4: they may not be of one run":             Decisive,
		"global_batch differs between runs: 64, 128":                                         Decisive,
		"1 worker ran on whole nodes, 2 workers on nodes that other jobs may share (x): a":   Decisive,
		"each step has 4 values of throughput, which differ: if they are of several ranks":   Decisive,
		"the step number of throughput goes back in line 9, and the values change":           Decisive,
		"AIPerf's loop is closed: a stalled service delays the next requests":                Minor,
		"vLLM's latencies cover answered requests only and count from the send":              Minor,
		"at threads=8, answers/s times the mean latency are 5.99 requests in flight, not 8":  Serious,
		"2 of 6 runs could not be read: a":                                                   Decisive,
		"no base: its point with 1 worker has no good run; measure it":                       Baseless,
		"drift: throughput rose by 28.0 % from the first to the second half":                 Serious,
		"2 of 4 runs left out of the throughput: no steady state":                            Serious,
		"a text that no pattern knows":                                                       Serious,
		"throughput is stated by a log, not measured here: the median of 3 values":           Remarkable,
		"end_to_end is stated by a log, not measured here: x, not a measured aggregate; y":   Minor,
		"losses are timed by the times of day, from the first line":                          Remarkable,
		"initialisation was not recorded; times and costs exclude it":                        Minor,
		"the base is one worker, which exchanges no gradients: efficiency includes the cost": Remarkable,
	} {
		if got := SeverityOf(text); got != want {
			t.Errorf("%q has severity %d, want %d", text, got, want)
		}
	}
}

func TestWorstFirst(t *testing.T) {
	list := []Remark{{Text: "initialisation was not recorded"}, {Text: "drift: a"}, {Series: "s", Text: "2 ranks on n share GPU x"}, {Text: "drift: b"}}
	WorstFirst(list)
	want := "[s: 2 ranks on n share GPU x drift: a drift: b initialisation was not recorded]"
	if got := fmt.Sprint(list); got != want {
		t.Errorf("sorted: %s\nwant:   %s", got, want)
	}
}

// Only warnings that can change the answer are in the note of tables and captions.
func TestDecisiveNote(t *testing.T) {
	crowded := "4 ranks on n01 compute with 4 threads on 2 CPUs"
	c := Curve{Series: "native", Axis: Workers, Warnings: []string{"drift: throughput rose by 28 %"}, Points: []Point{
		{At: At(4), Workers: 4, Runs: []RunValues{{ID: "s/a"}, {ID: "s/b"}}, RunWarnings: []RunWarning{{crowded, []string{"s/a", "s/b"}}}}}}
	if got, want := DecisiveNote([]Curve{c}), "Doubtful: 4 workers: 2 of 2 runs: "+crowded+"."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.Points[0].RunWarnings = nil
	if got := DecisiveNote([]Curve{c}); got != "" {
		t.Errorf("got %q without a decisive warning", got)
	}
}

// Of studies on a stable machine, in blocks or shuffled, with 6 or more runs at each count, at most
// 5 % print a warning.
func TestSoundStudiesAreSilent(t *testing.T) {
	studies := 1000
	if testing.Short() {
		studies = 250
	}
	r := rand.New(rand.NewPCG(35, 2026))
	asked, warned := 0, 0
	texts := map[string]int{}
	for _, f := range simulate.Sound() {
		for range studies {
			runs := observed(f.Draw(r).Draw(r))
			for i := range runs { // as often as steady runs appear unsteady
				if r.Float64() < falselyUnsteady {
					runs[i].Warnings = []string{"steps 1 to 9 take 21 % longer than those after them"}
				}
			}
			curves, err := Analyse(runs, Options{})
			if err != nil {
				t.Fatal(err)
			}
			asked++
			said := false
			for _, remark := range Remarks(curves) {
				if remark.Severity() < Remarkable {
					said = true
					texts[remark.kind()]++
				}
			}
			if said {
				warned++
			}
		}
	}
	t.Logf("%d of %d sound studies print a warning (%.1f %%): %v", warned, asked, 100*float64(warned)/float64(asked), texts)
	if asked != 2*studies {
		t.Fatalf("%d studies were simulated, want %d", asked, 2*studies)
	}
	if warned*20 > asked {
		t.Errorf("%d of %d sound studies print a warning; at most 5 %% may", warned, asked)
	}
}

// Of 24 steady runs, 4 have a false warning about their steps in 7 % of studies, 5 in 1.8 %, and 6
// in 0.4 % (binomial, 6.6 % each). A change by half is never due to chance.
func TestUnsteadyByChance(t *testing.T) {
	curve := func(runs, with, percent int) Curve {
		p := Point{At: At(1)}
		for i := range runs {
			id := fmt.Sprint("s/r", i)
			p.Runs = append(p.Runs, RunValues{ID: id})
			if i < with {
				p.RunWarnings = append(p.RunWarnings, RunWarning{fmt.Sprintf("steps 0 to 9 take %d %% longer than those after them", percent), []string{id}})
			}
		}
		return Curve{Points: []Point{p}}
	}
	for _, c := range []struct {
		runs, with, percent int
		want                bool
	}{
		{24, 1, 20, true}, {24, 5, 20, true}, {24, 6, 20, false}, {24, 1, 50, false},
		{1, 1, 20, false}, {2, 1, 20, true}, {2, 2, 20, false}, {24, 0, 20, false},
	} {
		if got := unsteadyByChance(curve(c.runs, c.with, c.percent)); got != c.want {
			t.Errorf("%d of %d runs by %d %%: by chance %t, want %t", c.with, c.runs, c.percent, got, c.want)
		}
	}
}
