package extract

import (
	"slices"
	"strings"
	"testing"
)

// nanoLine returns a line of nanoGPT, after an evaluation if evaluated is set.
func nanoLine(step, ms, mfu string, evaluated bool) (text string) {
	if evaluated {
		text = "step " + step + ": train loss 3.0, val loss 3.1\n"
	}
	return text + "iter " + step + ": loss 3.0, time " + ms + "ms, mfu " + mfu + "%\n"
}

// A figure that its own log contradicts is renamed, so that curves leave it out.
func TestContradictions(t *testing.T) {
	const loss, end = "{'loss': 1.0, 'epoch': ", "{'train_runtime': 50.0, 'train_samples_per_second': 40.0, 'train_steps_per_second': 5.0, 'train_loss': "
	resumed := []string{"stated_train_seconds 50 s", "stated_end_to_end 40 samples/s", "stated_throughput 40 samples/s"}
	own := []string{" throughput ", " end_to_end ", " train_seconds "}
	wrk2 := func(asked, count, seconds, rate string) string {
		return "Running " + asked + " test @ http://h/\n  2 threads and 10 connections\n  Thread calibration: mean lat.: 1 usec, rate sampling interval: 1 msec\n" +
			"  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     2.00ms    1.00ms   3.00ms   90.00%\n  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    2.00ms\n 99.000%    4.00ms\n" +
			"  " + count + " requests in " + seconds + ", 1.00MB read\nRequests/sec: " + rate + "\nTransfer/sec:   1.00MB\n"
	}
	state := func(losses, summary string) string { return `{"log_history": [` + losses + summary + `]}` }
	entry := func(epoch string) string { return `{"loss": 2.0, "epoch": ` + epoch + `, "step": 1},` }
	for _, tt := range []struct {
		name, format, text string
		o                  Options
		want, never        []string
		notes              []string
	}{
		{"a Trainer from the start", "hf-trainer", loss + "0.5}\n" + loss + "1.0}\n" + loss + "1.5}\n" + loss + "2.0}\n" + end + "1.0, 'epoch': 2.0}\n", Options{},
			[]string{" throughput 40 samples/s", " end_to_end 40 samples/s", " train_seconds 50 s"}, []string{"stated_"}, nil},
		{"a Trainer that says so", "hf-trainer", "  Continuing training from global step 500\n" + loss + "1.5}\n" + end + "0.5, 'epoch': 2.0}\n", Options{},
			resumed, own, []string{`"Continuing training from global step 500"`, "are left out of curves"}},
		{"a Trainer's first loss is late", "hf-trainer", loss + "1.5}\n" + loss + "1.75}\n" + loss + "2.0}\n" + end + "1.0, 'epoch': 2.0}\n", Options{},
			resumed, own, []string{"its first loss is at epoch 1.5, and later ones are 0.25 apart"}},
		{"a Trainer's epochs are rounded", "hf-trainer", loss + "0.02}\n" + loss + "0.03}\n" + loss + "0.05}\n" + loss + "0.06}\n" + end + "1.0, 'epoch': 0.07}\n", Options{},
			[]string{" throughput 40 samples/s"}, []string{"stated_"}, nil},
		{"a Trainer that goes back", "hf-trainer", loss + "0.5}\n" + loss + "1.0}\n" + loss + "1.5}\n" + loss + "1.0}\n" + loss + "1.5}\n" + end + "1.0, 'epoch': 2.0}\n", Options{},
			resumed, own, []string{"training goes back to a checkpoint"}},
		// The state file also has the losses from before the resume. The summary divides the sum
		// of the later half by all steps, which gives 1.0 instead of 2.0.
		{"a state with the losses of before", "hf-trainer-state", state(entry("0.5")+entry("1.0")+entry("1.5")+entry("2.0"), `{"train_runtime": 50.0, "train_samples_per_second": 40.0, "train_loss": 1.0, "epoch": 2.0}`), Options{},
			resumed, own, []string{"its train_loss of 1 is not the mean of its losses, 2"}},
		{"a state with more evaluation than time", "hf-trainer-state", state(`{"eval_loss": 1.0, "eval_runtime": 30.0, "epoch": 1.0},{"eval_loss": 1.0, "eval_runtime": 30.0, "epoch": 2.0},`, `{"train_runtime": 50.0, "train_samples_per_second": 40.0, "train_loss": 1.0, "epoch": 2.0}`), Options{},
			resumed, own, []string{"its evaluations took 60 s, longer than its train_runtime of 50 s"}},
		{"a state from the start", "hf-trainer-state", state(entry("0.5")+entry("1.0")+entry("1.5")+entry("2.0"), `{"train_runtime": 50.0, "train_samples_per_second": 40.0, "train_steps_per_second": 5.0, "train_loss": 1.98, "epoch": 2.0}`), Options{},
			[]string{" throughput 40 samples/s"}, []string{"stated_"}, nil},
		{"a Trainer's steps in its time", "hf-trainer-state", `{"global_step": 250, "max_steps": 250, "epoch": 2.0, "log_history": [{"step": 250, "train_runtime": 50.0, "train_samples_per_second": 40.0, "train_steps_per_second": 5.0, "epoch": 2.0}]}`, Options{},
			[]string{" throughput 40 samples/s"}, []string{"stated_"}, nil},
		{"a Trainer's rates contradict its steps", "hf-trainer-state", `{"global_step": 250, "max_steps": 250, "epoch": 2.0, "log_history": [{"step": 250, "train_runtime": 500.0, "train_samples_per_second": 40.0, "train_steps_per_second": 5.0, "epoch": 2.0}]}`, Options{},
			[]string{" stated_throughput 40 samples/s", " stated_end_to_end 40 samples/s", " train_seconds 500 s"}, []string{" throughput "}, []string{"it states 5 steps/s, and its 250 steps in 500 s are 0.5"}},
		{"a Trainer's batch", "hf-trainer", "  Total train batch size (w. parallel, distributed & accumulation) = 8\n" + loss + "1.0}\n" + loss + "2.0}\n" + end + "1.0, 'epoch': 2.0}\n", Options{},
			[]string{" throughput 40 samples/s"}, []string{"stated_"}, nil},
		{"a Trainer's samples contradict its batch", "hf-trainer", "  Total train batch size (w. parallel, distributed & accumulation) = 64\n" + loss + "1.0}\n" + loss + "2.0}\n" + end + "1.0, 'epoch': 2.0}\n", Options{},
			[]string{" stated_throughput 40 samples/s"}, []string{" throughput "}, []string{"it states 40 samples/s, and its 5 steps/s of 64 samples are 320"}},
		// The running mean keeps nine tenths per line, so an evaluation affects it for a
		// long time.
		{"nanoGPT evaluates in every line", "nanogpt", "tokens per iteration will be: 1,000\n" + nanoLine("0", "9000.00", "-100.00", true) + nanoLine("10", "9000.00", "1.50", true) + nanoLine("20", "9000.00", "1.25", true), Options{Workers: 2},
			[]string{"stated_reported_mfu 0.0125"}, []string{" reported_mfu", "step_seconds", "tokens_per"}, []string{"no rate is taken: the time of every line includes an evaluation"}},
		{"nanoGPT evaluates later", "nanogpt", "tokens per iteration will be: 1,000\n" + nanoLine("0", "9000.00", "-100.00", true) + nanoLine("10", "500.00", "30.00", false) + nanoLine("20", "500.00", "32.00", false) + nanoLine("30", "9000.00", "28.00", true) + nanoLine("40", "500.00", "29.00", false), Options{Workers: 2},
			[]string{" reported_mfu 0.31 ", " step_seconds 0.5 s", " tokens_per_second 2000 tokens/s"}, []string{"stated_"}, []string{"2 lines have no reported_mfu"}},
		{"wrk2 as asked", "wrk", wrk2("10s", "10000", "10.00s", "1000.00"), Options{At: map[string]float64{"rate": 1000}},
			[]string{" requests_per_second 1000 requests/s", " latency_p99 0.004 s"}, []string{"stated_"}, nil},
		{"wrk2 answers more than it was asked for", "wrk", wrk2("10s", "20000", "10.00s", "2000.00"), Options{At: map[string]float64{"rate": 1000}},
			[]string{"stated_requests_per_second 2000 requests/s", "stated_latency_p99 0.004 s"}, []string{" requests_per_second", " latency_p99"}, []string{"2000 answers/s are more than the 1000 requests/s asked for"}},
		{"wrk2's clock", "wrk", wrk2("10s", "8000", "1.25ms", "6400000.00"), Options{At: map[string]float64{"rate": 1e7}},
			[]string{"stated_requests_per_second 6400000 requests/s"}, []string{" requests_per_second"}, []string{"its requests took 0.00125 s by its own clock, in a test of 10 s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Find(tt.format)
			if err != nil {
				t.Fatal(err)
			}
			lines, notes := found(t, e, tt.text, tt.o)
			for _, w := range tt.want {
				if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, w) }) {
					t.Errorf("%q is not among\n%s", w, strings.Join(lines, "\n"))
				}
			}
			for _, w := range tt.never {
				if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, w) }) {
					t.Errorf("%q is among\n%s", w, strings.Join(lines, "\n"))
				}
			}
			for _, w := range tt.notes {
				if !strings.Contains(notes, w) {
					t.Errorf("%q is not said:\n%s", w, notes)
				}
			}
		})
	}
}
