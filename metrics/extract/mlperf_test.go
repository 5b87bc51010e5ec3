package extract

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// mllogText converts lines "MS KEY [VALUE [METADATA]]" into a log.
func mllogText(t *testing.T, facts string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(facts) {
		parts := strings.SplitN(strings.TrimSpace(line), " ", 4)
		var ms int64
		if _, err := fmt.Sscan(parts[0], &ms); err != nil {
			t.Fatal(line, err)
		}
		parts = append(parts, "null", "{}")[:max(4, len(parts))]
		if len(parts) > 4 {
			parts = parts[:4]
		}
		if len(strings.Fields(line)) == 3 {
			parts[3] = "{}"
		}
		text := fmt.Sprintf(`{"time_ms": %d, "key": %q, "value": %s, "metadata": %s}`, 1700000000000+ms, parts[1], parts[2], parts[3])
		if !json.Valid([]byte(text)) {
			t.Fatalf("not JSON: %s", text)
		}
		b.WriteString(":::MLLOG " + text + "\n")
	}
	return b.String()
}

// MLPerf HPC's logs state the number of workers.
func TestMLPerfWorkers(t *testing.T) {
	run := "0 run_start\n10000 run_stop null {\"status\": \"success\"}\n"
	for _, tt := range []struct {
		facts   string
		workers int
		says    string
	}{
		{"-9 number_of_ranks 16\n", 16, "number_of_ranks, line 1"},
		{"-9 number_of_nodes 4\n-8 accelerators_per_node 8\n", 32, "number_of_nodes × accelerators_per_node, line 2"},
		{"-9 number_of_nodes 4\n-8 accelerators_per_node 8\n-7 number_of_ranks 32\n", 32, "number_of_ranks, line 3"},
		{"-9 number_of_nodes 4\n-8 accelerators_per_node 8\n-7 number_of_ranks 4\n", 0, ""},
		{"-9 number_of_nodes 4\n", 0, ""},
		{"-9 number_of_nodes 1\n-8 accelerators_per_node 1\n", 1, "number_of_nodes × accelerators_per_node, line 2"},
	} {
		r, err := mlperf.Extract(strings.NewReader(mllogText(t, tt.facts+run)), Options{})
		if err != nil || r.Workers != tt.workers || r.WorkersBy != tt.says {
			t.Errorf("%q: %d workers by %q, %v", tt.facts, r.Workers, r.WorkersBy, err)
		}
	}
	// deepcam evaluates an IoU, which rises; cosmoflow an error, which falls.
	lines, _ := found(t, mlperf, mllogText(t, "-9 submission_benchmark \"deepcam\"\n0 run_start\n5000 eval_accuracy 0.8\n6000 run_stop null {\"status\": \"success\"}\n"), Options{})
	if !slices.Contains(lines, "3 accuracy 0.8 at 5.009 epoch 0") {
		t.Error(strings.Join(lines, "\n"))
	}
	lines, _ = found(t, mlperf, mllogText(t, "-9 submission_benchmark \"cosmoflow\"\n0 run_start\n5000 eval_error 0.2 {\"epoch_num\": 3}\n6000 run_stop null {\"status\": \"success\"}\n"), Options{})
	if !slices.Contains(lines, "3 eval_error 0.2  epoch 3") {
		t.Error(strings.Join(lines, "\n"))
	}
}

// Figures of published logs of each kind, shortened to a few lines. Times count from
// run_start, in any order of lines. All are from github.com/mlcommons/training_results_v4.0
// and _v5.0, result_0.txt.
func TestMLPerfFigures(t *testing.T) {
	for _, tt := range []struct {
		name    string // name of the case, and the source of its lines
		workers int
		facts   string
		want    map[string]float64
		says    string // text in the note of the throughput, or in the log's notes
	}{
		// An epoch is 1,170,301 samples. It takes the time between evaluations minus that
		// between epoch_stop and epoch_start: 1,170,301/86.214 s = 13,574/s. The log states
		// 212.1 and 212.5: 64 × 212.3.
		{"ssd, one GPU's rate: v4.0 NVIDIA/results/eos_n8_ngc24.04_pytorch", 64, `
			-59 submission_benchmark "ssd"
			-58 global_batch_size 256
			0 run_start
			0 train_samples 4572
			0 epoch_start 0 {"epoch_num":0}
			86428 epoch_stop 0 {"epoch_num":0}
			86429 tracked_stats {"throughput":212.1}
			86429 eval_start 1 {"epoch_num":1}
			90790 epoch_start 1 {"epoch_num":1}
			101706 eval_accuracy 0.203 {"epoch_num":1}
			177004 epoch_stop 1 {"epoch_num":1}
			177004 tracked_stats {"throughput":212.5}
			177004 eval_start 2 {"epoch_num":2}
			364375 run_stop null {"status":"success"}`,
			map[string]float64{"throughput": 64 * 212.3, "to_target": 364.375, "train_seconds": 364.375}, "its figure is one worker's"},
		// Checkpoints are evaluated after training; the later run_stop line has an earlier
		// time. 204,800 samples in the first 9 s; the next block ends after run_stop.
		{"stable_diffusion, no rate: v4.0 eos_n128_ngc24.04_nemo", 1024, `
			0 submission_benchmark "stable_diffusion"
			0 run_start
			1000 block_start "training_step" {"samples_count":0}
			9000 block_stop "training_step" {"samples_count":204800}
			9001 block_start "training_step" {"samples_count":204800}
			13130 block_stop "training_step" {"samples_count":409600}
			13130 block_start "training_step" {"samples_count":409600}
			270000 eval_start null {"samples_count":204800}
			286785 eval_accuracy 125.9 {"samples_count":204800,"metric":"FID"}
			287424 eval_accuracy 0.1415 {"samples_count":204800,"metric":"CLIP"}
			11900 run_stop null {"status":"success","step_num":1750}`,
			map[string]float64{"throughput": 204800 / 9.0, "to_target": 11.9, "train_seconds": 11.9}, "evaluations after run_stop"},
		// block_stop states the block's start. 512,000 samples in 238.242 s.
		{"stable_diffusion, blocks by their start: v5.0 Oracle/results/1xBM.GPU.B200.8", 8, `
			0 submission_benchmark "stable_diffusion"
			0 global_batch_size 256
			0 run_start
			0 block_start "training_step" {"samples_count":0}
			235055 block_stop "training_step" {"samples_count":0}
			235055 tracked_stats {"throughput":1730.69,"train_step_time":0.1479}
			236446 block_start "training_step" {"samples_count":512000}
			474688 block_stop "training_step" {"samples_count":512000}
			474688 tracked_stats {"throughput":2136.6,"train_step_time":0.1198}
			476199 block_start "training_step" {"samples_count":1024000}
			714705 block_stop "training_step" {"samples_count":1024000}
			714705 tracked_stats {"throughput":2133.2,"train_step_time":0.12}
			714706 run_stop null {"status":"success","step_num":6000}`,
			map[string]float64{"throughput": 2133.2, "step_seconds": 0.12, "to_target": 714.706, "train_seconds": 714.706}, "own samples over time agree"},
		// 51,904,512 tokens at 2,048 each are 25,344 samples. The second time they take the
		// 119.950 s from eval_stop to block_stop.
		{"gpt3, tokens and no rate: v4.0 NVIDIA/results/eos_n64_ngc24.04_nemo", 512, `
			0 submission_benchmark "gpt3"
			0 global_batch_size 2304
			0 max_sequence_length 2048
			0 run_start
			858 epoch_start null {"epoch_num":0}
			858 block_start null {"first_epoch_num":0}
			120714 block_stop null {"first_epoch_num":0}
			120715 eval_start null {"epoch_num":51904512}
			131974 eval_accuracy 2.7512 {"epoch_num":51904512}
			131974 eval_stop null {"epoch_num":51904512}
			131975 block_start null {"first_epoch_num":51904512}
			251924 block_stop null {"first_epoch_num":51904512}
			251925 eval_start null {"epoch_num":103809024}
			263122 eval_accuracy 2.7394 {"epoch_num":103809024}
			263122 eval_stop null {"epoch_num":103809024}
			263122 run_stop null {"status":"success"}
			263123 train_samples 103809024`,
			map[string]float64{"throughput": 25344 / 119.950, "end_to_end": 2 * 25344 / 263.122, "to_target": 263.122, "train_seconds": 263.122}, "the log's own samples"},
		// 448 samples in 18.93 s are 23.67/s; 896 samples up to the evaluation at 37.9 s
		// are 23.6/s.
		{"llama31_405b, times of steps: v5.0 NVIDIA/results/tyche_ngpu256_ngc25.04_nemo", 256, `
			0 submission_benchmark "llama31_405b"
			0 global_batch_size 448
			0 run_start
			0 block_start null {"samples_count":0}
			18940 tracked_stats {"train_step_time":18.94,"reduced_train_loss":7.7}
			37860 tracked_stats {"train_step_time":18.92,"reduced_train_loss":7.7}
			37900 eval_start null {"samples_count":896}
			60000 tracked_stats {"validation_throughput":2789}
			60000 eval_accuracy 5.4 {"samples_count":896}
			60000 eval_stop null {"samples_count":896}
			60000 run_stop null {"samples_count":896,"status":"success"}`,
			map[string]float64{"throughput": 448 / 18.93, "step_seconds": 18.93, "end_to_end": 896 / 60.0, "to_target": 60, "train_seconds": 60}, "median train_step_time"},
		// The only mark is the evaluation, which does not state its start.
		{"llama2_70b_lora, blocks that count otherwise: v4.0 Intel-HabanaLabs/results/HLS-Gaudi2-PT", 8, `
			0 submission_benchmark "llama2_70b_lora"
			0 global_batch_size 8
			0 run_start
			0 block_start "" {"samples_count":0}
			600000 block_stop "" {"samples_count":2304}
			600000 eval_accuracy 0.93 {"samples_count":2304}
			600000 block_start "" {"samples_count":288}
			1190000 block_stop "" {"samples_count":2688}
			1190000 eval_accuracy 0.92 {"samples_count":2688}
			1190000 run_stop 0.92 {"samples_count":2688,"status":"success"}`,
			map[string]float64{"throughput": 384 / 590.0, "to_target": 1190, "train_seconds": 1190}, "the log's own samples"},
		// The log's counts give 100 samples/s and it states 1,300 on 8 workers: neither the
		// total nor one worker's.
		{"made up: a rate of nothing that is known", 8, `
			0 submission_benchmark "llama2_70b_lora"
			0 run_start
			1000 tracked_stats {"throughput":1300}
			1000 eval_start null {"samples_count":100}
			1500 eval_stop null {"samples_count":100}
			2500 eval_start null {"samples_count":200}
			3000 run_stop null {"status":"success"}`,
			map[string]float64{"throughput": 100, "stated_throughput": 1300, "to_target": 3, "train_seconds": 3}, "neither all workers' nor one worker's"},
		{"made up: the target missed", 8, `
			0 submission_benchmark "resnet"
			0 run_start
			3000 run_stop null {"status":"aborted"}`,
			map[string]float64{"missed_target": 3, "train_seconds": 3}, "counts as a miss"},
		{"made up: a log without its end", 8, `
			0 submission_benchmark "llama2_70b_lora"
			0 run_start
			1000 eval_start null {"samples_count":100}
			1500 eval_stop null {"samples_count":100}`,
			map[string]float64{"throughput": 100}, "no run_stop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := mlperf.Extract(strings.NewReader(mllogText(t, strings.TrimSpace(tt.facts))), Options{Workers: tt.workers})
			if err != nil {
				t.Fatal(err)
			}
			got, said := map[string]float64{}, strings.Join(r.Notes, "\n")
			for f := range r.Findings() {
				if g := f.Event.Figure; g != nil && len(g.At) == 0 {
					got[g.Name] = g.Value
					said += "\n" + g.Note
				}
			}
			for name, want := range tt.want {
				if math.Abs(got[name]-want) > 1e-9*want {
					t.Errorf("%s is %g, want %g", name, got[name], want)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if !strings.Contains(said, tt.says) {
				t.Errorf("no note says %q:\n%s", tt.says, said)
			}
			checkEvents(t, r)
		})
	}
}

// Any process may write the first lines, with or without a launcher's prefix. The one that
// writes run_start writes the rest.
func TestMLPerfProcess(t *testing.T) {
	text := mllogText(t, "0 init_start\n0 init_start") + strings.ReplaceAll(mllogText(t, strings.TrimSpace(`
		5 init_start
		6 submission_benchmark "ssd"
		10 run_start
		1010 run_stop null {"status":"success"}`)), ":::", "0: :::") + "1: " + mllogText(t, "7 init_start")
	r, err := mlperf.Extract(strings.NewReader(text), Options{Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Found(); n != 3 || slices.Collect(r.Findings())[n-1].Event.Figure.Value != 1 {
		t.Errorf("%d findings: %v", n, slices.Collect(r.Findings()))
	}
}

// Separate ranks evaluate during the training, and one of them reports that the target is
// reached: v4.0 Oracle/results/9xBM.GPU.H100.8/unet3d. A rank that repeats the lines of the
// training rank is ignored.
func TestMLPerfSeparateEvaluationRanks(t *testing.T) {
	training := func(end string) string {
		return strings.ReplaceAll(mllogText(t, strings.TrimSpace(`
			0 submission_benchmark "unet3d"
			0 global_batch_size 56
			10 run_start
			1000 block_start null {"first_epoch_num":0}
			100000 tracked_stats {"throughput":3500}
			`+end)), ":::", "0: :::")
	}
	beside := strings.ReplaceAll(mllogText(t, strings.TrimSpace(`
		60010 eval_start 193200 {"epoch_num":193200}
		61010 eval_accuracy 0.8 {"epoch_num":193200}
		119010 eval_start 386400 {"epoch_num":386400}
		120010 eval_accuracy 0.9084 {"epoch_num":386400}
		120770 run_stop null {"status":"success","epoch":386400}`)), ":::", "56: :::")
	for text, want := range map[string]struct {
		toTarget    float64
		evaluations int
	}{
		training("110000 block_stop") + beside: {120.76, 2},
		training(`110000 eval_accuracy 0.9 {"epoch_num":300000}
			110010 run_stop null {"status":"success"}`) + beside: {110, 1},
		training("110000 block_stop") + strings.Replace(beside, "run_stop", "run_pause", 1): {0, 0},
	} {
		r, err := mlperf.Extract(strings.NewReader(text), Options{Workers: 72})
		if err != nil {
			t.Fatal(err)
		}
		toTarget, evaluations := 0.0, 0
		for f := range r.Findings() {
			if f.Event.Evaluation != nil {
				evaluations++
			}
			if g := f.Event.Figure; g != nil && g.Name == metrics.FigureToTarget {
				toTarget = g.Value
			}
		}
		if toTarget != want.toTarget || evaluations != want.evaluations {
			t.Errorf("%g s to the target, %d evaluations; want %+v\n%s", toTarget, evaluations, want, text)
		}
		checkEvents(t, r)
	}
	// An unreadable line of another process is an error if the result depends on it.
	bad := strings.Replace(beside, "0.9084", `"much"`, 1)
	if _, err := mlperf.Extract(strings.NewReader(training("110000 block_stop")+bad), Options{}); err == nil {
		t.Error("an evaluation that is no number is left out")
	}
}

// An evaluation states how many samples preceded it: epoch_num times the training set in
// rgat (0.05 and 0.85 of 94,605,581). If one line goes backwards or lacks the number, none
// counts.
func TestMLPerfTrained(t *testing.T) {
	data, err := os.ReadFile("testdata/mlperf-rgat.log")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	trained := func(text string) (first, last int64, endToEnd float64) {
		t.Helper()
		r, err := mlperf.Extract(strings.NewReader(text), Options{Workers: 8})
		if err != nil {
			t.Fatal(err)
		}
		for f := range r.Findings() {
			switch e := f.Event; {
			case e.Figure != nil && e.Figure.Name == metrics.FigureEndToEnd:
				endToEnd = e.Figure.Value
			case e.Evaluation == nil:
			case first == 0:
				first, last = e.Evaluation.Trained, e.Evaluation.Trained
			default:
				last = e.Evaluation.Trained
			}
		}
		return first, last, endToEnd
	}
	first, last, endToEnd := trained(text)
	if first != 4730279 || last != 80414744 || math.Abs(endToEnd-171611.5) > 0.1 {
		t.Errorf("%d samples at the first evaluation, %d at the last, %g samples/s", first, last, endToEnd)
	}
	for _, damage := range []string{`"epoch_num": 0.0001`, `"epoch": 0.85`} {
		at := strings.LastIndex(text, `"eval_accuracy"`)
		first, last, endToEnd := trained(text[:at] + strings.Replace(text[at:], `"epoch_num": 0.85`, damage, 1))
		if first != 0 || last != 0 || endToEnd != 0 {
			t.Errorf("with %s: %d samples, %d samples, %g samples/s", damage, first, last, endToEnd)
		}
	}
	// Training continues after the last count, so the overall rate is unknown.
	at := strings.Index(text, `"run_stop"`)
	line := strings.LastIndex(text[:at], "\n")
	var e struct {
		Time int64 `json:"time_ms"`
	}
	if err := json.Unmarshal([]byte(strings.SplitN(strings.TrimPrefix(strings.TrimSpace(text[line:]), ":::MLLOG "), "\n", 2)[0]), &e); err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(text[line:], fmt.Sprint(e.Time), fmt.Sprint(e.Time+60_000), 1)
	if _, last, endToEnd := trained(text[:line] + later); last != 80414744 || endToEnd != 0 {
		t.Errorf("a minute after the last evaluation: %d samples, %g samples/s", last, endToEnd)
	}
}
