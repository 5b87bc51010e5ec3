package extract

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/number"
)

// The unit in a column's name applies, or the error says what to write.
func TestUnitInAColumnsName(t *testing.T) {
	for _, c := range []struct {
		ours, name, unit string
		scale            float64
		per              string
		want             string // "": accepted
	}{
		{"train_seconds", "time (ms)", "", 1e-3, "", ""},
		{"train_seconds", "time (ms)", "s", 1, "", ""},
		{"train_seconds", "time [min]", "", 60, "", ""},
		{"train_seconds", "time", "", 1, "", ""},
		{"train_seconds", "hours", "", 3600, "", ""},
		{"train_seconds", "GPU-hours", "", 0, "", `column "GPU-hours" is in "GPU-hours", judging by its name, but train_seconds is in s`},
		{"train_seconds", "step_time_ms", "", 0, "", "is the time of one of the steps, judging by its name, but train_seconds covers the whole training: write --map step_seconds=step_time_ms, or, if the name is wrong, --map train_seconds=step_time_ms:s"},
		{"train_seconds", "epoch time (s)", "", 0, "", "--map 'epoch_seconds=epoch time (s)'"},
		{"train_seconds", "img/s", "", 0, "", `is in "img/s", judging by its name, but train_seconds is in s: write --map throughput=img/s, or, if the name is wrong`},
		{"step_seconds", "ms/step", "", 1e-3, "", ""},
		{"step_seconds", "iter_s", "", 1, "", ""},
		{"epoch_seconds", "epoch time (min)", "", 60, "", ""},
		{"latency_p95", "p95_us", "", 1e-6, "", ""},
		{"throughput", "rate (img/s)", "", 1, "", ""},
		{"throughput", "kimg/s", "", 1e3, "", ""},
		{"throughput", "img/sec/GPU", "", 1, number.PerDevice, ""},
		{"throughput", "throughput_per_gpu", "", 1, number.PerDevice, ""},
		{"throughput", "img/sec/GPU", "img/s", 1, "", ""},
		{"throughput", "img/sec/GPU", "samples/s/worker", 1, number.PerDevice, ""},
		{"throughput", "x", "kimg/s/node", 1e3, number.PerNode, ""},
		{"throughput", "Zettel/s", "", 0, "", `column "Zettel/s" is in "Zettel/s", judging by its name, which is not a known unit; say which it is`},
		{"throughput", "Zettel/s", "images/s", 1, "", ""},
		{"throughput", "ips", "", 0, "", "--map throughput=ips:samples/s"},
		{"throughput", "rate[ms]", "", 0, "", `is in "ms", judging by its name, but throughput is in samples/s`},
		{"throughput", "tok/s", "", 0, "", "write --map tokens_per_second=tok/s, or, if the name is wrong"},
		{"throughput", "MB/s", "", 0, "", "throughput is in samples/s"},
		{"throughput", "ms/step", "", 0, "", "--worker-batch N; or write --map step_seconds=ms/step"},
		{"tokens_per_second", "Throughput (T/s)", "", 1, "", ""},
		{"tokens_per_second", "Mtok/s", "", 1e6, "", ""},
		{"tokens_per_second", "Throughput (T/s/GPU)", "", 0, "", "write --map 'tokens_per_second_per_gpu=Throughput (T/s/GPU)', which is multiplied by the workers, or, if it covers all of them, --map 'tokens_per_second=Throughput (T/s/GPU):tokens/s'"},
		{"tokens_per_second", "samples/s", "", 0, "", "write --map throughput=samples/s"},
		{"tokens_per_second_per_gpu", "Throughput (T/s/GPU)", "", 1, "", ""},
		{"tokens_per_second_per_gpu", "total tokens/s", "", 0, "", "--map 'tokens_per_second=total tokens/s'"},
		{"accuracy", "top1 %", "", 0.01, "", ""},
		{"accuracy", "val_loss", "", 0, "", "column \"val_loss\" is a loss or an error, judging by its name, and not an accuracy: write --map loss=val_loss, or, if the name is wrong, --map accuracy=val_loss:fraction"},
		{"accuracy", "top1_error", "", 0, "", "--map loss=top1_error"},
		{"accuracy", "img/s", "", 0, "", "accuracy is in a share"},
		{"errors", "failed (%)", "", 0.01, "", ""},
		{"errors", "Failures/s", "", 0, "", `column "Failures/s" is a rate or a number, judging by its name, but errors is a share of the requests: add a column with failed / all requests`},
		{"errors", "failed requests/s", "", 0, "", "errors is a share of the requests"},
		{"errors", "Failure Count", "", 0, "", "add a column with failed / all requests"},
		{"errors", "failed", "", 1, "", ""},
		{"errors", "Failure Count", "fraction", 1, "", ""},
		{"latency_mean", "Average Response Time", "", 0, "", "write --map 'latency_mean=Average Response Time:ms'"},
		{"latency_mean", "Average Response Time", "ms", 1e-3, "", ""},
		{"latency_mean", "Average Response Time (us)", "", 1e-6, "", ""},
		{"latency_p95", "latency_p95", "", 1, "", ""},
		{"latency_p95", "95%", "", 0, "", "like --map latency_p95=95%:ms"},
		{"errors", "failed requests/s", "req/s", 0, "", `errors cannot be in "req/s"`},
		{"workers", "GPUs (h)", "", 1, "", ""},
		{"workers", "GPUs", "s", 0, "", "workers has no unit"},
	} {
		r, err := newLog(Options{}).reading(c.ours, Column{Name: c.name, Unit: c.unit})
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s=%s:%s: %v; want %q", c.ours, c.name, c.unit, err, c.want)
		case c.want == "" && (err != nil || r.scale != c.scale || r.per != c.per):
			t.Errorf("%s=%s:%s: %v, %v per %q; want %v per %q", c.ours, c.name, c.unit, err, r.scale, r.per, c.scale, c.per)
		}
	}
}

// The error for a cell that is not a number names the line, the column and the remedy.
func TestCellsRefused(t *testing.T) {
	for cell, want := range map[string]string{
		"5100-5200":             `"5100-5200" is not a finite number: it is a range; write one number, or leave the cell empty`,
		"9860 (83% efficiency)": "write 9860 alone, or leave the cell empty",
		"~37000":                "write 37000 alone, or leave the cell empty",
		"76 %":                  `throughput cannot be in "%"; write a number alone`,
		"fast":                  `"fast" is not a finite number`,
		"2024-01-05":            "write",
	} {
		var err error
		text := "gpus,rate\n1,700\n2," + cell + "\n"
		for _, e := range Runs(strings.NewReader(text), Options{File: "t.csv"}, map[string]Column{"workers": {Name: "gpus"}, "throughput": {Name: "rate", Unit: "samples/s"}}) {
			if e != nil {
				err = e
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "t.csv:3: column rate: ") {
			t.Errorf("%s: %v, want %q", cell, err, want)
		}
	}
}

// Rows of epochs or steps are not repeats of a run, and a second header starts a second
// table.
func TestRowsOfTimeRefused(t *testing.T) {
	for text, want := range map[string]string{
		"epoch,rate\n1,700\n2,720\n3,710\n":     `rows of one run differ in column "epoch"`,
		"step,rate\n10,700\n20,720\n30,710\n":   "write --map epoch=step, or --label the_step=step if each row is a run",
		"gpus,rate\n1,700\ngpus,rate\n2,1400\n": "t.csv:3: the header again: a second table was appended",
	} {
		columns := map[string]Column{"throughput": {Name: "rate", Unit: "samples/s"}}
		if strings.HasPrefix(text, "gpus") {
			columns["workers"] = Column{Name: "gpus"}
		}
		var err error
		for _, e := range Runs(strings.NewReader(text), Options{File: "t.csv", Workers: 4}, columns) {
			if e != nil {
				err = e
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
