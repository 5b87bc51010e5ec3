package extract

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// prefixed puts a prefix in front of each line.
func prefixed(prefix, text string) string {
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}

// 8000 samples in 100 s between evaluations: 80 samples/s; 230 s in all.
func TestMLPerfVariants(t *testing.T) {
	at := func(ms int, key, value, meta string) string {
		return fmt.Sprintf(`:::MLLOG {"namespace": "", "time_ms": %d, "event_type": "POINT_IN_TIME", "key": "%s", "value": %s, "metadata": {"file": "x.py", "lineno": 1%s}}`, 1700000000000+ms, key, value, meta) + "\n"
	}
	head := at(0, "submission_benchmark", `"resnet"`, "") + at(1, "global_batch_size", "80", "") + at(2, "train_samples", "8000", "") + at(3, "eval_samples", "1000", "")
	body := func(stats string) string {
		text := at(10000, "run_start", "null", "") + at(10000, "epoch_start", "null", `, "epoch_num": 1`)
		for i := 1; i <= 2; i++ {
			end := 10000 + i*110000
			text += stats + at(end-10000, "epoch_stop", "null", fmt.Sprintf(`, "epoch_num": %d`, i)) + at(end-10000, "eval_start", "null", fmt.Sprintf(`, "epoch_num": %d`, i)) +
				at(end, "eval_accuracy", fmt.Sprintf("0.%d", 5+i), fmt.Sprintf(`, "epoch_num": %d`, i)) + at(end, "eval_stop", "null", fmt.Sprintf(`, "epoch_num": %d`, i))
			if i == 1 {
				text += at(end, "epoch_start", "null", `, "epoch_num": 2`)
			}
		}
		return text
	}
	stop := func(status string) string { return at(240000, "run_stop", "null", `, "status": "`+status+`"`) }
	whole := head + body("") + stop("success")
	right := []string{" throughput 80 samples/s ", " to_target 230 s ", " train_seconds 230 s ", "accuracy 0.7 "}
	stat := func(v string) string { return at(100000, "tracked_stats", `{"throughput": `+v+`}`, "") }
	runVariants(t, "mlperf", []variant{
		{name: "as it is", text: whole, want: right},
		{name: "its own rate", text: head + body(stat("80.0")) + stop("success"), want: right},
		{name: "a rate of one device", text: head + body(stat("10.0")) + stop("success"), o: Options{Workers: 8}, want: right, says: "one worker's"},
		{name: "a rate of one device, workers unknown", text: head + body(stat("10.0")) + stop("success"), want: append([]string{" stated_throughput 10 "}, right...), says: "give the number of workers"},
		{name: "a rate of tokens", text: head + body(stat("655360.0")) + stop("success"), want: append([]string{" stated_throughput 655360 "}, right...)},
		{name: "aborted", text: head + body("") + stop("aborted"), want: []string{" missed_target 230 s "}, never: []string{" to_target "}, says: "missed its target"},
		{name: "not ended", text: head + body(""), never: []string{" to_target ", " train_seconds "}, says: "no run_stop"},
		{name: "seconds for milliseconds", text: regexp.MustCompile(`"time_ms": (\d{10})\d{3}`).ReplaceAllString(whole, `"time_ms": $1`), refused: "seems to be in seconds"},
		{name: "nodes and accelerators", text: head + at(4, "number_of_nodes", "4", "") + at(5, "accelerators_per_node", "8", "") + body("") + stop("success"), o: Options{Workers: 4}, want: right, says: "the log reports 32 ranks, the run has 4 workers"},
		{name: "ranks that are not its accelerators", text: head + at(4, "number_of_ranks", "8", "") + at(4, "number_of_nodes", "4", "") + at(5, "accelerators_per_node", "8", "") + body("") + stop("success"), want: right, says: "8 ranks and 32 accelerators"},
		{name: "ranks with prefixes", text: prefixed("0: ", whole) + prefixed("1: ", head), want: right},
		{name: "under kubectl", text: prefixed("2024-05-01T10:00:00.1Z ", whole), want: right},
		{name: "under Slurm and pyxis", text: prefixed("0: slurmstepd: ", whole), want: right},
		{name: "two runs", text: whole + whole, refused: "a second run_start"},
		{name: "an accuracy in percent", text: strings.NewReplacer(`"value": 0.6,`, `"value": 60.0,`, `"value": 0.7,`, `"value": 70.0,`).Replace(whole), refused: "want a fraction from 0 to 1"},
		{name: "a loss by its benchmark", text: strings.Replace(whole, `"resnet"`, `"llama2_70b_lora"`, 1), never: []string{"accuracy 0.7 at"}, says: "is not an accuracy"},
		{name: "cut in a line", text: whole[:len(whole)-30], never: []string{" to_target "}, says: "no run_stop"},
	})
}

// 8 devices at 5000 tokens/s: 40,000 tokens/s.
func TestTitanVariants(t *testing.T) {
	line := func(step int, tps string) string {
		return fmt.Sprintf("[titan] 2024-05-01 10:00:%02d,000 - root - INFO - step: %2d  loss:  %d.2500  memory: 47.25GiB(59.73%%)  tps: %s  tflops: 335.90  mfu: 33.96%%\n", step, step, 12-step/10, tps)
	}
	three := func(tps string) string { return line(1, "100") + line(10, tps) + line(20, tps) }
	const mesh = "[titan] 2024-05-01 09:59:59,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]\n"
	right := []string{" tokens_per_second_per_gpu 5000 tokens/s ", " tokens_per_second 40000 tokens/s "}
	runVariants(t, "torchtitan", []variant{
		{name: "as it is", text: mesh + three("5,000"), want: right},
		{name: "without commas", text: mesh + three("5000"), want: right},
		{name: "in thousands", text: mesh + three("5.0K"), refused: "5.0K"},
		{name: "workers of the user", text: three("5,000"), o: Options{Workers: 8}, want: right, says: "each of which is taken to be one device"},
		{name: "no devices", text: three("5,000"), want: right[:1], never: []string{" tokens_per_second "}, says: "give --workers"},
		{name: "two meshes", text: mesh + three("5,000") + strings.ReplaceAll(mesh, "[8]", "[4]") + strings.ReplaceAll(line(30, "5,000")+line(40, "5,000"), "10:00", "11:00"), want: []string{" tokens_per_second 20000 "}, says: "on 8 and then on 4 devices"},
		{name: "hosts as workers", text: mesh + three("5,000"), o: Options{Workers: 1}, want: right, says: "the log reports 8 ranks, the run has 1 worker"},
		{name: "wps", text: mesh + strings.ReplaceAll(three("5,000"), "tps:", "wps:"), want: right},
		{name: "a share in the place of percent", text: mesh + strings.ReplaceAll(three("5,000"), "33.96%", "0.3396"), never: []string{"reported_mfu"}, want: right},
		{name: "memory in GB", text: mesh + strings.ReplaceAll(three("5,000"), "GiB", "GB"), refused: "nothing found"},
		{name: "colours", text: mesh + strings.ReplaceAll(three("5,000"), "tps:", "\x1b[34mtps:"), want: right},
		{name: "under kubectl", text: "2024-05-01T10:00:00.1Z " + strings.ReplaceAll(strings.TrimSuffix(mesh+three("5,000"), "\n"), "\n", "\n2024-05-01T10:00:00.1Z ") + "\n", want: right},
		{name: "ranks in step", text: prefixed("[rank0]:", mesh+three("5,000")) + prefixed("[rank1]:", three("5,010")), want: right, says: "several ranks write the same"},
		{name: "a rank that is not in step", text: prefixed("[rank0]:", mesh+three("5,000")) + prefixed("[rank1]:", three("2,000")), want: right, says: "rank 1 states a tokens_per_second_per_gpu of 2000, and rank 0, which is read, 5000"},
		{name: "an evaluation in between", text: mesh + line(1, "100") + line(10, "5,000") + "[titan] 2024-05-01 10:00:11,000 - root - INFO - validate step: 10  loss:  9.1250  memory: 30.50GiB(38.55%)  tps: 12,000\n" + line(20, "5,000"), want: append(right, " eval_loss 9.125 ")},
		{name: "compiled only", text: mesh + line(1, "100"), never: []string{"tokens_per"}, says: "no rate is taken"},
	})
}

// 1000 tokens in an iteration of 0.5 s: 2000 tokens/s.
func TestNanoGPTVariants(t *testing.T) {
	const head = "tokens per iteration will be: 1,000\n"
	line := func(step, ms string) string { return "iter " + step + ": loss 3.0, time " + ms + "ms, mfu 30.00%\n" }
	three := line("0", "60000.00") + line("1", "500.00") + line("2", "500.00")
	right := []string{" tokens_per_second 2000 tokens/s ", " step_seconds 0.5 s "}
	runVariants(t, "nanogpt", []variant{
		{name: "as it is", text: head + three, want: right},
		{name: "seconds", text: head + strings.NewReplacer("60000.00ms", "60.00s", "500.00ms", "0.50s").Replace(three), refused: "nothing found"},
		{name: "no tokens", text: three, want: right[1:], never: []string{"tokens_per_second"}},
		{name: "resumed", text: head + strings.NewReplacer("iter 0", "iter 5000", "iter 1", "iter 5001", "iter 2", "iter 5002").Replace(three), want: right},
		{name: "started again", text: head + three + three, refused: "two runs"},
		{name: "an evaluation in between", text: head + three + "step 3: train loss 3.0, val loss 3.1\n" + line("3", "9000.00") + line("4", "500.00"), want: append(right, " eval_loss 3.1 ")},
		{name: "every line evaluated", text: head + "step 0: train loss 3.0, val loss 3.1\n" + line("0", "9000.00") + "step 1: train loss 3.0, val loss 3.1\n" + line("1", "9000.00"), never: []string{"tokens_per"}, says: "the time of every line includes an evaluation"},
		{name: "ranks with prefixes", text: "[rank0]:" + strings.ReplaceAll(strings.TrimSuffix(head+three, "\n"), "\n", "\n[rank0]:") + "\n", want: right},
		{name: "under kubectl", text: "2024-05-01T10:00:00.1Z " + strings.ReplaceAll(strings.TrimSuffix(head+three, "\n"), "\n", "\n2024-05-01T10:00:00.1Z ") + "\n", want: right},
		{name: "under journald", text: "May 01 10:00:00 n01 python3[9]: " + strings.ReplaceAll(strings.TrimSuffix(head+three, "\n"), "\n", "\nMay 01 10:00:00 n01 python3[9]: ") + "\n", want: right},
		{name: "cut off", text: head + line("0", "60000.00") + line("1", "500.00") + "iter 2: loss 3.0, time 5", want: right, says: "cut off"},
		{name: "tokens that change", text: head + three + "tokens per iteration will be: 4,000\n" + line("3", "500.00"), says: "tokens"},
	})
}

// 128 samples in 6 s; 8 devices of 1000 tokens/s.
func TestNeMoVariants(t *testing.T) {
	line := func(epoch, i, step, more string) string {
		return "Training epoch " + epoch + ", iteration " + i + "/99 | lr: 6.897e-06 | global_batch_size: 128 | global_step: " + step + " | reduced_train_loss: 12.03 | " + more + "\n"
	}
	three := func(more string) string {
		return line("0", "0", "0", "train_step_timing in s: 65.31") + line("0", "1", "1", more) + line("0", "2", "2", more)
	}
	right := []string{" throughput 21.333333333333332 samples/s ", " step_seconds 6 s "}
	runVariants(t, "nemo", []variant{
		{name: "as it is", text: three("train_step_timing in s: 6"), want: right},
		{name: "milliseconds", text: three("train_step_timing in ms: 6000"), never: []string{"step_seconds", "throughput"}},
		{name: "tokens of a device", text: three("train_step_timing in s: 6 | tokens_per_sec_per_gpu: 1000"), o: Options{Workers: 8}, want: append(right, " tokens_per_second 8000 tokens/s ")},
		{name: "a second epoch", text: three("train_step_timing in s: 6") + line("1", "0", "3", "train_step_timing in s: 6"), want: right},
		{name: "iterations of a second epoch without steps", text: strings.NewReplacer(" | global_step: 0", "", " | global_step: 1", "", " | global_step: 2", "", " | global_step: 3", "").Replace(three("train_step_timing in s: 6") + line("1", "0", "3", "train_step_timing in s: 6")), refused: "two runs"},
		{name: "FLOP/s of a device", text: three("train_step_timing in s: 6 | TFLOPS_per_GPU: 1.2e+03"), want: append(right, " reported_flops_per_gpu 1.2e+15 ")},
		{name: "a ramp of the batch", text: three("train_step_timing in s: 6") + strings.ReplaceAll(line("0", "3", "3", "train_step_timing in s: 12"), "size: 128", "size: 256"), want: []string{" throughput 21.333333333333332 "}, says: "global batch changes"},
		{name: "an evaluation", text: three("train_step_timing in s: 6 | val_loss: 12.01"), want: append(right, " eval_loss 12.01 ")},
		{name: "ranks", text: stampedRanks(2, three("train_step_timing in s: 6")), want: right, says: "several ranks"},
		{name: "under kubectl", text: "2024-05-01T10:00:00.1Z " + strings.ReplaceAll(strings.TrimSuffix(three("train_step_timing in s: 6"), "\n"), "\n", "\n2024-05-01T10:00:00.1Z ") + "\n", want: right},
		{name: "other fields", text: three("train_step_timing in s: 6 | tokens_per_second: 1.2e6"), want: right, says: "tokens_per_second"},
	})
}

// 65536 tokens in a step of 2 s on 8 devices: 4096 tokens/s each.
func TestMaxTextVariants(t *testing.T) {
	line := func(step int, seconds, tokens, total string) string {
		return fmt.Sprintf("completed step: %d, seconds: %s, TFLOP/s/device: 100.0, Tokens/s/device: %s, total_weights: %s, loss: 9.000\n", step, seconds, tokens, total)
	}
	log := func(seconds, tokens, total string) string {
		return line(0, "40.0", "204.8", total) + line(1, "0.1", "81920.0", total) + line(2, seconds, tokens, total) + line(3, seconds, tokens, total)
	}
	right := []string{" step_seconds 2 s ", " tokens_per_second_per_gpu 4096 tokens/s "}
	runVariants(t, "maxtext", []variant{
		{name: "as it is", text: log("2.000", "4096.000", "65536"), o: Options{Workers: 8}, want: append(right, " tokens_per_second 32768 tokens/s ")},
		{name: "hosts as workers", text: log("2.000", "4096.000", "65536"), o: Options{Workers: 2}, want: right, never: []string{" tokens_per_second "}, says: "--workers the number of devices"},
		{name: "no workers", text: log("2.000", "4096.000", "65536"), want: right, never: []string{" tokens_per_second "}, says: "give --workers"},
		{name: "milliseconds", text: strings.ReplaceAll(log("2000", "4096.000", "65536"), "seconds:", "ms:"), refused: "nothing found"},
		{name: "Python's logging", text: "INFO:root:" + strings.ReplaceAll(strings.TrimSuffix(log("2.000", "4096.000", "65536"), "\n"), "\n", "\nINFO:root:") + "\n", o: Options{Workers: 8}, want: right},
		{name: "absl's logging", text: "I0501 10:00:00.123456 140 train.py:12] " + strings.ReplaceAll(strings.TrimSuffix(log("2.000", "4096.000", "65536"), "\n"), "\n", "\nI0501 10:00:00.123456 140 train.py:12] ") + "\n", o: Options{Workers: 8}, want: right},
		{name: "hosts with prefixes", text: stampedRanks(2, log("2.000", "4096.000", "65536")), o: Options{Workers: 8}, want: right, says: "several ranks"},
		{name: "a step time that its rate contradicts", text: log("2.000", "4.096", "65536"), o: Options{Workers: 8}, says: "65536"},
		{name: "restarted", text: log("2.000", "4096.000", "65536") + log("2.000", "4096.000", "65536"), refused: "two runs"},
		{name: "cut off", text: strings.TrimSuffix(log("2.000", "4096.000", "65536"), "\n"), o: Options{Workers: 8}, want: right, says: "cut off"},
	})
}

func TestTableVariants(t *testing.T) {
	const keras = "epoch,accuracy,loss,val_accuracy,val_loss\n"
	runVariants(t, "keras-csvlogger", []variant{
		{name: "as it is", text: keras + "0,0.5,0.7,0.6,0.69\n1,0.5,0.7,0.7,0.69\n", want: []string{"accuracy 0.7 at 0 epoch 2 "}},
		{name: "semicolons", text: strings.ReplaceAll(keras+"0,0.5,0.7,0.6,0.69\n", ",", ";"), want: []string{"accuracy 0.6 at 0 epoch 1 "}},
		{name: "decimal commas", text: "epoch;accuracy;loss;val_accuracy;val_loss\n0;0,5;0,7;0,6;0,69\n", refused: "0,6"},
		{name: "percent", text: keras + "0,50,0.7,60,0.69\n", refused: "want a fraction"},
		{name: "percent by its name", text: keras + "0,50,0.7,60,0.69\n", o: Options{Columns: map[string]string{"accuracy": "val_accuracy"}, AccuracyUnit: "%"}, want: []string{"accuracy 0.6 "}},
		{name: "appended by a second run", text: keras + "0,0.5,0.7,0.6,0.69\n1,0.5,0.7,0.7,0.69\n0,0.5,0.7,0.6,0.69\n", refused: "a second run"},
		{name: "the header again", text: keras + "0,0.5,0.7,0.6,0.69\n" + keras + "0,0.5,0.7,0.6,0.69\n", refused: "the header again"},
		{name: "epochs from 1", text: keras + "1,0.5,0.7,0.6,0.69\n", o: Options{FirstEpoch: new(int)}, want: []string{"epoch 2 "}},
		{name: "two accuracies", text: "epoch,val_accuracy,val_acc\n0,0.6,0.7\n", want: []string{"accuracy 0.6 "}, says: `"val_acc" may be it too`},
		{name: "NaN", text: keras + "0,0.5,nan,nan,nan\n", refused: "nothing found"},
		{name: "a loss alone", text: "epoch,loss\n0,0.7\n", refused: "nothing found"},
		{name: "cut off", text: keras + "0,0.5,0.7,0.6,0.69\n1,0.5,0.7,0", refused: "log:3"},
	})
	const light = "epoch,step,train/device/samples_per_sec,train/samples,train/time,val_acc\n"
	runVariants(t, "lightning-csv", []variant{
		{name: "a device's rate", text: light + "0,9,100,1000,10,\n0,19,100,2000,20,\n0,29,100,3000,30,\n0,29,,,,0.6\n", o: Options{Workers: 4}, want: []string{" throughput 400 samples/s ", "accuracy 0.6 at 0 epoch 1 "}},
		{name: "workers unknown", text: light + "0,9,100,1000,10,\n", refused: "give the number of workers"},
		{name: "a device's rate that its samples contradict", text: light + "0,9,100,100,10,\n0,19,100,200,20,\n0,29,100,300,30,\n", o: Options{Workers: 4}, want: []string{" stated_throughput 400 "}, never: []string{" throughput 400 "}},
		{name: "all devices", text: strings.Replace(light, "device/", "", 1) + "0,9,400,1000,10,\n0,19,400,2000,20,\n", o: Options{Workers: 4}, want: []string{" throughput 400 samples/s "}},
		{name: "all devices in a column of one", text: light + "0,9,400,1000,10,\n0,19,400,2000,20,\n", o: Options{Workers: 4}, never: []string{" throughput 1600 "}},
		{name: "bars in the names", text: strings.ReplaceAll(light, "train/", "train|") + "0,9,100,1000,10,\n0,19,100,2000,20,\n", o: Options{Workers: 4}, want: []string{" throughput 400 "}},
		{name: "appended by a second run", text: light + "0,9,100,1000,10,\n0,19,100,2000,20,\n0,9,100,1000,10,\n", o: Options{Workers: 4}, refused: "goes back"},
		{name: "time in minutes", text: light + "0,9,100,1000,0.1667,\n0,19,100,2000,0.3333,\n", o: Options{Workers: 4}, want: []string{" stated_throughput 400 "}},
		{name: "an accuracy in percent", text: light + "0,9,,,,60\n", refused: "want a fraction"},
		{name: "an unknown name", text: "epoch,step,valid_top1\n0,9,0.6\n", refused: "nothing found"},
		{name: "both rates", text: "epoch,step,train/device/samples_per_sec,train/samples_per_sec\n0,9,100,400\n", o: Options{Workers: 4}, want: []string{" throughput 400 samples/s "}},
		{name: "bars everywhere", text: strings.NewReplacer("train/", "train|", "device/", "device|").Replace(light) + "0,9,100,1000,10,\n0,19,100,2000,20,\n", o: Options{Workers: 4}, want: []string{" throughput 400 "}},
		{name: "a rate of tokens", text: "epoch,step,tokens_per_sec,val_acc\n0,9,12000,0.6\n", want: []string{"accuracy 0.6 "}, says: `no rate is read; columns "tokens_per_sec"`},
		{name: "a rate without a unit", text: "epoch,step,throughput,val_acc\n0,9,12000,0.6\n", want: []string{"accuracy 0.6 "}, says: `no rate is read; columns "throughput"`},
		{name: "semicolons", text: strings.ReplaceAll(light+"0,9,100,1000,10,\n", ",", ";"), refused: "nothing found"},
	})
	llama := func(steps int, clock string, tokens int) string {
		return fmt.Sprintf(`{"current_steps": %d, "total_steps": 45, "loss": 1.25, "lr": 5e-05, "epoch": 0.6, "percentage": 22.22, "elapsed_time": "%s", "total_tokens": %d}`, steps, clock, tokens) + "\n"
	}
	right := []string{" tokens_per_second 4000 tokens/s ", " step_seconds 4 s "}
	// LLaMA-Factory divides all tokens by the time since the start: 480000 / 120 s are 4000.
	rated := func(rate string) string {
		text := llama(10, "0:01:20", 320000) + llama(20, "0:02:00", 480000)
		return strings.ReplaceAll(text, `"total_tokens"`, `"throughput": `+rate+`, "total_tokens"`)
	}
	runVariants(t, "llama-factory", []variant{
		{name: "a rate that agrees", text: rated("4000.0"), want: right},
		{name: "a rate that its tokens contradict", text: rated("400.0"), want: []string{" stated_tokens_per_second 4000 ", " stated_step_seconds 4 "}, says: "states 400 tokens/s, and its 320000 tokens in 80 s are 4000"},
		// 10 steps and 160000 tokens in 40 s after the restart.
		{name: "a clock that starts again", text: llama(10, "0:00:40", 160000) + llama(20, "0:01:20", 320000) + llama(30, "0:00:50", 480000) + llama(40, "0:01:30", 640000), want: right, says: "the time goes back in line 3: a restart"},
		{name: "LLaMA-Factory as it is", text: llama(10, "0:01:00", 200000) + llama(20, "0:01:40", 360000), want: right},
		{name: "one step apart", text: llama(10, "0:01:00", 200000) + llama(11, "0:01:40", 240000), want: []string{" step_seconds 40 s ±1 ", " tokens_per_second 1000 tokens/s ±25 "}},
		{name: "two seconds apart", text: llama(10, "0:01:00", 200000) + llama(20, "0:01:02", 240000), want: []string{" step_seconds 0.2 s ±0.1 "}},
		{name: "a second apart", text: llama(10, "0:01:00", 200000) + llama(20, "0:01:01", 240000), never: []string{"step_seconds", "tokens_per_second"}, says: "less than 2 s apart"},
		{name: "no tokens between", text: llama(10, "0:01:00", 200000) + llama(20, "0:01:40", 200000), want: right[1:], never: []string{"tokens_per_second"}},
		{name: "days", text: llama(10, "1 day, 0:01:00", 200000) + llama(20, "1 day, 0:01:40", 360000), want: right},
		{name: "elapsed in seconds", text: llama(10, "60.0", 200000), refused: "H:MM:SS"},
		{name: "a restart", text: llama(10, "0:01:00", 200000) + llama(20, "0:01:40", 360000) + llama(15, "0:00:20", 280000) + llama(25, "0:01:00", 440000), want: right, says: "restart"},
		{name: "no tokens", text: strings.NewReplacer(`, "throughput": 3076.92, "total_tokens": 0`, "").Replace(llama(10, "0:01:00", 0) + llama(20, "0:01:40", 0)), want: right[1:], says: "include_num_input_tokens_seen"},
		{name: "two runs", text: llama(10, "0:01:00", 200000) + llama(20, "0:01:40", 360000) + llama(10, "0:01:00", 200000), want: right, says: "stated more than once"},
		{name: "cut off", text: llama(10, "0:01:00", 200000) + llama(20, "0:01:40", 360000) + llama(30, "0:02:20", 520000)[:60], want: right, says: "cut off"},
		{name: "damaged", text: llama(10, "0:01:00", 200000) + `{"current_steps": 20, "loss": ` + "\n", refused: "damaged"},
		{name: "one line", text: llama(10, "0:01:00", 200000), never: []string{"step_seconds", "tokens_per_second"}, says: "no rate is made of them"},
	})
	dlioDoc := func(n, au, rate, mean string) string {
		return `{"model": "unet3d", "num_accelerators": ` + n + `, "metric": {"train_au_percentage": [` + au + `], "train_au_mean_percentage": ` + au + `, "train_au_meet_expectation": "success", "train_throughput_samples_per_second": [` + rate + `], "train_throughput_mean_samples_per_second": ` + mean + `, "train_io_mean_MB_per_second": 100.0}}`
	}
	runVariants(t, "dlio", []variant{
		{name: "DLIO as it is", text: dlioDoc("8", "99.5", "20.0, 24.0", "22.0"), want: []string{" throughput 22 samples/s ", " accelerator_utilisation 0.995 "}},
		{name: "a mean that is not of its epochs", text: dlioDoc("8", "99.5", "20.0, 24.0", "2.2"), refused: "the mean of the 2 epochs"},
		{name: "over 100 %", text: dlioDoc("8", "101", "22.0", "22.0"), refused: "that cannot be"},
		{name: "waited too long", text: strings.Replace(dlioDoc("8", "50.0", "22.0", "22.0"), `"success"`, `"fail"`, 1), says: "longer than MLPerf Storage allows"},
		{name: "no accelerators", text: dlioDoc("0", "99.5", "22.0", "22.0"), refused: "want 1 or more"},
		{name: "other workers", text: dlioDoc("8", "99.5", "22.0", "22.0"), o: Options{Workers: 4}, says: "the log reports 8 ranks, the run has 4 workers"},
		{name: "no training", text: `{"num_accelerators": 8, "metric": {"save_checkpoint_io_mean_GB_per_second": 1.0}}`, refused: "nothing found"},
	})
}

// 8 requests in flight of a batch of 4: 100 inferences/s are 25 requests/s, and 320 ms.
func TestPerfAnalyzerVariants(t *testing.T) {
	const csv = "Concurrency,Inferences/Second,Client Send,p50 latency,p95 latency,p99 latency\n8,100,1,310000,350000,400000\n"
	o := Options{At: map[string]float64{measure.Batch: 4}}
	right := []string{" requests_per_second 25 requests/s ", " samples_per_second 100 samples/s ", " latency_p99 0.4 s "}
	print := func(batch, rate, unit, p99 string) string {
		return "*** Measurement Settings ***\n  Batch size: " + batch + "\n\nRequest concurrency: 8\n  Client: \n    Request count: 250\n    Throughput: " + rate + "\n    Avg latency: 320000 " + unit + " (standard deviation 663 " + unit + ")\n    p50 latency: 310000 " + unit + "\n    p99 latency: " + p99 + "\n\nInferences/Second vs. Client Average Batch Latency\nConcurrency: 8, throughput: " + rate + ", latency 320000 usec\n"
	}
	runVariants(t, "perf-analyzer", []variant{
		{name: "a table", text: csv, o: o, want: right},
		{name: "the batch unknown", text: csv, refused: "--at batch=1"},
		{name: "decimal commas", text: strings.ReplaceAll(strings.ReplaceAll(csv, ",", ";"), "100;", "100,5;"), o: o, refused: "nothing found"},
		{name: "at a rate", text: strings.NewReplacer("Concurrency,", "Request Rate,", "\n8,", "\n25,").Replace(csv), o: o, want: append(right, " rate 25 ")},
		{name: "more than asked for", text: strings.NewReplacer("Concurrency,", "Request Rate,", "\n8,", "\n10,").Replace(csv), o: o, want: []string{" stated_requests_per_second 25 "}},
		{name: "milliseconds by their name", text: strings.ReplaceAll(csv, "latency", "latency (ms)"), o: o, never: []string{"latency_"}, says: `ignored columns: "p50 latency (ms)"`},
		{name: "as printed", text: print("4", "100 infer/sec", "usec", "400000 usec"), want: right},
		{name: "as printed, in ms", text: strings.ReplaceAll(print("4", "100 infer/sec", "usec", "400 msec"), "320000 usec (", "320 msec ("), want: right},
		{name: "as printed, another rate", text: print("4", "100 tokens/sec", "usec", "400000 usec"), refused: "nothing found"},
		{name: "as printed, cut off", text: strings.Split(print("4", "100 infer/sec", "usec", "400000 usec"), "Inferences/Second vs")[0], refused: "cut off"},
		{name: "as printed, another batch", text: print("1", "100 infer/sec", "usec", "400000 usec"), want: []string{" requests_per_second 100 "}, says: "Little's law"},
		{name: "twice", text: csv + "8,100,1,310000,350000,400000\n", o: o, refused: "a second result"},
	})
}
