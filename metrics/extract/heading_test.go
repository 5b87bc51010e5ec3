package extract

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/number"
)

// Each name is parsed as a human reader would understand it.
func TestHeadings(t *testing.T) {
	const no = "-"
	for name, want := range map[string]struct {
		base  string
		scale float64
		per   string
	}{
		"throughput": {no, 0, ""}, "rate": {no, 0, ""}, "eval/accuracy": {no, 0, ""}, "loss/token": {no, 0, ""}, "items": {no, 0, ""},
		"time (wall)": {no, 0, ""}, "time": {no, 0, ""}, "GPUs": {no, 0, ""}, "p95": {no, 0, ""}, "train_time": {no, 0, ""}, "top1": {no, 0, ""},
		"img/s": {"samples/s", 1, ""}, "images/sec": {"samples/s", 1, ""}, "img_s": {"samples/s", 1, ""}, "images_per_second": {"samples/s", 1, ""},
		"imagesPerSec": {"samples/s", 1, ""}, "samplespersec": {"samples/s", 1, ""}, "rate (img/s)": {"samples/s", 1, ""}, "img/s (batch 32)": {"samples/s", 1, ""},
		"kimg/s": {"samples/s", 1e3, ""}, "B tokens/s": {"tokens/s", 1e9, ""}, "rate (k img/s)": {"samples/s", 1e3, ""}, "thousand images per second": {"samples/s", 1e3, ""},
		"images_per_hour": {"samples/s", 1. / 3600, ""}, "img/min": {"samples/s", 1. / 60, ""}, "fps": {"samples/s", 1, ""},
		"img/sec/GPU": {"samples/s", 1, number.PerDevice}, "img/sec per GPU": {"samples/s", 1, number.PerDevice}, "images/sec/GPU": {"samples/s", 1, number.PerDevice},
		"img/s (per GPU)": {"samples/s", 1, number.PerDevice}, "Throughput per GPU (img/s)": {"samples/s", 1, number.PerDevice}, "img_s_gpu": {"samples/s", 1, number.PerDevice},
		"samples/s/node": {"samples/s", 1, number.PerNode}, "samples per second per worker": {"samples/s", 1, number.PerDevice}, "images/sec/card": {"samples/s", 1, number.PerDevice},
		"train/device/samples_per_sec": {"samples/s", 1, number.PerDevice}, "train/samples_per_sec": {"samples/s", 1, ""},
		"throughput_per_gpu": {number.AnyQuantity, 1, number.PerDevice}, "throughput/node": {number.AnyQuantity, 1, number.PerNode}, "perf/throughput/device": {number.AnyQuantity, 1, number.PerDevice},
		"Throughput (T/s)": {"tokens/s", 1, ""}, "Throughput (T/s/GPU)": {"tokens/s", 1, number.PerDevice}, "Throughput (S/s)": {"samples/s", 1, ""},
		"tokens_per_sec_per_device": {"tokens/s", 1, number.PerDevice}, "tok/s/gpu": {"tokens/s", 1, number.PerDevice}, "tps": {"tokens/s", 1, ""}, "TGS": {"tokens/s", 1, number.PerDevice},
		"Mtok/s": {"tokens/s", 1e6, ""}, "tokens/day": {"tokens/s", 1. / 86400, ""}, "k tokens/s": {"tokens/s", 1e3, ""}, "tokens/s (global)": {"tokens/s", 1, ""},
		"requests/s": {"requests/s", 1, ""}, "Failures/s": {"", 0, ""}, "rps": {"requests/s", 1, ""}, "QPS": {"requests/s", 1, ""}, "reqs_per_min": {"requests/s", 1. / 60, ""},
		"MB/s": {"B/s", 1e6, ""}, "GiB/s": {"B/s", 1 << 30, ""}, "TFLOP/s/GPU": {"FLOP/s", 1e12, number.PerDevice}, "kframes/s": {"samples/s", 1e3, ""}, "Gbit/s": {"B/s", 0.125e9, ""},
		"time (ms)": {"s", 1e-3, ""}, "elapsed_ms": {"s", 1e-3, ""}, "Milliseconds": {"s", 1e-3, ""}, "hours": {"s", 3600, ""}, "time (h)": {"s", 3600, ""},
		"time [min]": {"s", 60, ""}, "p95_us": {"s", 1e-6, ""}, "rate[ms]": {"s", 1e-3, ""}, "step time (s)": {"s", 1, ""}, "step_ms": {"s", 1e-3, ""}, "time (s)": {"s", 1, ""},
		"seconds per epoch": {"s", 1, ""}, "train/step_ms": {"s", 1e-3, ""}, "s": {"s", 1, ""},
		"img s⁻¹ GPU⁻¹": {"samples/s", 1, number.PerDevice}, "img/s each": {"samples/s", 1, number.PerDevice}, "rank mean img/s": {"samples/s", 1, number.PerDevice},
		"it/s": {"samples/s+steps", 1, ""}, "steps_per_sec": {"samples/s+steps", 1, ""}, "s/it": {"samples/s+each", 1, ""}, "ms/step": {"samples/s+each", 1e-3, ""},
		"sec per iteration": {"samples/s+each", 1, ""}, "steps/s/GPU": {"samples/s+steps", 1, number.PerDevice},
		"GPU-hours": {"device-seconds", 3600, ""}, "node hours": {"node-seconds", 3600, ""},
		"top1 %": {"", 0.01, ""}, "acc_pct": {"", 0.01, ""}, "failed (%)": {"", 0.01, ""}, "MFU (%)": {"", 0.01, ""}, "accuracy [percent]": {"", 0.01, ""},
		// They look like units but are unknown.
		"Zettel/s": {"", 0, ""}, "Durchsatz (Zettel/s)": {"", 0, ""}, "ips": {"", 0, ""}, "words/s/GPU": {"", 0, ""}, "proteins per second": {"", 0, ""},
	} {
		h := headingOf(name)
		got := struct {
			base  string
			scale float64
			per   string
		}{no, 0, ""}
		if h.Said != "" {
			got.base = ""
		}
		if len(h.dims) > 0 {
			d := h.dims[0]
			got.base, got.scale, got.per = d.base, d.scale, d.per
			switch {
			case d.each:
				got.base += "+each"
			case d.steps:
				got.base += "+steps"
			}
		}
		if !cmp.Equal(got, want, cmp.AllowUnexported(got)) {
			t.Errorf("%s: %+v; want %+v", name, got, want)
		}
	}
}
