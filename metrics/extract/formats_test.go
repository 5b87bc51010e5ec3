package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Each case tests a rule of one format by the finding, the note or the error that it causes.
func TestRulesOfFormats(t *testing.T) {
	rank := func(n string, step int, tps string) string {
		return "[rank" + n + "]:" + titan(step, "8.0", tps, "20.00%")
	}
	recomputed := llama3
	recomputed.Recompute = "full"
	twice := func(name string) string { text := sampleText(t, name); return text + text }
	evaluations := strings.TrimSpace(`
		0 submission_benchmark "stable_diffusion"
		0 run_start
		1000 eval_accuracy 125.9 {"samples_count":2048,"metric":"FID"}
		2000 eval_accuracy 90.5 {"epoch_num":3,"metric":"FID"}
		3000 run_stop null {"status":"success"}`)
	for _, c := range []struct {
		name, format, text string
		o                  Options
		want, never        string // of findings
		note               string
		why                string
	}{
		{"half an epoch of the Trainer", "hf-trainer", "{'eval_loss': 1.0, 'eval_accuracy': 0.5, 'epoch': 0.5}\n", Options{}, "accuracy 0.5 at 0 epoch 1", "", "", ""},
		{"one and a half", "hf-trainer", "{'eval_loss': 1.0, 'eval_accuracy': 0.5, 'epoch': 1.5}\n", Options{}, "accuracy 0.5 at 0 epoch 2", "", "", ""},
		{"a loss of a late epoch", "hf-trainer", "{'loss': 1.5, 'epoch': 1e9}\n", Options{}, "1 loss 1.5", "", "", ""},
		{"a loss of none", "hf-trainer", "{'loss': 1.5, 'epoch': 1.1e9}\n", Options{}, "", "", "", "1.1e+09"},

		{"an HFU", "torchtitan", titan(1, "8.0", "100", "N/A") + titan(10, "8.0", "5,000", "N/A"), Options{Model: &recomputed}, "2 hfu_torchtitan 0.", "", "", ""},
		{"no HFU", "torchtitan", titan(1, "8.0", "100", "N/A") + titan(10, "8.0", "5,000", "N/A"), Options{Model: &llama3}, "2 mfu_torchtitan 0.", "hfu_", "", ""},
		{"ranks that differ", "torchtitan", rank("0", 1, "100") + rank("1", 1, "100") + rank("0", 10, "5,000") + rank("1", 10, "9,000"), Options{Workers: 2}, "tokens_per_second_per_gpu 5000", "",
			"rank 1 states a tokens_per_second_per_gpu of 9000, and rank 0, which is read, 5000: ranks in step state the same", ""},
		{"ranks that agree", "torchtitan", rank("0", 1, "100") + rank("1", 1, "300") + rank("0", 10, "5,000") + rank("1", 10, "5,100"), Options{Workers: 2}, "tokens_per_second 10000", "", "only rank 0 is read", ""},
		{"one device", "torchtitan", "Building 1-D device mesh with ['dp_shard'], [1]\n" + titan(1, "8.0", "100", "1.00%") + titan(10, "7.5", "5,000", "20.00%"), Options{}, "tokens_per_second 5000", "", "", ""},
		{"batches of 1", "megatron", megatronLine(1, "9000.0", 1, "8.0") + megatronLine(2, "500.0", 1, "7.5"), Options{}, "throughput 2 samples/s", "", "", ""},
		{"a batch and a half", "megatron", strings.Replace(megatronLine(1, "9000.0", 1, "8.0"), "global batch size:     1", "global batch size: 1.5", 1), Options{}, "", "", "", "a global batch of 1.5; want a whole number, 1 or more"},

		{"metrics of MLPerf", "mlperf", mllogText(t, evaluations), Options{}, "3 eval_accuracy 125.9 ", "accuracy at", "", ""},
		{"at epochs", "mlperf", mllogText(t, evaluations), Options{}, "4 eval_accuracy 90.5  epoch 3", "", "eval_accuracy is not an accuracy", ""},
		{"without a benchmark", "mlperf", mllogText(t, "0 run_start\n1000 eval_accuracy 0.5 {\"epoch_num\":1}\n2000 run_stop null {\"status\":\"success\"}"), Options{}, "accuracy 0.5 at 1 epoch 1", "", "the log does not name its benchmark; eval_accuracy is taken as an accuracy", ""},
		{"an earlier evaluation", "mlperf", mllogText(t, "0 run_start\n1000 eval_accuracy 0.5\n900 eval_accuracy 0.6\n2000 run_stop null {\"status\":\"success\"}"), Options{}, "", "", "", "log:3: eval_accuracy is 100 ms earlier than line 2, which it follows"},

		{"perf_analyzer twice", "perf-analyzer", twice("perf-analyzer.log"), Options{}, "", "", "", "a second run; the first begins on line"},
		{"horovod twice", "horovod-synthetic", twice("horovod-synthetic.log"), Options{}, "", "", "", "log:"},
		{"a table with an index that has no name", "keras-csvlogger", ";epoch;val_accuracy\n1;0;0.5\n2;1;0.75\n", Options{}, "accuracy 0.75 at 0 epoch 2", "throughput", "", ""},
		{"a table of tabs", "keras-csvlogger", "epoch\tval_accuracy\n0\t0.5\n", Options{}, "accuracy 0.5 at 0 epoch 1", "", "", ""},
		{"blank lines", "keras-csvlogger", "\n\n", Options{}, "", "", "", "nothing found"},
		{"an accuracy in percent", "keras-csvlogger", "epoch,val_accuracy\n0,50\n", Options{Columns: map[string]string{"accuracy": "val_accuracy"}, AccuracyUnit: "%"}, "accuracy 0.5 at 0 epoch 1", "", "", ""},
		{"without its unit", "keras-csvlogger", "epoch,val_accuracy\n0,50\n", Options{}, "", "", "", "log:2: accuracy 50"},
		{"two accuracies", "keras-csvlogger", "epoch,val_accuracy,val_acc\n0,0.5,0.6\n", Options{}, "accuracy 0.5", "", `accuracy is read from column "val_accuracy"; "val_acc" may be it too: for that write --map accuracy=val_acc`, ""},
	} {
		e, err := Find(c.format)
		if err != nil {
			t.Fatal(err)
		}
		c.o.File = "log"
		r, err := e.Extract(strings.NewReader(c.text), c.o)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v, want %q", c.name, err, c.why)
			}
			continue
		}
		var lines []string
		notes := strings.Join(r.Notes, "\n")
		for f := range r.Findings() {
			lines = append(lines, written(f))
			if f.Event.Figure != nil {
				notes += "\n" + f.Event.Figure.Note
			}
		}
		all := strings.Join(lines, "\n")
		if err != nil || !strings.Contains(all, c.want) || c.never != "" && strings.Contains(all, c.never) || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %v, want %q without %q, and %q, in\n%s\n%s", c.name, err, c.want, c.never, c.note, all, notes)
		}
	}
}

// Notes of a pattern's figures, in full.
func TestNotesOfPatterns(t *testing.T) {
	for _, c := range []struct {
		p     Pattern
		text  string
		note  string
		notes []string
	}{
		{Pattern{Name: "wait", Pattern: `w (?P<value>\d+)`, Unit: "s"}, "w 5\n", "as the log states it", nil},
		{Pattern{Name: "speed", Pattern: `w (?P<value>\d+)`, Unit: "img/s"}, "w 5\n", "as the log states it, for all workers together", nil},
		{Pattern{Name: "throughput", Pattern: `w (?P<value>\d+)`, Unit: "it/s"}, "w 5\n", "as the log states it", nil},
		{Pattern{Name: "wait", Pattern: `w (?P<value>\d+)`, Unit: "s", Per: "step"}, "w 5\nw 7\n", "the median of 2 values in the log, one per step", nil},
		{Pattern{Name: "wait", Pattern: `w (?P<value>\d+)`, Unit: "s", Per: "epoch", Reduce: "max"}, "w 5\nw 7\nw 6\n", "the max of 3 values in the log, one per epoch", nil},
		{Pattern{Name: "accuracy", Pattern: `acc=(?P<value>[\d.]+)`, Per: "epoch"}, "acc=0.7\nbest acc=0.7\n", "", []string{"line 2 repeats an earlier accuracy (0.7) as the best or final one, and is not counted as an epoch"}},
		{Pattern{Name: "accuracy", Pattern: `acc=(?P<value>[\d.]+)`, Per: "epoch"}, "acc=0.7\nbest acc=0.8\n", "", []string{"line 2 reads like a summary (0.8) and is counted as an evaluation; let the pattern match epochs only"}},
		{Pattern{Name: "wait", Pattern: `w (?P<value>[\d,]+)`, Unit: "s"}, "w 1,234\n", "as the log states it", []string{"commas in numbers like 1,234 are read as thousands separators"}},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.text), Options{File: "log", Workers: 1, WorkerBatch: 2})
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		note := ""
		for f := range r.Findings() {
			if g := f.Event.Figure; g != nil {
				note = g.Note
			}
		}
		if note != c.note || !slices.Equal(r.Notes, c.notes) {
			t.Errorf("%q: %q and %q, want %q and %q", c.text, note, r.Notes, c.note, c.notes)
		}
	}
}

// Only formats of load generators accept Options.At. Every format is found by its name.
func TestKindsOfFormats(t *testing.T) {
	for _, e := range allFormats {
		loads := measure.KindOf(e.Kind).Loads
		_, err := e.Extract(strings.NewReader("no such log\n"), Options{At: map[string]float64{measure.Threads: 1}})
		if refused := err != nil && strings.Contains(err.Error(), "--at needs the log of a load generator"); refused == loads {
			t.Errorf("%s: a load is refused: %v", e.Name, refused)
		}
		if got, err := Find(e.Name); err != nil || got.Name != e.Name || e.Reads == "" {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	if _, err := Find("no such format"); err == nil || !strings.Contains(err.Error(), `unknown extractor "no such format"; valid: aiperf, deepspeed`) {
		t.Error(err)
	}
	if names := Names(); len(names) != len(allFormats) {
		t.Errorf("names %v", names)
	}
}
