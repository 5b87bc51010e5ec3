package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// One file may cover all ranks: its steps are complete, its samples count all ranks, and
// differences between ranks are unknown. Its notes become warnings of the result.
func TestOneFileForSeveralRanks(t *testing.T) {
	s := openStore(t)
	begin := start(0, 2, 0)
	begin.Start.Ranks = 2
	file := rankFile(t, t.TempDir(), 0, 0, lines(begin,
		metrics.Event{Time: 1, Note: &metrics.Note{Text: "rank 0's rate times 2"}},
		metrics.Event{Time: 1, Train: &metrics.Train{}},
		stepsEvent(13, metrics.Steps{Tick: 0.5, Duration: fill(12, 2), Samples: fill(12, 32), Communication: fill(12, 1)}),
		metrics.Event{Time: 13, Evaluation: &metrics.Evaluation{Step: 12, Accuracy: 0.5}},
		metrics.Event{Time: 14, Stop: &metrics.Stop{Status: metrics.StopDone, Steps: 12}}))
	ingestRun(t, s, aRun(), file)

	if got := value(t, s, "SELECT count(*), min(duration), max(mean), min(samples), min(communication) FROM steps"); got != "12|1|1|32|0.5" {
		t.Errorf("steps: %s", got)
	}
	d, err := s.Show(t.Context(), aRun().ID)
	if err != nil {
		t.Fatal(err)
	}
	r := d.Result
	if r.Values["throughput"] != 32 || r.Values["communication"] != 0.5 {
		t.Errorf("%v; want 32 samples in each second, a half of it communication", r.Values)
	}
	if r.Known("skew") != nil || r.Slowest != nil {
		t.Errorf("%v, slowest %v, of ranks that nobody told apart", r.Values, r.Slowest)
	}
	if diff := cmp.Diff([]string{"rank 0's rate times 2"}, r.Warnings); diff != "" {
		t.Error("warnings:", diff)
	}
	if got := value(t, s, "SELECT evaluated, evaluation_seconds FROM evaluations"); got != "<nil>|<nil>" {
		t.Errorf("an evaluation of nobody knows how many samples: %s", got)
	}
}
