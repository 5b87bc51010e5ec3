package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// titan returns a line of torchtitan.
func titan(step int, loss, tps, mfu string) string {
	return fmt.Sprintf("[titan] 2026-02-24 19:46:17,508 - root - INFO - step: %2d  loss: %7s  grad_norm: 26.6250  memory: 66.91GiB(37.51%%)  tps: %s  tflops: 314.71  mfu: %s\n", step, loss, tps, mfu)
}

// titanAt is titan at a time of day in seconds.
func titanAt(second, step int, loss, tps string) string {
	return strings.Replace(titan(step, loss, tps, "20.00%"), "19:46:17,508", fmt.Sprintf("19:%02d:%02d,508", second/60, second%60), 1)
}

// neox returns three lines of GPT-NeoX, of which the last two state rates.
func neox(devices int, rates ...string) string {
	text := fmt.Sprintf("NeoXArgs.configure_distributed_args() using world size: %d and model-parallel size: 1 \n  train_batch_size ................ 64\n  seq_length ...................... 1024\n", devices)
	for i, rate := range append([]string{"5.333"}, rates...) {
		text += fmt.Sprintf(" samples/sec: %s | iteration        %d/  320000 | elapsed time per iteration (ms): 2000.0 | learning rate: 1.000E-05 | approx flops per GPU: 120.0TFLOPS | lm_loss: 1.080000E+01 | queue depth: 5 | number of nan iterations:   0 |\n", rate, i+1)
	}
	return text
}

// megatronLine returns a line of Megatron with a step time in ms and a batch.
func megatronLine(step int, ms string, batch int, loss string) string {
	return fmt.Sprintf(" iteration %8d/     500 | consumed samples: 4096 | elapsed time per iteration (ms): %s | global batch size: %5d | lm loss: %s | number of nan iterations:   0 |\n", step, ms, batch, loss)
}

func maxTextLine(step int, seconds, tokens string) string {
	return fmt.Sprintf("completed step: %d, seconds: %s, TFLOP/s/device: 134.924, Tokens/s/device: %s, total_weights: 196608, loss: 10.374\n", step, seconds, tokens)
}

// Lines of steps that need special treatment.
func TestStepLogs(t *testing.T) {
	for _, tt := range []struct {
		name, format, text string
		o                  Options
		want, never        []string
		notes              []string
	}{
		{"each rank prints, without a prefix", "torchtitan",
			titan(1, "8.0", "100", "1.00%") + titan(1, "8.0", "110", "1.00%") + titan(10, "7.5", "5,000", "20.00%") + titan(10, "7.5", "9,000", "30.00%") + titan(20, "7.0", "6,000", "22.00%") + titan(10, "7.5", "9,500", "30.00%") + titan(20, "7.0", "9,900", "30.00%"),
			Options{Workers: 2}, []string{"tokens_per_second_per_gpu 5500 tokens/s median of 2", "tokens_per_second 11000 tokens/s", "3 loss 7.5  step 10"}, []string{"4 loss"},
			[]string{"some steps are stated more than once, by several ranks"}},
		// Ranks print when their buffers are full: the times of the second rank are within
		// those of the first. The median of 5000, 6000 and 7000 is 6000, on each of 4.
		{"ranks in blocks, without a prefix", "torchtitan",
			titanAt(0, 1, "8.0", "100") + titanAt(30, 10, "7.5", "5,000") + titanAt(60, 20, "7.0", "6,000") + titanAt(0, 1, "8.0", "110") + titanAt(30, 10, "7.5", "5,000") + titanAt(60, 20, "7.0", "6,000") +
				titanAt(90, 30, "6.5", "7,000") + titanAt(61, 20, "7.0", "6,000") + titanAt(91, 30, "6.5", "7,000"),
			Options{Workers: 4}, []string{"7 tokens_per_second_per_gpu 6000 tokens/s median of 3", "7 tokens_per_second 24000 tokens/s", "train at", "7 final_loss 6.5"}, []string{"8 loss", "4 loss"},
			[]string{"several processes print without a prefix", "losses are timed by the times of day"}},
		{"a restart later in the day", "torchtitan",
			titanAt(0, 1, "8.0", "100") + titanAt(30, 10, "7.5", "5,000") + titanAt(60, 20, "7.0", "6,000") + titanAt(90, 30, "7.0", "6,000") + titanAt(600, 20, "7.0", "100") + titanAt(630, 30, "6.5", "7,000"),
			Options{Workers: 4}, []string{"6 tokens_per_second_per_gpu 6000 tokens/s median of 4"}, []string{"train at"}, []string{"goes back from step 30 to step 20 in line 5: a restart"}},
		// 64 samples of 1024 tokens in 2 s on 4: 32/s as stated, 32768 tokens/s, 8192 on each.
		{"GPT-NeoX", "megatron", neox(4, "32.000", "32.000"), Options{}, []string{"6 throughput 32 samples/s median of 2", "6 tokens_per_second 32768 tokens/s", "6 tokens_per_second_per_gpu 8192 tokens/s", "reported_flops_per_gpu 120000000000000 FLOP/s", "6 final_loss 10.8"},
			[]string{"stated_"}, []string{`fields that are not read (line 4): "queue depth"`}},
		{"GPT-NeoX of another batch", "megatron", neox(4, "64.000", "64.000"), Options{}, []string{"6 stated_throughput 64 samples/s median of 2"}, []string{" throughput"},
			[]string{"it states 64 samples/s; its batch of 64 over the time of a step is 32"}},
		{"without the number of devices", "torchtitan", titan(1, "8.0", "100", "1.00%") + titan(10, "7.5", "5,000", "20.00%"),
			Options{}, []string{"2 tokens_per_second_per_gpu 5000 tokens/s"}, []string{"tokens_per_second "}, []string{"give --workers"}},
		{"as the mesh is printed since 2025", "torchtitan", "[titan] INFO - Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=4, cp=1, tp=2, ep=8, etp=1\n" + titan(1, "8.0", "100", "1.00%") + titan(10, "7.5", "5,000", "20.00%"),
			Options{}, []string{"3 tokens_per_second 80000 tokens/s"}, nil, []string{"times the number of devices, not a measured aggregate"}},
		{"restarted on more devices", "torchtitan", "Building 1-D device mesh with ['dp_shard'], [8]\n" + titan(1, "8.0", "100", "1.00%") + titan(10, "7.5", "5,000", "20.00%") + "Building 1-D device mesh with ['dp_shard'], [16]\n" + titan(20, "7.5", "100", "1.00%") + titan(30, "7.5", "4,500", "18.00%"),
			Options{}, []string{"6 tokens_per_second_per_gpu 4500 tokens/s", "6 tokens_per_second 72000 tokens/s"}, nil, []string{"the log has runs on 8 and then on 16 devices"}},
		{"an MFU of another peak", "torchtitan", titan(1, "8.0", "100", "18.77%") + titan(10, "7.5", "5,000", "563.00%"),
			Options{}, []string{"reported_flops_per_gpu 314710000000000 FLOP/s"}, []string{"reported_mfu"}, []string{"states an MFU of 563 % in line 2"}},
		{"quantised", "torchtitan", titan(1, "8.0", "100", "N/A") + titan(10, "7.5", "5,000", "N/A"), Options{}, []string{"tokens_per_second_per_gpu 5000"}, []string{"reported_mfu"}, nil},
		{"diverged", "torchtitan", titan(1, "8.0", "100", "1.00%") + titan(10, "nan", "5,000", "20.00%"), Options{}, []string{"1 loss 8  step 1", "tokens_per_second_per_gpu 5000"}, []string{"final_loss"}, []string{"no finite number in line 2"}},
		{"a pipeline stage without a loss", "torchtitan", titan(1, "-1.0", "100", "1.00%") + titan(10, "-1.0", "5,000", "20.00%"), Options{}, []string{"tokens_per_second_per_gpu 5000"}, []string{"loss"}, []string{"log the last stage's rank"}},
		{"nothing but the step that compiles", "torchtitan", titan(1, "8.0", "100", "1.00%"), Options{Workers: 2}, []string{"1 final_loss 8"}, []string{"tokens"}, []string{"no rate is taken"}},
		{"too slow for its digits", "torchtitan", titan(1, "8.0", "2", "0.00%") + titan(10, "7.5", "3", "0.00%"), Options{}, []string{"tokens_per_second_per_gpu 3 tokens/s"}, []string{"reported_mfu"}, []string{"states a reported_mfu of 0"}},
		// Only the run's first line is left out, and after the change of batch the earlier
		// lines: 32/2 s.
		{"a batch that is ramped up", "megatron", megatronLine(1, "9000.0", 16, "8.0") + megatronLine(2, "1000.0", 16, "7.5") + megatronLine(3, "2000.0", 32, "7.0"),
			Options{Workers: 4}, []string{"3 throughput 16 samples/s", "3 step_seconds 2 s"}, []string{"tokens"}, []string{"changes in line 3 from 16 to 32 samples"}},
		// Bridge prints 0 FLOP/s for a model whose operations it does not count.
		{"FLOP/s that are not counted", "megatron", megatronLine(1, "9000.0", 16, "8.0") + "x Step Time : 1.00s GPU utilization: 0.0MODEL_TFLOP/s/GPU\n" + megatronLine(2, "1000.0", 16, "7.5"),
			Options{}, []string{"throughput 16 samples/s"}, []string{"reported_flops"}, []string{"states a reported_flops_per_gpu of 0"}},
		// Primus from 26.5 on, and other spellings: the current values count.
		{"other names", "megatron", megatronLine(1, "9000.0", 16, "8.0") + " iteration 2/ 20 | elapsed time per iteration (ms): 654.5/735.1 | compute per GPU (TFLOP/s/GPU): 496.5 (avg 496.1) | tokens/s/GPU inst/harmonic mean: 25032.5/22288.1 | lm loss: 7.5 |\n",
			Options{Workers: 2}, []string{"2 step_seconds 0.6545 s", "tokens_per_second 50065 tokens/s", "reported_flops_per_gpu 496500000000000 FLOP/s"}, nil, nil},
		{"counts that are cut short", "megatron", megatronLine(1, "9000.0", 16, "8.0") + " iteration 2/ 20 | consumed samples: 307200 | consumed tokens: 1.258B | tokens/sec/gpu: 8000.5 | lm loss: 7.5 |\n",
			Options{}, []string{"2 tokens_per_second_per_gpu 8000.5 tokens/s"}, []string{"tokens_per_second "}, nil},
		// 16 · 1024 tokens in 2 s; lines with 512 are left out.
		{"sequences that grow", "megatron", megatronLine(1, "9000.0", 16, "8.0") + " iteration 2/ 20 | elapsed time per iteration (ms): 1000.0 | global batch size: 16 | actual seqlen: 512 |\n iteration 3/ 20 | elapsed time per iteration (ms): 2000.0 | global batch size: 16 | actual seqlen: 1024 |\n",
			Options{}, []string{"3 tokens_per_second 8192 tokens/s"}, nil, []string{"a sample has 512 tokens up to line 3, and 1024 from there on"}},
		{"memory that is not counted", "megatron", megatronLine(1, "9000.0", 16, "8.0") + "[2024-06-21 10:50:42][INFO][utils:190] - [Rank 5] (after 1 iterations) memory (MB) | allocated: 0.0 | max allocated: 0.0 | reserved: 0.0 | max reserved: 0.0\n",
			Options{}, []string{"1 final_loss 8"}, []string{"_memory"}, nil},
		{"a restart", "megatron", megatronLine(10, "9000.0", 16, "8.0") + megatronLine(20, "1000.0", 16, "7.5") + megatronLine(30, "1000.0", 16, "7.0") + megatronLine(40, "1000.0", 16, "6.5") + megatronLine(20, "30000.0", 16, "7.5") + megatronLine(30, "2000.0", 16, "7.0") + megatronLine(40, "2000.0", 16, "7.0"),
			Options{}, []string{"7 step_seconds 1 s median of 5", "7 throughput 16 samples/s median of 5"}, nil, []string{"goes back from step 40 to step 20 in line 5"}},
		// A step has 196608 tokens, and a device 5.667 · 8672.758 = 49149, so there are 4
		// devices.
		{"hosts for workers", "maxtext", maxTextLine(0, "44.923", "1094.129") + maxTextLine(1, "0.319", "154316.608") + maxTextLine(2, "5.667", "8672.758"), Options{Workers: 1},
			[]string{"3 tokens_per_second_per_gpu 8672.758"}, []string{"tokens_per_second "}, []string{"a step has 196608 tokens, more than those of 1 device. Give --workers the number of devices"}},
		{"the impossible step alone", "maxtext", maxTextLine(0, "44.923", "1094.129") + maxTextLine(1, "0.319", "154316.608"), Options{Workers: 4}, []string{"2 final_loss 10.374"}, []string{"tokens", "flops", "seconds"}, []string{"no rate is taken"}},
		{"a restart of the Trainer", "hf-trainer", "{'loss': 1.5, 'epoch': 0.1}\n{'loss': 1.25, 'epoch': 0.2}\n{'loss': 1.0, 'epoch': 0.3}\n{'loss': 1.25, 'epoch': 0.2}\n", Options{}, []string{"4 final_loss 1.25", "4 loss 1.25  epoch 0.2"}, nil, []string{"goes back from epoch 0.3 in line 3 to epoch 0.2 in line 4"}},
		{"fewer seconds than can be told apart", "llama-factory", `{"current_steps": 1, "loss": 1, "elapsed_time": "0:00:01"}` + "\n" + `{"current_steps": 2, "loss": 1, "elapsed_time": "0:00:02"}` + "\n", Options{}, []string{"2 final_loss 1"}, []string{"step_seconds"}, []string{"no rate is made"}},
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
			for _, n := range tt.never {
				if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, n) }) {
					t.Errorf("%q is among\n%s", n, strings.Join(lines, "\n"))
				}
			}
			for _, n := range tt.notes {
				if !strings.Contains(notes, n) {
					t.Errorf("no note says %q:\n%s", n, notes)
				}
			}
		})
	}
}

// llama3 is Llama 3 8B on H100s.
var llama3 = measure.Transformer{Device: "NVIDIA H100 80GB HBM3", Dtype: "bf16", Architecture: measure.Architecture{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, Vocabulary: 128256, Sequence: 8192, Gated: true}}

// By hand: torchtitan counts 57914449920 FLOPs a token, Megatron 51470401536; the
// peak is 989 TFLOP/s. At 5000 tokens/s these are 29.28 and 26.02 %; Megatron's line
// has 16 · 8192 tokens in 4 s on 4 devices, 8192 on each, 42.63 %.
func TestMFU(t *testing.T) {
	for _, tt := range []struct {
		format, text string
		o            Options
		want         string
		note         string
	}{
		{"torchtitan", titan(1, "8.0", "100", "N/A") + titan(10, "8.0", "5,000", "N/A"), Options{}, "2 mfu_torchtitan 0.29279", "torchtitan reports 314.7 TFLOP/s per device, torchtitan's FLOP count of this model gives 289.6"},
		{"torchtitan", titan(1, "8.0", "100", "N/A") + titan(10, "8.0", "5,000", "N/A"), Options{}, "2 mfu_megatron 0.26021", ""},
		{"megatron", megatronLine(1, "9000.0", 16, "8.0") + megatronLine(2, "4000.0", 16, "8.0"), Options{Workers: 4}, "2 mfu_megatron 0.42633", ""},
		{"megatron", megatronLine(1, "9000.0", 16, "8.0") + megatronLine(2, "4000.0", 16, "8.0"), Options{}, "2 tokens_per_second 32768", "no MFU: the log does not give tokens/s of a device"},
		{"torchtitan", titan(1, "8.0", "100", "N/A") + titan(10, "8.0", "50,000", "N/A"), Options{}, "2 tokens_per_second_per_gpu 50000", "no mfu_torchtitan: an MFU of 292.8 %"},
		{"timm", "Test: [   3/3]  Time: 0.280 (0.893)  Loss:   0.345 ( 0.468)  Acc@1: 99.000 (98.500)  Acc@5: 100.000 (100.000)\n", Options{}, "1 accuracy 0.985", "no MFU"},
	} {
		tt.o.Model = &llama3
		e, err := Find(tt.format)
		if err != nil {
			t.Fatal(err)
		}
		lines, notes := found(t, e, tt.text, tt.o)
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, tt.want) }) || !strings.Contains(notes, tt.note) {
			t.Errorf("%s: no %q, or no note %q:\n%s\n%s", tt.format, tt.want, tt.note, strings.Join(lines, "\n"), notes)
		}
	}
	seq := "  seq_length ...................................... 4096\n" + megatronLine(1, "9000.0", 16, "8.0") + megatronLine(2, "4000.0", 16, "8.0")
	if _, err := megatron.Extract(strings.NewReader(seq), Options{File: "log", Model: &llama3}); err == nil || !strings.Contains(err.Error(), "log:1: a sample has 4096 tokens; the model has sequence = 8192") {
		t.Error(err)
	}
}

// A log that cannot come from one run gives an error with the line.
func TestStepLogsRefused(t *testing.T) {
	one := titan(1, "8.0", "100", "1.00%") + titan(10, "7.5", "5,000", "20.00%") + titan(20, "7.5", "5,000", "20.00%")
	for _, tt := range []struct{ format, text, want string }{
		{"torchtitan", one + one, "log:4: step 1 again, after step 20 in line 3: two runs"},
		{"torchtitan", one + titan(30, "7.5", "5,0000", "20.00%"), `log:4: "5,0000" is not a finite number`},
		{"torchtitan", strings.Replace(one, "  tflops", "  tps: 5  tflops", 1), `log:1: "tps" stands twice`},
		{"megatron", megatronLine(1, "1e3x", 16, "8.0"), `log:1: "1e3x" is not a finite number`},
		{"megatron", megatronLine(1, "-5", 16, "8.0"), "log:1: step_seconds of -5"},
		{"megatron", megatronLine(1, "5", 0, "8.0"), "log:1: a global batch of 0"},
		{"hf-trainer", "{'loss': 1.5, 'epoch': 0.1}\n{'loss': 1.25, 'epoch': 0.2}\n{'loss': 1.5, 'epoch': 0.1}\n", "log:3: epoch 0.1 again, after epoch 0.2 in line 2: two runs"},
		{"hf-trainer", "{'train_runtime': 1, 'epoch': 1}\n{'train_runtime': 1, 'epoch': 1}\n", "log:2: a second train_runtime; the first is on line 1"},
		{"llama-factory", `{"current_steps": 1, "loss": 1, "elapsed_time": "90"}` + "\n", `log:1: elapsed_time is "\"90\""; want H:MM:SS`},
		{"deepspeed", "steps: 10 loss: 1.0 iter time (s): 0.5 samples/sec: 0.000\n", `log:1: a rate of "0.000" samples/s; want more than 0`},
	} {
		e, err := Find(tt.format)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Extract(strings.NewReader(tt.text), Options{File: "log"}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.format, err, tt.want)
		}
	}
}
