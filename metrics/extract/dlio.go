package extract

import (
	"io"
	"math"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// dlio reads summary.json of DLIO, which MLPerf Storage also writes for each run. DLIO reads
// samples from storage, but only decodes their container format. It emulates an accelerator by
// sleeping for the time that a real training step takes.
var dlio = Extractor{
	Name:  "dlio",
	Kind:  "preprocess",
	Reads: "summary.json of DLIO and MLPerf Storage: train_au_percentage, train_throughput_samples_per_second",
	read:  readDLIO,
}

func readDLIO(l *log, r io.Reader) {
	top := l.object(must(l.json(r)))
	m := l.object(top.of["metric"])
	if m.of["train_throughput_mean_samples_per_second"].null() && m.of["train_au_mean_percentage"].null() {
		return
	}
	ranks := top.count("num_accelerators")
	if ranks.Number < 1 || ranks.Number > 1<<24 {
		l.fail(ranks.Line, "num_accelerators is %g; want 1 or more", ranks.Number)
	}
	l.workersAre(int(ranks.Number), "num_accelerators", ranks.Line)
	if model := top.of["model"]; model.is('"') {
		l.label("workload.model", string(model.text[1:len(model.text)-1]))
	}
	l.note("DLIO's accelerators are sleeps as long as a training's step, and most of its readers decode nothing: this is what storage and reading give, not preprocessing")
	for _, f := range []struct {
		mean, each, ours, unit string
		scale, most            float64
		note                   string
	}{
		{"train_throughput_mean_samples_per_second", "train_throughput_samples_per_second", metrics.FigureThroughput, "samples/s", 1, math.Inf(1),
			"DLIO's mean over epochs, the first included, of all accelerators; by the wall clock, two steps of each epoch left out"},
		{"train_au_mean_percentage", "train_au_percentage", "accelerator_utilisation", "", 0.01, 100, "share of the time in which a simulated accelerator computes; DLIO's mean over epochs and accelerators"},
		{"train_io_mean_MB_per_second", "", measure.SourceRate, "B/s", 1 << 20, math.Inf(1), "MiB/s, though the file calls them MB: samples/s times the size of a sample, whether storage or the page cache had it"},
	} {
		mean, ok := m.number(f.mean)
		if !ok {
			continue
		}
		if !(mean.Number >= 0 && mean.Number <= f.most) {
			l.fail(mean.Line, "%s is %g; that cannot be", f.mean, mean.Number)
		}
		m.agrees(mean, f.mean, f.each)
		l.reduce(metrics.Figure{Name: f.ours, Unit: f.unit, Reduce: "last", Note: f.note}, f.scale, []Value{mean})
	}
	if met := m.of["train_au_meet_expectation"]; met.is('"') && string(met.text) != `"success"` {
		l.note("train_au_meet_expectation is %s: the accelerators waited longer than MLPerf Storage allows, and this is no valid result of it", met.text)
	}
}
