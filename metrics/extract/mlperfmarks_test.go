package extract

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// Lines before run_start, such as the epochs of a warm-up, count neither as samples nor as
// pauses. 3000 samples in the 30 s from run_start are 100 samples/s, over three epochs of
// which the first is left out.
func TestMLPerfMarksBeforeTheStart(t *testing.T) {
	const training = `
		1000 run_start
		1000 epoch_start 0 {"samples_count":0}
		11000 eval_accuracy 0.1 {"samples_count":1000}
		21000 eval_accuracy 0.2 {"samples_count":2000}
		31000 eval_accuracy 0.3 {"samples_count":3000}
		31000 run_stop null {"status":"success"}`
	for name, before := range map[string]string{
		"nothing": "",
		"a warm-up of its own": `
		100 epoch_start 0 {"samples_count":0}
		500 epoch_stop 0 {"samples_count":64000}`,
		"a pause that never ends": `
		500 block_stop 0 {"samples_count":0}`,
		"an evaluation that has begun": `
		900 eval_start 0 {"samples_count":500}`,
		"a block beyond all others": `
		900 block_start 0 {"samples_count":9000}`,
		"a line before run_start of a later time": `
		20500 block_stop 0 {"samples_count":0}`,
		"a line after run_start of an earlier time": "late",
	} {
		facts := before + training
		if before == "late" {
			facts = strings.Replace(training, "1000 run_start", `1000 run_start
		900 block_start 0 {"samples_count":9000}`, 1)
		}
		text := mllogText(t, strings.TrimSpace("0 submission_benchmark \"resnet\"\n0 global_batch_size 100"+facts))
		r, err := mlperf.Extract(strings.NewReader(text), Options{Workers: 1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rate := math.NaN()
		for f := range r.Findings() {
			if g := f.Event.Figure; g != nil && g.Name == metrics.FigureThroughput {
				rate = g.Value
			}
		}
		if !(math.Abs(rate-100) <= 1e-9) { // also fails for NaN
			t.Errorf("%s: %g samples/s, want 100", name, rate)
		}
	}
	for key, want := range map[string]string{
		"900 eval_accuracy 0.1": "eval_accuracy before run_start",
		"900 run_stop null":     "run_stop before run_start",
	} {
		text := mllogText(t, key+training)
		if _, err := mlperf.Extract(strings.NewReader(text), Options{Workers: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
}
