package extract

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// The text around a number says what it is; values are worked out by hand for 4 workers with 64
// samples each, so 256 samples a step.
func TestTextAroundANumber(t *testing.T) {
	for _, c := range []struct {
		name, unit, pattern, log string
		want                     float64
		why, note                string
	}{
		{"throughput", "s/step", `: (?P<value>[\d.]+)`, "step 100: 12.3 s/100 steps\n", 0, `"12.3" is for 100 steps`, ""},
		{"throughput", "s/step", `: (?P<value>[\d.]+)`, "step 9: 12.3 s for 100 steps\n", 0, `"12.3" is for 100 steps`, ""},
		{"throughput", "img/s", `: (?P<value>[\d.]+)`, "step 9: 640 img/s for 100 steps\n", 640, "", ""},
		{"throughput", "s/step", `it=(?P<value>[\d.]+)`, "step 9 sec_per_100_it=12.3\n", 0, `"12.3" is for 100 it`, ""},
		{"throughput", "s/step", `time: (?P<value>[\d.]+)`, "step 100 step_time: 0.5\n", 512, "", ""},
		{"throughput", "s/step", `ms: (?P<value>[\d.]+)`, "step_time_ms: 500\n", 512, "", "throughput is read in ms, the unit in its name in the log, not in s/step"},
		{"throughput", "ms/step", `ms: (?P<value>[\d.]+)`, "step_time_ms: 500\n", 512, "", ""},
		{"throughput", "ms/step", `time: (?P<value>[\d.]+)`, "step_time: 500\n", 512, "", ""},
		{"throughput", "img/s", `± (?P<value>[\d.]+)`, "img/s: 640.2 ± 5.1\n", 0, `the text before "5.1" says that it is a spread`, ""},
		{"throughput", "img/s", `- (?P<value>[\d.]+)`, "images/sec: 640.2 +/- 5.1 (jitter = 0.3)\n", 0, "is a spread", ""},
		{"throughput", "img/s", `: (?P<value>[\d.]+)`, "img/s: 640.2 ± 5.1\n", 640.2, "", ""},
		{"throughput_std", "img/s", `± (?P<value>[\d.]+)`, "img/s: 640.2 ± 5.1\n", 5.1, "", ""},
		{"throughput", "img/s", `std: (?P<value>[\d.]+)`, "img/s std: 5.1\n", 0, "is a spread", ""},
		{"throughput", "img/s", `speedup: (?P<value>[\d.]+)`, "speedup: 3.8\n", 0, "is a ratio to another run", ""},
		{"throughput", "img/s", `speed: (?P<value>[\d.]+)`, "speedup: 3.8 speed: 640\n", 640, "", ""},
		{"step", "s", `: (?P<value>[-\d.]+)`, "log10(step_time): -0.45\n", 0, "is a logarithm", ""},
		{"accuracy", "%", `@1 (?P<value>[\d.]+)`, "err@1 23.9\n", 0, "is a loss or an error", ""},
		{"accuracy", "", `loss (?P<value>[\d.]+)`, "val_loss 0.3\n", 0, "is a loss or an error", ""},
		{"accuracy", "%", `acc (?P<value>[\d.]+)`, "loss 0.3 acc 75\n", 0.75, "", ""},
		{"wait", "s", `<(?P<value>[\d.]+)`, "latency: <1 ms\n", 0.001, "", `"<" comes before a number of wait (line 1)`},
		{"wait", "s", `>(?P<value>[\d.]+)`, "<t>2</t>\n", 2, "", ""},
		{"wait", "s", `> (?P<value>[\d.]+)`, "latency -> 2 s\n", 2, "", ""},
		{"took", "s", `:(?P<value>\d+:\d+)$`, "time 2:03:04\n", 0, `"03:04" is only part of a length of time`, ""},
		{"bw", "MB/s", `r (?P<value>[\d.]+)`, "r 900 MiB/s\n", 943718400, "", ""}, // 900 · 1,048,576
		{"bw", "GiB/s", `r (?P<value>[\d.]+)`, "r 2 GB/s\n", 2147483648, "", ""},  // the user says that a GB is a GiB
		{"throughput", "it/s", `: (?P<value>[\d.]+)`, "micro_batches/s: 8.0\n", 2048, "", "the log counts micro-batches for throughput"},
		{"throughput", "img/s", `: (?P<value>[\d,.]+)`, "speed: 1,234.5\n", 1234.5, "", ""},
		{"throughput", "img/s", `: (?P<value>[\d,.]+)`, "speed: 1,234\n", 1234, "", "commas in numbers like 1,234 are read as thousands separators"},
		{"step_seconds", "s", `CPUs (?P<value>[\d.]+)`, "4 CPUs 0.05 s/step 0.29 days/ns\n", 0.05, "", ""},
	} {
		e, err := Patterns([]Pattern{{Name: c.name, Pattern: c.pattern, Unit: c.unit}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.log), Options{File: "log", Workers: 4, WorkerBatch: 64})
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%q: %v; want %q", c.log, err, c.why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.log, err)
			continue
		}
		got := 0.0
		for f := range r.Findings() {
			switch {
			case f.Event.Figure != nil:
				got = f.Event.Figure.Value
			case f.Event.Evaluation != nil:
				got = f.Event.Evaluation.Accuracy
			}
		}
		if math.Abs(got-c.want) > 1e-9*c.want || c.note == "" && len(r.Notes) > 0 || !strings.Contains(strings.Join(r.Notes, "\n"), c.note) {
			t.Errorf("%q: %g, %q; want %g, %q", c.log, got, r.Notes, c.want, c.note)
		}
	}
}

// Ranks without a prefix print different values for each step. Values that differ little are of ranks if
// there are as many as workers, which are 2 here.
func TestUnlabelledRanks(t *testing.T) {
	for _, c := range []struct {
		log  string
		said bool
	}{
		{"step 1: 100\nstep 1: 140\nstep 2: 101\nstep 2: 139\n", true},
		{"10:00:01 step 1: 100\n10:00:02 step 1: 140\n10:01:01 step 2: 101\n10:01:02 step 2: 139\n", true},
		{"step 1: 100\nstep 1: 119\nstep 2: 101\nstep 2: 118\n", true},
		{"step 1: 100\nstep 1: 100\nstep 2: 101\nstep 2: 101\n", false},
		{"step 1: total 100\nstep 1: total 119\nstep 2: total 101\nstep 2: total 118\n", false},
		{"step 1: 100\nstep 1: 119\nstep 1: 110\nstep 2: 101\nstep 2: 118\nstep 2: 110\n", false},
		{"step 1: 100\nstep 1: 140\nstep 2: 101\nstep 3: 139\n", false},
		{"step 1: 100\nstep 2: 140\nstep 3: 101\nstep 4: 139\n", false},
		{"step: 100\nstep: 140\nstep: 101\nstep: 139\n", false},
	} {
		e, err := Patterns([]Pattern{{Name: "throughput", Pattern: `: (?:total )?(?P<value>\d+)$`, Unit: "img/s", Per: "step"}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.log), Options{File: "log", Workers: 2})
		said := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "each step has 2 values of throughput") })
		if err != nil || said != c.said {
			t.Errorf("%q: %q, %v", c.log, r.Notes, err)
		}
	}
}

// A log in UTF-16 has no line of any format, and the error says why.
func TestLogInUTF16(t *testing.T) {
	for _, e := range []Extractor{megatron, deepSpeed} {
		if _, err := e.Extract(strings.NewReader("\xff\xfeh\x00i\x00\n\x00"), Options{File: "log"}); err == nil || !strings.Contains(err.Error(), "log: encoded in UTF-16; save it in UTF-8") {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}
