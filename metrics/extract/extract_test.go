package extract

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStripPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"0: total":                        "0|total",
		" 12: total":                      "12|total",
		"[1,0]<stdout>:total":             "0|total",
		"[3]<stdout>: 8 2":                "3|8 2",
		"[default2]:total":                "2|total",
		"[0] total":                       "0|total",
		"1: [default0]:total":             "1/0|total",
		"Total img/sec on 2 GPU(s): 1.0":  "|Total img/sec on 2 GPU(s): 1.0",
		"10\timages/sec: 99.5":            "|10\timages/sec: 99.5",
		"[12:30] total":                   "|[12:30] total",
		"Train: 0 [   0/10 ( 10%)]  Loss": "|Train: 0 [   0/10 ( 10%)]  Loss",
	} {
		source, rest := stripPrefix(text)
		if got := source + "|" + rest; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// found returns the findings, and the notes of the figures and of the log.
func found(t *testing.T, e Extractor, text string, o Options) (lines []string, notes string) {
	t.Helper()
	o.File = "log"
	r, err := e.Extract(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	for f := range r.Findings() {
		lines = append(lines, written(f))
		if f.Event.Figure != nil {
			notes += f.Event.Figure.Note + "\n"
		}
	}
	return lines, notes + strings.Join(r.Notes, "\n")
}

// Expected values computed by hand: the median of 10, 20 and 60 is 20, the mean 30.
func TestPatterns(t *testing.T) {
	steps := "rate 10 x\nrate 20 x\nrate 60 x\n"
	ranks := "0: rate 10 x\n1: rate 30 x\n0: rate 20 x\n1: rate 50 x\n"
	for _, tt := range []struct {
		name, text string
		p          Pattern
		o          Options
		want, note string
	}{
		{"median", steps, Pattern{Unit: "img/s", Per: "step"}, Options{}, "3 throughput 20 samples/s median of 3", "the median of 3 values in the log, one per step, for all workers together"},
		{"mean", steps, Pattern{Unit: "img/s", Per: "step", Reduce: "mean"}, Options{}, "3 throughput 30 samples/s mean of 3", ""},
		{"sum", steps, Pattern{Unit: "img/s", Reduce: "sum"}, Options{}, "3 throughput 90 samples/s sum of 3", ""},
		{"last", steps, Pattern{Unit: "img/s", Reduce: "last"}, Options{}, "3 throughput 60 samples/s last of 3", ""},
		{"steps a second", steps, Pattern{Unit: "it/s", Per: "step"}, Options{Workers: 2, WorkerBatch: 8}, "3 throughput 320 samples/s median of 3", ""},
		{"steps a second, four ranks a replica", steps, Pattern{Unit: "it/s", Per: "step"}, Options{Workers: 8, WorkerBatch: 8, Sharing: 4}, "3 throughput 320 samples/s median of 3", ""},
		{"time of a step", steps, Pattern{Unit: "ms/step", Per: "step"}, Options{Workers: 2, WorkerBatch: 8}, "3 throughput 800 samples/s median of 3", ""},
		{"sum over ranks", ranks, Pattern{Unit: "img/s", Per: "step", Of: "rank"}, Options{Workers: 2}, "4 throughput 55 samples/s sum over ranks of the median of 4", "the sum over 2 ranks"},
		{"one rank for all", steps, Pattern{Unit: "img/s", Per: "step", Of: "rank"}, Options{Workers: 4}, "3 throughput 80 samples/s median of 3", "one rank's times 4, not a measured aggregate"},
		{"copies of one", "0: rate 10 x\n1: rate 10.2 x\n0: rate 20 x\n1: rate 19.8 x\n", Pattern{Unit: "img/s", Per: "step", Of: "run"}, Options{Workers: 2}, "3 throughput 15 samples/s median of 2", "only rank 0 is read"},
		{"one rank's figure for all", steps, Pattern{Name: "speed", Unit: "proteins/s", Per: "step", Of: "rank"}, Options{Workers: 4}, "3 speed 80 proteins/s median of 3", "\nspeed: one rank's times 4, not a measured aggregate"},
		{"one rank's of one", steps, Pattern{Unit: "img/s", Per: "step", Of: "rank"}, Options{Workers: 1}, "3 throughput 20 samples/s median of 3", "the median of 3 values"},
		{"a figure of one's own", "rate 2.5 x\n", Pattern{Name: "wait", Unit: "ms"}, Options{}, "1 wait 0.0025 s", "as the log states it"},
		{"in a unit of one's own", "rate 2.5 x\n", Pattern{Name: "heat", Unit: "K"}, Options{}, "1 heat 2.5 K", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.p.Name == "" {
				tt.p.Name = "throughput"
			}
			tt.p.Pattern = `^rate (?P<value>[\d.]+) x$`
			e, err := Patterns([]Pattern{tt.p})
			if err != nil {
				t.Fatal(err)
			}
			lines, notes := found(t, e, tt.text, tt.o)
			if len(lines) != 1 || strings.TrimSpace(lines[0]) != tt.want || !strings.Contains(notes, tt.note) {
				t.Errorf("%q, notes %q; want %q, %q", lines, notes, tt.want, tt.note)
			}
		})
	}
}

func TestPatternAccuracies(t *testing.T) {
	e, err := Patterns([]Pattern{{Name: "accuracy", Pattern: `^epoch (?P<epoch>\d+) after (?P<elapsed>[\d.]+) s: (?P<value>[\d.]+)`, Unit: "%", Per: "epoch"}})
	if err != nil {
		t.Fatal(err)
	}
	first := 0
	lines, _ := found(t, e, "epoch 0 after 2.5 s: 50\nepoch 1 after 5 s: 75.5\n", Options{FirstEpoch: &first})
	want := []string{"0 train at 0", "1 accuracy 0.5 at 2.5 epoch 1", "2 accuracy 0.755 at 5 epoch 2"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// An error names the line that lacks something. For a rank's figure, it says what is
// missing to compute the run's.
func TestPatternRefusesText(t *testing.T) {
	elapsed := Pattern{Name: "accuracy", Pattern: `^(?:after (?P<elapsed>[\d.]+) s: )?accuracy (?P<value>[\d.]+)`, Per: "epoch"}
	percent := elapsed
	percent.Unit = "%"
	rank := Pattern{Name: "throughput", Unit: "samples/s", Pattern: `rate (?P<value>[\d.]+)`, Of: "rank"}
	for _, test := range []struct {
		p       Pattern
		text    string
		workers int
		want    string
	}{
		{elapsed, "after 1 s: accuracy 0.5\naccuracy 0.6\n", 1, "log:2: no elapsed here, but one on line 1"},
		{elapsed, "accuracy 0.5\nafter 1 s: accuracy 0.6\n", 1, "log:1: no elapsed here, but one on line 2"},
		{elapsed, "after 2 s: accuracy 0.5\nafter 1 s: accuracy 0.6\n", 1, "log:2: elapsed goes back from 2 s to 1 s"},
		{elapsed, "accuracy 72\n", 1, "log:1: accuracy 72; want a fraction from 0 to 1; for percent set unit = \"%\""},
		{percent, "accuracy 172\n", 1, "log:1: accuracy 172; want 0 to 100 %"},
		{rank, "rate 5\n", 0, "log: throughput is one rank's; give the number of workers, or set of"},
		{rank, "0: rate 5\n1: rate 5\n", 4, "log: throughput is one rank's, but the log has it for 2 ranks and the run has 4 workers; log it"},
		{rank, "rate 5\n1: rate 5\n", 2, "has it for 1 rank and for lines without a rank and the run has 2 workers"},
	} {
		e, err := Patterns([]Pattern{test.p})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Extract(strings.NewReader(test.text), Options{File: "log", Workers: test.workers}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestPatternRefused(t *testing.T) {
	for want, p := range map[string]Pattern{
		"no group (?P<value>":                {Name: "a", Pattern: `x (\d+)`},
		"missing closing )":                  {Name: "a", Pattern: `(`},
		"name is empty":                      {Pattern: `(?P<value>x)`},
		"valid: run, step":                   {Name: "a", Pattern: `(?P<value>x)`, Per: "day"},
		"name it accuracy, with per":         {Name: "final_accuracy", Pattern: `(?P<value>x)`},
		"choose another name, like own_skew": {Name: "skew", Pattern: `(?P<value>x)`},
		"valid: last,":                       {Name: "a", Pattern: `(?P<value>x)`, Reduce: "mode"},
		`is "GB/s"; want one`:                {Name: "throughput", Pattern: `(?P<value>x)`, Unit: "GB/s"},
	} {
		if _, err := Patterns([]Pattern{p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
}

// Errors name the line.
func TestRefused(t *testing.T) {
	horovod := "Img/sec per GPU: 10.0 +-1.0\nTotal img/sec on 2 GPU(s): 20.0 +-2.0\n"
	for _, tt := range []struct{ format, text, want string }{
		{"horovod-synthetic", "", "log: nothing found"},
		{"horovod-synthetic", horovod + horovod, "log:3: a second result; the first is on line 1"},
		{"horovod-synthetic", strings.Replace(horovod, "20.0", "80.0", 1), "log:2: a total of 80, where 2 ranks at 10 make 20"},
		{"horovod-synthetic", horovod[:len(horovod)-3], "log:1: a rank's rate, but no line with the total"},
		{"keras-csvlogger", "epoch,val_accuracy\n0,0.5\n0,0.6\n", "log:3: epoch 0 follows epoch 0"},
		{"keras-csvlogger", "epoch,val_accuracy\n0,0.5\n1,0.6", "log:3: the last line has no line end"},
		{"keras-csvlogger", "epoch,val_accuracy\n0,55\n", "log:2: accuracy 55; want a fraction"},
		{"keras-csvlogger", "epoch,val_accuracy\n0,0.5,1\n", "log:2: wrong number of fields"},
		{"hf-trainer-state", "{\n\"log_history\": [\n{\"loss\": NaN}]}\n", "log:3: not JSON"},
		{"tf-cnn-benchmarks", "total images/sec: 200.00\ntotal images/sec: 201.00\ntotal images/sec: 60.50\n", "log:2: a total of 201 images/s, and 60.5 in line 3: workers in step print the same total"},
		{"hf-trainer-state", "{\"log_history\": [", "log:1: not JSON"},
		{"mlperf", `:::MLLOG {"time_ms": 5, "key"` + "}\n", "log:1: a :::MLLOG line that is not JSON"},
		{"mlperf", `:::MLLOG {"time_ms": ` + strings.Repeat("9", 400) + "}\n", "log:1: a :::MLLOG line that has \"99999"},
		{"mlperf", `:::MLLOG {"time_ms": 5, "metadata": {"epoch_num": "1"}}` + "\n", "has a string as metadata.epoch_num; want a number"},
		{"mlperf", `:::MLLOG {"time_ms": 5, "metadata": [1]}` + "\n", "has an array as metadata; want an object"},
		{"mlperf", `:::MLLOG {"time_ms": 253402300799000, "key": "run_start"}` + "\n", "log:1: a :::MLLOG line without a time_ms in milliseconds since 1970"},
		{"mlperf", `:::MLLOG {"time_ms": 9, "key": "run_start"}` + "\n" + `:::MLLOG {"time_ms": 7, "key": "run_stop", "metadata": {"status": "success"}}` + "\n", "log:2: run_stop is 2 ms before"},
		{"nccl-tests", "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n 8 2 float sum -1 1 2 3 0 1 2\n", "log:2: 11 fields in a table of 13 columns"},
		{"tensorboard", "no event file at all", "checksum of its length"},
	} {
		e, err := Find(tt.format)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Extract(strings.NewReader(tt.text), Options{File: "log"}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %q: %v, want %q", tt.format, tt.text, err, tt.want)
		}
	}
	if _, err := Find("nosuch"); err == nil || !strings.Contains(err.Error(), "valid: aiperf, deepspeed, dlio, hey, ") {
		t.Error(err)
	}
	e, _ := Find("keras-csvlogger")
	var wide strings.Builder
	wide.WriteString("epoch,x")
	for i := range 100_000 {
		fmt.Fprintf(&wide, ",column%d", i)
	}
	if _, err := e.Extract(strings.NewReader(wide.String()+"\n"), Options{File: "log"}); err == nil || len(err.Error()) > 4000 || !strings.Contains(err.Error(), `"epoch", "x", "column0"`) {
		t.Errorf("of 100,000 columns: %.300v…", err)
	}
	e, _ = Find("timm")
	if _, err := e.Extract(strings.NewReader("x\n"), Options{}); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

// The keys come from nccl-tests' src/util.cu; a real sample is missing (see
// testdata/SOURCE.md).
func TestNCCLJSON(t *testing.T) {
	row := `{"size": %d, "count": 1, "type": "float", "redop": "sum", "root": "    -1",
  "out_of_place": {"time": 20.5, "alg_bw": 1.5, "bus_bw": 2.25, "nwrong": 0},
  "in_place": {"time": 10.25, "alg_bw": 3, "bus_bw": 4.5, "nwrong": 1}}`
	text := "{\"version\": 1, \"devices\": [{\"rank\": 0}, {\"rank\": 1}],\n\"results\": [\n" + fmt.Sprintf(row, 30750) + ",\n" + fmt.Sprintf(row, 30752) +
		"],\n\"average_bus_bandwidth\": {\"bandwidth\": 3.375, \"okay\": true}}\n"
	lines, notes := found(t, ncclTestsJSON, text, Options{})
	all := strings.Join(lines, "\n")
	for _, want := range []string{"4 time 2.05e-05 s bytes 30750 in_place 0", "5 busbw 4500000000 B/s bytes 30750 in_place 1", "8 busbw 4500000000 B/s bytes 30752 in_place 1", "9 avg_busbw 3375000000 B/s"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among\n%s", want, all)
		}
	}
	if !strings.Contains(notes, "the run failed: nccl-tests found wrong results at 30750, 30752 bytes (line 5)") {
		t.Error(notes)
	}
}
