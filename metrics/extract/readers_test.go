package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A mistake in a log gives an error with its line, and what is just valid gives none.
func TestReadersAtTheirEdges(t *testing.T) {
	hey := func(status string) string {
		return heyColumns + "\n0.1,0,0,0,0.1,0," + status + ",0.0\n0.1,0,0,0,0.1,0,200,0.5\n"
	}
	state := func(entry string) string { return `{"log_history": [` + entry + `]}` }
	wrk := func(count, seconds, rate string) string {
		return "Running 10s test @ http://h/\n  2 threads and 10 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     2.00ms    1.00ms   3.00ms   90.00%\n" +
			"  " + count + " requests in " + seconds + ", 1.00MB read\nRequests/sec: " + rate + "\nTransfer/sec:   1.00MB\n"
	}
	four := map[string]float64{measure.Threads: 4}
	for _, c := range []struct {
		name, format, text string
		o                  Options
		want               string // of a finding
		why                string // of the error
	}{
		{"the smallest status", "hey", hey("100"), Options{At: four}, "errors 0.5 ", ""},
		{"below it", "hey", hey("99"), Options{At: four}, "", "log:2: not a request of hey: 0.1 s, status 99, at 0 s"},
		{"the largest status", "hey", hey("999"), Options{At: four}, "errors 0.5 ", ""},
		{"above it", "hey", hey("1000"), Options{At: four}, "", "status 1000"},
		{"half a status", "hey", hey("200.5"), Options{At: four}, "", "status 200.5"},
		{"the first good status", "hey", hey("200"), Options{At: four}, "errors 0 ", ""},
		{"below it", "hey", hey("199"), Options{At: four}, "errors 0.5 ", ""},
		{"the last good status", "hey", hey("299"), Options{At: four}, "errors 0 ", ""},
		{"above it", "hey", hey("300"), Options{At: four}, "errors 0.5 ", ""},
		{"two right answers in 0.6 s", "hey", hey("200"), Options{At: four}, "requests_per_second 3.33333333333 ", ""},

		{"half an epoch", "hf-trainer-state", state(`{"epoch": 0.5, "step": 3, "eval_accuracy": 0.5}`), Options{}, "accuracy 0.5 at 0 epoch 1 step 3", ""},
		{"a whole epoch", "hf-trainer-state", state(`{"epoch": 2.0, "step": 3, "eval_accuracy": 0.5}`), Options{}, "accuracy 0.5 at 0 epoch 2 step 3", ""},
		{"the largest epoch", "hf-trainer-state", state(`{"epoch": 1e9, "step": 3, "eval_loss": 0.5}`), Options{}, "eval_loss 0.5  epoch 1000000000", ""},
		{"above it", "hf-trainer-state", state(`{"epoch": 1.1e9, "step": 3, "eval_loss": 0.5}`), Options{}, "", "log:1: epoch 1.1e+09, step 3; want counts, 0 or more"},
		{"a negative epoch", "hf-trainer-state", state(`{"epoch": -1, "step": 3, "eval_loss": 0.5}`), Options{}, "", "epoch -1, step 3"},
		{"a negative step", "hf-trainer-state", state(`{"epoch": 1, "step": -3, "eval_loss": 0.5}`), Options{}, "", "epoch 1, step -3"},
		{"the largest step", "hf-trainer-state", state(`{"epoch": 1, "step": 1e12, "eval_loss": 0.5}`), Options{}, "eval_loss 0.5", ""},
		{"above it", "hf-trainer-state", state(`{"epoch": 1, "step": 1.1e12, "eval_loss": 0.5}`), Options{}, "", "step 1.1e+12"},
		{"no object", "hf-trainer-state", "[1]", Options{}, "", "log: not a Trainer's state: want a JSON object with a list named log_history"},
		{"no list", "hf-trainer-state", `{"log_history": 7}`, Options{}, "", "a list named log_history"},
		{"an entry that is none", "hf-trainer-state", "{\"log_history\": [\n7]}", Options{}, "", "log: not a Trainer's state: line 2: an entry of log_history is not an object"},
		{"text for a number", "hf-trainer-state", state(`{"epoch": "1", "eval_loss": 0.5}`), Options{}, "", "log:1: epoch is text; want a number"},
		{"a second end", "hf-trainer-state", state(`{"train_runtime": 5, "epoch": 1}, {"train_runtime": 5, "epoch": 1}`), Options{}, "", "log:1: a second train_runtime. One file is one run"},

		{"as many as the rate says", "wrk", wrk("1000", "10.00s", "100.00"), Options{}, "requests_per_second 100 ", ""},
		// The allowance is 0.6 of the rate by the rounding of a time, 1 of the count, 0.06 of the
		// rounding of the rate: 1.66 requests.
		{"within the rounding", "wrk", wrk("1000", "10.00s", "100.16"), Options{}, "requests_per_second 100.16 ", ""},
		{"beyond it", "wrk", wrk("1000", "10.00s", "100.18"), Options{}, "", "100.18 requests/s, where 1000 requests in 10 s make 100: one of them is damaged"},
		{"twice the time", "wrk", wrk("2000", "20.00s", "100.00"), Options{}, " requests_per_second 100 ", ""},
		{"more", "wrk", wrk("2010", "20.10s", "100.00"), Options{}, "stated_requests_per_second 100 ", ""},
		{"half of the time", "wrk", wrk("500", "5.00s", "100.00"), Options{}, " requests_per_second 100 ", ""},
		{"less", "wrk", wrk("490", "4.90s", "100.00"), Options{}, "stated_requests_per_second 100 ", ""},

		{"a minute's test that took 10 s", "wrk", strings.Replace(wrk("1000", "10.00s", "100.00"), "Running 10s", "Running 1m", 1), Options{}, "stated_requests_per_second 100 ", ""},
		{"negative workers", "wrk", wrk("1000", "10.00s", "100.00"), Options{Workers: -1}, "", "-1 workers with a batch of 0 each; both are 1 or more, or 0 if not known"},
		{"a negative batch", "wrk", wrk("1000", "10.00s", "100.00"), Options{WorkerBatch: -1}, "", "0 workers with a batch of -1 each"},
		{"a load with both", "wrk", wrk("1000", "10.00s", "100.00"), Options{At: map[string]float64{measure.Threads: 1, measure.Rate: 1}}, "", "threads and rate: a load has either requests in flight or a rate"},
		{"a load of 0", "wrk", wrk("1000", "10.00s", "100.00"), Options{At: map[string]float64{measure.Rate: 0}}, "", "rate=0; want a number above 0, up to 1e+09"},
		{"the largest load", "wrk", wrk("1000", "10.00s", "100.00"), Options{At: map[string]float64{measure.Batch: 1e9}}, "batch 1000000000 ", ""},
		{"above it", "wrk", wrk("1000", "10.00s", "100.00"), Options{At: map[string]float64{measure.Batch: 1e9 + 1}}, "", "want a number above 0, up to 1e+09"},
		{"half a batch", "wrk", wrk("1000", "10.00s", "100.00"), Options{At: map[string]float64{measure.Batch: 1.5}}, "", "batch=1.5; want a whole number"},
		{"not a coordinate", "wrk", wrk("1000", "10.00s", "100.00"), Options{At: map[string]float64{"colour": 1}}, "", "colour is not a coordinate of a load; valid: "},
		{"a load of a training", "timm", "x\n", Options{At: four}, "", "log: --at needs the log of a load generator, and timm is not such a format"},

		{"a device's rate", "lightning-csv", "epoch,step,train/device/samples_per_sec\n0,1,10\n", Options{}, "", `log: column train/device/samples_per_sec is the rate of one device; give the number of workers`},
		{"a rate of 0", "lightning-csv", "epoch,step,train/device/samples_per_sec\n0,1,0\n", Options{Workers: 2}, "", "a throughput of 0"},
		{"the smallest rate", "lightning-csv", fmt.Sprintf("epoch,step,train/device/samples_per_sec\n0,1,%g\n", metrics.MinRate), Options{Workers: 1}, "throughput 1e-", ""},
		{"half a step", "lightning-csv", "epoch,step,val_acc\n0,1.5,0.5\n", Options{}, "", "log:2: column step: 1.5 is not a count"},
		{"a negative step", "lightning-csv", "epoch,step,val_acc\n0,-1,0.5\n", Options{}, "", "log:2: column step: -1 is not a count"},
		{"an epoch is missing", "keras-csvlogger", "epoch,val_accuracy\n0,0.5\n2,0.75\n", Options{}, "", "log:3: epoch 2 follows epoch 0: rows are missing, or a second run was appended"},
		{"no epochs", "keras-csvlogger", "step,val_accuracy\n0,0.5\n", Options{}, "", "log:1: no column epoch; the format has it first. The file has "},
		{"another column", "keras-csvlogger", "epoch,mine\n0,0.5\n", Options{Columns: map[string]string{"accuracy": "mine"}}, "accuracy 0.5 at 0 epoch 1", ""},
		{"no such column", "keras-csvlogger", "epoch,mine\n0,0.5\n", Options{Columns: map[string]string{"accuracy": "yours"}}, "", `log: no column "yours"; the file has "epoch", "mine"`},
		{"a large file", "keras-csvlogger", "epoch,val_accuracy\n0,0.5\n", Options{Bytes: largest + 1}, "", "log: larger than 256 MiB, the limit for a file of this format"},
		{"as large as it may be", "dlio", "{}", Options{Bytes: 1}, "", "nothing found"},
		{"two columns of a name", "keras-csvlogger", "epoch,a,a\n0,0.5,0.5\n", Options{}, "", `log:1: two columns are named "a"`},
		{"UTF-16", "keras-csvlogger", "\xff\xfee\x00\n", Options{}, "", "log: encoded in UTF-16; save it in UTF-8"},
		{"no line end", "keras-csvlogger", "epoch,val_accuracy\n0,0.5", Options{}, "", "log:2: the last line has no line end"},
	} {
		e, err := Find(c.format)
		if err != nil {
			t.Fatal(err)
		}
		c.o.File = "log"
		r, err := e.Extract(strings.NewReader(c.text), c.o)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v, want %q", c.name, err, c.why)
			}
			continue
		}
		var lines []string
		for f := range r.Findings() {
			lines = append(lines, " "+written(f)+" ")
		}
		if err != nil || !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, c.want) }) {
			t.Errorf("%s: %v, no %q in\n%s", c.name, err, c.want, strings.Join(lines, "\n"))
		}
	}
}

// The events of a run that has only a log are: start, the log's notes, its findings, and a
// stop at the time of the last finding.
func TestEventsOfARun(t *testing.T) {
	text := mllogText(t, strings.TrimSpace(`
		0 submission_benchmark "resnet"
		1000 run_start
		3000 eval_accuracy 0.5 {"epoch_num": 2}
		5000 eval_accuracy 0.6 {"epoch_num": 4}
		6000 run_stop null {"status":"lost"}`))
	r, err := mlperf.Extract(strings.NewReader(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	events := slices.Collect(r.Run(metrics.Run{CreatedUnix: 1.7e9, Framework: "f", Workers: 4}))
	first, last := events[0].Start, events[len(events)-1]
	if first == nil || first.Unix != 1.7e9 || first.Writer != "rank" || first.Framework != "f" || first.WorldSize != 4 || first.Ranks != 4 || first.Format != metrics.FormatVersion {
		t.Errorf("start: %+v", first)
	}
	if s := last.Stop; s == nil || last.Time != 6 || s.Status != metrics.StopFailed || s.Cause != `MLPerf's run_stop says "lost"` || s.Epochs != 4 {
		t.Errorf("at %g: %+v", last.Time, s)
	}
	if n := len(events); n != 2+len(r.Notes)+r.Found() || events[1].Note == nil || events[1].Note.Text != r.Notes[0] {
		t.Errorf("%d events of %d notes and %d findings", n, len(r.Notes), r.Found())
	}
	done := strings.Replace(text, "lost", "success", 1)
	if r, err = mlperf.Extract(strings.NewReader(done), Options{}); err != nil {
		t.Fatal(err)
	}
	events = slices.Collect(r.Run(metrics.Run{Workers: 1}))
	if s := events[len(events)-1].Stop; s.Status != metrics.StopDone || s.Cause != "" {
		t.Errorf("%+v", s)
	}
	for most := range events { // a caller may stop after any event
		n := 0
		for range r.Run(metrics.Run{Workers: 1}) {
			if n++; n > most {
				break
			}
		}
		if n != most+1 {
			t.Errorf("%d events, want %d", n, most+1)
		}
	}
}

// Settings that logs state become labels.
func TestLabelsOfLogs(t *testing.T) {
	for file, want := range map[string]map[string]any{
		"horovod-synthetic.log":      {"workload.model": "resnet50"},
		"dlio.json":                  {"workload.model": "unet3d"},
		"mlperf-rgat.log":            {"workload.model": "rgat"},
		"mlperf-loadgen-server.txt":  {"loadgen.scenario": "Server"},
		"mlperf-loadgen-offline.txt": {"loadgen.scenario": "Offline"},
	} {
		i := slices.IndexFunc(samples, func(s sample) bool { return s.file == file })
		r, err := samples[i].extract([]byte(sampleText(t, file)))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for key, value := range want {
			if r.Labels[key] != value {
				t.Errorf("%s: %s is %v, want %v", file, key, r.Labels[key], value)
			}
		}
	}
	l := newLog(Options{})
	l.label("a", 1)
	l.label("b", 2)
	l.label("a", 3)
	if got := fmt.Sprint(l.res.Labels); got != "map[a:3 b:2]" {
		t.Errorf("labels %s", got)
	}
	var lines lineSet
	for _, line := range []int{1, 64, 65, 1, 128, 64, 1000000} {
		lines.add(line)
	}
	if lines.n != 5 {
		t.Errorf("%d lines, want 5", lines.n)
	}
}

// The highest rate within a latency limit belongs to a batch.
func TestRatesWithinALimit(t *testing.T) {
	for _, c := range []struct {
		name, csv string
		maps      []string
		want      []string
		why       string
	}{
		{"of batches", "batch,rate_within_limit\n1,100\n8,40\n", nil, []string{"rate_within_limit 100", "rate_within_limit 40"}, ""},
		{"a rate of 0", "batch,rate_within_limit\n1,0\n", nil, nil, "t.csv:2: rate_within_limit is 0; want more than 0, or an empty cell where none was found"},
		{"of a load", "batch,rate_within_limit,threads\n1,100,4\n", nil, nil, "t.csv:2: rate_within_limit belongs to a batch, and threads to a load: put them into two tables"},
		{"of a rate", "batch,rate_within_limit,latency_p95\n1,100,0.1\n", nil, nil, "rate_within_limit belongs to a batch, and latency_p95 to a load"},
		{"half a batch", "batch,rate_within_limit\n1.5,100\n", nil, nil, "batch=1.5; want a whole number"},
		{"errors above 1", "threads,requests_per_second,errors\n4,100,2\n", nil, nil, "t.csv:2: errors of 2; they are a share of the requests, not a count"},
		{"all failed but one", "threads,requests_per_second,errors\n4,100,0.99\n", nil, []string{"requests_per_second 100, samples_per_second 100, errors 0.99"}, ""},
	} {
		runs, _, err := readRuns(c.csv, Options{}, c.maps...)
		checkRuns(t, c.name, runs, c.want, err, c.why)
	}
}

// A summary row among the runs is left out, whether it is named or recognised by its values.
func TestEdgesOfSummaries(t *testing.T) {
	rate := []string{"workers=w", "throughput=x:samples/s"}
	for _, c := range []struct {
		name, csv string
		o         Options
		maps      []string
		want      int // runs
		told      string
	}{
		{"a mean of two", "w,n,x\n1,a,100\n1,b,104\n1,avg,102\n", Options{}, rate, 2, "left out 1 row (line 4): they summarise others"},
		{"a spread", "w,n,x\n1,a,100\n1,b,104\n1,std,2\n", Options{}, rate, 2, "they summarise others"},
		{"only means", "w,n,x\n1,mean,100\n2,mean,190\n", Options{}, rate, 2, ""},
		{"a sum of parts", "w,n,x\n2,a,100\n2,b,100\n2,total,200\n", Options{}, rate, 1, "left out 2 rows (lines 2–3): they are parts of the total"},
		{"a sum within a twentieth", "w,n,x\n2,a,100\n2,b,110\n2,total,200\n", Options{}, rate, 1, "they are parts of the total"},
		{"a sum beyond it", "w,n,x\n2,a,100\n2,b,111\n2,total,200\n", Options{}, rate, 2, "they summarise others"},
		{"a total of one", "w,n,x\n2,a,100\n2,total,100\n", Options{}, rate, 1, "they summarise others"},
		{"two totals", "w,n,x\n2,a,100\n2,b,100\n2,total,200\n2,total,200\n", Options{}, rate, 2, "they summarise others"},
		{"as parts that are added up", "w,n,x\n2,a,100\n2,b,100\n2,total,200\n", Options{Sum: "n"}, rate, 1, "left out 1 row (line 4)"},
		{"a total of all counts", "w,n,x\n1,a,100\n2,b,190\n,total,290\n", Options{}, rate, 2, "they summarise others"},
		// The median of 100, 105 and 107 is 105, their mean 104.
		{"an unnamed mean, two more decimals", "w,x\n1,100\n1,105\n1,107\n1,104.00\n", Options{}, rate, 3, "left out 1 row (line 5): they are the mean of others"},
		{"one more decimal", "w,x\n1,100\n1,105\n1,107\n1,104.0\n", Options{}, rate, 4, ""},
		{"an unnamed median", "w,x\n1,100\n1,105\n1,107\n1,105.00\n", Options{}, rate, 3, "they are the mean of others"},
		{"half a digit off", "w,x\n1,100\n1,105\n1,107\n1,104.005\n", Options{}, rate, 4, ""},
		{"rounded", "w,x\n1,100\n1,105\n1,108\n1,104.33\n", Options{}, rate, 3, "they are the mean of others"},
		{"rounded wrongly", "w,x\n1,100\n1,105\n1,108\n1,104.34\n", Options{}, rate, 4, ""},
		{"a cell that others have", "w,seed,x\n1,1,100\n1,2,104\n1,,102\n", Options{}, rate, 2, "they are the mean of others"},
		{"a cell that one other lacks", "w,seed,x\n1,1,100\n1,,104\n1,,102\n", Options{}, rate, 3, ""},
		{"of one other", "w,seed,x\n1,1,100\n1,,100\n", Options{}, rate, 2, ""},
		// 100.1, 105.2, 107.0 have the mean 104.1; 190.5, 193.1, 191.2 have 191.6.
		{"means with equal digits", "w,x\n1,100.1\n1,105.2\n1,107.0\n1,104.1\n2,190.5\n2,193.1\n2,191.2\n2,191.6\n", Options{}, rate, 8, "the last row of each worker count equals the mean or median of its other rows (lines 5, 9)"},
		{"one of them no mean", "w,x\n1,100.1\n1,105.2\n1,107.0\n1,104.1\n2,190.5\n2,193.1\n2,191.2\n2,191.7\n", Options{}, rate, 8, ""},
		{"of one count only", "w,x\n1,100.1\n1,105.2\n1,107.0\n1,104.1\n", Options{}, rate, 4, ""},
		{"all equal", "w,x\n1,100.1\n1,100.1\n1,100.1\n2,190.5\n2,190.5\n2,190.5\n", Options{}, rate, 2, "copies of others"},
		{"of another count", "w,x\n1,100\n2,105\n4,104.00\n", Options{}, rate, 3, ""},

		{"a table twice", "w,x\n1,100\n2,190\n1,100\n2,190\n", Options{}, rate, 2, "left out 2 rows (lines 4–5): copies of others, digit for digit, and not repeats"},
		{"a table thrice", "w,x\n1,100\n2,190\n1,100\n2,190\n1,100\n2,190\n", Options{}, rate, 2, "left out 4 rows (lines 4–7)"},
		{"again, rounded", "w,x\n1,100.14\n1,104.26\n2,190.51\n2,193.18\n1,100\n1,104\n2,191\n2,193\n", Options{}, rate, 8, "other rows are repeated with fewer decimals, in the same order, in lines 6–9"},
		{"rounded, but in another order", "w,x\n1,100.14\n1,104.26\n2,190.51\n2,193.18\n1,104\n1,100\n2,191\n2,193\n", Options{}, rate, 8, ""},
		{"one rounded to another", "w,x\n1,100.14\n1,104.26\n2,190.51\n2,193.18\n1,100\n1,105\n2,191\n2,193\n", Options{}, rate, 8, ""},
		{"and half of it", "w,x\n1,100\n2,190\n1,100\n2,190\n1,100\n", Options{}, rate, 5, ""},
		{"with one change", "w,x\n1,100\n2,190\n4,300\n1,100\n2,190\n4,301\n", Options{}, rate, 6, ""},
		{"after a false start", "w,x\n1,100\n1,100\n2,190\n1,100\n1,100\n2,190\n", Options{}, rate, 3, "left out 3 rows (lines 5–7)"},
		{"one row four times", "w,x\n1,100\n1,100\n1,100\n1,100\n", Options{}, rate, 4, ""},
		{"three equal rows of four digits", "w,x\n1,1001\n1,1001\n1,1001\n2,1900\n", Options{}, rate, 2, "copies of others"},
		{"two of them", "w,x\n1,1001\n1,1001\n2,1900\n", Options{}, rate, 3, ""},
		{"three among others", "w,x\n1,1001\n1,1001\n1,1001\n1,1002\n", Options{}, rate, 4, ""},
	} {
		runs, told, err := readRuns(c.csv, c.o, c.maps...)
		all := strings.Join(told, "\n")
		if err != nil || len(runs) != c.want || !strings.Contains(all, c.told) || c.told == "" && (strings.Contains(all, "left out") || strings.Contains(all, ", remove ")) {
			t.Errorf("%s: %d runs, %v, told %q; want %d, %q", c.name, len(runs), err, told, c.want, c.told)
		}
	}
}
