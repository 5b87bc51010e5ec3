package extract

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// soundLog is a log that is correct and unambiguous. Its values were worked out from the numbers
// that generated it.
type soundLog struct {
	file, format string // format "": patterns; "csv", with mapped columns: a table of runs
	options      Options
	patterns     []Pattern
	want         string
}

var soundLogs = []soundLog{
	{"deepspeed.log", "deepspeed", Options{Workers: 8}, nil, "throughput=10.61"},
	{"megatron.log", "megatron", Options{Workers: 8}, nil, "throughput=16 step_seconds=4"},
	{"nemo.log", "nemo", Options{Workers: 16}, nil, "throughput=21.33333333"},
	{"torchtitan.log", "torchtitan", Options{Workers: 8}, nil, "tokens_per_second=48000"},
	{"lightning.csv", "lightning-csv", Options{Workers: 2}, nil, "throughput=200"},
	{"hf.log", "hf-trainer", Options{Workers: 2}, nil, "throughput=100 train_seconds=300"},
	{"keras.csv", "keras-csvlogger", Options{Workers: 1}, nil, ""},
	{"keras.log", "", Options{Workers: 1, WorkerBatch: 64}, []Pattern{{Name: "throughput", Pattern: `- (?P<value>[\d.]+)ms/step`, Unit: "ms/step", Per: "epoch"}, {Name: "accuracy", Pattern: `val_accuracy: (?P<value>[\d.]+)`, Per: "epoch"}}, "throughput=4266.666667"},
	{"mlperf.log", "mlperf", Options{Workers: 64}, nil, "throughput=150002.5"},
	{"nccl.log", "nccl-tests", Options{Workers: 8}, nil, ""},
	{"fio.log", "", Options{Workers: 1}, []Pattern{{Name: "iops", Pattern: `IOPS=(?P<value>[\d.]+)`}, {Name: "read_bandwidth", Pattern: `BW=(?P<value>[\d.]+)`, Unit: "MiB/s"}, {Name: "mean_latency", Pattern: ` lat \(usec\).*avg=(?P<value>[\d.]+)`, Unit: "us"}}, "iops=61300 mean_latency=0.0005209"},
	{"ior.log", "", Options{Workers: 4}, []Pattern{{Name: "write_bandwidth", Pattern: `^write +(?P<value>[\d.]+)`, Unit: "MiB/s"}, {Name: "max_read", Pattern: `Max Read: +(?P<value>[\d.]+)`, Unit: "MiB/s"}}, "write_bandwidth=2140374303 max_read=5368813978"},
	{"wrk.log", "wrk", Options{}, nil, "requests_per_second=3992"},
	{"hey.log", "hey", Options{At: map[string]float64{"threads": 8}}, nil, "requests_per_second=1990"},
	{"vegeta.txt", "", Options{Workers: 1}, []Pattern{{Name: "answers", Pattern: `^Requests .*, (?P<value>[\d.]+)$`, Unit: "requests/s"}, {Name: "own_p99", Pattern: `^Latencies +\[.*\] +(?:[\d.a-zµ]+, ){5}(?P<value>[\d.]+)`, Unit: "s"}}, "answers=49.99 own_p99=0.0904"},
	{"k6.txt", "", Options{Workers: 1}, []Pattern{{Name: "answers", Pattern: `http_reqs\.+: \d+ +(?P<value>[\d.]+)/s`, Unit: "requests/s"}, {Name: "own_p95", Pattern: `http_req_duration.*p\(95\)=(?P<value>[\d.]+)`, Unit: "ms"}}, "answers=996.666667 own_p95=0.0254"},
	{"tqdm.log", "", Options{Workers: 2, WorkerBatch: 32}, []Pattern{{Name: "throughput", Pattern: `, +(?P<value>[\d.]+)it/s`, Unit: "it/s", Per: "step"}}, "throughput=320"},
	{"nanogpt.log", "nanogpt", Options{Workers: 8}, nil, "tokens_per_second=983040"},
	{"timm.log", "timm", Options{Workers: 4}, nil, "throughput=640"},
	{"detectron2.log", "", Options{Workers: 8}, []Pattern{{Name: "step_seconds", Pattern: `iter: \d+ .*  time: (?P<value>[\d.]+)`, Unit: "s", Per: "step"}}, "step_seconds=0.25"},
	{"mmengine.log", "", Options{Workers: 8, WorkerBatch: 16}, []Pattern{{Name: "throughput", Pattern: `Epoch\(train\).* time: (?P<value>[\d.]+)`, Unit: "s/it", Per: "step"}}, "throughput=640"},
	{"maxtext.log", "maxtext", Options{Workers: 4}, nil, "tokens_per_second=10922.668"},
	{"osu_latency.log", "", Options{Workers: 2}, []Pattern{{Name: "latency_1m", Pattern: `^1048576 +(?P<value>[\d.]+)`, Unit: "us"}}, "latency_1m=0.0001004"},
	{"osu_bw.log", "", Options{Workers: 2}, []Pattern{{Name: "bandwidth_1m", Pattern: `^1048576 +(?P<value>[\d.]+)`, Unit: "MB/s"}}, "bandwidth_1m=1.21005e+10"},
	{"hpl.log", "", Options{Workers: 4}, []Pattern{{Name: "hpl_flops", Pattern: `^W[RC]\S+ .* (?P<value>[\d.e+]+)$`, Unit: "GFLOP/s"}, {Name: "hpl_time", Pattern: `^W[RC]\S+ +\d+ +\d+ +\d+ +\d+ +(?P<value>[\d.]+)`, Unit: "s"}}, "hpl_flops=1.3295e+11 hpl_time=40.12"},
	{"hpcg.txt", "", Options{Workers: 4}, []Pattern{{Name: "hpcg_flops", Pattern: `rating of=(?P<value>[\d.]+)`, Unit: "GFLOP/s"}}, "hpcg_flops=1.12345e+10"},
	{"stream.log", "", Options{Workers: 1}, []Pattern{{Name: "triad", Pattern: `^Triad: +(?P<value>[\d.]+)`, Unit: "MB/s"}}, "triad=2.61004e+10"},
	{"gromacs.log", "", Options{Workers: 4}, []Pattern{{Name: "ns_per_day", Pattern: `^Performance: +(?P<value>[\d.]+)`, Unit: "ns/day"}, {Name: "train_seconds", Pattern: `^ +Time: +[\d.]+ +(?P<value>[\d.]+)`, Unit: "s"}}, "ns_per_day=36 train_seconds=240"},
	{"lammps.log", "", Options{Workers: 4}, []Pattern{{Name: "timesteps", Pattern: `(?P<value>[\d.]+) timesteps/s`, Unit: "timesteps/s"}, {Name: "train_seconds", Pattern: `Loop time of (?P<value>[\d.]+)`, Unit: "s"}}, "timesteps=80 train_seconds=12.5"},
	{"openfoam.log", "", Options{Workers: 8}, []Pattern{{Name: "train_seconds", Pattern: `ExecutionTime = (?P<value>[\d.]+) s`, Unit: "s", Reduce: "last"}}, "train_seconds=15"},
	{"namd.log", "", Options{Workers: 4}, []Pattern{{Name: "step_seconds", Pattern: `CPUs (?P<value>[\d.]+) s/step`, Unit: "s", Per: "step"}, {Name: "train_seconds", Pattern: `^WallClock: (?P<value>[\d.]+)`, Unit: "s"}}, "step_seconds=0.05005 train_seconds=27.5"},
	{"imagenet.log", "", Options{Workers: 4, WorkerBatch: 64}, []Pattern{{Name: "throughput", Pattern: `Time +(?P<value>[\d.]+) \(`, Unit: "s/it", Per: "step"}, {Name: "accuracy", Pattern: `\* +Acc@1 (?P<value>[\d.]+)`, Unit: "%", Per: "epoch"}}, "throughput=1024"},
	{"table.csv", "csv workers=gpus throughput=img/sec", Options{}, nil, ""},
	{"vllm.txt", "", Options{Workers: 1}, []Pattern{{Name: "answers", Pattern: `^Request throughput \(req/s\): +(?P<value>[\d.]+)`, Unit: "requests/s"}, {Name: "own_ttft_p99", Pattern: `^P99 TTFT \(ms\): +(?P<value>[\d.]+)`, Unit: "ms"}}, "answers=10 own_ttft_p99=0.12"},
	{"loads.csv", "csv", Options{}, nil, ""},
	{"own.log", "", Options{Workers: 8}, []Pattern{{Name: "tokens_per_second", Pattern: `tokens_per_sec=(?P<value>\d+)`, Unit: "tokens/s", Per: "step"}, {Name: "step_seconds", Pattern: `step_time_ms=(?P<value>\d+)`, Unit: "ms", Per: "step"}}, "tokens_per_second=120000 step_seconds=0.25"},
	{"horovod.log", "horovod-synthetic", Options{Workers: 4}, nil, "throughput=1200"},
	{"tfcnn.log", "tf-cnn-benchmarks", Options{}, nil, "throughput=801.5"},
	{"perf.csv", "perf-analyzer", Options{At: map[string]float64{"batch": 1}}, nil, ""},
	{"fairseq.log", "", Options{Workers: 8}, []Pattern{{Name: "tokens_per_second", Pattern: `"wps": "(?P<value>[\d.]+)"`, Unit: "tokens/s", Per: "step", Of: "run"}}, "tokens_per_second=50000"},
}

// needed matches notes that say that something was left out or could change a figure.
var needed = regexp.MustCompile(`left out|^no |ignored|is closed|rank 0 is read|taken to be one device|one worker's|rates are those|cover answered requests only`)

// Of sound logs, at most 5 % have a note that people see (extract without -v) and do not need.
func TestSoundLogs(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/sound.txtar")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string][]byte{}
	for _, f := range archive.Files {
		text[f.Name] = f.Data
	}
	needless := map[string][]string{}
	for _, s := range soundLogs {
		values, notes, err := s.read(text[s.file])
		if err != nil {
			t.Errorf("%s: %v", s.file, err)
			continue
		}
		for pair := range strings.FieldsSeq(s.want) {
			name, number, _ := strings.Cut(pair, "=")
			if want, err := strconv.ParseFloat(number, 64); err != nil || !(math.Abs(values[name]-want) <= 1e-6*want) {
				t.Errorf("%s: %s is %g, want %s", s.file, name, values[name], number)
			}
		}
		for _, n := range notes {
			if scaling.SeverityOf(n) < scaling.Remarkable && !needed.MatchString(n) {
				needless[s.file] = append(needless[s.file], n)
			}
		}
	}
	t.Logf("%d of %d sound logs have a needless note: %q", len(needless), len(soundLogs), needless)
	if 20*len(needless) > len(soundLogs) {
		t.Errorf("%v have needless notes; at most 5 %% may", slices.Sorted(maps.Keys(needless)))
	}
}

// read returns the first value of each figure, and the notes.
func (s soundLog) read(text []byte) (values map[string]float64, notes []string, err error) {
	values = map[string]float64{}
	first := func(c Content) {
		for e := range c.Events() {
			if g := e.Figure; g != nil {
				if _, seen := values[g.Name]; !seen {
					values[g.Name] = g.Value
				}
			}
		}
		notes = append(notes, c.Notes...)
	}
	if maps, is := strings.CutPrefix(s.format, "csv"); is {
		columns := map[string]Column{}
		for one := range strings.FieldsSeq(maps) {
			ours, c, err := ParseColumn(one)
			if err != nil {
				return nil, nil, err
			}
			columns[ours] = c
		}
		s.options.Say = func(text string) { notes = append(notes, text) }
		for r, err := range Runs(bytes.NewReader(text), s.options, columns) {
			if err != nil {
				return nil, nil, err
			}
			first(r.Result)
		}
		return values, notes, nil
	}
	e, err := Find(s.format)
	if s.patterns != nil {
		e, err = Patterns(s.patterns)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("no reader: %w", err)
	}
	c, err := e.Extract(bytes.NewReader(text), s.options)
	first(c)
	return values, notes, err
}
