package advice

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// decisive has one warning of each kind that can change an answer.
var decisive = []string{
	"4 ranks on n01 compute with 4 threads on 2 CPUs",
	"1 rank on n01 computes with 8 threads on 1 CPU",
	"2 ranks on n01 share GPU GPU-1234",
	"the ranks ended with 2 different sets of parameters: they did not train one model",
	"the ranks report a world size of 2, the plan asks for 4 workers",
	"rank 1 reports a world size of 2, others 4: they may not be of one run",
	"worker_batch differs between runs: 32, 64",
	"global_batch differs between runs: 64, 128",
	"learning_rate differs between runs: 0.1, 0.2",
	"workers_per_node differs between runs: 1, 2",
	"1 worker ran on whole nodes, 2 workers on nodes that other jobs may share (x): a",
	"2 of 6 runs could not be read: a",
	"the runs in /r could not be read: a",
}

// Every kind of decisive warning is in the answer's sentences, whether it is about a run or
// about the study, and whether or not there is an answer.
func TestDecisiveWarningsOfEveryKind(t *testing.T) {
	for _, text := range decisive {
		of := func(o *scaling.Observation) { o.Warnings = []string{text} }
		for name, a := range map[string]*Advice{
			"of runs":      series{counts: octaves, runs: 6, x: linear, change: of}.advise(t, Options{}),
			"of the study": series{counts: octaves, runs: 6, x: linear}.advise(t, Options{Warnings: []string{text}}),
			"few runs":     series{counts: octaves, runs: 2, x: linear}.advise(t, Options{Warnings: []string{text}}),
			"a limit":      series{counts: octaves, runs: 6, x: linear}.advise(t, Options{MinEfficiency: 0.5, Warnings: []string{text}}),
		} {
			if !a.Provisional || !strings.Contains(a.Sentences(), text) {
				t.Errorf("%s: %q: provisional %t: %s", name, text, a.Provisional, a.Sentences())
			}
		}
		if note := scaling.DecisiveNote(nil, text); !strings.HasPrefix(note, "Doubtful: "+text) {
			t.Errorf("%q: the note of tables is %q", text, note)
		}
	}
}

// Ranks that had too few CPUs make the answer provisional, and it says why.
func TestDecisiveWarnings(t *testing.T) {
	crowded := "4 ranks on n01 compute with 4 threads on 2 CPUs"
	crowd := func(o *scaling.Observation) {
		if o.Workers == 4 {
			o.Warnings = []string{crowded}
		}
	}
	if a := (series{counts: octaves, runs: 6, x: linear}).advise(t, Options{}); a.Provisional {
		t.Fatalf("without the warning: %s", a.Sentences())
	}
	a := series{counts: octaves, runs: 6, x: linear, change: crowd}.advise(t, Options{})
	if !a.Provisional || !strings.Contains(a.Sentences(), "Provisional because 4 workers: 6 of 6 runs: "+crowded+".") {
		t.Errorf("provisional %t: %s", a.Provisional, a.Sentences())
	}
	for _, o := range []Options{{Deadline: 1e6, Samples: 1000}, {MinEfficiency: 0.5}} {
		if a := (series{counts: octaves, runs: 6, x: linear, change: crowd}).advise(t, o); !a.Provisional || !strings.Contains(a.Sentences(), crowded) {
			t.Errorf("%+v: %s", o, a.Sentences())
		}
	}
}
