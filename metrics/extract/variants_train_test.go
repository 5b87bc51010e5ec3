package extract

import (
	"strings"
	"testing"
)

// A global batch of 64 over a step of 0.5 s: 128 samples/s.
func TestDeepSpeedVariants(t *testing.T) {
	const head, mem = "[2024-05-01 10:00:10,000] [INFO] [timer.py:260:stop] ", ", MemAllocated=4.0GB, MaxMemAllocated=8.0GB\n"
	timer := func(micro, step, average, current string) string {
		return head + "epoch=0/micro_step=" + micro + "/global_step=" + step + ", RunningAvgSamplesPerSec=" + average + ", CurrSamplesPerSec=" + current + mem
	}
	right := []string{" throughput 128 samples/s "}
	pipe := func(step, rest string) string { return "steps: " + step + " loss: 4.5 " + rest + "\n" }
	runVariants(t, "deepspeed", []variant{
		{name: "as it is", text: timer("10", "10", "128.0", "128.0") + timer("20", "20", "128.0", "128.0"), want: right},
		// With 8 micro-steps a step, a timer that skips two micro-steps has 9.75 steps of time at
		// step 10 and divides by 8: 105.03. At step 20: 18/19.75*128 = 116.66.
		{name: "gradient accumulation in older versions", text: timer("80", "10", "105.02564102564102", "128.0") + timer("160", "20", "116.65822784810126", "128.0"), want: right, says: "miscounts the first steps"},
		{name: "every step printed, from the first", text: timer("8", "1", "-149.3", "170.6") + timer("16", "2", "-inf", "128.0") + timer("80", "10", "105.02564102564102", "128.0") + timer("160", "20", "116.65822784810126", "128.0"), want: right},
		{name: "a rate of -inf only", text: timer("1", "1", "-inf", "inf"), never: []string{"throughput"}},
		{name: "one line", text: timer("10", "10", "128.0", "128.0"), want: right},
		{name: "one line that contradicts itself", text: timer("80", "10", "105.0256", "160.0"), want: []string{" stated_throughput 105.0256 samples/s "}, never: []string{" throughput "}, says: "160"},
		{name: "a restart", text: timer("10", "10", "128.0", "128.0") + timer("20", "20", "128.0", "128.0") + timer("10", "10", "128.0", "128.0"), want: right, says: "stated more than once"},
		{name: "pdsh's host names", text: "n01: " + timer("10", "10", "128.0", "128.0") + "n01: " + timer("20", "20", "128.0", "128.0"), want: right},
		{name: "launcher's ranks", text: "[rank0]:" + timer("10", "10", "128.0", "128.0") + "[rank1]:" + timer("10", "10", "128.0", "128.0"), want: right, says: "several ranks"},
		{name: "older lines", text: head + "0/10, SamplesPerSec=83.45, MemAllocated=0.26GB, MaxMemAllocated=9.02GB\n", refused: "micro-batches"},
		{name: "no memory", text: head + "epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=128.0, CurrSamplesPerSec=128.0\n" + timer("20", "20", "128.0", "128.0"), want: right},
		{name: "pipeline", text: pipe("10", "iter time (s): 5.0 samples/sec: 12.800") + pipe("20", "iter time (s): 0.500 samples/sec: 128.000"), want: []string{" throughput 128 samples/s ", " step_seconds 0.5 s "}},
		{name: "pipeline with a slow line", text: pipe("10", "iter time (s): 5.0 samples/sec: 12.800") + pipe("20", "iter time (s): 0.500 samples/sec: 128.000") + pipe("30", "iter time (s): 0.500 samples/sec: 128.000") + pipe("40", "iter time (s): 500.0 samples/sec: 128.000"), want: right},
		{name: "cut off", text: timer("10", "10", "128.0", "128.0") + strings.TrimSuffix(timer("20", "20", "64.0", "64.0"), "\n"), want: right, says: "cut off"},
		{name: "two trainings", text: timer("10", "10", "128.0", "128.0") + timer("5", "5", "64.0", "64.0"), refused: "two runs"},
		{name: "progress before it", text: " 10%|█         | 10/100 [00:05<00:45,  2.00it/s]\r" + timer("10", "10", "128.0", "128.0"), want: right},
	})
}

// A batch of 64 sequences of 4096 tokens over a step of 4 s: 16 samples/s, 65,536 tokens/s.
func TestMegatronVariants(t *testing.T) {
	line := func(step, fields string) string {
		return " [2024-05-01 10:00:" + step + "] iteration       " + step + "/     100 | consumed samples:          640 | " + fields + " | learning rate: 7.5E-08 | global batch size:    64 | lm loss: 1.080000E+01 | loss scale: 1.0 | grad norm: 14.218 |\n"
	}
	three := func(fields string) string { return line("10", fields) + line("20", fields) + line("30", fields) }
	const args = "  world_size ...................................... 16\n  seq_length ...................................... 4096\n"
	right := []string{" throughput 16 samples/s ", " step_seconds 4 s "}
	runVariants(t, "megatron", []variant{
		{name: "as it is", text: args + three("elapsed time per iteration (ms): 4000.0"), want: append(right, " tokens_per_second 65536 tokens/s ", " tokens_per_second_per_gpu 4096 tokens/s ")},
		{name: "seconds", text: three("elapsed time per iteration (s): 4.0"), want: right},
		{name: "seconds, and its own rate", text: three("elapsed time per iteration (s): 4.00 | samples per second: 16.000 | TFLOPs: 149.04"), want: append(right, " reported_flops_per_gpu 149040000000000 FLOP/s ")},
		{name: "a rate that its batch contradicts", text: three("elapsed time per iteration (ms): 4000.0 | samples per second: 2.000"), want: []string{" stated_throughput 2 samples/s "}, never: []string{" throughput 2 "}},
		{name: "a rate in thousands", text: three("elapsed time per iteration (ms): 4000.0 | tokens per gpu per second (tgs): 4.096K"), refused: "4.096K"},
		{name: "thousands separated", text: three("elapsed time per iteration (ms): 4,000.0"), want: right},
		{name: "FLOP/s in PFLOP/s", text: three("elapsed time per iteration (ms): 4000.0 | throughput per GPU (PFLOP/s/GPU): 0.149"), want: right, never: []string{"flops"}, says: "PFLOP/s"},
		{name: "the older name of FLOP/s", text: three("elapsed time per iteration (ms): 4000.0 | throughput per GPU (TFLOPS/GPU): 149.0"), want: right, says: "not read"},
		{name: "a ramp of the batch", text: line("10", "elapsed time per iteration (ms): 2000.0") + strings.ReplaceAll(line("20", "elapsed time per iteration (ms): 2000.0")+line("30", "elapsed time per iteration (ms): 4000.0"), "size:    64", "size:   128"), says: "global batch changes"},
		{name: "another world on the command line", text: args + three("elapsed time per iteration (ms): 4000.0"), o: Options{Workers: 8}, says: "the log reports 16 ranks, the run has 8 workers"},
		{name: "a restart from a checkpoint", text: strings.ReplaceAll(three("elapsed time per iteration (ms): 4000.0"), "10:00", "10:00") + strings.ReplaceAll(line("20", "elapsed time per iteration (ms): 90000.0")+line("30", "elapsed time per iteration (ms): 4000.0"), "10:00", "11:00"), want: right, says: "a restart"},
		{name: "launcher's ranks", text: strings.ReplaceAll(" "+three("elapsed time per iteration (ms): 4000.0"), " [2024", "7: [2024"), want: right},
		{name: "kubectl's times", text: "2024-05-01T10:00:00.1Z " + line("10", "elapsed time per iteration (ms): 4000.0") + "2024-05-01T10:00:00.1Z " + line("20", "elapsed time per iteration (ms): 4000.0"), want: right},
		{name: "an average behind the value", text: three("elapsed time per iteration (ms): 4000.0/4100.0 | tokens per GPU (tokens/s/GPU): 4096.0/4000.0"), want: append(right, " tokens_per_second_per_gpu 4096 tokens/s ")},
		{name: "iterations skipped", text: three("elapsed time per iteration (ms): 4000.0 | number of skipped iterations:   2"), want: right},
		{name: "tokens of Megatron-DeepSpeed", text: three("consumed tokens:      2621440 | elapsed time per iteration (ms): 4000.0"), want: append(right, " tokens_per_second 65536 tokens/s ")},
		{name: "cut off", text: strings.TrimSuffix(three("elapsed time per iteration (ms): 4000.0"), " |\n"), says: "cut off"},
	})
}

// 8 devices of 128 images in 0.5 s: 2048 images/s.
func TestTimmVariants(t *testing.T) {
	line := func(epoch, at, now, mean, lr string) string {
		return "Train: " + epoch + " [" + at + "]  Loss: 1.336 (4.00)  Time: " + now + "  (" + mean + ")  LR: " + lr + "  Data: 0.000 (0.014)\n"
	}
	epochs := func(now, mean string) (text string) {
		for _, e := range []string{"0", "1", "2"} {
			text += line(e, "   0/100 (  1%)", "5.000s,  204.80/s", "5.000s,  204.80/s", "5.000e-04") + line(e, "  50/100 ( 51%)", "0.500s, 2048.00/s", "0.500s, 2048.00/s", "5.000e-04") + line(e, "  99/100 (100%)", now, mean, "5.000e-04")
		}
		return text
	}
	right := []string{" throughput 2048 samples/s "}
	runVariants(t, "timm", []variant{
		{name: "as it is", text: epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), want: right},
		// The last update of an epoch has a quarter of the micro-batches: 256 of 1024 images, in
		// 0.125 s. The mean time is still 0.5 s.
		{name: "a last update of fewer micro-batches", text: epochs("0.125s, 2048.00/s", "0.500s,  512.00/s"), want: right, says: "an epoch's last update is smaller"},
		{name: "the last update is not printed", text: strings.ReplaceAll(epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), "  99/100 (100%)", "  98/100 ( 99%)"), want: right},
		{name: "the other count of batches", text: strings.ReplaceAll(epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), "  99/100 (100%)", " 100/100 (100%)"), want: right},
		{name: "logged by Python's logging", text: strings.ReplaceAll(epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), "Train:", "[05/01 10:00:00 timm]: Train:"), want: right},
		{name: "of one worker by its batch", text: strings.ReplaceAll(epochs("0.500s,  256.00/s", "0.500s,  256.00/s"), "2048.00", " 256.00"), o: Options{Workers: 8, WorkerBatch: 128}, want: right, says: "one worker's"},
		{name: "the batch of the user contradicts", text: epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), o: Options{Workers: 8, WorkerBatch: 32}, want: []string{" stated_throughput 2048 "}},
		{name: "restarted", text: epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s") + epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), refused: "two runs"},
		{name: "one epoch", text: line("0", "  99/100 (100%)", "0.500s, 2048.00/s", "0.500s, 2048.00/s", "5.000e-04"), want: right, says: "of one epoch"},
		{name: "an epoch cut off", text: epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s") + line("3", "   0/100 (  1%)", "5.000s,  204.80/s", "5.000s,  204.80/s", "5.000e-04"), want: right},
		{name: "under journald", text: "May 01 10:00:40 n01 python[123]: " + strings.ReplaceAll(strings.TrimSuffix(epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), "\n"), "\n", "\nMay 01 10:00:40 n01 python[123]: ") + "\n", want: right},
		{name: "ranks with prefixes", text: "0: " + strings.ReplaceAll(strings.TrimSuffix(epochs("0.500s, 2048.00/s", "0.500s, 2048.00/s"), "\n"), "\n", "\n0: ") + "\n", want: right},
	})
}

// 4 devices of 50 images/s: 200 images/s.
func TestConvolutionVariants(t *testing.T) {
	const head = "TensorFlow:  1.15\nModel:       resnet50\nMode:        BenchmarkMode.TRAIN\nBatch size:  256 global\n             64 per device\n"
	const rule = "----------------------------------------------------------------\n"
	total := func(x string) string { return rule + "total images/sec: " + x + "\n" + rule }
	right := []string{" throughput 200 samples/s "}
	runVariants(t, "tf-cnn-benchmarks", []variant{
		{name: "as it is", text: head + total("200.00"), want: right},
		{name: "evaluation", text: strings.Replace(head, "BenchmarkMode.TRAIN", "BenchmarkMode.EVAL", 1) + total("200.00"), refused: "evaluation"},
		{name: "forward only", text: strings.Replace(head, "BenchmarkMode.TRAIN", "forward-only", 1) + total("200.00"), refused: "forward"},
		{name: "older training", text: strings.Replace(head, "BenchmarkMode.TRAIN", "training", 1) + total("200.00"), want: right},
		{name: "two that differ", text: head + total("200.00") + total("20.00") + total("201.00"), refused: "LOG > 1.log, sed '"},
		{name: "two that differ, with the steps of one", text: head + "10\timages/sec: 20.0 +/- 0.1 (jitter = 0.2)\t8.049\n" + total("200.00") + total("20.00"), refused: "LOG > 1.log, sed '"},
		{name: "workers that agree", text: head + total("200.00") + total("202.00") + total("201.00"), want: []string{" throughput 201 "}, says: "median of 3 totals"},
		{name: "cut off", text: head + rule + "total images/sec: 200.00\n", want: right, says: "cut off"},
		{name: "no total", text: head + "10\timages/sec: 50.0 +/- 0.1 (jitter = 0.2)\t8.049\n", refused: "nothing found"},
		{name: "under kubectl", text: "2024-05-01T10:00:00.1Z total images/sec: 200.00\n2024-05-01T10:00:00.1Z " + rule, want: right},
		{name: "other workers than given", text: head + total("200.00"), o: Options{Workers: 8}, want: right, says: "the log reports 4 ranks, the run has 8 workers"},
		{name: "mpirun's tags", text: "[1,0]<stdout>:total images/sec: 200.00\n[1,1]<stdout>:total images/sec: 200.00\n", want: right},
	})
	const each = "Model: ResNet50\nBatch size: 64\nNumber of GPUs: 4\nRunning warmup...\nRunning benchmark...\nIter #0: 49.0 img/sec per GPU\nIter #1: 51.0 img/sec per GPU\nImg/sec per GPU: 50.0 +-2.0\n"
	const all = "Total img/sec on 4 GPU(s): 200.0 +-8.0\n"
	runVariants(t, "horovod-synthetic", []variant{
		{name: "Horovod as it is", text: each + all, want: right},
		{name: "Horovod's total is another's", text: each + strings.Replace(all, "200.0", "400.0", 1), refused: "damaged"},
		{name: "Horovod without its total", text: each, refused: "cut off"},
		{name: "Horovod's ranks", text: stampedRanks(2, each+all), want: right, says: "several ranks"},
		{name: "Horovod twice", text: each + all + each + all, refused: "a second"},
		{name: "Horovod's times of mpirun", text: strings.ReplaceAll(stampedRanks(1, each+all), "[1,0]", "Wed May  1 10:00:00 2024[1,0]"), want: right},
		{name: "Horovod under kubectl", text: "2024-05-01T10:00:00.1Z " + strings.ReplaceAll(strings.TrimSuffix(each+all, "\n"), "\n", "\n2024-05-01T10:00:00.1Z ") + "\n", want: right},
		{name: "Horovod on CPUs", text: strings.ReplaceAll(each+all, "GPU", "CPU"), want: right},
		{name: "Horovod with other workers", text: each + all, o: Options{Workers: 2}, want: right, says: "the log reports 4 ranks, the run has 2 workers"},
		{name: "Horovod elastic", text: each + all + strings.Replace(all, "on 4", "on 3", 1), refused: "a second"},
	})
}
