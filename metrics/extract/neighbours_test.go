package extract

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// Text around a number that changes its value is taken into account or causes an error.
// Values by hand.
func TestPatternNeighbours(t *testing.T) {
	rate := Pattern{Name: "tokens_per_second", Pattern: `tput:? (?P<value>[\d.]+)`, Unit: "tokens/s", Per: "step"}
	images := Pattern{Name: "throughput", Pattern: `(?P<value>[\d.]+) img`, Unit: "img/s", Per: "step"}
	took := Pattern{Name: "train_seconds", Pattern: `took (?P<value>[\d.]+)`, Unit: "s"}
	step := Pattern{Name: "throughput", Pattern: `(?:time:|took) (?P<value>[\d.]+)`, Unit: "s/step", Per: "step"}
	with := func(p Pattern, text string) Pattern { p.Pattern = text; return p }
	ofRank := func(p Pattern) Pattern { p.Of = "rank"; return p }
	for _, c := range []struct {
		p    Pattern
		log  string
		want float64 // 0: an error
		says string
	}{
		{rate, "tput 12\u202f345.6", 0, "thousands separators"},
		{rate, "tput 12'345", 0, "thousands separators"},
		{rate, "tput 12_345", 0, "thousands separators"},
		{rate, "tput 12 345.6", 12, "a space and three digits"},
		{rate, "tput 12 3456", 12, ""},
		{rate, "tput 1.2 × 10³", 0, "power of ten"},
		{rate, "tput 5-7 tok/s", 0, "one end of a range"},
		{rate, "tput 5 to 7 tok/s", 0, "one end of a range"},
		{rate, "tput 1/2", 0, "part of a fraction"},
		{with(rate, `tput (?P<value>\d+)/2`), "tput 1/2", 1, ""}, // the expression allows it
		{rate, "tput 5 -3.2", 5, ""},
		{rate, "tput 1200 ± 30K", 1.2e6, ""},
		{rate, "tput: 100 tokens/s (per GPU)", 0, `set of = "rank"`},
		{with(rate, `put: (?P<value>[\d.]+)`), "per-GPU tput: 100 tokens/s", 0, `set of = "rank"`},
		{rate, "batch per GPU 32, tput 100 tokens/s", 100, ""},
		{rate, "tput 500 tokens/s/node", 0, "for each node"},
		{with(rate, `=(?P<value>[\d.]+)`), "tput_ktok_s=1.2", 1200, ""},
		{with(rate, `= (?P<value>[\d.]+)`), "tput [M tokens/s] = 1.2", 1.2e6, ""},
		{ofRank(with(images, `: (?P<value>[\d.]+)`)), "Total img/sec on 2 GPU(s): 162.4", 0, `set of = "run"`},
		{Pattern{Name: "mem", Pattern: `: (?P<value>\d+)`, Unit: "B"}, "mem_mb: 12500", 1.25e10, "in MB, the unit in its name"},
		{rate, "tput: 100 tps", 0, `set of = "rank" or of = "run"`},
		{with(rate, `tps: (?P<value>[\d.]+)`), "tps: 100", 0, `set of = "rank" or of = "run"`},
		{with(rate, `tps: (?P<value>[\d.]+)`), "total tps: 100", 100, ""},
		{ofRank(with(rate, `tps: (?P<value>[\d.]+)`)), "tps: 100", 200, ""}, // 2 workers
		{with(rate, `ips: (?P<value>[\d.]+)`), "ips: 100 tokens/s", 0, `set of = "rank" or of = "run"`},
		{with(rate, `user\): (?P<value>[\d.]+)`), "tput (tokens/sec/user): 2.05", 0, "the rate of one user"},
		{rate, "tput: 5.2 [min 4.1, max 5.9] ktok/s", 5200, ""},
		{rate, "tput: 5.2 (in thousands of tokens per second)", 0, "in thousands or more"},
		{with(rate, `: [\d.]+/(?P<value>[\d.]+)/`), "tput min/avg/max: 4.1/5.2/5.9 ktok/s", 5200, ""},
		{rate, "tput: 5.2, 5.9, 6.1 ktok/s", 5200, ""},
		{rate, "tput: 5.2, 5.9, 6.1 ms", 5.2, ""}, // the unit of something else
		{with(rate, `put: (?P<value>[\d.]+)`), "local tput: 5.2 tokens/s", 0, "for each device (local)"},
		{with(rate, `put: (?P<value>[\d.]+)`), "single-GPU tput: 5.2 tokens/s", 0, "for each device (single-GPU)"},
		{with(rate, `\): (?P<value>[\d.]+)`), "tput (1 GPU): 5.2 tokens/s", 0, "for each device (1 GPU)"},
		{with(rate, `\): (?P<value>[\d.]+)`), "tput (2 GPUs): 5.2 tokens/s", 5.2, ""},
		{images, "5.2 img/s x 2 GPUs", 0, "for each device (x 2 GPU)"},
		{images, "10 img/s rank 0\n30 img/s rank 1", 0, `write of = "rank"`},
		{images, "10 img/s gpu 97%\n30 img/s gpu 98%", 20, ""}, // no ranks
		{images, "[GPU0] 10 img/s\n[GPU1] 30 img/s", 0, `write of = "rank"`},
		{ofRank(images), "[GPU0] 10 img/s\n[GPU1] 30 img/s", 40, ""},
		{ofRank(images), "rank 0: 10 img/s\nrank 1: 30 img/s", 40, ""},
		{images, "10 img/s\n10 img/s\n100 img/s\n100 img/s", 55, "several trainings"},
		{with(images, `(?P<value>\d+) img`), "100 img in 25 s", 0, "a count over a time"},
		{took, "took 3 minutes 20 seconds", 200, ""},
		{took, "took 1 h, 2 min and 3 s", 3723, ""},
		{with(took, `(?P<value>\d+:\d+:\d+)`), "took 1 day, 1:02:03", 0, "match the days and hours"},
		{with(took, `(?P<value>\d+:\d+:\d+)`), "took 2-01:02:03", 0, "match the days and hours"},
		{step, "time: 250 ms", 64, ""}, // 2 workers of 8
		{step, "10 steps took 2.5 s", 0, "the time of several steps"},
		{with(step, `(?P<value>[\d.]+)ms/step`), "- 12s 250ms/step\n- 99s 2s/step\n- 99s 2s/step", 8, ""},
	} {
		if strings.Contains(c.p.Pattern, "ms/step") {
			c.p.Unit = "ms/step"
		}
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		res, err := e.Extract(strings.NewReader(c.log+"\n"), Options{File: "x.log", Workers: 2, WorkerBatch: 8})
		if c.want == 0 {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q: %v, want %q", c.log, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.log, err)
			continue
		}
		var f *metrics.Figure
		for finding := range res.Findings() {
			f = finding.Event.Figure
		}
		if math.Abs(f.Value-c.want) > 1e-9*c.want || !strings.Contains(strings.Join(res.Notes, "; "), c.says) {
			t.Errorf("%q: %v (%q), want %v and %q", c.log, f.Value, res.Notes, c.want, c.says)
		}
	}
}

// A field of its own may state the unit of a number. Values by hand.
func TestPatternUnitInAField(t *testing.T) {
	tput := Pattern{Name: "tokens_per_second", Pattern: `"throughput": \{?(?:"value": )?(?P<value>[\d.]+)`, Unit: "tokens/s", Per: "step"}
	value := Pattern{Name: "tokens_per_second", Pattern: `"?value"?[:=] ?(?P<value>[\d.]+)`, Unit: "tokens/s", Per: "step"}
	took := Pattern{Name: "train_seconds", Pattern: `value=(?P<value>[\d.]+)`, Unit: "s"}
	for _, c := range []struct {
		p    Pattern
		log  string
		want float64 // 0: an error
		says string
	}{
		{tput, `{"step": 1, "throughput": 12.5, "throughput_unit": "ktok/s"}`, 12_500, ""},
		{tput, `{"throughput_unit": "ktok/s", "step": 1, "throughput": 12.5}`, 12_500, ""},
		{tput, `{"throughput": 12.5, "units": {"throughput": "Mtok/min", "lat": "ms"}}`, 12.5e6 / 60, ""},
		{tput, `{"throughput": {"value": 12.5, "units": "ktok/s"}, "lat": {"value": 3, "units": "ms"}}`, 12_500, ""},
		{tput, `{"throughput": 12.5, "lat": {"value": 3, "unit": "ms"}}`, 12.5, ""},
		{tput, `{"throughput": 12.5, "unit": "node-3"}`, 12.5, ""}, // no unit of measurement
		{tput, `{"throughput": 12.5, "latency": 3, "latency_unit": "ms"}`, 12.5, ""},
		{tput, `{"throughput": 12.5, "x": 3, "y": 1, "unit": "ktok/s"}`, 0, `the line states the unit "ktok/s"`},
		{tput, `{"throughput": 12.5, "throughput_unit": "tokens/s/GPU"}`, 0, `set of = "rank"`},
		{tput, `{"throughput": 12.5, "throughput_unit": "ms"}`, 0, "in ms"},
		{value, `{"metric": "tps", "value": 12.5, "step": 3, "unit": "ktok/s"}`, 12_500, ""},
		{value, "{\n  \"name\": \"tps\",\n  \"value\": 12.5,\n  \"unit\": \"ktok/s\"\n}", 12_500, ""},
		{value, "[\n  {\n    \"unit\": \"ktok/s\",\n    \"value\": 12.5\n  },\n  {\n    \"unit\": \"ms\",\n    \"lat\": 3\n  }\n]", 12_500, ""},
		{took, "name=train value=12.5 unit=min", 750, ""},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		res, err := e.Extract(strings.NewReader(c.log+"\n"), Options{File: "x.log", Workers: 2})
		if c.want == 0 {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q: %v, want %q", c.log, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.log, err)
			continue
		}
		for finding := range res.Findings() {
			if f := finding.Event.Figure; math.Abs(f.Value-c.want) > 1e-9*c.want {
				t.Errorf("%q: %g, want %g", c.log, f.Value, c.want)
			}
		}
	}
}

// The unit may stand at the head of a column or of a list. The texts are those of OSU's benchmarks,
// IOR, HPL, STREAM and fio; the values are by hand.
func TestPatternUnitAtTheHead(t *testing.T) {
	const osu = "# OSU MPI Allreduce Latency Test v7.2\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n4                       2.10              1.90              2.30        1000\n1048576               310.55            300.10            320.70         100\n"
	const ior = "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)\n------    ---------  ----       ----------  ---------- ---------\nwrite     1000.50    1001.1     0.10        1048576    1024.00\n"
	const hpl = "T/V                N    NB     P     Q               Time                 Gflops\n-----------\nWR11C2R4      100000   232     4     4             312.45             2.1338e+03\n"
	const stream = "Function    Best Rate MB/s  Avg time     Min time     Max time\nCopy:          185000.1     0.008700     0.008649     0.008790\nTriad:         172345.6     0.014000     0.013925     0.014100\n"
	const fio = "    clat (usec): min=80, max=9000, avg=302.51, stdev=120.2\n     lat (usec): min=82, max=9001, avg=304.80, stdev=120.4\n"
	const bar = " 1.25G 640: 100%|##| 100/100 [00:25<00:00,  4.00it/s]\n 4.52G 640: 100%|##| 100/100 [01:40<00:00,  2.00s/it]\n"
	for _, c := range []struct {
		log, pattern, unit string
		want               float64
	}{
		{osu, `^1048576 +(?P<value>[\d.]+)`, "s", 310.55e-6},
		{osu, `^1048576 +(?P<value>[\d.]+)`, "us", 310.55e-6},
		{osu, `^1048576 .* (?P<value>\d+)$`, "", 100}, // iterations, without a unit
		{ior, `^write +(?P<value>[\d.]+)`, "B/s", 1000.5 * (1 << 20)},
		{ior, `^write +\S+ +\S+ +(?P<value>[\d.]+)`, "s", 0.1},
		{hpl, `^WR.* (?P<value>\S+)$`, "FLOP/s", 2.1338e12},
		{hpl, `^WR.* (?P<value>\S+) +\S+$`, "s", 312.45},
		{stream, `Triad: +(?P<value>[\d.]+)`, "B/s", 172345.6e6},
		{"# unit: Ktok/s\ntput=5.2\n", `tput=(?P<value>[\d.]+)`, "tokens/s", 5200},
		{"tput (Ktok/s)\n  mean 5.2\n", `mean (?P<value>[\d.]+)`, "tokens/s", 5200},
		{"| model | test | kt/s |\n|--|--|--|\n| 7B | pp512 | 5.5 |\n", `pp512 \| (?P<value>[\d.]+)`, "t/s", 5.5}, // t may be tons
		{fio, ` lat \(usec\): .*avg=(?P<value>[\d.]+)`, "s", 304.8e-6},
		{fio, `clat.*min=(?P<value>[\d.]+)`, "s", 80e-6},
		{bar, `(?P<value>[\d.]+)it/s`, "it/s", (4*8 + 0.5*8) / 2}, // 8 samples a step; the memory of the second line is no rate
	} {
		name := "x"
		if c.unit == "it/s" {
			name = "throughput"
		}
		e, err := Patterns([]Pattern{{Name: name, Pattern: c.pattern, Unit: c.unit, Per: "step", Reduce: "mean"}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := e.Extract(strings.NewReader(c.log), Options{File: "x.log", Workers: 1, WorkerBatch: 8})
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for finding := range res.Findings() {
			if f := finding.Event.Figure; math.Abs(f.Value*scaleOf(f.Unit)-c.want) > 1e-9*c.want {
				t.Errorf("%s in %q: %g %s, want %g", c.pattern, c.unit, f.Value, f.Unit, c.want)
			}
		}
	}
}

// scaleOf returns the factor from a unit to its base unit.
func scaleOf(name string) float64 {
	if u, ok := unitNamed(name); ok {
		return u.scale
	}
	return 1
}

// A line that summarises a training is not an epoch.
func TestPatternSummaryLine(t *testing.T) {
	e, err := Patterns([]Pattern{{Name: "accuracy", Pattern: `acc=(?P<value>[\d.]+)`, Per: "epoch"}})
	if err != nil {
		t.Fatal(err)
	}
	for log, want := range map[string]int{
		"val-acc=0.7\nval-acc=0.888\nDONE best val-acc=0.888\n":      2,
		"val-acc=0.7\nval-acc=0.7\n":                                 2,
		"best=0.7 val-acc=0.7\nbest=0.7 val-acc=0.7\n":               2, // every line contains the word
		"val-acc=0.7\nnew best val-acc=0.8\nval-acc=0.75\nacc=0.8\n": 4,
	} {
		res, err := e.Extract(strings.NewReader(log), Options{File: "x.log"})
		if err != nil || res.Found() != want {
			t.Errorf("%q: %d events (%v), want %d", log, res.Found(), err, want)
		}
	}
}

// An old DeepSpeed that counts micro-batches under another name gives an error with the
// remedy.
func TestOldDeepSpeed(t *testing.T) {
	const log = "[2022-03-11 02:07:58,985] [INFO] [timer.py:189:stop] 0/10, SamplesPerSec=83.45, MemAllocated=0.26GB, MaxMemAllocated=9.02GB\n"
	_, err := deepSpeed.Extract(strings.NewReader(log), Options{File: "x.log"})
	if err == nil || !strings.Contains(err.Error(), "old versions of DeepSpeed count micro-batches") || !strings.Contains(err.Error(), "[[extract]]") {
		t.Error(err)
	}
}
