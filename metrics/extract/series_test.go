package extract

import (
	"math"
	"strings"
	"testing"
)

// Logs that are read wrongly if each number is taken by itself. The values are worked out by hand; 0
// where the log must be refused.
func TestSeriesAndSurroundings(t *testing.T) {
	rate := Pattern{Name: "throughput", Pattern: `: (?P<value>[\d.]+) img/s`, Unit: "img/s", Per: "step"}
	any := Pattern{Name: "throughput", Pattern: `: (?P<value>\S+) img/s`, Unit: "img/s", Per: "step"}
	of := func(name, pattern, unit, per string) Pattern {
		return Pattern{Name: name, Pattern: pattern, Unit: unit, Per: per}
	}
	steps := func(list ...string) string { // "step 1: 100 img/s" and so on
		text := ""
		for _, one := range list {
			number, x, _ := strings.Cut(one, " ")
			text += "step " + number + ": " + x + " img/s\n"
		}
		return text
	}
	step := of("step_seconds", `step_time(?:_m?s)?": (?P<value>[\d.]+)`, "ms", "step")
	window := of("step_seconds", `(?P<value>[\d.]+) s\b`, "s", "step")
	took := of("train_seconds", `took (?P<value>\S+)`, "s", "")
	bw := of("own_bw", `bw\S*:? (?P<value>[\d.]+)`, "GB/s", "")
	mean := of("throughput", `\((?P<value>[\d.]+)\)`, "img/s", "step")
	keras := of("throughput", `(?P<value>\d+)ms/step`, "ms/step", "epoch")
	const fio = "{\n  \"read\" : {\n    \"bw_bytes\" : 126418944,\n    \"bw\" : 123456,\n    \"lat_ns\" : {\n      \"mean\" : 250000.0,\n      \"stddev\" : 1.0\n    }\n  }\n}\n"
	const pytest = "Name (time in ms)         Min                Max               Mean\ntest_step             12.3456 (1.0)      13.1000 (1.0)      12.9000 (1.0)\n"
	for _, c := range []struct {
		p       Pattern
		log     string
		workers int
		want    float64
		says    string
	}{
		// 250 ms is 0.25 s; the second half is in seconds without saying so.
		{step, "{\"step_time_ms\": 250}\n{\"step_time_ms\": 250}\n{\"step_time\": 0.25}\n", 1, 0, "no unit for step_seconds here, but ms in line 2"},
		{step, "{\"step_time_ms\": 250}\n{\"step_time_s\": 0.25}\n", 1, 0.25, "read in s, the unit in its name"},
		{step, "{\"step_time_ms\": 250}\n{\"step_time\": 240}\n", 1, 0.245, ""}, // the median of both
		// A second training at another rate, an evaluation after the training, and one between steps.
		{rate, steps("1 100", "2 100", "3 100", "1 140", "2 140", "3 140"), 1, 120, "goes back in line 4, and the values change from 100 to 140"},
		{rate, steps("1 100", "2 100", "3 100", "4 100", "1 130", "2 130", "3 130"), 1, 100, "from 100 to 130"},
		{rate, steps("1 100", "1 130", "2 130", "3 130", "2 100", "1 130", "2 130", "3 130", "3 100", "1 130", "2 130", "4 130"), 1, 130, "goes back"},
		{rate, steps("1 100", "2 101", "3 100", "1 102", "2 100", "3 101"), 1, 100.5, ""}, // epochs at one rate
		// Losses fall from epoch to epoch; a progress bar begins at 60 s/it, and its unit is the pattern's.
		{of("own_loss", `loss (?P<value>[\d.]+)`, "", "step"), "step 1 loss 3\nstep 2 loss 3\nstep 3 loss 3\nstep 1 loss 2\nstep 2 loss 2\nstep 3 loss 2\n", 1, 2.5, ""},
		{of("throughput", `, (?P<value>[\d.]+)it/s`, "it/s", "step"), ", 60.00s/it\n, 1.25it/s\n, 1.25it/s\n", 1, 80, "1 of 3 lines have throughput in s/it"},
		{of("own_steps", `(?P<value>\d+)$`, "", "step"), "INF nan\n12\n12\n", 1, 12, ""},
		{any, steps("1 100", "2 nan", "3 100", "4 inf"), 1, 100, "2 of 4 values of throughput are nan or infinite (line 2"},
		{any, "at the end: nan img/s\n", 1, 0, "is nan or infinite here"},
		{rate, steps("1 100", "2 nan", "3 100"), 1, 100, "1 line: nan or inf where the pattern of throughput has a number (line 2"},
		// Means of 20, 100, 140, … so far: 20, 60, 87, 100, 108, 113, 117, 120. They settle long after the steps.
		{mean, "1 140.0 (20)\n2 140.0 (60)\n3 140.0 (87)\n4 140.0 (100)\n5 140.0 (108)\n6 140.0 (113)\n7 140.0 (117)\n8 140.0 (120)\n", 1, 117, "throughput is a running mean"},
		{of("throughput", `avg_img_per_sec=(?P<value>[\d.]+)`, "img/s", "step"), "avg_img_per_sec=99\navg_img_per_sec=100\navg_img_per_sec=101\navg_img_per_sec=100\n", 1, 100, ""},
		// The bars of two epochs: each overwrites itself, and only its last state, 125 ms, counts: 64/0.125.
		{keras, "Epoch 1/2\n\r1/100 900ms/step\r50/100 130ms/step\r100/100 125ms/step\nEpoch 2/2\n\r1/100 900ms/step\r99/100 126ms/step\r100/100 125ms/step\n", 1, 512, ""},
		{keras, "100/100 13s 2s/step\n", 1, 0, "line 1 has a value in s/step, which is read if the pattern has text before the number"},
		{of("accuracy", `acc (?P<value>[\d.]+)`, "", "epoch"), "\rEpoch 1: 5/10 acc 0.3\rEpoch 1: 10/10 acc 0.5\rEpoch 2: 5/10 acc 0.55\rEpoch 2: 10/10 acc 0.6\n", 1, 0.6, ""},
		{of("train_seconds", `(?P<value>\S+)elapsed`, "s", ""), "1.00user 0:01.23elapsed\n", 1, 1.23, ""},
		{rate, "step 1: 100 img/s (x8 = 800)\n", 8, 0, "for each device ((x8 =)"},
		{rate, "0: step 1: 100 img/s\n1: step 1: 100 img/s\n", 2, 100, "only rank 0 is read"}, // both state it
		{of("tokens_per_second", `satz: (?P<value>\S+)`, "tokens/s", ""), "Durchsatz: 1.234.567 tok/s\n", 1, 0, "write it with a decimal point and without separators"},
		{took, "took PT1H2M3S\n", 1, 3723, ""},
		{took, "took 1w2d\n", 1, 777600, ""}, // 9 days
		{took, "took 1h:02m\n", 1, 3720, ""},
		{took, "took 2w\n", 1, 1209600, ""},
		{took, "took 2foo\n", 1, 0, `"foo" after the number in "took 2foo" is not a known unit`},
		{of("train_seconds", `PT\d+H(?P<value>\d+)M`, "min", ""), "took PT1H2M3S\n", 1, 0, `"2" is only part of a number`},
		{of("train_seconds", `took \d+h(?P<value>\d+)`, "min", ""), "took 1h02m\n", 1, 0, `"02" is only part of a number`},
		// b may mean bits; the study decides if it names one of the two.
		{bw, "bw 80 gbps\n", 1, 80e9, "may be in bits or in bytes: it is read in GB/s"},
		{bw, "bw_gbps: 80\n", 1, 80e9, "may be in bits or in bytes"},
		{bw, "bw 8000 mb/s\n", 1, 0, `write unit = "Mbit/s" or unit = "MB/s"`},
		{bw, "bw 80 gbit/s\n", 1, 10e9, ""},
		{bw, "bw_gib_per_sec: 10\n", 1, 10737418240, "read in gib_per_sec"}, // 10 × 1024³
		// MB is 2^20 bytes in perftest, Kafka and old sysbench; kbytes are 1024 in time. 11520 × 2^20, 2048000 × 1024.
		{of("own_bw", `65536 +5000 +\S+ +(?P<value>[\d.]+)`, "MB/s", ""), " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      5000             11521.22            11520.00            0.184320\n", 1, 12079595520, "read in MiB/s (perftest writes MB/sec)"},
		{of("own_rss", `size \(kbytes\): (?P<value>\d+)`, "GiB", ""), "\tMaximum resident set size (kbytes): 2048000\n", 1, 2097152000, "read in KiB"},
		{of("own_bw", `\((?P<value>[\d.]+) MB/sec`, "B/s", ""), "50 records sent, 9999.8 records/sec (9.5 MB/sec), 12.3 ms avg latency\n", 1, 9961472, ""},
		{of("own_bw", `\((?P<value>[\d.]+)Mb/sec`, "B/s", ""), "Read 0b  Written 4Gb  Total transferred 4Gb  (91.5Mb/sec)\n", 1, 95944704, ""},
		// The time of several steps, or of one.
		{window, "[100 steps in 12.5 s]\n", 1, 0, `"12.5" may be the time of several steps`},
		{window, "Time per 100 iterations: 12.5 s\n", 1, 0, "of several steps"},
		{window, "time (10 iters): 12.5 s\n", 1, 0, "of several steps"},
		{window, "iters 100-200 12.5 s\n", 1, 0, "of several steps"},
		{window, "steps 1-100 | 12.5 s\n", 1, 0, "of several steps"},
		{window, "avg over 20 batches = 0.25 s\n", 1, 0.25, ""},
		{window, "100 steps, step time 0.25 s\n", 1, 0.25, ""},
		{window, "iters 100-200 0.25 s/iter\n", 1, 0.25, ""},
		{window, "Step 10/1000 took 0.25 s\n", 1, 0.25, ""},
		{of("step_seconds", `\((?P<value>[\d.]+)`, "s", "step"), "loss = 2.1, step = 100 (25.012 sec)\n", 1, 0, "of several steps"},
		{window, "[2024-05-01 10:00:00] step 100 25 s\n[2024-05-01 10:00:25] step 200 25 s\n[2024-05-01 10:00:50] step 300 25 s\n[2024-05-01 10:01:15] step 400 25 s\n", 1, 0, "the time of the 100 steps between two lines"},
		{window, "[2024-05-01 10:00:00] step 1 25 s\n[2024-05-01 10:00:25] step 2 25 s\n[2024-05-01 10:00:50] step 3 25 s\n[2024-05-01 10:01:15] step 4 25 s\n", 1, 25, ""},
		{window, "[2024-05-01 10:00:00] step 100 0.25 s\n[2024-05-01 10:00:25] step 200 0.25 s\n[2024-05-01 10:00:50] step 300 0.25 s\n[2024-05-01 10:01:15] step 400 0.25 s\n", 1, 0.25, ""},
		{of("throughput", `\((?P<value>[\d.]+) iter/s`, "it/s", ""), "Iteration 100 (4 iter/s, 25s/100 iters), loss = 2.1\n", 1, 256, ""}, // 4 × 64
		{of("step_seconds", `batch_cost: (?P<value>[\d.]+)`, "ms", ""), "avg_batch_cost: 0.25 sec, ips: 128.0 samples/sec\n", 1, 0.25, ""},
		// Ranks that only their hosts' names tell apart: 0.715, 0.716, … of the same steps.
		{of("throughput", `\d: (?P<value>[\d.]+) img/s`, "img/s", "step"), "n00: step 1: 10 img/s\nn01: step 1: 20 img/s\nn00: step 2: 10 img/s\nn01: step 2: 20 img/s\n", 2, 15, "each step has 2 values of throughput, which differ"},
		// -1 stands for a rate that is not known. The median of 100 and 101.
		{any, steps("1 -1", "2 100", "3 101"), 1, 100.5, "1 of 3 values of throughput are negative (line 1"},
		{of("own_lat", `p99=(?P<value>[\d.]+)`, "s", ""), "lat (ms): p50=3.2 p99=7.2\n", 1, 0.0072, "read in ms"},
		{of("tokens_per_second", `\| tok/s (?P<value>\d+)`, "tokens/s", ""), "tok/s/gpu 5000 | tok/s 40000\n", 8, 40000, ""}, // 5000 is no rank
		{of("own_rate", `(?P<value>[\d.]+) [kM]atom-step/s`, "Matom-step/s", ""), "81.001 timesteps/s, 950.2 katom-step/s\n", 1, 0.9502, ""},
		{of("step_seconds", ` (?P<value>\d+)ms/step`, "ms", "epoch"), "9/9 3s 2s/step\n9/9 3s 900ms/step\n9/9 3s 800ms/step\n", 1, 0.9, "1 of 3 lines have step_seconds in s/step"},
		{took, "took 90m\n", 1, 0, `if it is, write unit = "min"`},
		{of("train_seconds", `took (?P<value>\S+)`, "min", ""), "took 90m\n", 1, 5400, ""},
		{of("train_seconds", `took (?P<value>\d+)m`, "min", ""), "took 90m\n", 1, 5400, ""},
		// vegeta writes nanoseconds, in one line or several.
		{of("own_p99", `"99th": ?(?P<value>\d+)`, "ms", ""), `{"latencies":{"mean":2371194,"99th":3530000},"bytes_in":{"total":1}}` + "\n", 1, 0, `write unit = "ns"`},
		{of("own_p99", `"99th": ?(?P<value>\d+)`, "", ""), "{\n  \"latencies\": {\n    \"99th\": 3530000,\n    \"max\": 3660505\n  }\n}\n", 1, 0, `write unit = "ns"`},
		{of("own_p99", `"99th": ?(?P<value>\d+)`, "ns", ""), "{\n  \"latencies\": {\n    \"99th\": 3530000,\n    \"max\": 3660505\n  }\n}\n", 1, 0.00353, ""},
		// Units at the head of a table, in the name of an object, and in a field of the same name.
		{of("own_step", `^test_step +\S+ \S+ +\S+ \S+ +(?P<value>[\d.]+)`, "s", ""), pytest, 1, 0.0129, "read in ms"},
		{of("own_lat", `"mean" : (?P<value>[\d.]+)`, "s", ""), fio, 1, 0.00025, "read in ns"},
		{of("own_lat", `"mean": (?P<value>[\d.]+)`, "s", ""), `{"lat_us": {"mean": 250.0}}` + "\n", 1, 0.00025, "read in us"},
		{of("own_bw", `"bw" : (?P<value>\d+)`, "MB/s", ""), fio, 1, 0, "bw is 123456 here, and bw_bytes is 126418944"},
		{of("own_bw", `"bw" : (?P<value>\d+)`, "KiB/s", ""), fio, 1, 126418944, ""}, // 123456 × 1024
		{of("own_p95", `95th percentile: +(?P<value>[\d.]+)`, "s", ""), "Latency (ms):\n         min:                   1.23\n         95th percentile:      12.08\n", 1, 0.01208, "read in ms"},
		{of("own_time", `total time: +(?P<value>[\d.]+)`, "s", ""), "Latency (ms):\n    min:  1.23\ntotal time: 12.08\n", 1, 12.08, ""},
		{of("own_util", `^(?P<value>\d+), `, "fraction", ""), "utilization.gpu [%], memory.used [MiB], power.draw [W]\n98, 40537, 350.5\n", 1, 0.98, "read in utilization.gpu [%]"},
		// Units in names that have no separators, in an array's object, after a comma, and above all lines.
		{of("own_lat", `"latencyMs": (?P<value>[\d.]+)`, "s", ""), `{"latencyMs": 12.5}` + "\n", 1, 0.0125, "read in Ms"},
		{of("own_lat", `"latencyMin": (?P<value>[\d.]+)`, "ms", ""), `{"latencyMin": 1.5, "latencyMax": 2}` + "\n", 1, 0.0015, ""},
		{of("own_bw", `"throughputMBps": (?P<value>[\d.]+)`, "GB/s", ""), `{"throughputMBps": 1200}` + "\n", 1, 1.2e9, "read in MBps"},
		{of("own_mem", `"maxMemoryMB": (?P<value>[\d.]+)`, "GiB", ""), `{"maxMemoryMB": 1200}` + "\n", 1, 1.2e9, "read in MB"},
		{of("own_step", `"samples": \[(?P<value>\d+)`, "s", ""), `{"name": "step", "unit": "ms", "samples": [250, 251]}` + "\n", 1, 0.25, ""},
		{of("own_step", `dur=(?P<value>[\d.]+)`, "s", ""), "step=1 dur=250, in ms\n", 1, 0.25, ""},
		{of("own_step", `dur=(?P<value>[\d.]+)`, "s", ""), "all times in ms\nstep=1 dur=250\n", 1, 0.25, "read in ms"},
		{of("tokens_per_second", `GPUs: (?P<value>[\d.]+)`, "tokens/s", ""), "Throughput in thousands of tokens per second\n8 GPUs: 12.5\n", 1, 12500, "read in thousands tokens per second"},
		{of("throughput", `sgs: (?P<value>[\d.]+)`, "samples/s", ""), "effective_sgs: 10.5\n", 8, 0, "for each device"},
		{of("tokens_per_second", `: (?P<value>[\d.]+)$`, "tokens/s", ""), "tokens/s (x1000): 12\n", 1, 12000, "read in tokens/s (x1000)"},
		{of("tokens_per_second", `: (?P<value>[\d.]+)$`, "tokens/s", ""), "throughput (1000 tokens/s): 12\n", 1, 0, "is for 1000 tokens"},
		{of("throughput", `(?P<value>\d+) img`, "img/s", ""), "gpu_throughput=150 img/s\n", 8, 0, "unclear whether gpu_throughput"},
		{of("throughput", `(?P<value>\d+) img`, "img/s", ""), "worker throughput 150 img/s\n", 8, 0, "of one device or of all"},
		{of("throughput", `(?P<value>\d+) img`, "img/s", ""), "8 GPU throughput: 1200 img/s\n", 8, 1200, ""},
		{of("throughput", `(?P<value>\d+) img`, "img/s", ""), "total GPU throughput: 1200 img/s\n", 8, 1200, ""},
		{of("throughput", `global: (?P<value>\d+)`, "img/s", ""), "local: 150 img/s global: 1200 img/s\n", 8, 1200, ""},
		{of("throughput", `local: (?P<value>\d+)`, "img/s", ""), "local: 150 img/s global: 1200 img/s\n", 8, 0, "for each device (local)"},
		{of("throughput", `: (?P<value>\d+)`, "img/s", ""), "mean throughput over 8 GPUs: 150 img/s\n", 8, 0, "for each device"},
		// Uncertainties.
		{of("throughput", `\((?P<value>[\d.]+)`, "img/s", ""), "(123.4 ± 5.6) kimg/s\n", 1, 123400, ""},
		{of("throughput", `\$(?P<value>[\d.]+)`, "img/s", ""), "rate $123.4 \\pm 5.6$ kimg/s\n", 1, 123400, ""},
		{of("accuracy", `\|(?P<value>[\d.]+)\|$`, "", "epoch"), "|0.5432|±  |0.0050|\n", 1, 0, "says that it is a spread"},
		{of("throughput", `: (?P<value>[\d.]+)`, "samples/s", ""), "samples/s (mean over 8 ranks): 100\n", 8, 0, "for each device (mean over 8 ranks)"},
		{of("tokens_per_second", `^(?P<value>[\d.]+)`, "tokens/s", ""), "1.2B tokens/day\n", 1, 1.2e9 / 86400, ""},
		{of("accuracy", `acc% (?P<value>[\d.]+)`, "%", "epoch"), "acc% 0.71\n", 1, 0.0071, `write unit = "fraction"`},
		{of("accuracy", `acc% (?P<value>[\d.]+)`, "%", "epoch"), "acc% 71\n", 1, 0.71, ""},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.log), Options{Workers: c.workers, WorkerBatch: 64})
		said, got := strings.Join(r.Notes, "\n"), 0.0
		if err != nil {
			said = err.Error()
		}
		for f := range r.Findings() {
			if f.Event.Figure != nil {
				got = f.Event.Figure.Value
			} else if f.Event.Evaluation != nil {
				got = f.Event.Evaluation.Accuracy
			}
		}
		if strings.Contains(said, "only rank 0 states") {
			t.Errorf("%q: %q, and both ranks do", c.log, said)
		}
		if math.Abs(got-c.want) > 1e-9*c.want || !strings.Contains(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%q: %g, %q; want %g, %q", c.log, got, said, c.want, c.says)
		}
	}
}

// A number is in the unit that its name states, wherever in the name it is: 250 ms.
func TestUnitsInNames(t *testing.T) {
	names := []string{"ms_per_step=", "ms/step: ", "latency-ms: ", "latency.ms=", "step_time(ms)=", "step_time[ms]=", "step_time <ms> ", "step time, ms: ", "step time in ms: ",
		"Step Time (milliseconds) ", "step_time_milliseconds ", "stepTimeMs=", "STEP_TIME_MS=", "step-time-ms ", "msPerStep: ", "time (in milliseconds): ", "ms: ", "step_time/ms ",
		"step time (ms/it): ", "step time/ms = ", `<step_time unit="ms">`, "data 0.1 s, step_ms: ", "loss 2; ms: "}
	for _, name := range names {
		e, err := Patterns([]Pattern{{Name: "step_seconds", Pattern: `(?P<value>250)`, Unit: "s"}})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := e.Extract(strings.NewReader(name+"250\n"), Options{}); err != nil || firstValue(r) != 0.25 || !strings.Contains(strings.Join(r.Notes, " "), "the unit in its name") {
			t.Errorf("%q: %g, %v, %v", name, firstValue(r), r.Notes, err)
		}
	}
	for _, name := range []string{"data 12 ms, step: ", "data 12 ms step: ", "it took us ", "rooms: ", "12 ms; step: "} { // the number is in s
		e, _ := Patterns([]Pattern{{Name: "step_seconds", Pattern: `(?P<value>250)`, Unit: "s"}})
		if r, err := e.Extract(strings.NewReader(name+"250\n"), Options{}); err != nil || firstValue(r) != 250 || r.Notes != nil {
			t.Errorf("%q: %g, %v, %v", name, firstValue(r), r.Notes, err)
		}
	}
}

// firstValue returns the value of the first figure; 0 without one.
func firstValue(c Content) float64 {
	for f := range c.Findings() {
		if f.Event.Figure != nil {
			return f.Event.Figure.Value
		}
	}
	return 0
}

// Tables as people write them: units in a second line or in cells, merged headers, other markup.
func TestWrittenTables(t *testing.T) {
	rate := []string{"workers=gpus", "throughput=img/s"}
	time := []string{"workers=gpus", "train_seconds=time"}
	for _, c := range []struct {
		csv  string
		maps []string
		want []string
		why  string
	}{
		{"gpus,throughput\n,kimg/s\n1,1.0\n2,1.9\n", []string{"workers=gpus", "throughput=throughput"}, nil, `t.csv:2: this line has the units of the columns: delete it, and write the units into the names, such as "throughput (kimg/s)"`},
		{"gpus,Rate,Rate\n1,100,50\n", []string{"workers=gpus", "throughput=Rate"}, nil, "a header of two lines, or of merged cells, is not read"},
		{"| `gpus` | **img/s** |\n|---:|---:|\n| 1 | **412** |\n| 2 | 800 |\n", rate, []string{"throughput 412", "throughput 800"}, ""},
		{"gpus & img/s \\\\\n\\hline\n1 & 412 \\\\\n", rate, nil, "it is a table in LaTeX: replace & by commas"},
		{"gpus,img/s\n1,1.2k\n2,2.3k\n", rate, []string{"throughput 1200", "throughput 2300"}, ""},
		{"gpus,img/s\n1,1.2 kimg/s\n2,2.3 kimg/s\n", rate, nil, "in another unit than the column"},
		{"gpus,img/s\n1,Feb-01\n2,2300\n", rate, nil, "write a number in the column's unit"},
		{"gpus,img/s\n1,100\n2,—\n", rate, nil, "t.csv:3: no figure in any of the mapped columns: delete the row"},
		{"┌──────┬───────┐\n│ gpus │ img/s │\n├──────┼───────┤\n│ 1    │ 412   │\n│ 2    │ 800   │\n└──────┴───────┘\n", rate, []string{"throughput 412", "throughput 800"}, ""},
		{"ResNet-50\ngpus,img/s\n1,412\n", rate, nil, "delete lines above the names of the columns"},
		{"gpus,global_batch_size\n1,32\n2,64\n", []string{"workers=gpus", "throughput=global_batch_size"}, nil, "is a setting, judging by its name"},
		{"gpus,ms/img\n1,10\n2,5.2\n", []string{"workers=gpus", "throughput=ms/img"}, nil, "the inverse of samples/s: add a column with 1 / ms/img"},
		{"gpus,Throughput (KT/s)\n1,1.5\n2,2.9\n", []string{"workers=gpus", "tokens_per_second=Throughput (KT/s)"}, []string{"tokens_per_second 1500", "tokens_per_second 2900"}, ""},
		{"gpus,time (hh:mm:ss)\n1,0.0417\n2,0.0208\n", []string{"workers=gpus", "train_seconds=time (hh:mm:ss)"}, nil, "spreadsheets store a part of a day"},
		{"gpus,phase,img/s\n1,warmup,50\n1,train,100\n2,warmup,90\n2,train,190\n", rate, nil, "write --label phase=phase"},
		{"gpus,time_min,time_max\n1,90,100\n2,48,52\n", []string{"workers=gpus", "train_seconds=time_min"}, nil, "has the smallest times, since there is a column \"time_max\""},
		{"gpus,time_min\n1,90\n2,48\n", []string{"workers=gpus", "train_seconds=time_min"}, []string{"train_seconds 5400", "train_seconds 2880"}, ""},
		{"gpus,timeMs\n1,90\n2,48\n", []string{"workers=gpus", "step_seconds=timeMs"}, []string{"step_seconds 0.09", "step_seconds 0.048"}, ""},
		{"gpus,Время (мин)\n1,60\n2,31\n", []string{"workers=gpus", "train_seconds=Время (мин)"}, []string{"train_seconds 3600", "train_seconds 1860"}, ""},
		{"gpus,Mtokens\n1,100\n2,190\n", []string{"workers=gpus", "tokens_per_second=Mtokens"}, nil, "is a number of things"},
		{"gpus,time\n1,1h02m\n2,PT32M\n", time, []string{"train_seconds 3720", "train_seconds 1920"}, ""},
		{"gpus,time\n1,90s\n2,0.75 min\n", time, []string{"train_seconds 90", "train_seconds 45"}, ""},
		{"gpus,time\n1,62m\n2,32m\n", time, nil, "for minutes write 62min"},
		{"gpus,\"img/s, thousands\"\n1,1.0\n2,1.9\n", []string{"workers=gpus", "throughput=img/s, thousands"}, []string{"throughput 1000", "throughput 1900"}, ""},
		{"gpus,img/s,top1 %\n1,100,0.76\n2,190,0.75\n", append(rate, "accuracy=top1 %"), nil, "write --map 'accuracy=top1 %:fraction', or --map 'accuracy=top1 %:%' if it is less than 1 %"},
		{"gpus,epoch,img/s so far\n1,1,50\n1,2,80\n1,3,90\n", []string{"workers=gpus", "epoch=epoch", "throughput=img/s so far"}, nil, "is a running mean, judging by its name, and its rows are epochs"},
	} {
		runs, _, err := readRuns(c.csv, Options{Scaling: "strong"}, c.maps...)
		checkRuns(t, c.csv, runs, c.want, err, c.why)
	}
}
