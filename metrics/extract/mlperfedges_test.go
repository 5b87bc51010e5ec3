package extract

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// How many samples a mark means, as the benchmark counts them.
func TestMLPerfSamples(t *testing.T) {
	none := math.NaN()
	for _, c := range []struct {
		name, benchmark      string
		train, batch, length int64
		mark                 mllogMark
		want                 float64 // NaN: not known
	}{
		{"stated", "resnet", 1000, 10, 0, mllogMark{samples: 70, epoch: 3, step: 5}, 70},
		{"an epoch of the training set", "resnet", 1000, 10, 0, mllogMark{samples: none, epoch: 0.5, step: 5}, 500},
		{"an epoch of an unknown set", "resnet", 0, 10, 0, mllogMark{samples: none, epoch: 0.5, step: none}, none},
		{"an epoch that counts samples", "unet3d", 168, 10, 0, mllogMark{samples: none, epoch: 1e4, step: none}, 1e4},
		{"the last that counts epochs", "unet3d", 168, 10, 0, mllogMark{samples: none, epoch: 9999, step: none}, 9999 * 168},
		{"bert's samples", "bert", 1000, 10, 0, mllogMark{samples: none, epoch: 70, step: none}, 70},
		{"gpt3's tokens", "gpt3", 1000, 10, 2048, mllogMark{samples: none, epoch: 20480, step: none}, 10},
		{"gpt3 without a length", "gpt3", 1000, 10, 0, mllogMark{samples: none, epoch: 20480, step: none}, none},
		{"steps", "resnet", 1000, 32, 0, mllogMark{samples: none, epoch: none, step: 5}, 160},
		{"steps of an unknown batch", "resnet", 1000, 0, 0, mllogMark{samples: none, epoch: none, step: 5}, none},
		{"nothing", "resnet", 1000, 32, 0, mllogMark{samples: none, epoch: none, step: none}, none},
		{"ssd's batches", "ssd", 4572, 256, 0, mllogMark{samples: none, epoch: 2, step: none}, 2 * 1170301},
		{"ssd's samples", "retinanet", 1170301, 256, 0, mllogMark{samples: none, epoch: 2, step: none}, 2 * 1170301},
		{"another set of ssd", "ssd", 100, 256, 0, mllogMark{samples: none, epoch: 2, step: none}, none},
	} {
		m := &mllogRun{benchmark: c.benchmark, batch: c.batch, length: c.length, train: metrics.Train{TrainSamples: c.train}}
		got, ok := m.samples(c.mark)
		if !ok {
			got = math.NaN()
		}
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
		if known := m.setKnown(); known != (c.benchmark == "resnet" || c.benchmark == "unet3d" || c.train == 1170301) {
			t.Errorf("%s: the set is known: %v", c.name, known)
		}
	}
	number := func(x float64) *float64 { return &x }
	for _, c := range []struct{ x, want float64 }{{0, 0}, {2.5, 2.5}, {-1, none}, {largestNumber, largestNumber}, {2 * largestNumber, none}} {
		var e mllogLine
		e.Metadata.Epoch = number(c.x)
		mark := (&mllogRun{}).mark(7, 9, e)
		if mark.epoch != c.want && !(math.IsNaN(mark.epoch) && math.IsNaN(c.want)) || !math.IsNaN(mark.samples) || mark.line != 7 || mark.at != 9 {
			t.Errorf("epoch %g: %+v", c.x, mark)
		}
	}
}

// Training from 0, paused from 2 to 5 s and from 6 s on.
func TestTrainedTime(t *testing.T) {
	clock := trainedTime{since: 0}
	for _, c := range []struct {
		key      string
		ms, want float64
	}{
		{"epoch_start", 1000, 1}, {"epoch_stop", 2000, 2}, {"eval_start", 2500, 2}, {"epoch_start", 5000, 2}, {"block_start", 5500, 2.5}, {"block_stop", 6000, 3}, {"eval_accuracy", 7000, 3},
	} {
		if got := clock.at(c.ms); got != c.want {
			t.Errorf("%s at %g: %g s of training, want %g", c.key, c.ms, got, c.want)
		}
		clock.pass(c.key, c.ms)
	}
	clock.counted(7000)
	if got := clock.at(9000); got != 0 {
		t.Errorf("paused, and counted: %g s", got)
	}
	clock.pass("eval_stop", 9000)
	clock.counted(10000)
	if got := clock.at(10500); got != 0.5 {
		t.Errorf("half a second after the count: %g s", got)
	}
}

// Facts about the whole run, and the times of evaluations.
func TestMLPerfRun(t *testing.T) {
	text := mllogText(t, strings.TrimSpace(`
		0 submission_benchmark "cosmoflow"
		5 global_batch_size 64
		6 train_samples 1000
		7 eval_samples 200
		500 eval_error 0.9
		1000 run_start
		1500 eval_error 0.5 {"epoch_num": 1}
		3500 eval_error 0.25 {"epoch_num": 2}
		4500 run_stop null {"status":"success"}`))
	r, err := mlperf.Extract(strings.NewReader(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.StartUnix != 1.7e9 || r.Labels["workload.model"] != "cosmoflow" || r.Labels["global_batch"] != int64(64) || r.Failed != "" {
		t.Errorf("start %f, labels %v, failed %q", r.StartUnix, r.Labels, r.Failed)
	}
	var got []string
	for f := range r.Findings() {
		switch e := f.Event; {
		case e.Train != nil:
			got = append(got, fmt.Sprintf("train at %g: %d of %d, %d to test, ×%g", e.Time, e.Train.GlobalBatch, e.Train.TrainSamples, e.Train.TestSamples, f.Scale))
		case e.Figure != nil:
			at, _ := json.Marshal(e.Figure.At)
			got = append(got, fmt.Sprintf("%s %g at %g %s", e.Figure.Name, e.Figure.Value, e.Time, at))
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"train at 1: 64 of 1000, 200 to test, ×0.001", "eval_error 0.9 at 0.5 {}", `eval_error 0.5 at 1.5 {"epoch":1}`, `eval_error 0.25 at 3.5 {"epoch":2}`, "train_seconds 3.5 at 4.5 null", "to_target 3.5 at 4.5 null"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	checkEvents(t, r)
	for _, c := range []struct{ facts, failed, note string }{
		{"0 run_start\n1000 run_stop null {\"status\":\"aborted\"}", "", "the run missed its target, and counts as a miss"},
		{"0 run_start\n1000 run_stop null {\"status\":\"lost\"}", `MLPerf's run_stop says "lost"`, ""},
		{"0 run_start\n1000 run_stop", `MLPerf's run_stop says ""`, ""},
		{"0 number_of_ranks 4\n0 number_of_nodes 2\n0 accelerators_per_node 4\n1 run_start\n1000 run_stop null {\"status\":\"success\"}", "", "the log has 4 ranks and 8 accelerators, so the number of workers is not known"},
		{fmt.Sprintf("0 number_of_ranks %d\n1 run_start\n1000 run_stop null {\"status\":\"success\"}", metrics.MaxRanks+1), "", "the number is not used"},
		{fmt.Sprintf("0 number_of_nodes %d\n0 accelerators_per_node 2\n1 run_start\n1000 run_stop null {\"status\":\"success\"}", metrics.MaxRanks), "", "the number is not used"},
	} {
		r, err := mlperf.Extract(strings.NewReader(mllogText(t, c.facts)), Options{})
		if err != nil || r.Failed != c.failed || !strings.Contains(strings.Join(r.Notes, "\n"), c.note) || strings.Contains(c.note, "number") && r.Workers != 0 {
			t.Errorf("%s: failed %q, notes %q, %d workers, %v", c.facts, r.Failed, r.Notes, r.Workers, err)
		}
	}
	most := fmt.Sprintf("0 number_of_ranks %d\n1 run_start\n1000 run_stop null {\"status\":\"success\"}", metrics.MaxRanks)
	if r, err := mlperf.Extract(strings.NewReader(mllogText(t, most)), Options{}); err != nil || r.Workers != metrics.MaxRanks {
		t.Errorf("%d workers, %v; want %d", r.Workers, err, metrics.MaxRanks)
	}
}

func TestMLPerfRefused(t *testing.T) {
	line := func(ms, key, value string) string {
		return fmt.Sprintf(`:::MLLOG {"time_ms": %s, "key": %q, "value": %s, "metadata": {}}`+"\n", ms, key, value)
	}
	const began = "1700000000000"
	start := line(began, "run_start", "null")
	for _, c := range []struct{ text, why string }{
		{line("0", "run_start", "null"), "log:1: a :::MLLOG line without a time_ms in milliseconds since 1970"},
		{line("-1", "run_start", "null"), "without a time_ms"},
		{line("100000000000001", "run_start", "null"), "without a time_ms"},
		{`:::MLLOG {"key": "run_start"}` + "\n", "without a time_ms"},
		{line("1700000000", "run_start", "null"), "log:1: time_ms is 1700000000, a day of 1970 in milliseconds: it seems to be in seconds. MLPerf logs milliseconds"},
		{line("100000000", "run_start", "null"), "it seems to be in seconds"},
		{line("99999999999", "run_start", "null"), "it seems to be in seconds"},
		{":::MLLOG {\"time_ms\": 1700000000000,}\n", "log:1: a :::MLLOG line that is not JSON"},
		{`:::MLLOG {"time_ms": "x", "key": "k"}` + "\n", `log:1: a :::MLLOG line that has a string as time_ms; want a whole number`},
		{`:::MLLOG {"time_ms": 1.5, "key": "k"}` + "\n", `has "1.5" as time_ms; want a whole number`},
		{`:::MLLOG {"time_ms": 1700000000000, "key": []}` + "\n", `has an array as key; want text`},
		{start + start, "log:2: a second run_start; the first is on line 1. One log is one run: split it"},
		{start + line("1699999999990", "run_stop", "null"), "log:2: run_stop is 10 ms before run_start in line 1"},
		{start + line(began, "run_stop", "null") + line(began, "run_stop", "null"), "log:3: a second run_stop; the first is on line 2"},
		{line(began, "init_start", "null") + line("1699999999990", "run_start", "null"), "log:2: run_start is 10 ms before the first line"},
		{line(began, "global_batch_size", "0"), `log:1: global_batch_size is "0"; want a whole number, 1 or more`},
		{line(began, "train_samples", "1.5"), `train_samples is "1.5"; want a whole number, 1 or more`},
		{line(began, "submission_benchmark", "7"), "log:1: submission_benchmark is not text"},
		{start + line(began, "tracked_stats", `{"throughput": 0}`), "log:2: a throughput of 0; want more than 0"},
		{start + line(began, "tracked_stats", `{"train_step_time": -1}`), "log:2: a train_step_time of -1; want more than 0"},
	} {
		if _, err := mlperf.Extract(strings.NewReader(c.text), Options{File: "log"}); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.text, err, c.why)
		}
	}
	// The earliest and the latest valid time, and tracked_stats of unexpected types.
	ok := line("99999999", "run_start", "null") + line("100000000000", "run_stop", "null")
	if _, err := mlperf.Extract(strings.NewReader(ok+line("100000000000000", "tracked_stats", "[1]")), Options{}); err != nil {
		t.Error(err)
	}
}
