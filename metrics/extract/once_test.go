package extract

import (
	"strings"
	"testing"
)

// Lines that a run writes once must not occur twice in a log.
func TestSecondStartAndStop(t *testing.T) {
	for facts, want := range map[string]string{
		"0 run_start\n5 run_start":                              "log:2: a second run_start; the first is on line 1",
		"0 run_start\n5 run_stop\n9 run_stop":                   "log:3: a second run_stop; the first is on line 2",
		"5 init_start\n1 run_start":                             "run_start is 4 ms before the first line",
		"0 run_start\n0 train_samples 0":                        `train_samples is "0"; want a whole number, 1 or more`,
		"0 run_start\n0 global_batch_size 1.5":                  `global_batch_size is "1.5"; want a whole number, 1 or more`,
		"0 run_start\n0 eval_samples -1":                        `eval_samples is "-1"; want a whole number, 1 or more`,
		"0 run_start\n0 max_sequence_length 0":                  `max_sequence_length is "0"`,
		"0 run_start\n9 tracked_stats {\"throughput\":0}":       "a throughput of 0; want more than 0",
		"0 run_start\n9 tracked_stats {\"train_step_time\":-1}": "a train_step_time of -1; want more than 0",
	} {
		_, err := mlperf.Extract(strings.NewReader(mllogText(t, facts)), Options{Workers: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", facts, err, want)
		}
	}
}

// The loss on the test set, after training, is not one of the evaluations.
func TestMegatronTestSet(t *testing.T) {
	text := sampleText(t, "megatron.log")
	count := func(text string) (n int) {
		r, err := megatron.Extract(strings.NewReader(text), Options{Workers: 16})
		if err != nil {
			t.Fatal(err)
		}
		for f := range r.Findings() {
			if g := f.Event.Figure; g != nil && g.Name == "eval_loss" {
				n++
			}
		}
		return n
	}
	before := count(text)
	if before == 0 {
		t.Fatal("the sample has no evaluation")
	}
	if got := count(text + " validation loss at iteration 50 on test set | lm loss value: 8.0 | lm loss PPL: 2980.9 | \n"); got != before {
		t.Errorf("%d evaluations with one more on the test set, want %d", got, before)
	}
	if got := count(text + " validation loss at iteration 50 | lm loss value: 8.0 | lm loss PPL: 2980.9 | \n"); got != before+1 {
		t.Errorf("%d evaluations with one more, want %d", got, before+1)
	}
}
